// SPDX-License-Identifier: Apache-2.0
// Tests that parallel_for calls every body once and hands on what they throw.
#include "sim/base/parallel.h"

#include <catch2/catch.hpp>

#include <atomic>
#include <stdexcept>
#include <vector>

#include "sim/base/errors/check.h"

namespace orrery {
namespace {

TEST_CASE("every index is visited once") {
  for (const int threads : {0, 1, 2, 7}) {
    for (const std::size_t count : {std::size_t{0}, std::size_t{1}, std::size_t{5000}}) {
      std::vector<std::atomic<int>> visits(count);
      parallel_for(count, threads, [&](std::size_t i) { ++visits[i]; });
      std::size_t once = 0;
      for (const auto& visit : visits) once += visit == 1;
      CHECK(once == count);
    }
  }
}

TEST_CASE("an exception reaches the caller after the running bodies ended") {
  for (const int threads : {1, 2, 4}) {
    std::atomic<int> running{0};
    const auto body = [&](std::size_t i) {
      ++running;
      if (i % 100 == 42) {
        --running;
        throw Error({.found = "index 42"});
      }
      --running;
    };
    CHECK_THROWS_AS(parallel_for(1000, threads, body), Error);
    CHECK(running == 0);
    // The pool works on after a failure.
    std::atomic<int> visited{0};
    parallel_for(100, threads, [&](std::size_t) { ++visited; });
    CHECK(visited == 100);
  }
}

TEST_CASE("loops nest") {
  std::atomic<int> visited{0};
  parallel_for(8, 2, [&](std::size_t) { parallel_for(8, 2, [&](std::size_t) { ++visited; }); });
  CHECK(visited == 64);
  CHECK(hardware_threads() >= 1);
}

}  // namespace
}  // namespace orrery
