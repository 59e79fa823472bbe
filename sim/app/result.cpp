// Writes results to stdout.
#include "sim/app/result.h"

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>

#include "sim/base/interrupt.h"
#include "sim/base/machine_failed.h"

namespace orrery {

void write_result(const std::string& text) {
  const bool written = std::fwrite(text.data(), 1, text.size(), stdout) == text.size();
  if (!written || std::fflush(stdout) != 0)
    throw MachineFailed({.file = "stdout",
                         .found = std::strerror(errno),
                         .expected = "a place that takes the result"});
}

ExitCode unless_stopped(ExitCode code) {
  switch (interrupting_signal()) {
    case 0:
      return code;
    case SIGTERM:
      return ExitCode::terminated;
    default:
      return ExitCode::interrupted;
  }
}

std::string page(const Document& document, const CommonFlags& common) {
  return common.markdown ? document.markdown() : document.text();
}

}  // namespace orrery
