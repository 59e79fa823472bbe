// SPDX-License-Identifier: Apache-2.0
// Tells on which of several clusters a job is done best, and on which it cannot be.
#pragma once

#include "sim/app/answer/answer.h"
#include "sim/app/ask/answers.h"
#include "sim/app/line/command.h"
#include "sim/base/json/json.h"

namespace orrery {

// Advises on each cluster by itself, prints them in the order of the objective, least first, and
// why the others are left out. Exit code 3 where the job runs on none.
ExitCode advise_machines(const JsonValue& settings, const Given& given, const CommonFlags& common);
// The same for machines.
MachineAnswer machines_for_machines(const JsonValue& settings, const AskedWith& with);
WholeAnswer whole_answer_of_machines(const JsonValue& settings, const AskedWith& with);

}  // namespace orrery
