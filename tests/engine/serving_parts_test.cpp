// SPDX-License-Identifier: Apache-2.0
// Holds the parts of a serving engine against slow and plain ones: blocks, decodes, gaps, queues.
#include <catch2/catch.hpp>
#include <map>
#include <set>
#include <vector>

#include <rapidcheck.h>

#include "sim/base/statistics.h"
#include "sim/engine/serving/block_pool.h"
#include "sim/engine/serving/decode_set.h"
#include "sim/engine/serving/gap_histogram.h"
#include "sim/engine/serving/request_queue.h"
#include "sim/engine/serving/winner_tree.h"
#include "tests/engine/serving_case.h"

namespace orrery {

TEST_CASE("law 10: blocks of a pool are free, used or cached, in every tier") {
  CHECK(rc::check([] {
    CaseDraws d;
    const std::int64_t unit_blocks = d.between(1, 4);
    PoolShape shape{.blocks = unit_blocks * d.between(8, 20) + d.between(0, 3),
                    .unit_blocks = unit_blocks};
    for (std::int64_t tiers = d.between(0, 3); tiers > 0; --tiers)
      shape.tier_units.push_back(d.between(0, 6));
    BlockPool pool(shape);
    // Texts branch: unit u follows unit u / 2.
    struct Holder {
      std::vector<std::uint32_t> text;
      std::size_t units = 0;
      std::int64_t own = 0;
    };
    std::vector<Holder> holders;
    for (int step = 0; step < 300; ++step) {
      const std::int64_t choice = d.between(0, 3);
      if (choice == 0 && holders.size() < 5) {
        Holder h;
        for (auto u = static_cast<std::uint32_t>(d.between(1, 63)); u > 0; u /= 2)
          h.text.insert(h.text.begin(), u);
        const PoolMatch match = pool.match(h.text);
        std::int64_t lying = 0;
        for (const std::int64_t n : match.in_tier) lying += n;
        RC_ASSERT(lying == match.units);
        if ((match.below() + match.idle) * unit_blocks > pool.available()) continue;
        h.units = static_cast<std::size_t>(match.units);
        pool.hold(std::span(h.text).first(h.units));
        holders.push_back(h);
      } else if (choice == 1 && !holders.empty()) {  // computes a unit
        Holder& h = holders[static_cast<std::size_t>(
            d.between(0, static_cast<std::int64_t>(holders.size()) - 1))];
        if (pool.available() < unit_blocks) continue;
        pool.take(unit_blocks);
        if (h.units < h.text.size())
          pool.keep(h.text[h.units++]);
        else
          h.own += unit_blocks;
      } else if (choice == 2 && !holders.empty()) {
        Holder& h = holders.back();
        if (pool.available() == 0) continue;
        const std::int64_t more = d.between(1, std::min<std::int64_t>(pool.available(), 3));
        pool.take(more);
        h.own += more;
      } else if (choice == 3 && !holders.empty()) {
        const auto which = d.between(0, static_cast<std::int64_t>(holders.size()) - 1);
        Holder& h = holders[static_cast<std::size_t>(which)];
        pool.give_back(h.own);
        pool.release(std::span(h.text).first(h.units));
        holders.erase(holders.begin() + which);
      }
      RC_ASSERT(pool.consistent());
      RC_ASSERT(pool.free() >= 0);
      RC_ASSERT(pool.free() + pool.used() + pool.cached() == pool.blocks());
      for (std::size_t t = 0; t < shape.tier_units.size(); ++t)
        RC_ASSERT(pool.tier_units(t + 1) <= shape.tier_units[t]);
      // What is cached of a text is its beginning, and who holds a unit holds all before it.
      std::set<std::uint32_t> held;
      for (const Holder& h : holders)
        held.insert(h.text.begin(), h.text.begin() + static_cast<std::ptrdiff_t>(h.units));
      RC_ASSERT(pool.used() >= static_cast<std::int64_t>(held.size()) * unit_blocks);
    }
    for (const Holder& h : holders) {
      pool.give_back(h.own);
      pool.release(std::span(h.text).first(h.units));
    }
    RC_ASSERT(pool.used() == 0);
  }));
}

TEST_CASE("units are evicted least recently used first, from the end of a text") {
  BlockPool pool({.blocks = 6, .unit_blocks = 2, .tier_units = {1}});
  const std::vector<std::uint32_t> text = {7, 8, 9};
  pool.take(6);
  for (const std::uint32_t unit : text) pool.keep(unit);
  pool.release(text);
  CHECK(pool.cached() == 6);
  pool.take(1);
  CHECK(pool.match(text).in_tier[0] == 2);
  CHECK(pool.match(text).in_tier[1] == 1);
  pool.take(2);  // unit 8 goes down, unit 9 out
  CHECK(pool.match(text).units == 2);
  pool.give_back(3);
  pool.hold(std::span(text).first(2));
  CHECK(pool.used() == 4);
  CHECK(pool.tier_units(1) == 0);
  CHECK(pool.consistent());
}

TEST_CASE("law: steps of decodes in closed form are those of one member at a time") {
  CHECK(rc::check([] {
    CaseDraws d;
    const std::int64_t block = d.between(1, 20);
    DecodeSet set(block, 0);
    struct Member {
      std::int64_t cached, remaining;
    };
    std::map<std::uint32_t, Member> plain;
    std::uint64_t serial = 0;
    const auto blocks = [&](std::int64_t tokens) { return (tokens + block - 1) / block; };
    for (int step = 0; step < 60; ++step) {
      for (std::uint32_t slot = 0; slot < 16; ++slot)
        if (!plain.contains(slot) && d.between(0, 3) == 0) {
          plain[slot] = {d.between(1, 100), d.between(1, 60)};
          set.join(slot, plain[slot].cached, plain[slot].remaining, serial++);
        }
      if (plain.empty()) continue;
      if (d.between(0, 3) == 0) {
        set.leave(plain.begin()->first);
        plain.erase(plain.begin());
        if (plain.empty()) continue;
      }
      std::int64_t shortest = 1000, tokens = 0, held = 0;
      for (const auto& [slot, m] : plain) {
        shortest = std::min(shortest, m.remaining);
        tokens += m.cached;
        held += blocks(m.cached);
        RC_ASSERT(set.cached(slot) == m.cached);
        RC_ASSERT(set.remaining(slot) == m.remaining);
      }
      RC_ASSERT(set.steps_to_finish() == shortest);
      RC_ASSERT(set.tokens() == tokens);
      RC_ASSERT(set.blocks() == held);
      const std::int64_t n = d.between(1, shortest);
      std::int64_t needed = 0;
      for (const auto& [slot, m] : plain) needed += blocks(m.cached + n) - blocks(m.cached);
      RC_ASSERT(set.blocks_needed(n) == needed);
      const std::int64_t few = d.between(0, 2 * needed + 1),
                         within = set.steps_within(few, shortest);
      RC_ASSERT(set.blocks_needed(within) <= few);
      RC_ASSERT((within == shortest || set.blocks_needed(within + 1) > few));
      std::vector<std::uint32_t> finished;
      set.advance(n, finished);
      std::set<std::uint32_t> expected;
      for (auto& [slot, m] : plain) {
        m.cached += n;
        m.remaining -= n;
        if (m.remaining == 0) expected.insert(slot);
      }
      RC_ASSERT(std::set<std::uint32_t>(finished.begin(), finished.end()) == expected);
      for (const std::uint32_t slot : expected) plain.erase(slot);
      RC_ASSERT(set.count() == static_cast<std::int64_t>(plain.size()));
    }
  }));
}

TEST_CASE(
    "law: a histogram of gaps counts series as their members, and percentiles to a thousandth") {
  CHECK(rc::check([] {
    CaseDraws d;
    GapHistogram whole, single;
    std::vector<double> all;
    for (int i = 0; i < 20; ++i) {
      const Ticks gap{d.between(0, 1) == 0 ? d.between(0, 5000) : d.between(0, 1'000'000'000'000)};
      const Ticks slope{d.between(0, 3) == 0 ? 0 : d.between(0, 1'000'000)};
      const std::int64_t steps = d.between(1, 50), each = d.between(1, 4);
      whole.add_series(gap, slope, steps, each);
      for (std::int64_t s = 0; s < steps; ++s) {
        single.add(gap + slope * s, each);
        for (std::int64_t e = 0; e < each; ++e) all.push_back(to_seconds(gap + slope * s).si());
      }
    }
    RC_ASSERT(whole == single);
    RC_ASSERT(std::abs(whole.mean().si() - mean(all)) <= 1e-9 * mean(all));
    std::sort(all.begin(), all.end());
    for (const double p : {1.0, 50.0, 95.0, 99.0, 100.0}) {
      const double exact =
          all[static_cast<std::size_t>(std::ceil(p / 100 * static_cast<double>(all.size()))) - 1];
      RC_ASSERT(std::abs(whole.percentile(p).si() - exact) <= 5e-4 * exact + 1e-12);
    }
  }));
}

TEST_CASE("a queue gives by priority, then in order, and takes back in front") {
  const std::vector<std::int32_t> priorities = {5, 1, 5};
  RequestQueue queue(priorities);
  for (std::uint32_t i = 0; i < 20; ++i)
    queue.push_back(queue.level(static_cast<std::int32_t>(i % 3)), {.request = i});
  CHECK(queue.size() == 20);
  for (std::uint32_t i = 1; i < 20; i += 3) {
    CHECK(queue.front().request == i);
    queue.pop();
  }
  CHECK(queue.front().request == 0);
  queue.push_front(queue.level(0), {.request = 99});
  CHECK(queue.front().request == 99);
  queue.pop();
  CHECK(queue.front().request == 0);
  queue.pop();
  CHECK(queue.front().request == 2);
  CHECK(queue.level(7) == queue.level(0));
}

TEST_CASE("the winner of a tree is the first of the least") {
  CHECK(rc::check([] {
    CaseDraws d;
    const auto count = static_cast<std::size_t>(d.between(1, 40));
    WinnerTree<std::int64_t> tree(count, 3);
    std::vector<std::int64_t> plain(count, 3);
    for (int i = 0; i < 100; ++i) {
      const auto which =
          static_cast<std::size_t>(d.between(0, static_cast<std::int64_t>(count) - 1));
      plain[which] = d.between(0, 6);
      tree.set(which, plain[which]);
      const auto least = std::min_element(plain.begin(), plain.end());
      RC_ASSERT(tree.best() == static_cast<std::size_t>(least - plain.begin()));
      RC_ASSERT(tree.least() == *least);
    }
  }));
}

}  // namespace orrery
