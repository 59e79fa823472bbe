// SPDX-License-Identifier: Apache-2.0
// Holds the formulas of overlap to sums by hand, and to their limits.
#include <rapidcheck.h>

#include <catch2/catch.hpp>

#include "sim/engine/step/overlap.h"

using namespace orrery;

TEST_CASE("a bucket that nothing hides shows whatever the pass beside it takes") {
  // Eight buckets of 2 s under a pass of 100 s: seven hide, the last one waits for the pass' end.
  CHECK(exposed(Seconds(16), Seconds(100), 1, 8, 0) == Seconds(2));
  // One bucket holds everything: nothing hides.
  CHECK(exposed(Seconds(16), Seconds(100), 1, 1, 0) == Seconds(16));
  // No pass, or none of it: the same.
  CHECK(exposed(Seconds(16), Seconds(0), 1, 8, 0) == Seconds(16));
  CHECK(exposed(Seconds(16), Seconds(100), 0, 8, 0) == Seconds(16));
  CHECK(exposed(Seconds(0), Seconds(100), 1, 8, 0.5) == Seconds(0));
}

TEST_CASE("traffic that outlasts its window shows its rest, and hidden traffic its cost") {
  // 10 s of a pass of 20 s hide 10 of 16 s, which cost the kernels 3 s at 0.3.
  CHECK(exposed(Seconds(16), Seconds(20), 0.5, 8, 0) == Seconds(6));
  CHECK(exposed(Seconds(16), Seconds(20), 0.5, 8, 0.3).si() == Approx(9));
  // What hides at full cost is not hidden.
  CHECK(exposed(Seconds(16), Seconds(100), 1, 8, 1) == Seconds(16));
  // Nemotron-4 15B on 1,024 H100 (docs/physics/exposed.md), in ms.
  CHECK(exposed(milliseconds(89.61), milliseconds(435.5), 0.6, 7.63, 0.45).si() ==
        Approx(0.04678).epsilon(1e-3));
}

TEST_CASE("a pass takes the longer of its streams and what the shorter costs it") {
  CHECK(joined(Seconds(10), Seconds(4), 0) == Seconds(10));
  CHECK(joined(Seconds(4), Seconds(10), 0) == Seconds(10));
  CHECK(joined(Seconds(10), Seconds(4), 0.5) == Seconds(12));
  CHECK(joined(Seconds(10), Seconds(4), 1) == Seconds(14));
  CHECK(joined(Seconds(10), Seconds(0), 0.5) == Seconds(10));
}

TEST_CASE("keys and values hide under attention, and under what shows of them already") {
  // 6 s under 10 s of attention: hidden. At a cost of 0.5 they take 3 s of it.
  CHECK(beside_attention(Seconds(6), Seconds(10), Seconds(0), 0) == Seconds(0));
  CHECK(beside_attention(Seconds(6), Seconds(10), Seconds(0), 0.5) == Seconds(3));
  // 15 s under 10 s of attention and 2 s that show already: 3 s more.
  CHECK(beside_attention(Seconds(15), Seconds(10), Seconds(2), 0) == Seconds(3));
  CHECK(beside_attention(Seconds(15), Seconds(10), Seconds(2), 0.5) == Seconds(8));
}

TEST_CASE("traffic that nobody waits for costs no more than the pass that it runs beside") {
  CHECK(beside_pass(Seconds(4), Seconds(10), 0.5) == Seconds(2));
  CHECK(beside_pass(Seconds(20), Seconds(10), 0.5) == Seconds(5));
}

namespace {

Seconds any_time() { return milliseconds(*rc::gen::inRange(0, 100000)); }
double any_share() { return *rc::gen::inRange(0, 1001) / 1000.0; }
double any_buckets() { return 1 + *rc::gen::inRange(0, 100000) / 100.0; }

// At most, but for rounding.
bool at_most(Seconds a, Seconds b) { return a.si() <= b.si() + 1e-12 * (1 + b.si()); }

}  // namespace

TEST_CASE("law of overlap: at least one bucket shows and never more than the traffic") {
  CHECK(rc::check([] {
    const Seconds traffic = any_time(), hidden = any_time();
    const double window = any_share(), buckets = any_buckets(), cost = any_share();
    const Seconds shown = exposed(traffic, hidden, window, buckets, cost);
    RC_ASSERT(at_most(traffic / buckets, shown));
    RC_ASSERT(at_most(traffic - hidden * window, shown));
    RC_ASSERT(at_most(shown, traffic));
    // Each argument moves it one way.
    RC_ASSERT(at_most(shown, exposed(traffic + any_time(), hidden, window, buckets, cost)));
    RC_ASSERT(at_most(exposed(traffic, hidden + any_time(), window, buckets, cost), shown));
    const double wider = window + (1 - window) * any_share();
    RC_ASSERT(at_most(exposed(traffic, hidden, wider, buckets, cost), shown));
    RC_ASSERT(at_most(exposed(traffic, hidden, window, buckets + any_buckets(), cost), shown));
    const double dearer = cost + (1 - cost) * any_share();
    RC_ASSERT(at_most(shown, exposed(traffic, hidden, window, buckets, dearer)));
  }));
}

TEST_CASE("law of overlap: a pass is no shorter than a stream and no longer than both") {
  CHECK(rc::check([] {
    const Seconds compute = any_time(), side = any_time();
    const double cost = any_share();
    const Seconds pass = joined(compute, side, cost);
    RC_ASSERT(at_most(compute, pass));
    RC_ASSERT(at_most(side, pass));
    RC_ASSERT(at_most(pass, compute + side));
    RC_ASSERT(at_most(pass, joined(compute + any_time(), side, cost)));
    RC_ASSERT(at_most(pass, joined(compute, side + any_time(), cost)));
    RC_ASSERT(at_most(pass, joined(compute, side, cost + (1 - cost) * any_share())));
    RC_ASSERT(pass == joined(side, compute, cost));
  }));
}

TEST_CASE("law of overlap: a ring adds no more than its traffic") {
  CHECK(rc::check([] {
    const Seconds traffic = any_time(), attention = any_time(), shown = any_time();
    const double cost = any_share();
    const Seconds added = beside_attention(traffic, attention, shown, cost);
    RC_ASSERT(at_most(Seconds(0), added));
    RC_ASSERT(at_most(added, traffic));
    RC_ASSERT(at_most(added, beside_attention(traffic + any_time(), attention, shown, cost)));
    RC_ASSERT(at_most(beside_attention(traffic, attention, shown + any_time(), cost), added));
    const double dearer = cost + (1 - cost) * any_share();
    RC_ASSERT(at_most(added, beside_attention(traffic, attention, shown, dearer)));
  }));
}
