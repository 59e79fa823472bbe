// SPDX-License-Identifier: Apache-2.0
// Knows the flags that write an answer to look at: --html FILE and --plots DIR.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "sim/app/answer/whole.h"
#include "sim/app/line/command.h"

namespace orrery {

std::vector<Flag> look_flags();

// The settings of a prediction that is looked at: the pipeline in time is shown unless they say
// otherwise.
JsonValue with_timeline(const JsonValue& settings);

// Where an answer to look at goes; empty: it is not asked for.
struct LookFiles {
  std::string html, plots;
  bool any() const { return !html.empty() || !plots.empty(); }
};
LookFiles look_files(const Given& given);

// Before work begins: Error, or MachineFailed, where what was asked for could not be written.
void check_looks(const LookFiles& files);
// Writes what was asked for.
void write_looks(const LookFiles& files, const WholeAnswer& answer);

// The same of what a line gave; the whole answer is asked for only where it is needed.
bool asks_to_look(const Given& given);
void check_looks(const Given& given);
void write_looks(const Given& given, const std::function<WholeAnswer()>& whole);

}  // namespace orrery
