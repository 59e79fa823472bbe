// SPDX-License-Identifier: Apache-2.0
// Knows whether the user pressed Ctrl-C: long work polls it and stops with what it has.
#pragma once

namespace orrery {

// SIGINT and SIGTERM set the flag; a second one ends the process.
void install_interrupt_handler();
bool interrupted();
int interrupting_signal();         // 0: none came
void set_interrupted(bool value);  // for tests: as SIGINT does

}  // namespace orrery
