// Starts Orrery.
#include "sim/app/commands.h"

int main(int argc, char** argv) { return orrery::run_command_line(argc, argv); }
