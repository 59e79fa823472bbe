// SPDX-License-Identifier: Apache-2.0
// Writes results to stdout.
#include "sim/app/line/result.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "sim/base/errors/interrupt.h"
#include "sim/base/errors/machine_failed.h"
#include "sim/question/settings/counts.h"

namespace orrery {

// A signal in the middle of writing must not lose half of a result.
void write_result(const std::string& text) {
  bool written = std::fflush(stdout) == 0;
  for (std::size_t at = 0; written && at < text.size();) {
    const ssize_t some = write(STDOUT_FILENO, text.data() + at, text.size() - at);
    if (some >= 0) at += static_cast<std::size_t>(some);
    written = some >= 0 || errno == EINTR;
  }
  if (!written)
    throw MachineFailed({.file = "stdout",
                         .found = std::strerror(errno),
                         .expected = "a place that takes the result"});
}

ExitCode write_result(const Printed& printed) {
  write_result(printed.text);
  return printed.code;
}

std::size_t terminal_width() {
  constexpr std::int64_t narrowest = 80, widest = 140;
  if (isatty(STDOUT_FILENO) == 0) return page_width;
  const char* set = std::getenv("COLUMNS");
  std::int64_t columns = set == nullptr ? 0 : whole_in(set).value_or(0);
  winsize size{};
  if (columns <= 0 && ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0) columns = size.ws_col;
  if (columns <= 0) return page_width;
  return static_cast<std::size_t>(std::clamp(columns, narrowest, widest));
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
