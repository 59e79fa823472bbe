// SPDX-License-Identifier: Apache-2.0
// Checks what schedulers, routers and fleets do, on small cases that can be followed by hand.
#include <sys/resource.h>

#include <catch2/catch.hpp>
#include <cmath>

#include "tests/base/error_text.h"
#include "tests/engine/serving_by_hand.h"
#include "workloads/traffic/trace.h"

namespace orrery {
namespace {

std::int64_t microseconds_of(Ticks t) { return t.ps / 1'000'000; }

}  // namespace

TEST_CASE("serving: decodes go first and prompts are cut to the rest of the budget") {
  const AffinePrices prices = flat();
  const RequestList list = list_of({{.prompt = 100, .output = 4}, {.prompt = 150, .output = 2}});
  for (const SchedulerKind kind : {SchedulerKind::vllm, SchedulerKind::simple}) {
    const ServiceTimeline t = serve(list, fleet_of(prices, kind), {});
    // Steps: 100 of the first; 1 + 99; 1 + 51 with its first token; 1 + 1.
    CHECK(microseconds_of(t.requests[0].first) == 1);
    CHECK(microseconds_of(t.requests[0].last) == 4);
    CHECK(microseconds_of(t.requests[1].scheduled) == 1);
    CHECK(microseconds_of(t.requests[1].first) == 3);
    CHECK(microseconds_of(t.requests[1].last) == 4);
    CHECK(t.totals.steps == 4);
    CHECK(t.totals.mixed_steps == 2);
    CHECK(t.totals.decode_steps == 1);
  }
}

TEST_CASE("serving: a host that plans ahead lets a request in a step later") {
  AffinePrices prices = flat();
  prices.launch = 400'000;
  const auto first_of = [&](bool ahead, std::int32_t output, std::int64_t arrival) {
    const RequestList list = list_of(
        {{.prompt = 50, .output = output}, {.arrival = Ticks{arrival}, .prompt = 50, .output = 2}});
    ServingFleet fleet = fleet_of(prices, SchedulerKind::vllm);
    fleet.engines.shape.plans_ahead = ahead;
    return microseconds_of(serve(list, fleet, {}).requests[1].first);
  };
  // It comes during the third step, whether that is the last of the other request or not.
  CHECK(first_of(false, 9, 2'500'000) == 4);
  CHECK(first_of(true, 9, 2'500'000) == 5);
  CHECK(first_of(true, 3, 2'500'000) == 4);
  // It comes while the other's prompt is launched, before anything ran, or as a step is planned.
  CHECK(first_of(true, 9, 300'000) == 2);
  CHECK(first_of(true, 9, 600'000) == 3);
  CHECK(first_of(true, 9, 0) == 1);
  CHECK(first_of(true, 9, 3'000'000) == 4);
}

TEST_CASE("serving: what a step made waits until the next prompts are launched") {
  AffinePrices prices = flat();
  prices.launch = 800'000;
  AffineTransfers transfers;
  const RequestList list = list_of({{.prompt = 100, .output = 3}, {.prompt = 100, .output = 3}});
  const auto served = [&](bool late, bool apart) {
    ServingFleet fleet = fleet_of(prices, SchedulerKind::sglang);
    fleet.engines.shape.plans_ahead = true;
    fleet.engines.shape.reads_after_launch = late;
    fleet.transfers = &transfers;
    if (apart) fleet.decode = fleet.engines;
    return serve(list, fleet, {});
  };
  // A prompt in each of the first two steps. The host launches the second one's from 0.8 to 1.6 us,
  // and reads the first one's token then. Decodes follow, in a graph.
  const ServiceTimeline usual = served(false, false), late = served(true, false);
  CHECK(usual.requests[0].first.ps == 1'000'000);
  CHECK(late.requests[0].first.ps == 1'600'000);
  CHECK(late.requests[1].first == usual.requests[1].first);
  for (const std::size_t i : {0, 1})
    CHECK(late.requests[i].last == usual.requests[i].last + Ticks{1});
  // An engine that decodes hears of it as late.
  CHECK(served(true, true).totals.on_the_way ==
        served(false, true).totals.on_the_way + 600'000 + 1);
}

TEST_CASE("serving: each token of a prompt passes the tokeniser") {
  const AffinePrices prices = flat();
  const RequestList list = list_of({{.prompt = 90, .output = 1}, {.prompt = 10, .output = 1}});
  ServingFleet fleet = fleet_of(prices, SchedulerKind::vllm);
  fleet.engines.policy.front = Ticks{5'000'000};
  fleet.engines.policy.front_token = Ticks{100'000};
  const ServiceTimeline t = serve(list, fleet, {});
  CHECK(microseconds_of(t.requests[0].scheduled) == 14);
  CHECK(microseconds_of(t.requests[1].scheduled) == 6);  // the shorter one overtakes it
  CHECK(t.requests[0].arrival == t.requests[1].arrival);
}

TEST_CASE("serving: SGLang's prompts go first, alone") {
  const AffinePrices prices = flat();
  RequestList list = list_of(
      {{.prompt = 90, .output = 4}, {.arrival = Ticks{1'500'000}, .prompt = 150, .output = 2}});
  ServingFleet fleet = fleet_of(prices, SchedulerKind::sglang);
  fleet.engines.policy.chunk = 100;
  const ServiceTimeline t = serve(list, fleet, {});
  // 90; a decode; 100 and 50 of the second alone; then both decode, then the first alone.
  CHECK(microseconds_of(t.requests[0].first) == 1);
  CHECK(microseconds_of(t.requests[1].first) == 4);
  CHECK(microseconds_of(t.requests[1].last) == 5);
  CHECK(microseconds_of(t.requests[0].last) == 6);
  CHECK(t.totals.mixed_steps == 0);
  CHECK(t.gaps.largest().ps == 3'000'000);  // the first waited for two steps of a prompt
  fleet.engines.policy.mixed_steps = true;
  CHECK(serve(list, fleet, {}).gaps.largest().ps == 1'000'000);
}

TEST_CASE("serving: vLLM takes blocks from the last one, TensorRT-LLM promises them") {
  const AffinePrices prices = flat();
  const RequestList list = list_of({{.prompt = 20, .output = 40}, {.prompt = 20, .output = 40}});
  ServingFleet fleet = fleet_of(prices, SchedulerKind::vllm);
  fleet.engines.shape.blocks = 8;
  const ServiceTimeline v = serve(list, fleet, {});
  CHECK(v.requests[0].preemptions == 0);
  CHECK(v.requests[1].preemptions >= 1);
  CHECK(v.totals.recomputed >= 20);
  CHECK(microseconds_of(v.requests[1].first) == 1);
  fleet.engines.policy.scheduler = SchedulerKind::trtllm;
  const ServiceTimeline t = serve(list, fleet, {});
  CHECK(t.totals.preemptions == 0);
  CHECK(t.requests[1].scheduled == t.requests[0].last);
  fleet.engines.policy.capacity = CapacityPolicy::max_utilisation;
  CHECK(serve(list, fleet, {}).totals.preemptions >= 1);
  // SGLang admits what would fit alone beside what the others hold now, where nothing is reserved.
  RequestList later = list;
  later.requests[1].arrival = Ticks{1'500'000};
  fleet.engines.policy.scheduler = SchedulerKind::sglang;
  fleet.engines.shape.blocks = 10;
  CHECK(serve(later, fleet, {}).totals.preemptions == 0);
  fleet.engines.policy.new_tokens.initial = fleet.engines.policy.new_tokens.lowest = 0;
  CHECK(serve(later, fleet, {}).totals.preemptions == 1);
}

TEST_CASE("serving: later turns find what the earlier ones left") {
  const AffinePrices prices = flat();
  Traffic traffic{.arrivals = OfflineArrivals{}, .requests = 1};
  traffic.classes = {{"one", 1, FixedLength{40}, FixedLength{21}}};
  traffic.sessions = Sessions{.turns = FixedLength{3},
                              .added = FixedLength{5},
                              .think = microseconds(100),
                              .unit_tokens = 10};
  const RequestList list = make_requests(traffic, 3);
  ServingFleet fleet = fleet_of(prices, SchedulerKind::vllm);
  const ServiceTimeline t = serve(list, fleet, {});
  // 40 + 20 tokens with keys and values are 6 units; 66 + 20 are 8.
  CHECK(t.requests[0].cached == 0);
  CHECK(t.requests[1].cached == 60);
  CHECK(t.requests[2].cached == 80);
  CHECK(t.requests[1].arrival > t.requests[0].last);
  fleet.engines.policy.prefix_cache = false;
  CHECK(serve(list, fleet, {}).totals.cached == 0);
}

TEST_CASE("serving: what a preempted request finds of its own is no cached prompt") {
  const AffinePrices prices = flat();
  RequestList list = list_of({{.prompt = 20, .output = 40}, {.prompt = 20, .output = 40}});
  list.hash_tokens = 10;
  list.hashes = std::make_shared<std::vector<std::uint32_t>>(
      std::vector<std::uint32_t>{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11});
  list.requests[0].hashes = list.requests[1].hashes = 6;
  list.requests[1].first_hash = 6;
  ServingFleet fleet = fleet_of(prices, SchedulerKind::vllm);
  fleet.engines.shape.blocks = 8;
  const ServiceTimeline t = serve(list, fleet, {});
  CHECK(t.requests[1].preemptions >= 1);
  CHECK(t.totals.found_again > 0);
  CHECK(t.totals.cached == 0);
  CHECK(t.totals.prompts == 40);
}

TEST_CASE("serving: a sequence takes blocks of its states and window beside those of its tokens") {
  CHECK(SequenceBlocks{.states = 3}.of(1000) == 3);
  const SequenceBlocks window{.states = 1, .window = 6, .window_tokens = 30};
  CHECK(window.of(5) == 2);
  CHECK(window.of(29) == 7);
  CHECK(window.of(1000) == 7);
  const AffinePrices prices = flat();
  RequestList list;
  list.requests.assign(3, {.prompt = 15, .output = 4});
  ServingFleet fleet = fleet_of(prices, SchedulerKind::vllm);
  fleet.engines.shape.blocks = 10;
  for (const SchedulerKind kind : {SchedulerKind::vllm, SchedulerKind::trtllm}) {
    fleet.engines.policy.scheduler = kind;
    fleet.engines.shape.beside = {};
    CHECK(microseconds_of(serve(list, fleet, {}).requests[2].first) == 1);
    // Two blocks of tokens and three of states: two run at once.
    fleet.engines.shape.beside.states = 3;
    const ServiceTimeline t = serve(list, fleet, {.check = true});
    CHECK(microseconds_of(t.requests[1].first) == 1);
    CHECK(t.requests[2].scheduled == t.requests[0].last);
    CHECK(t.totals.preemptions == 0);
  }
  fleet.engines.shape.beside.states = 9;
  CHECK(count_requests(serve(list, fleet, {})).rejected == 3);
}

TEST_CASE("serving: engines take memory for the sequences that they had, not that they may have") {
  const AffinePrices prices = flat();
  RequestList list;
  list.concurrency = 4;  // one clock holds all engines
  list.requests.assign(40, {.prompt = 10, .output = 3});
  ServingFleet fleet = fleet_of(prices, SchedulerKind::vllm);
  fleet.engines.replicas = 256;
  fleet.engines.policy.max_sequences = fleet.engines.policy.token_budget = 16'384;
  const auto peak_kib = [] {
    rusage usage{};
    getrusage(RUSAGE_SELF, &usage);
    return usage.ru_maxrss;
  };
  const long before = peak_kib();
  CHECK(count_requests(serve(list, fleet, {})).finished == 40);
  CHECK(peak_kib() - before < 64 * 1024);
}

TEST_CASE("serving: what memory evicts comes back from a tier below, in its time") {
  const AffinePrices prices = flat();
  RequestList list = list_of({{.prompt = 45, .output = 1},
                              {.arrival = Ticks{5'000'000}, .prompt = 60, .output = 1},
                              {.arrival = Ticks{9'000'000}, .prompt = 45, .output = 1}});
  list.hash_tokens = 10;
  list.hashes = std::make_shared<std::vector<std::uint32_t>>(
      std::vector<std::uint32_t>{0, 1, 2, 3, 4, 5, 6, 7, 8, 9});
  list.requests[0].hashes = list.requests[2].hashes = 4;
  list.requests[1].first_hash = 4;
  list.requests[1].hashes = 6;
  ServingFleet fleet = fleet_of(prices, SchedulerKind::vllm);
  fleet.engines.shape.blocks = 7;
  CHECK(serve(list, fleet, {}).requests[2].cached <= 10);
  fleet.engines.shape.token = bytes(1000);
  fleet.engines.policy.tiers = {{"host", bytes(1e6), bytes_per_second(1e10)}};
  const ServiceTimeline t = serve(list, fleet, {});
  CHECK(t.requests[2].cached == 40);
  const std::int64_t loaded = t.totals.from_tiers;
  CHECK(loaded >= 30);
  CHECK((t.requests[2].last - t.requests[2].arrival).ps == 1'000'000 + loaded * 100'000);
}

TEST_CASE("serving: drafts make steps of several tokens") {
  const AffinePrices prices = flat();
  const RequestList list = list_of({{.prompt = 10, .output = 31}});
  ServingFleet fleet = fleet_of(prices, SchedulerKind::vllm);
  fleet.engines.shape.speculation = {.drafts = 2, .survival = {1, 1}};
  const ServiceTimeline all = serve(list, fleet, {});
  CHECK(microseconds_of(all.requests[0].last) == 11);
  CHECK(all.totals.accepted == 20);
  fleet.engines.shape.speculation.survival = {0, 0};
  CHECK(microseconds_of(serve(list, fleet, {}).requests[0].last) == 31);
  fleet.engines.shape.speculation.survival = {0.8, 0.5};
  RequestList many = list;
  many.requests.assign(400, many.requests.front());
  const ServiceTimeline some = serve(many, fleet, {});
  const double steps = static_cast<double>(some.totals.drafted) / 2;
  CHECK(static_cast<double>(some.totals.accepted) / steps == Approx(1.3).epsilon(0.06));
}

TEST_CASE("serving: ranks of one engine wait for the slowest") {
  AffinePrices prices = flat();
  prices.token = 10'000;
  const RequestList list = list_of({{.prompt = 100, .output = 5}, {.prompt = 10, .output = 5}});
  ServingFleet fleet = fleet_of(prices, SchedulerKind::vllm);
  fleet.engines.shape.ranks = 2;
  const ServiceTimeline t = serve(list, fleet, {});
  CHECK(t.requests[0].first.ps == 2'000'000);
  CHECK(t.requests[1].first == t.requests[0].first);
  CHECK(t.requests[1].last == t.requests[0].last);
}

TEST_CASE("serving: prompts of a rank wait for those of the others, as long as they may") {
  const AffinePrices prices = flat();  // a step takes a microsecond
  const auto at = [](std::int64_t us) { return Ticks{us * 1'000'000}; };
  // Two that decode from the first step on; a third comes to rank 0, then a fourth to rank 1.
  RequestList list = list_of({{.prompt = 10, .output = 60},
                              {.prompt = 10, .output = 60},
                              {.arrival = at(10), .prompt = 10, .output = 2},
                              {.arrival = at(15), .prompt = 10, .output = 2}});
  ServingFleet fleet = fleet_of(prices, SchedulerKind::trtllm);
  fleet.engines.shape.ranks = 2;
  fleet.engines.policy.balance_steps = 20;
  const ServiceTimeline both = serve(list, fleet, {});
  CHECK(both.requests[2].scheduled == at(15));
  CHECK(both.requests[3].scheduled == at(15));
  // Alone it waits until 20 steps have passed since one of the ranks had nothing to decode.
  list.requests.pop_back();
  const ServiceTimeline alone = serve(list, fleet, {});
  CHECK(alone.requests[2].scheduled == at(20));
  // Where a rank decodes nothing, none waits.
  list.requests[1].output = 1;
  CHECK(serve(list, fleet, {}).requests[2].scheduled == at(10));
  list.requests[1].output = 60;
  fleet.engines.policy.balance_steps = 0;
  CHECK(serve(list, fleet, {}).requests[2].scheduled == at(10));
}

TEST_CASE("serving: a prefill engine keeps blocks until they were sent") {
  const AffinePrices prices = flat();
  AffineTransfers transfers;
  transfers.token = 1'000'000;
  const RequestList list = list_of({{.prompt = 60, .output = 3}, {.prompt = 60, .output = 3}});
  ServingFleet fleet = fleet_of(prices, SchedulerKind::vllm);
  fleet.decode = fleet.engines;
  fleet.transfers = &transfers;
  fleet.engines.shape.blocks = 10;  // of one prompt, not of two
  const ServiceTimeline t = serve(list, fleet, {});
  // The engine that decodes hands out the first token.
  const std::int64_t sent = 60 * transfers.token + transfers.wait;
  CHECK(t.requests[0].first.ps == 1'000'000 + sent);
  CHECK(t.requests[0].last.ps == t.requests[0].first.ps + 2'000'000);
  CHECK(t.requests[1].first.ps == t.requests[0].first.ps + 1'000'000 + sent);
}

TEST_CASE("serving: a prompt's last token is computed where its request decodes") {
  const AffinePrices prices = flat();
  AffineTransfers transfers;
  const RequestList list = list_of({{.prompt = 60, .output = 3}, {.prompt = 60, .output = 1}});
  ServingFleet fleet = fleet_of(prices, SchedulerKind::vllm);
  fleet.engines.policy.first_token_anew = true;
  fleet.decode = fleet.engines;
  fleet.transfers = &transfers;
  const ServiceTimeline t = serve(list, fleet, {.check = true});
  const std::int64_t there = 1'000'000 + 60 * transfers.token + transfers.wait;
  CHECK(t.requests[0].first.ps == there + 1'000'000);  // a step later than what was found before
  CHECK(t.requests[0].last.ps == there + 3'000'000);
  CHECK(t.requests[1].first.ps == 2'000'000);  // in the second step, with nothing to decode
  CHECK(t.totals.emitted == 4);
  CHECK(t.totals.prefilled == 60 + 60 + 1);
}

TEST_CASE("serving: a first token waits for room where its request decodes") {
  const AffinePrices prices = flat();
  AffineTransfers transfers;
  const RequestList list = list_of({{.prompt = 60, .output = 9}, {.prompt = 60, .output = 9}});
  for (const SchedulerKind kind :
       {SchedulerKind::vllm, SchedulerKind::sglang, SchedulerKind::trtllm, SchedulerKind::simple}) {
    INFO(to_text(kind));
    ServingFleet fleet = fleet_of(prices, kind);
    fleet.decode = fleet.engines;
    fleet.decode->policy.max_sequences = 1;
    fleet.transfers = &transfers;
    const ServiceTimeline t = serve(list, fleet, {});
    // Our own engine's first tokens come from where prompts are.
    const bool waits = kind != SchedulerKind::simple;
    CHECK((t.requests[1].first >= t.requests[0].last) == waits);
    CHECK(t.requests[1].last.ps == t.requests[0].last.ps + 8'000'000);
  }
}

TEST_CASE("serving: batches of a pipeline follow each other through its stages") {
  const AffinePrices prices = flat();
  const RequestList list = list_of({{.prompt = 10, .output = 5}, {.prompt = 10, .output = 5}});
  ServingFleet fleet = fleet_of(prices, SchedulerKind::vllm);
  fleet.engines.shape.lanes = 2;
  const ServiceTimeline t = serve(list, fleet, {});
  CHECK(t.requests[0].first.ps == 1'000'000);
  CHECK(t.requests[1].first.ps == 1'500'000);  // the first stage was free after half a step
  CHECK(t.requests[0].last.ps == 5'000'000);
  CHECK(t.requests[1].last.ps == 5'500'000);
}

TEST_CASE("serving: routers spread requests as their names say") {
  const AffinePrices prices = flat();
  Traffic traffic{.arrivals = PoissonArrivals{Hertz(4e4)}, .requests = 2000};
  traffic.classes = {{"a", 1, UniformLength{1, 300}, UniformLength{1, 60}},
                     {"b", 1, FixedLength{30}, FixedLength{10}}};
  const RequestList list = make_requests(traffic, 5);
  double random = 0, two = 0, least = 0;
  for (const RouterKind kind : {RouterKind::random, RouterKind::power_of_two,
                                RouterKind::least_requests, RouterKind::by_class}) {
    ServingFleet fleet = fleet_of(prices, SchedulerKind::vllm);
    fleet.engines.replicas = 4;
    fleet.engines.router.kind = kind;
    const ServiceTimeline t = serve(list, fleet, {});
    const double ttft = summarise(list, t).ttft.mean.si();
    if (kind == RouterKind::random) random = ttft;
    if (kind == RouterKind::power_of_two) two = ttft;
    if (kind == RouterKind::least_requests) least = ttft;
    for (std::size_t i = 0; i < t.requests.size() && kind == RouterKind::by_class; ++i)
      REQUIRE(t.requests[i].replica == list.requests[i].class_index);
  }
  CHECK(least < two);
  CHECK(two < random);
}

TEST_CASE("serving: a router that knows prefixes finds more of them") {
  const AffinePrices prices = flat();
  Traffic traffic{.arrivals = PoissonArrivals{Hertz(2e3)}, .requests = 100};
  traffic.classes = {{"a", 1, FixedLength{100}, FixedLength{20}}};
  traffic.sessions = Sessions{.turns = FixedLength{5},
                              .added = FixedLength{30},
                              .think = milliseconds(1),
                              .unit_tokens = 10};
  const RequestList list = make_requests(traffic, 5);
  ServingFleet fleet = fleet_of(prices, SchedulerKind::vllm);
  fleet.engines.shape.blocks = 10'000;
  fleet.engines.replicas = 4;
  std::int64_t cached[3] = {};
  const RouterKind kinds[] = {RouterKind::random, RouterKind::prefix, RouterKind::session};
  for (int i = 0; i < 3; ++i) {
    fleet.engines.router.kind = kinds[i];
    cached[i] = serve(list, fleet, {}).totals.cached;
  }
  CHECK(cached[1] > 2 * cached[0]);
  CHECK(cached[2] == cached[1]);
}

TEST_CASE("serving: what does not fit or would wait too long is rejected") {
  const AffinePrices prices = flat();
  RequestList list = list_of({{.prompt = 2000, .output = 1}, {.prompt = 10, .output = 10}});
  ServingFleet fleet = fleet_of(prices, SchedulerKind::vllm);
  const ServiceTimeline t = serve(list, fleet, {});
  CHECK(t.requests[0].state == RequestState::rejected);
  CHECK(count_requests(t).finished == 1);
  list.requests.assign(40, {.prompt = 10, .output = 10});
  fleet.engines.policy.queue_limit = 3;
  CHECK(count_requests(serve(list, fleet, {})).rejected == 37);
}

TEST_CASE("serving: stopping keeps what was served") {
  const AffinePrices prices = flat();
  Traffic traffic{.arrivals = ClosedLoop{4}, .requests = 400'000};
  traffic.classes = {{"a", 1, FixedLength{10}, FixedLength{5}}};
  const RequestList list = make_requests(traffic, 1);
  std::atomic<bool> stop = false;
  std::int64_t seen = 0;
  ServingOptions options{.stop = &stop, .progress = [&](std::int64_t done) {
                           seen = done;
                           stop = true;
                         }};
  const ServiceTimeline t = serve(list, fleet_of(prices, SchedulerKind::vllm), options);
  CHECK(t.stopped);
  CHECK(seen > 0);
  const RequestCounts counts = count_requests(t);
  CHECK(counts.finished >= seen);
  CHECK(counts.finished < 400'000);
  CHECK(counts.arrived == counts.finished + counts.running + counts.queued);
}

TEST_CASE("serving: targets are held against percentiles and each request") {
  const AffinePrices prices = flat();
  RequestList list = list_of({{.prompt = 10, .output = 2}, {.prompt = 10, .output = 2}});
  list.requests[1].arrival = Ticks{500'000};
  const ServiceTimeline t = serve(list, fleet_of(prices, SchedulerKind::vllm), {});
  // First tokens after 1 and 1.5 us.
  const TargetResult both = against(parse_target("ttft.p95=2us,tpot.mean=1us", "--slo"), list, t);
  CHECK(both.share == 1);
  CHECK(both.kept == std::vector<bool>{true, true});
  const TargetResult half = against(parse_target("ttft.p50=1.2us", "--slo"), list, t);
  CHECK(half.share == 0.5);
  CHECK(half.kept == std::vector<bool>{false});
  CHECK(half.reached[0].si() == Approx(1.25e-6));
}

TEST_CASE("serving: who was rejected keeps no promise") {
  const AffinePrices prices = flat();
  RequestList list;
  list.requests.assign(10, {.prompt = 10, .output = 2});
  ServingFleet fleet = fleet_of(prices, SchedulerKind::vllm);
  fleet.engines.policy.queue_limit = 5;
  const ServiceTimeline t = serve(list, fleet, {});
  REQUIRE(count_requests(t).rejected == 5);
  const TargetResult r =
      against(parse_target("ttft.p50=2us,ttft.p60=2us,tpot.mean=9us", "--slo"), list, t);
  CHECK(r.shares == std::vector<double>{0.5, 0.5, 0.5});
  CHECK(r.share == 0.5);
  CHECK(r.kept == std::vector<bool>{true, false, true});  // a mean is of those that were served
  CHECK(r.reached[1].si() == Approx(1e-6));
}

TEST_CASE("serving: fleets that cannot be are refused") {
  const AffinePrices prices = flat();
  const RequestList list = list_of({{.prompt = 10, .output = 2}});
  const auto text = [&](const auto& change) {
    ServingFleet fleet = fleet_of(prices, SchedulerKind::vllm);
    change(fleet.engines);
    return error_text([&] { serve(list, fleet, {}); });
  };
  CHECK(text([](ServingGroup& g) { g.replicas = 0; }) ==
        "fleet: replicas: found 0; expected at least 1");
  CHECK(text([](ServingGroup& g) { g.shape.blocks = 0; }) ==
        "fleet: blocks: found 0; expected at least 1");
  CHECK(text([](ServingGroup& g) { g.policy.token_budget = 7; }).find("token_budget: found 7") !=
        std::string::npos);
  CHECK(text([](ServingGroup& g) { g.policy.watermark = 1; }).find("watermark") !=
        std::string::npos);
}

}  // namespace orrery
