// SPDX-License-Identifier: Apache-2.0
// Knows a program that runs beside this one: what it is told, what it prints, how it ends.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace orrery {

// `words`: the program, found as a shell does, and its arguments. MachineFailed where it cannot
// be started. It is ended, where it still runs, with this object.
class Child {
 public:
  Child(const std::vector<std::string>& words, std::string_view input);
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;
  ~Child();

  // What it printed meanwhile, appended; waits for it at most so long. False: it will print no
  // more.
  bool read(std::string& printed, int milliseconds);
  void send(int signal) const;
  int wait();                  // its exit code; 128 and the signal that ended it
  std::string errors() const;  // of stderr, after wait()

 private:
  int process_ = 0, output_ = -1, errors_ = -1;
  int code_ = -1;
};

struct ChildResult {
  std::string printed, errors;
  int code = 0;
};
// Runs it to its end.
ChildResult run_child(const std::vector<std::string>& words, std::string_view input);

}  // namespace orrery
