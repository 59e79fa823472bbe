// SPDX-License-Identifier: Apache-2.0
// Writes for machines what the commands that take settings found.
#pragma once

#include <string>

#include "sim/app/answer/whole.h"
#include "sim/base/json/tree.h"
#include "sim/paper/document.h"
#include "sim/question/ask.h"

namespace orrery {

// A page of what was found, with what was read of a program's configuration; `full`: with the
// tables that are cut for a terminal.
Document document_of(const Simulated& simulated, bool full, std::size_t width);
Document document_of(const Advised& advised, bool full, std::size_t width);

// The exit code of an answer.
constexpr ExitCode code_of(bool exists) {
  return exists ? ExitCode::answer : ExitCode::cannot_exist;
}

// What was found, for machines.
Json to_json(const Simulated& simulated);
Json to_json(const Advised& advised);
Json to_json(const Planned& planned);

// The answer of a command ("simulate", "advise" or "plan") to one question, for machines.
MachineAnswer answer_for_machines(const std::string& command, const JsonValue& settings,
                                  const AskedWith& with);

// The same with what it says to people.
WholeAnswer whole_answer(const Simulated& simulated);
WholeAnswer whole_answer(const Advised& advised);
WholeAnswer whole_answer(const Planned& planned);
WholeAnswer whole_answer(const std::string& command, const JsonValue& settings,
                         const AskedWith& with);

}  // namespace orrery
