// SPDX-License-Identifier: Apache-2.0
// Holds that the steps which an engine writes down are those that it counts.
#include <catch2/catch.hpp>
#include <map>

#include <rapidcheck.h>

#include "tests/engine/serving_case.h"

namespace orrery {
namespace {

constexpr int cases = 10;  // for each that rapidcheck draws
constexpr std::size_t all = 1 << 20;

}  // namespace

TEST_CASE("law: steps written down are the steps counted, and change nothing") {
  CHECK(rc::check([] {
    for (int number = 0; number < cases; ++number) {
      CaseDraws d;
      const ServingCase c = random_serving(d);
      StepLog log{.most = all};
      const ServiceTimeline with = serve(c.requests, c.fleet, {.log = &log});
      RC_ASSERT(with == serve(c.requests, c.fleet, {}));
      ServiceTotals sum;
      std::map<std::pair<std::int32_t, std::int32_t>, Ticks> ends;
      for (const StepRecord& r : log.steps) {
        RC_ASSERT(r.steps > 0);
        RC_ASSERT(r.start < r.end);
        RC_ASSERT(r.end <= with.end);
        RC_ASSERT(r.running > 0);
        RC_ASSERT(r.decodes > 0 || r.prompt_tokens > 0);
        Ticks& last = ends[{r.replica, r.lane}];
        RC_ASSERT(last <= r.start);  // a batch makes one step after the other
        last = r.end;
        sum.steps += r.steps;
        sum.busy += (r.end - r.start).ps;
        sum.prefilled += r.prompt_tokens * r.steps;
        if (r.prompt_tokens == 0) sum.decode_steps += r.steps;
        if (r.prompt_tokens > 0 && r.decodes > 0) sum.mixed_steps += r.steps;
      }
      RC_ASSERT(sum.steps == with.totals.steps);
      RC_ASSERT(sum.busy == with.totals.busy);
      RC_ASSERT(sum.prefilled == with.totals.prefilled);
      RC_ASSERT(sum.decode_steps == with.totals.decode_steps);
      RC_ASSERT(sum.mixed_steps == with.totals.mixed_steps);
      RC_ASSERT(!log.cut);
    }
  }));
}

TEST_CASE("an engine writes down so many steps and says that there were more") {
  ServingCase c;
  c.requests = make_requests({.arrivals = OfflineArrivals{},
                              .requests = 30,
                              .classes = {{"a", 1, FixedLength{40}, UniformLength{2, 20}}}},
                             1);
  c.fleet.engines = {.shape = {.blocks = 1000}, .prices = c.prices.get(), .replicas = 3};
  StepLog whole{.most = all}, part{.most = 2};
  serve(c.requests, c.fleet, {.log = &whole});
  serve(c.requests, c.fleet, {.log = &part});
  CHECK(!whole.cut);
  CHECK(whole.steps.size() > 6);
  CHECK(part.cut);
  CHECK(part.steps.size() == 6);
  CHECK(part.steps[2].replica == 1);
}

TEST_CASE("the way between engines is part of a request's time") {
  ServingCase c;
  c.requests = make_requests({.arrivals = OfflineArrivals{},
                              .requests = 1,
                              .classes = {{"a", 1, FixedLength{40}, FixedLength{5}}}},
                             1);
  c.fleet.engines = {.shape = {.blocks = 1000}, .prices = c.prices.get()};
  c.fleet.decode = c.fleet.engines;
  c.fleet.transfers = c.transfers.get();
  const ServiceTimeline t = serve(c.requests, c.fleet, {});
  CHECK(t.totals.on_the_way == 40 * c.transfers->token + c.transfers->wait);
  CHECK(t.totals.waited_there == 0);
}

TEST_CASE("a request longer than an engine takes is rejected, one of that length is served") {
  for (const std::int64_t longest : {59, 60}) {
    ServingCase c;
    c.requests = make_requests({.arrivals = OfflineArrivals{},
                                .requests = 3,
                                .classes = {{"a", 1, FixedLength{40}, FixedLength{20}}}},
                               1);
    c.fleet.engines = {.shape = {.blocks = 1000, .longest = longest}, .prices = c.prices.get()};
    const RequestCounts n = count_requests(serve(c.requests, c.fleet, {}));
    CHECK(n.rejected == (longest < 60 ? 3 : 0));
    CHECK(n.finished == (longest < 60 ? 0 : 3));
  }
}

}  // namespace orrery
