// SPDX-License-Identifier: Apache-2.0
// Checks the event queue against an ordered map, and law 2.
#include "sim/engine/event_queue.h"

#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <map>
#include <utility>

#include <catch2/catch.hpp>

#include "sim/base/random.h"
#include "tests/base/fresh_seed.h"

using namespace orrery;

TEST_CASE("events leave in order of time, ties in order of push") {
  EventQueue queue;
  queue.push({30}, {1, 0, 0});
  queue.push({10}, {2, 0, 0});
  const EventHandle cancelled = queue.push({20}, {3, 0, 0});
  queue.push({10}, {4, 7, 8});
  queue.cancel(cancelled);
  queue.cancel(cancelled);  // a stale handle is ignored
  queue.cancel({});
  CHECK(queue.size() == 3);
  Ticks time;
  Event event;
  REQUIRE(queue.pop(time, event));
  CHECK((time.ps == 10 && event.kind == 2));
  REQUIRE(queue.pop(time, event));
  CHECK((time.ps == 10 && event.kind == 4 && event.a == 7 && event.b == 8));
  CHECK(queue.now().ps == 10);
  REQUIRE(queue.pop(time, event));
  CHECK((time.ps == 30 && event.kind == 1));
  CHECK_FALSE(queue.pop(time, event));
  CHECK(queue.empty());
}

TEST_CASE("any mix of push, pop and cancel agrees with an ordered map") {
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    RandomStream random(fresh(6), seed);
    EventQueue queue;
    std::map<std::pair<std::int64_t, std::int64_t>, EventHandle> reference;  // by time, then push
    std::vector<EventHandle> handles;
    std::vector<std::pair<std::int64_t, std::int64_t>> keys;
    // Seeds differ in how much they push and how often they cancel.
    const std::uint64_t pushes = 3 + seed % 4, cancels = seed % 3 * 2;
    bool agree = true;
    std::int64_t now = 0;
    for (int step = 0; step < 5000 && agree; ++step) {
      const std::uint64_t choice = random.below(pushes + cancels + 3);
      if (choice < pushes) {
        const std::int64_t time = now + static_cast<std::int64_t>(random.below(50));
        const auto number = static_cast<std::int64_t>(handles.size());
        handles.push_back(queue.push({time}, {0, number, 0}));
        keys.emplace_back(time, number);
        reference.emplace(keys.back(), handles.back());
      } else if (choice < pushes + cancels && !handles.empty()) {
        const std::size_t which = random.below(handles.size());  // often one that has left already
        queue.cancel(handles[which]);
        reference.erase(keys[which]);
      } else {
        Ticks time;
        Event event;
        const bool popped = queue.pop(time, event);
        agree = popped == !reference.empty();
        if (!popped || !agree) continue;
        agree = std::pair(time.ps, event.a) == reference.begin()->first && time.ps >= now;
        now = time.ps;
        reference.erase(reference.begin());
      }
      agree = agree && queue.size() == reference.size() && queue.now().ps == now;
    }
    CAPTURE(seed);
    REQUIRE(agree);
  }
}

TEST_CASE("law 2: pushing into the past aborts") {
  const pid_t child = fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    std::signal(SIGABRT, SIG_DFL);
    if (std::freopen("/dev/null", "w", stderr) == nullptr) _exit(1);
    EventQueue queue;
    Ticks time;
    Event event;
    queue.push({10}, {});
    queue.pop(time, event);
    queue.push({9}, {});
    _exit(0);
  }
  int status = 0;
  REQUIRE(waitpid(child, &status, 0) == child);
  CHECK(WIFSIGNALED(status));
  CHECK(WTERMSIG(status) == SIGABRT);
}
