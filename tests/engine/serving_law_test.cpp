// SPDX-License-Identifier: Apache-2.0
// Holds the laws of served models on random engines, traffic and fleets.
#include <catch2/catch.hpp>
#include <cmath>

#include <fmt/format.h>
#include <rapidcheck.h>

#include "tests/engine/serving_case.h"

namespace orrery {
namespace {

ServiceTimeline served(const ServingCase& c, ServingOptions options = {}) {
  options.check = true;
  return serve(c.requests, c.fleet, options);
}

constexpr int cases = 20;  // for each that rapidcheck draws

// The settings of a case, for a failure.
std::string described(const ServingCase& c) {
  std::string text;
  for (const ServingGroup* g :
       {&c.fleet.engines, c.fleet.decode ? &*c.fleet.decode : &c.fleet.engines})
    text += fmt::format(
        "{} {} budget {} seqs {} blocks {} x {} chunked {} chunk {} long {} mixed {} ranks {} "
        "ahead {} replicas {} drafts {} watermark {} router {}\n",
        to_text(g->policy.scheduler), to_text(g->policy.capacity), g->policy.token_budget,
        g->policy.max_sequences, g->shape.blocks, g->policy.block_tokens, g->policy.chunked_prefill,
        g->policy.chunk, g->policy.long_prefill, g->policy.mixed_steps, g->shape.ranks,
        g->shape.plans_ahead, g->replicas, g->shape.speculation.drafts, g->policy.watermark,
        to_text(g->router.kind));
  return text;
}

std::int64_t sum_of(const ServingCase& c, const ServiceTimeline& t, std::int32_t Request::*what) {
  std::int64_t sum = 0;
  for (std::size_t i = 0; i < t.requests.size(); ++i)
    if (t.requests[i].state == RequestState::finished) sum += c.requests.requests[i].*what;
  return sum;
}

}  // namespace

TEST_CASE("law 10: requests and tokens of a served model are conserved") {
  CHECK(rc::check([] {
    for (int number = 0; number < cases; ++number) {
      CaseDraws d;
      const ServingCase c = random_serving(d);
      const ServiceTimeline t = served(c);
      const RequestCounts n = count_requests(t);
      RC_LOG() << described(c);
      RC_ASSERT(n.arrived == n.finished + n.running + n.queued + n.rejected + n.lost);
      RC_ASSERT(n.running == 0);
      RC_ASSERT(n.queued == 0);
      RC_ASSERT(t.totals.emitted == sum_of(c, t, &Request::output));
      const std::int64_t prompts = sum_of(c, t, &Request::prompt);
      RC_ASSERT(t.totals.prefilled == prompts - t.totals.cached - t.totals.restored -
                                          t.totals.found_again + t.totals.recomputed);
      RC_ASSERT(t.totals.prompts == prompts);
      RC_ASSERT(t.totals.from_tiers <= t.totals.cached);
      std::int64_t gaps = 0, preemptions = 0, cached = 0;
      for (std::size_t i = 0; i < t.requests.size(); ++i) {
        const RequestRecord& r = t.requests[i];
        preemptions += r.preemptions;
        cached += r.cached;
        if (r.state != RequestState::finished) continue;
        gaps += c.requests.requests[i].output - 1;
        RC_ASSERT(r.arrival <= r.scheduled);
        RC_ASSERT(r.scheduled < r.first);
        RC_ASSERT(r.first <= r.last);
        RC_ASSERT(r.last <= t.end);
      }
      RC_ASSERT(t.totals.preemptions == preemptions);
      RC_ASSERT(t.totals.cached == cached);
      RC_ASSERT(t.gaps.count() == gaps);
    }
  }));
}

TEST_CASE("law 11: requests over time are the sum of their times, exactly") {
  CHECK(rc::check([] {
    for (int number = 0; number < cases; ++number) {
      CaseDraws d;
      const ServingCase c = random_serving(d);
      const ServiceTimeline t = served(c);
      __int128 system = 0, gaps = 0;
      for (std::size_t i = 0; i < t.requests.size(); ++i) {
        const RequestRecord& r = t.requests[i];
        if (r.state == RequestState::rejected)
          system += c.fleet.engines.policy.front_of(c.requests.requests[i].prompt).ps;
        if (r.state != RequestState::finished) continue;
        system += (r.last - r.arrival).ps;
        gaps += (r.last - r.first).ps;
      }
      RC_ASSERT(t.in_system == system);
      RC_ASSERT(t.totals.queued_time == t.totals.waited);
      // The sum of all times between tokens is that of all requests' times behind the first, but
      // for what is read later than it was made.
      gaps -= t.totals.read_late;
      const double mean = t.gaps.count() == 0 ? 0
                                              : static_cast<double>(gaps) * 1e-12 /
                                                    static_cast<double>(t.gaps.count());
      RC_ASSERT(std::abs(t.gaps.mean().si() - mean) <= 1e-12 * mean);
    }
  }));
}

TEST_CASE("law: leaps are the steps one by one, to the picosecond") {
  CHECK(rc::check([] {
    for (int number = 0; number < cases; ++number) {
      CaseDraws d;
      const ServingCase c = random_serving(d);
      const ServiceTimeline leaps = served(c), steps = served(c, {.leaps = false});
      RC_ASSERT(leaps.requests == steps.requests);
      RC_ASSERT(leaps.totals == steps.totals);
      RC_ASSERT(leaps.gaps == steps.gaps);
      RC_ASSERT(leaps == steps);
    }
  }));
}

// An eviction changes what a request that was refused needs, which random cases seldom meet.
TEST_CASE("law: leaps are the steps where cached texts are evicted") {
  CHECK(rc::check([] {
    for (int number = 0; number < 2 * cases; ++number) {
      CaseDraws d;
      ServingCase c;
      Traffic traffic{.arrivals = PoissonArrivals{Hertz(1e6)}, .requests = d.between(5, 20)};
      traffic.classes = {{"a", 1, UniformLength{1, 90}, UniformLength{1, 60}}};
      traffic.sessions = Sessions{.turns = UniformLength{2, 5},
                                  .added = UniformLength{1, 30},
                                  .think = microseconds(static_cast<double>(d.between(1, 20))),
                                  .unit_tokens = 16};
      c.requests = make_requests(traffic, static_cast<std::uint64_t>(d.between(0, 1 << 20)));
      c.fleet.engines = random_group(d, c.requests, c.prices.get());
      ServingGroup& g = c.fleet.engines;
      g.policy.scheduler = d.flag() ? SchedulerKind::vllm : SchedulerKind::simple;
      g.policy.prefix_cache = g.policy.chunked_prefill = true;
      g.policy.block_tokens = 4;
      g.policy.max_sequences = 12;
      g.policy.token_budget = 200;
      g.policy.long_prefill = d.between(8, 200);
      g.shape.blocks = d.between(100, 160);
      g.shape.lanes = g.replicas = 1;
      g.shape.speculation = {};
      RC_ASSERT(served(c) == served(c, {.leaps = false}));
    }
  }));
}

TEST_CASE("law: the same bytes on any number of threads, and of folded engines") {
  CHECK(rc::check([] {
    for (int number = 0; number < cases; ++number) {
      CaseDraws d;
      ServingCase c = random_serving(d);
      c.fleet.engines.replicas = d.between(1, 6);
      if (d.flag()) {  // equal requests for equal engines
        Traffic traffic{.arrivals = OfflineArrivals{}, .requests = d.between(1, 30)};
        const std::int64_t prompt = d.between(1, 50);
        traffic.classes = {{"a", 1, UniformLength{prompt, prompt + (d.flag() ? 1 : 0)},
                            FixedLength{d.between(1, 30)}}};
        c.requests = make_requests(traffic, 1);
        c.fleet.engines.router.kind = RouterKind::round_robin;
      }
      const ServiceTimeline one = served(c, {.threads = 1, .fold = false}),
                            many = served(c, {.threads = 3, .fold = false}),
                            folded = served(c, {.threads = 2});
      RC_ASSERT(one == many);
      RC_ASSERT(one == folded);
    }
  }));
}

}  // namespace orrery
