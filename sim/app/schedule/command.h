// SPDX-License-Identifier: Apache-2.0
// The command `schedule`: a list of jobs on one cluster, by each of several policies.
#pragma once

#include <cstdint>
#include <optional>

#include "sim/app/answer/whole.h"
#include "sim/app/line/command.h"
#include "sim/question/schedule/schedule.h"

namespace orrery {

Command schedule_command();
// The answer to a question that was asked before.
MachineAnswer schedule_again(const JsonValue& question, std::optional<std::uint64_t> seed,
                             int threads);
// The answer to a question with what it says to people. Error: a seed where nothing is drawn.
WholeAnswer schedule_answer(const JsonValue& settings, const ScheduleWith& with);
// What was found, for machines, and with what it says to people.
WholeAnswer whole_answer(const Scheduled& scheduled);

}  // namespace orrery
