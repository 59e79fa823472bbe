// SPDX-License-Identifier: Apache-2.0
// Knows an answer with what a page shows of it: charts, report, command line, file for a meeting.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "sim/base/json/json.h"
#include "sim/question/settings/catalogues.h"

namespace orrery {

struct ViewAsked {
  std::string command;                  // of settings_commands()
  JsonValue question;                   // an object with the keys of settings
  std::vector<std::string> parts = {};  // of view_parts(); none: the answer by itself
};
const std::vector<std::string>& view_parts();

// From what a client sent. Errors name what is wrong.
ViewAsked read_view(const std::string& command, const std::string& body,
                    const std::vector<std::string>& parts);

// Without parts the very text of --json, which is part "text"; else {"answer", and each part}.
// Errors as the command's own.
std::string view_text(const ViewAsked& asked, Catalogues& catalogues, int threads,
                      const std::function<void(double share, std::int64_t count)>& progress = {});

}  // namespace orrery
