// SPDX-License-Identifier: Apache-2.0
// Finds a command by the name that a shared question has.
#include "sim/app/shared_command.h"

#include "sim/app/commands.h"
#include "sim/base/errors/check.h"

namespace orrery {

Command shared_command(const SharedRun& run, const std::string& folder) {
  for (const Command& command : commands())
    if (command.name == run.command && command.share != nullptr) return command;
  throw Error({.file = run_file(folder).string(),
               .path = "orrery.command",
               .found = in_quotes(run.command),
               .expected = "a command that takes --results"});
}

}  // namespace orrery
