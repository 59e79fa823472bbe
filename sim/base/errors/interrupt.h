// SPDX-License-Identifier: Apache-2.0
// Knows whether the user pressed Ctrl-C: long work polls it and stops with what it has.
#pragma once

#include <csignal>

namespace orrery {

// SIGINT and SIGTERM set the flag; a second one ends the process.
void install_interrupt_handler();
bool interrupted();
int interrupting_signal();         // 0: none came
void set_interrupted(bool value);  // for tests: as SIGINT does

// For a program that is not ours: while it lives SIGINT sets the flag, however often it comes; then
// what was there before comes back, and the flag is down. One at a time, on the main thread.
class InterruptWatch {
 public:
  InterruptWatch();
  InterruptWatch(const InterruptWatch&) = delete;
  InterruptWatch& operator=(const InterruptWatch&) = delete;
  ~InterruptWatch();

 private:
  struct sigaction before_ {};
};

}  // namespace orrery
