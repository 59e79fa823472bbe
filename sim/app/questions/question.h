// SPDX-License-Identifier: Apache-2.0
// Answers a question of any command that takes settings: for whoever asks in JSON.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "sim/app/answer/whole.h"
#include "sim/base/json/json.h"
#include "sim/question/settings/catalogues.h"

namespace orrery {

// simulate, advise, plan, serve and schedule.
const std::vector<std::string>& settings_commands();

struct QuestionHow {
  Catalogues& catalogues;
  std::optional<std::uint64_t> seed = {};
  int threads = 0;  // 0: all cores
  // share: of the work that is done; count: layouts simulated, steps searched, requests served,
  // runs of schedule.
  std::function<void(double share, std::int64_t count)> progress = {};
};

// `settings` on top of `base`. Errors as the command's own.
WholeAnswer answer_question(const std::string& command, const JsonValue& base,
                            const SortedJson& settings, const QuestionHow& how);

}  // namespace orrery
