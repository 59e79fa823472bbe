// SPDX-License-Identifier: Apache-2.0
// Starts Orrery.
#include <malloc.h>

#include <csignal>

#include "sim/app/commands.h"

namespace {

// Most runs last milliseconds: memory that is given back to the kernel is asked for again, page by
// page. `tests/bench/start_time` prints what that costs.
void keep_memory() {
  constexpr int megabyte = 1 << 20;
  mallopt(M_TRIM_THRESHOLD, 256 * megabyte);
  mallopt(M_TOP_PAD, megabyte);
  mallopt(M_MMAP_THRESHOLD, 16 * megabyte);
}

}  // namespace

int main(int argc, char** argv) {
  keep_memory();
  // A limit of a file's size is a write that fails, as on a full disk, not the end of the process.
  std::signal(SIGXFSZ, SIG_IGN);
  return orrery::run_command_line(argc, argv);
}
