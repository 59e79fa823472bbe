// SPDX-License-Identifier: Apache-2.0
// Tests programs that run beside this one.
#include "sim/base/child.h"

#include <catch2/catch.hpp>
#include <chrono>
#include <csignal>

#include "sim/base/errors/machine_failed.h"

namespace orrery {

TEST_CASE("a child is told, prints, and ends with its code") {
  const std::string much(3 << 20, 'x');
  const ChildResult echoed = run_child({"cat"}, much);
  CHECK(echoed.code == 0);
  CHECK(echoed.printed == much);
  const ChildResult failed = run_child({"sh", "-c", "echo wrong >&2; exit 3"}, "");
  CHECK(failed.code == 3);
  CHECK(failed.errors == "wrong\n");
  CHECK(failed.printed.empty());
  CHECK_THROWS_AS(Child({"no-such-program-anywhere"}, ""), MachineFailed);
}

TEST_CASE("a child is stopped by a signal, and ends with its object") {
  Child child({"sleep", "600"}, "");
  std::string printed;
  CHECK(child.read(printed, 0));
  child.send(SIGINT);
  CHECK(child.wait() == 128 + SIGINT);
  CHECK_FALSE(child.read(printed, 1000));
  const auto begin = std::chrono::steady_clock::now();
  { const Child other({"sleep", "600"}, ""); }
  CHECK(std::chrono::steady_clock::now() - begin < std::chrono::seconds(60));
}

}  // namespace orrery
