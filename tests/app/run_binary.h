// Knows how to run the built binary as a user would.
#pragma once

#include <sys/wait.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <unistd.h>

namespace orrery::test {

struct Outcome {
  int code = -1;
  std::string out, err;
};

inline std::string read_file(const std::filesystem::path& file) {
  std::ifstream in(file, std::ios::binary);
  std::stringstream text;
  text << in.rdbuf();
  return text.str();
}

// A folder of this process that is removed at the end.
class Scratch {
 public:
  Scratch() : folder_(std::filesystem::temp_directory_path() /
                      ("orrery_test_" + std::to_string(::getpid()))) {
    std::filesystem::create_directories(folder_);
  }
  ~Scratch() { std::filesystem::remove_all(folder_); }
  std::string path(const std::string& name) const { return (folder_ / name).string(); }
  std::string write(const std::string& name, const std::string& text) const {
    std::ofstream(folder_ / name, std::ios::binary) << text;
    return path(name);
  }

 private:
  std::filesystem::path folder_;
};

// Runs the binary with shell-quoted arguments.
inline Outcome run(const std::string& arguments) {
  static const Scratch scratch;
  const std::string out = scratch.path("out"), err = scratch.path("err");
  const std::string command = std::string(ORRERY_BINARY) + " " + arguments + " >" + out + " 2>" + err;
  const int status = std::system(command.c_str());
  return {.code = WIFEXITED(status) ? WEXITSTATUS(status) : 128,
          .out = read_file(out), .err = read_file(err)};
}

inline long lines(const std::string& text) {
  return static_cast<long>(std::count(text.begin(), text.end(), '\n'));
}

}  // namespace orrery::test
