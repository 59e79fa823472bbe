// SPDX-License-Identifier: Apache-2.0
// Knows how to run the built binary as a user would.
#pragma once

#include <sys/wait.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include "tests/base/scratch_folder.h"

namespace orrery::test {

struct Outcome {
  int code = -1;  // 128 + the signal that ended it
  std::string out, err;
};

inline std::string read_file(const std::filesystem::path& file) {
  std::ifstream in(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

// Runs a shell command, which must leave stdout and stderr alone.
inline Outcome run_shell(const std::string& command) {
  const ScratchFolder scratch("run");
  const std::string out = scratch / "out", err = scratch / "err";
  const int status = std::system(("{ " + command + "; } >" + out + " 2>" + err).c_str());
  return {.code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status),
          .out = read_file(out),
          .err = read_file(err)};
}

// Runs the binary with shell-quoted arguments.
inline Outcome run(const std::string& arguments) {
  return run_shell(std::string(ORRERY_BINARY) + " " + arguments);
}

// Writes a file into the folder and returns its path as an argument.
inline std::string add(const ScratchFolder& folder, const std::string& name,
                       const std::string& text) {
  return folder.add(name, text).string();
}

inline long lines(const std::string& text) {
  return static_cast<long>(std::count(text.begin(), text.end(), '\n'));
}

}  // namespace orrery::test
