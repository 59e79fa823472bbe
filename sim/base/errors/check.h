// SPDX-License-Identifier: Apache-2.0
// Knows how Orrery fails: CHECK aborts on our own mistake, Error reports the user's.
#pragma once

#include <exception>
#include <string>
#include <string_view>
#include <vector>

namespace orrery {

// The user's mistake: where it is (file, path in it), what was found there, what was expected.
// Commands print message() on stderr and exit with code 2. Empty parts are left out.
struct ErrorInfo {
  std::string file = {};      // file name, or "--flag" for an argument
  std::string path = {};      // path inside the file, such as "memory.bandwidth"
  std::string found = {};     // what stands there
  std::string expected = {};  // what should stand there
  std::string nearest = {};   // the nearest valid name, when a name was not known
};

class Error : public std::exception {
 public:
  explicit Error(ErrorInfo info);
  const char* what() const noexcept override { return message_.c_str(); }
  const std::string& message() const { return message_; }
  const ErrorInfo& info() const { return info_; }

 private:
  ErrorInfo info_;
  std::string message_;  // one line: "file: path: found X; expected Y; did you mean Z?"
};

// User's text between quotes for a message: at most 60 bytes of it, cut between characters.
std::string in_quotes(std::string_view text);

// The entry of `names` with the least edit distance to `name`, or "" when none is near
// (distance above a third of the longer name's length, at least 2).
std::string nearest_name(std::string_view name, const std::vector<std::string>& names);

[[noreturn]] void check_failed(const char* condition, const char* file, int line,
                               const std::string& message);

}  // namespace orrery

// Aborts with the condition, the place and a message when our own invariant does not hold. Headers
// use this name: Catch2 has a CHECK_THAT of its own, which tests may have included before.
#define ORRERY_CHECK(condition, message)                                               \
  do {                                                                                 \
    if (!(condition)) ::orrery::check_failed(#condition, __FILE__, __LINE__, message); \
  } while (false)

#ifndef CHECK_THAT
#define CHECK_THAT(condition, message) ORRERY_CHECK(condition, message)
#endif
