// SPDX-License-Identifier: Apache-2.0
// Tests how errors read, and that a failed check ends the process.
#include "sim/base/errors/check.h"

#include <sys/wait.h>
#include <unistd.h>
#include <catch2/catch.hpp>

#include <csignal>
#include <cstdio>

namespace orrery {
namespace {

TEST_CASE("an error is one line of place, found, expected and nearest") {
  const Error full({.file = "h100.json",
                    .path = "memory.bandwith",
                    .found = "an unknown key",
                    .expected = "one of bandwidth, capacity",
                    .nearest = "bandwidth"});
  CHECK(full.message() ==
        "h100.json: memory.bandwith: found an unknown key; expected one of bandwidth, capacity; "
        "did you mean \"bandwidth\"?");
  CHECK(std::string(full.what()) == full.message());
  CHECK(full.info().nearest == "bandwidth");
  CHECK(Error({.file = "--tp", .expected = "a divisor of 8"}).message() ==
        "--tp: expected a divisor of 8");
  CHECK(Error({.found = "nothing"}).message() == "found nothing");
  CHECK(Error({.file = "a\nb", .found = "\x01"}).message() == "a\\nb: found \\x01");
}

TEST_CASE("the nearest name is near") {
  const std::vector<std::string> names = {"llama3-8b", "llama3-70b", "mixtral-8x7b", "tp", "pp"};
  CHECK(nearest_name("llama3-7b", names) == "llama3-8b");
  CHECK(nearest_name("llama3-70", names) == "llama3-70b");
  CHECK(nearest_name("Mixtral8x7B", names) == "mixtral-8x7b");
  CHECK(nearest_name("t", names) == "tp");
  CHECK(nearest_name("gpt", names) == "tp");  // two edits are allowed for short names
  CHECK(nearest_name("xyzzy-what-is-this", names).empty());
  CHECK(nearest_name("zz", names).empty());  // no letter is left
  CHECK(nearest_name("", names).empty());
  CHECK(nearest_name("a", {}).empty());
}

TEST_CASE("long text is cut between characters") {
  CHECK(in_quotes("short") == "\"short\"");
  const std::string long_text = std::string(59, 'a') + "\u00e9 and more";
  CHECK(in_quotes(long_text) == "\"" + std::string(59, 'a') + "...\"");
}

TEST_CASE("a failed check aborts") {
  const pid_t child = fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    // Catch2 must not report the child's abort as a failed test.
    std::signal(SIGABRT, SIG_DFL);
    if (!std::freopen("/dev/null", "w", stderr)) _exit(1);
    check_failed("1 == 2", "file.cpp", 3, "one is not two");
  }
  int status = 0;
  REQUIRE(waitpid(child, &status, 0) == child);
  CHECK(WIFSIGNALED(status));
  CHECK(WTERMSIG(status) == SIGABRT);
}

}  // namespace
}  // namespace orrery
