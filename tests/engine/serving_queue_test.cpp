// SPDX-License-Identifier: Apache-2.0
// Holds simulated queues of a served model against their closed forms.
#include <catch2/catch.hpp>
#include <cmath>
#include <vector>

#include <rapidcheck.h>

#include "sim/base/statistics.h"
#include "tests/base/fresh_seed.h"
#include "tests/engine/serving_case.h"

namespace orrery {
namespace {

// Engines that serve one request at a time, each of one output token: `prompt` microseconds.
ServingFleet single_servers(const AffinePrices& prices, std::int64_t servers) {
  ServingFleet fleet;
  fleet.engines.policy.scheduler = SchedulerKind::simple;
  fleet.engines.policy.max_sequences = 1;
  fleet.engines.policy.token_budget = 1'000'000;
  fleet.engines.shape.blocks = 1'000'000;
  fleet.engines.prices = &prices;
  fleet.engines.replicas = servers;
  return fleet;
}

AffinePrices microsecond_per_token() {
  AffinePrices prices;
  prices.base = prices.sequence = prices.context = prices.past = 0;
  prices.token = 1'000'000;
  return prices;
}

struct Estimate {
  double mean = 0, error = 0;
};

// Mean wait over independent runs, the first tenth of each left out.
Estimate mean_wait(const Length& prompt, double rate, std::int64_t servers, std::uint64_t stream) {
  const AffinePrices prices = microsecond_per_token();
  const ServingFleet fleet = single_servers(prices, servers);
  Traffic traffic{.arrivals = PoissonArrivals{Hertz(rate)}, .requests = 20'000, .warmup = 2'000};
  traffic.classes = {{"one", 1, prompt, FixedLength{1}}};
  std::vector<double> means;
  for (std::uint64_t run = 0; run < 30; ++run) {
    const RequestList list = make_requests(traffic, fresh(1000 * stream + run));
    means.push_back(summarise(list, serve(list, fleet, {})).wait.mean.si());
  }
  return {mean(means), sample_deviation(means) / std::sqrt(static_cast<double>(means.size()))};
}

// Crommelin (1932): mean wait of Poisson arrivals at c servers of time 1, each busy a share.
double wait_at_servers(double share, std::int64_t servers) {
  const double c = static_cast<double>(servers), load = share * c;
  double wait = 0;
  for (double i = 1; i < 5000; ++i) {
    const double mass = i * load;
    // Poisson's tail from ic on, and from ic + 1 on.
    double term = std::exp(-mass + i * c * std::log(mass) - log_factorial(i * c)), tail = 0;
    const double first = term;
    for (double j = i * c; term > 1e-18 * first && j < i * c + 5000; ++j) {
      tail += term;
      term *= mass / (j + 1);
    }
    const double more = tail - c / load * (tail - first);
    wait += more;
    if (std::abs(more) < 1e-12) break;
  }
  return wait;
}

}  // namespace

TEST_CASE("law: one server of fixed time waits as M/D/1") {
  CHECK(wait_at_servers(0.7, 1) == Approx(0.7 / (2 * 0.3)).epsilon(1e-6));
  std::uint64_t stream = 0;
  for (const double load : {0.2, 0.5, 0.8}) {
    const double service = 1000e-6;
    const Estimate wait = mean_wait(FixedLength{1000}, load / service, 1, ++stream);
    INFO(load << ": " << wait.mean << " +- " << wait.error);
    CHECK(std::abs(wait.mean - load * service / (2 * (1 - load))) < 3 * wait.error);
  }
}

TEST_CASE("law: servers behind one queue wait as M/D/c") {
  // With one time of service for all, turns are the order in which servers of one queue are free.
  std::uint64_t stream = 10;
  for (const std::int64_t servers : {2, 5}) {
    const double service = 1000e-6, load = 0.8;
    const Estimate wait = mean_wait(
        FixedLength{1000}, load * static_cast<double>(servers) / service, servers, ++stream);
    INFO(servers << ": " << wait.mean << " +- " << wait.error);
    CHECK(std::abs(wait.mean - wait_at_servers(load, servers) * service) < 3 * wait.error);
  }
}

TEST_CASE("law: drawn prompts wait as Pollaczek and Khinchine say") {
  std::uint64_t stream = 20;
  for (const double load : {0.3, 0.7}) {
    const double low = 200, high = 2000, mean_tokens = (low + high) / 2, count = high - low + 1;
    const double square = mean_tokens * mean_tokens + (count * count - 1) / 12;
    const double rate = load / (mean_tokens * 1e-6);
    const Estimate wait = mean_wait(UniformLength{200, 2000}, rate, 1, ++stream);
    INFO(load << ": " << wait.mean << " +- " << wait.error);
    CHECK(std::abs(wait.mean - rate * square * 1e-12 / (2 * (1 - load))) < 3 * wait.error);
  }
}

TEST_CASE("law: a request alone takes its prompt and its steps, exactly") {
  CHECK(rc::check([] {
    CaseDraws d;
    ServingCase c;
    c.prices->piece = d.between(50, 900);
    const std::int64_t prompt = d.between(1, 300), output = d.between(1, 200);
    Traffic traffic{.arrivals = ClosedLoop{1}, .requests = d.between(1, 4)};
    traffic.classes = {{"one", 1, FixedLength{prompt}, FixedLength{output}}};
    c.requests = make_requests(traffic, 1);
    ServingGroup& g = c.fleet.engines;
    g.policy.scheduler = static_cast<SchedulerKind>(d.between(0, 3));
    g.policy.token_budget = d.between(5, 400);
    g.policy.max_sequences = d.between(1, 5);
    g.shape.blocks = 1000;
    g.policy.front = Ticks{d.between(0, 1000)};
    g.prices = c.prices.get();
    Ticks expected = g.policy.front, first;
    if (d.flag()) {
      c.fleet.decode = g;
      c.fleet.transfers = c.transfers.get();
      if (d.flag()) c.transfers->token = c.transfers->wait = 0;
      if (output > 1) expected += c.transfers->on_link(prompt) + c.transfers->latency(prompt);
    }
    for (std::int64_t done = 0; done < prompt;) {
      const std::int64_t tokens = std::min(prompt - done, g.policy.token_budget);
      StepShape shape{.chunks = {{done, tokens}}};
      expected += c.prices->step(shape);
      done += tokens;
    }
    for (std::int64_t i = 1; i < output; ++i)
      expected += c.prices->step({.decodes = 1, .contexts = prompt + i, .sampled = 1});
    for (const RequestRecord& r : serve(c.requests, c.fleet, {}).requests)
      RC_ASSERT((r.last - r.arrival).ps == expected.ps);
  }));
}

TEST_CASE("law: a full engine gives the tokens of its full batch") {
  CHECK(rc::check("saturation", [] {
    CaseDraws d;
    AffinePrices prices;
    prices.context = prices.token = prices.past = 0;
    ServingFleet fleet;
    ServingGroup& g = fleet.engines;
    g.policy.scheduler = d.flag() ? SchedulerKind::vllm : SchedulerKind::simple;
    g.policy.max_sequences = d.between(1, 64);
    g.shape.blocks = 1'000'000;
    g.prices = &prices;
    Traffic traffic{.arrivals = ClosedLoop{g.policy.max_sequences * d.between(2, 4)},
                    .requests = g.policy.max_sequences * 20};
    traffic.classes = {{"one", 1, FixedLength{1}, FixedLength{d.between(500, 900)}}};
    const RequestList list = make_requests(traffic, 1);
    const ServiceSummary s = summarise(list, serve(list, fleet, {}));
    const double full = static_cast<double>(g.policy.max_sequences) /
                        to_seconds(prices.step({.decodes = g.policy.max_sequences})).si();
    RC_ASSERT(s.output_rate <= full * 1.003);
    RC_ASSERT(s.output_rate >= full * 0.99);
  }));
}

TEST_CASE("law: prefill and decode engines in a row serve what the slower ones do") {
  CHECK(rc::check([] {
    CaseDraws d;
    AffinePrices prices;
    prices.context = prices.past = 0;
    prices.token = d.between(1'000, 60'000);
    AffineTransfers transfers;
    transfers.token = d.between(1'000, 60'000);
    ServingFleet fleet;
    fleet.transfers = &transfers;
    const std::int64_t prompt = d.between(50, 400), output = d.between(100, 200);
    ServingGroup& p = fleet.engines;
    p.policy.scheduler = SchedulerKind::simple;
    p.policy.max_sequences = 8;
    p.policy.token_budget = prompt;  // a prompt a step
    p.shape.blocks = 100'000;
    p.prices = &prices;
    p.replicas = d.between(1, 3);
    fleet.decode = p;
    fleet.decode->policy.max_sequences = d.between(1, 16);
    fleet.decode->replicas = d.between(1, 3);
    fleet.decode->router.kind = RouterKind::least_requests;
    const std::int64_t batch = fleet.decode->policy.max_sequences;
    fleet.decode->policy.token_budget = std::max(prompt, batch);
    Traffic traffic{.arrivals = OfflineArrivals{}, .requests = 3000};
    traffic.classes = {{"one", 1, FixedLength{prompt}, FixedLength{output}}};
    const RequestList list = make_requests(traffic, 1);
    const double rate = summarise(list, serve(list, fleet, {})).request_rate;
    const double prefill =
        static_cast<double>(p.replicas) / to_seconds(prices.step({.chunks = {{0, prompt}}})).si();
    const double decode = static_cast<double>(fleet.decode->replicas * batch) /
                          to_seconds(prices.step({.decodes = batch}) * (output - 1)).si();
    const double sent =
        static_cast<double>(p.replicas) / to_seconds(transfers.on_link(prompt)).si();
    const double slowest = std::min({prefill, decode, sent});
    RC_LOG() << rate << " of " << prefill << ", " << decode << ", " << sent;
    RC_ASSERT(rate <= slowest * 1.001);
    // Where both are about as fast batches are not full always.
    RC_ASSERT(rate >=
              slowest * (std::abs(std::min(prefill, sent) / decode - 1) < 0.5 ? 0.85 : 0.95));
  }));
}

TEST_CASE("law: in one order of service a faster engine or less load never hurts") {
  CHECK(rc::check([] {
    CaseDraws d;
    AffinePrices slow, fast;
    fast.base = d.between(1, slow.base);
    fast.token = d.between(0, slow.token);
    fast.context = d.between(0, slow.context);
    Traffic traffic{.arrivals = PoissonArrivals{Hertz(3e4)}, .requests = 50};
    traffic.classes = {{"one", 1, UniformLength{1, 200}, UniformLength{1, 50}}};
    const RequestList list =
        make_requests(traffic, static_cast<std::uint64_t>(d.between(0, 1 << 20)));
    RequestList later = list;  // the same gaps, each so much longer
    const std::int64_t stretch = d.between(1, 4);
    for (Request& r : later.requests) r.arrival = r.arrival * stretch;
    ServingFleet fleet = single_servers(slow, 1);
    const ServiceTimeline base = serve(list, fleet, {}), calm = serve(later, fleet, {});
    fleet.engines.prices = &fast;
    const ServiceTimeline quick = serve(list, fleet, {});
    for (std::size_t i = 0; i < base.requests.size(); ++i) {
      RC_ASSERT(quick.requests[i].last <= base.requests[i].last);
      RC_ASSERT(calm.requests[i].last - calm.requests[i].arrival <=
                base.requests[i].last - base.requests[i].arrival);
    }
  }));
}

TEST_CASE("law: over random engines the time to a first token does not fall with load") {
  double calm = 0, busy = 0;
  CHECK(rc::check([&] {
    CaseDraws d;
    ServingCase c = random_serving(d);
    c.fleet.engines.policy.queue_limit = 0;
    Traffic traffic{.arrivals = PoissonArrivals{Hertz(2e4)}, .requests = 200};
    traffic.classes = {{"one", 1, UniformLength{1, 60}, UniformLength{1, 40}}};
    const auto seed = static_cast<std::uint64_t>(d.between(0, 1 << 20));
    const RequestList seldom = make_requests(traffic, seed);
    traffic.arrivals = PoissonArrivals{Hertz(1e5)};
    const RequestList often = make_requests(traffic, seed);
    c.fleet.engines.shape.blocks += 200;
    if (c.fleet.decode) c.fleet.decode->shape.blocks += 200;
    calm += summarise(seldom, serve(seldom, c.fleet, {})).ttft.mean.si();
    busy += summarise(often, serve(often, c.fleet, {})).ttft.mean.si();
  }));
  CHECK(busy > calm);
}

TEST_CASE("law: a setting at its neutral value leaves the same bytes") {
  CHECK(rc::check([] {
    CaseDraws d;
    ServingCase c = random_serving(d);
    c.requests.hash_tokens = 0;  // nothing is shared
    for (Request& r : c.requests.requests) r.hashes = 0;
    c.fleet.engines.policy.priorities.clear();
    c.fleet.engines.policy.new_tokens.known_ends = false;  // a prefix cache changes what starts
    c.fleet.engines.policy.preemption = Preemption::recompute;
    c.fleet.engines.policy.tiers.clear();
    const ServiceTimeline plain = serve(c.requests, c.fleet, {});
    ServingCase n = c;
    EnginePolicy& policy = n.fleet.engines.policy;
    policy.prefix_cache = !policy.prefix_cache;
    policy.tiers = {{"host", bytes(0), bytes_per_second(1)}};
    policy.priorities = {3, 3};
    if (policy.queue_limit == 0) policy.queue_limit = 1'000'000;
    if (policy.long_prefill == 0) policy.long_prefill = 1'000'000;
    if (n.fleet.engines.shape.speculation.drafts == 0) n.fleet.engines.shape.speculation = {0, {}};
    if (n.fleet.engines.replicas == 1) {
      n.fleet.engines.router.kind = static_cast<RouterKind>(d.between(0, 7));
    }
    RC_ASSERT(serve(n.requests, n.fleet, {}) == plain);
  }));
}

}  // namespace orrery
