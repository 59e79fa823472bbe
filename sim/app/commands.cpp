// SPDX-License-Identifier: Apache-2.0
// Lists the commands and runs the one that a line names.
#include "sim/app/commands.h"

#include <algorithm>
#include <new>

#include "sim/app/answer/failure.h"
#include "sim/app/answer/version.h"
#include "sim/app/ask/advise_command.h"
#include "sim/app/ask/plan_command.h"
#include "sim/app/ask/simulate_command.h"
#include "sim/app/calibrate/command.h"
#include "sim/app/catalog/command.h"
#include "sim/app/diagnose/command.h"
#include "sim/app/line/completion.h"
#include "sim/app/line/help.h"
#include "sim/app/line/line.h"
#include "sim/app/line/result.h"
#include "sim/app/merge_command.h"
#include "sim/app/replay/command.h"
#include "sim/app/rerun_command.h"
#include "sim/app/schedule/command.h"
#include "sim/app/schedule/fill_command.h"
#include "sim/app/serve/command.h"
#include "sim/app/shard_command.h"
#include "sim/app/topology/command.h"
#include "sim/app/validate/command.h"
#include "sim/app/web/command.h"
#include "sim/app/web/worker.h"
#include "sim/base/errors/check.h"
#include "sim/base/errors/machine_failed.h"

namespace orrery {
namespace {

// What follows `calibrate measure`, whose flags are the script's own; nullopt for other commands.
std::optional<std::vector<std::string>> measure_arguments(const std::vector<std::string>& words) {
  std::size_t at = 0;
  while (at < words.size() && words[at] == "--quiet") ++at;
  if (at + 1 >= words.size() || words[at] != "calibrate" || words[at + 1] != "measure")
    return std::nullopt;
  return std::vector<std::string>(words.begin() + static_cast<std::ptrdiff_t>(at) + 2, words.end());
}

ExitCode run_command(const Command& command, const Given& given) {
  return command.run != nullptr ? command.run(given) : write_result(command.answer(given));
}

ExitCode parse_and_run(const std::vector<std::string>& words) {
  if (is_worker_line(words)) return run_worker();
  if (const auto arguments = measure_arguments(words)) calibrate_measure(*arguments);
  const std::vector<Command> known = commands();
  const ParsedLine line = parse_line(words, known);
  if (line.version) {
    write_result(version_text());
    return ExitCode::answer;
  }
  if (!line.shell_files.empty()) {
    write_shell_files(known, line.shell_files);
    return ExitCode::answer;
  }
  if (line.help || words.empty()) {
    write_result(line.command == nullptr ? help_text(known, terminal_width())
                                         : help_text(*line.command, terminal_width()));
    return ExitCode::answer;
  }
  if (line.command == nullptr) throw Error({.found = "no command", .expected = names_of(known)});
  return run_command(*line.command, line.given);
}

ExitCode run_words(const std::vector<std::string>& words) {
  const bool json = std::find(words.begin(), words.end(), "--json") != words.end();
  try {
    return parse_and_run(words);
  } catch (const Error& error) {
    return report_failure(error, json);
  } catch (const std::bad_alloc&) {
    return report_failure(MachineFailed({.found = "not enough memory for this question"}), json);
  } catch (const std::exception& error) {
    return report_fault(error.what(), json);
  }
}

}  // namespace

std::vector<Command> commands() {
  return {advise_command(),   simulate_command(),  plan_command(),     serve_command(),
          validate_command(), calibrate_command(), diagnose_command(), replay_command(),
          schedule_command(), fill_command(),      topology_command(), catalog_command(),
          shard_command(),    merge_command(),     rerun_command(),    web_command()};
}

int run_command_line(int argc, const char* const* argv) {
  return to_int(run_words(std::vector<std::string>(argv + std::min(argc, 1), argv + argc)));
}

}  // namespace orrery
