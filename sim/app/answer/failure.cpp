// SPDX-License-Identifier: Apache-2.0
// Says why a command failed.
#include "sim/app/answer/failure.h"

#include <cstdio>

#include "sim/app/answer/answer.h"
#include "sim/base/errors/cannot_exist.h"
#include "sim/base/errors/machine_failed.h"

namespace orrery {
namespace {

void say(const std::string& line, const ErrorInfo& info, std::string_view kind, bool json) {
  if (json) {
    const std::string text = json_line(error_json(info, kind));
    std::fwrite(text.data(), 1, text.size(), stdout);
    std::fflush(stdout);
  }
  std::fprintf(stderr, "orrery: %s\n", line.c_str());
}

}  // namespace

ExitCode exit_code_of(const Error& error) {
  if (dynamic_cast<const CannotExist*>(&error) != nullptr) return ExitCode::cannot_exist;
  if (dynamic_cast<const MachineFailed*>(&error) != nullptr) return ExitCode::machine_failed;
  return ExitCode::bad_input;
}

std::string_view kind_of(const Error& error) {
  switch (exit_code_of(error)) {
    case ExitCode::cannot_exist:
      return "cannot_exist";
    case ExitCode::machine_failed:
      return "machine_failed";
    default:
      return "bad_input";
  }
}

ExitCode naming_flags(const std::function<ExitCode()>& run,
                      const std::function<Error(const Error&)>& named) {
  try {
    return run();
  } catch (const Error& error) {
    if (exit_code_of(error) != ExitCode::bad_input) throw;
    throw named(error);
  }
}

ExitCode report_failure(const Error& error, bool json) {
  say(error.message(), error.info(), kind_of(error), json);
  return exit_code_of(error);
}

ExitCode report_fault(const std::string& what, bool json) {
  say("a fault of ours, please report it: " + what, {.found = what}, "fault", json);
  return ExitCode::bad_input;
}

}  // namespace orrery
