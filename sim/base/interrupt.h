// Knows whether the user pressed Ctrl-C: long work polls it and stops with what it has.
#pragma once

namespace orrery {

void install_interrupt_handler();  // SIGINT sets the flag; a second SIGINT ends the process
bool interrupted();
void set_interrupted(bool value);  // for tests

}  // namespace orrery
