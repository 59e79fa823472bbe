// SPDX-License-Identifier: Apache-2.0
// Knows the flags that write a launch script of a layout: --slurm FILE and --kubernetes FILE.
#pragma once

#include <string>
#include <vector>

#include "sim/app/line/command.h"
#include "sim/question/ask.h"

namespace orrery {

std::vector<Flag> launch_file_flags();
// Error where they are asked for beside what has no single layout ("several clusters").
void refuse_launch_files(const Given& given, const std::string& found);
// Before work begins: Error where a file could not be written.
void check_launch_files(const Given& given);
// Writes the scripts that were asked for. Error, and nothing is written, where there is no layout
// that exists, no training, or no script for the program or the machine.
void write_launch_files(const Given& given, const Simulated& simulated);
void write_launch_files(const Given& given, const Advised& advised);

}  // namespace orrery
