// SPDX-License-Identifier: Apache-2.0
// Tests what tells one cause from its like: each symptom decides where the others do not.
#include <cmath>

#include <catch2/catch.hpp>

#include "sim/diagnose/observed/observations.h"
#include "tests/diagnose/fault_states.h"

namespace orrery {
namespace {

constexpr double model_noise = 0.08;

HealthyRun pair_of_ranks() { return healthy_run({.layout = {.dp = 2}}, 2); }
HealthyRun one_gpu() {
  HealthyRun run = healthy_run({.model = "llama3.2-1b", .layout = {}, .batch = 1}, 1);
  run.state.trains = false;
  return run;
}

double probability(const HealthyRun& run, const Seen& seen, CauseKind kind) {
  for (const Finding& f : judge(run.state, model_noise, seen, run.links, run.priors))
    if (f.kind == kind) return f.probability;
  return 0;
}

// The same without a symptom.
Seen without(Seen seen, std::initializer_list<Symptom> symptoms) {
  std::erase_if(seen.readings, [&](const Reading& r) {
    return std::find(symptoms.begin(), symptoms.end(), r.symptom) != symptoms.end();
  });
  return seen;
}

TEST_CASE("slices of time tell another process on the only GPU of a run") {
  const HealthyRun run = one_gpu();
  const Seen seen = shown(with_fault(run.state, CauseKind::busy_gpu, 0.4, 0, run.links));
  CHECK(probability(run, seen, CauseKind::busy_gpu) > 0.95);
  CHECK(probability(run, without(seen, {Symptom::suspended, Symptom::clock}), CauseKind::busy_gpu) <
        0.6);
}

TEST_CASE("a kernel that has the device alone, and its name, tell a device that is kept") {
  const HealthyRun run = one_gpu();
  Seen seen = shown(with_fault(run.state, CauseKind::few_sms, 2, 0, run.links, 1));
  CHECK(probability(run, seen, CauseKind::few_sms) > 0.9);
  // However long it has the device beside kernels that are slower: the step says it all.
  const Finding first = judge(run.state, model_noise, seen, run.links, run.priors).front();
  CHECK(first.faulty_s - first.healthy_s == Approx(2 * run.state.healthy_s).epsilon(0.05));
  // A kernel that costs little is there all the same: nothing else has one.
  seen = shown(with_fault(run.state, CauseKind::few_sms, 0.05, 0, run.links));
  seen.profiles_can_name = true;
  CHECK(probability(run, seen, CauseKind::few_sms) < 0.2);
  seen.name(kernel_through_steps);
  CHECK(probability(run, seen, CauseKind::few_sms) > 0.7);
}

TEST_CASE("idle devices of both ranks are no rank's own fault") {
  const HealthyRun run = pair_of_ranks();
  Seen seen = shown(with_fault(run.state, CauseKind::straggling_host, 1.4, 1, run.links));
  const double before = probability(run, seen, CauseKind::busy_host);
  CHECK(before < 1e-3);
  // The device of rank 0 is idle, too, if less than that of rank 1.
  for (Reading& r : seen.readings)
    if (r.symptom == Symptom::idle && r.rank == 0) r.value = 0.6;
  CHECK(probability(run, seen, CauseKind::busy_host) > 30 * before);
}

TEST_CASE("the optimizer's timers tell a slow device from a late host") {
  HealthyRun run = pair_of_ranks();
  run.state.meets_in_forward = run.state.meets_in_optimizer = false;
  const RunState slow = with_fault(run.state, CauseKind::slow_gpu, 0.3, 1, run.links);
  Seen seen{.readings = {{.symptom = Symptom::step, .value = expected(slow, Symptom::step, -1)}},
            .can_name = true,
            .ranks = {0, 1}};
  for (const int rank : {0, 1})
    seen.readings.push_back({.symptom = Symptom::forward,
                             .rank = rank,
                             .value = expected(slow, Symptom::forward, rank)});
  const double before = probability(run, seen, CauseKind::straggling_host);
  CHECK(before > 0.05);
  for (const int rank : {0, 1})
    seen.readings.push_back({.symptom = Symptom::optimizer_timer,
                             .rank = rank,
                             .value = expected(slow, Symptom::optimizer_timer, rank)});
  CHECK(probability(run, seen, CauseKind::straggling_host) < before / 4);
}

TEST_CASE("a GPU that is slow where processors decide is no kept one, where steps are even") {
  const HealthyRun run = healthy_run({.layout = {.dp = 32}}, 4);
  Seen seen = shown(with_fault(run.state, CauseKind::slow_gpu, 0.4, 2, run.links, 1));
  seen.profiles_can_name = true;
  CHECK(probability(run, seen, CauseKind::slow_gpu) >
        2 * probability(run, seen, CauseKind::few_sms));
  // A kernel that runs through steps says what keeps the processors.
  seen.name(kernel_through_steps);
  CHECK(probability(run, seen, CauseKind::slow_gpu) < probability(run, seen, CauseKind::few_sms));
}

TEST_CASE("a run cannot have what it does not do") {
  const HealthyRun run = one_gpu();
  const Seen seen{.readings = {{.symptom = Symptom::step, .value = 0.4}}};
  for (const CauseKind kind :
       {CauseKind::data_stall, CauseKind::checkpoint, CauseKind::slow_nic, CauseKind::bad_cable,
        CauseKind::colliding_flows, CauseKind::slow_scale_up, CauseKind::straggling_host,
        CauseKind::small_buckets, CauseKind::no_overlap, CauseKind::checked_collectives})
    CHECK(probability(run, seen, kind) == 0);
  CHECK(probability(run, seen, CauseKind::busy_host) > 0.05);
  CHECK(is_possible(CauseKind::data_stall, pair_of_ranks().state, run.links));
}

TEST_CASE("a wait for data is idle time where the profile does not name the loader") {
  HealthyRun run = pair_of_ranks();
  const Seen late = shown(with_fault(run.state, CauseKind::busy_host, 0.3, 0, run.links));
  const Seen nothing_idle = without(
      shown(with_fault(run.state, CauseKind::data_stall, 0.3, 0, run.links)), {Symptom::data});
  run.state.profiled.loader_is_unnamed = true;
  const double never = probability(run, nothing_idle, CauseKind::data_stall);
  CHECK(never < 0.1);  // the device would be idle
  CHECK(probability(run, without(late, {Symptom::data}), CauseKind::data_stall) > never);
  run.state.profiled.loader_is_unnamed = false;
  CHECK(probability(run, nothing_idle, CauseKind::data_stall) > 0.5);
}

TEST_CASE("links inside a domain slow what leaves it, too") {
  const HealthyRun run = healthy_run({.layout = {.dp = 32, .zero_stage = 3}}, 4);
  const RunState slow = with_fault(run.state, CauseKind::slow_scale_up, 9, 0, run.links);
  CHECK(slow.link == Approx(10));
  CHECK(slow.network > 1.5);
  CHECK(slow.network < slow.link);
  // A network that is slow leaves links inside as they are.
  CHECK(with_fault(run.state, CauseKind::slow_nic, 9, 0, run.links).link == 1);
}

// A profile whose gathers over the network took these times, in order.
observe::Profile gathering(const std::vector<double>& seconds) {
  observe::CollectiveRecord record{.kind = CollectiveKind::all_gather,
                                   .name = "_allgather_base",
                                   .ranks = 32,
                                   .type = "BFloat16",
                                   .sent = Bytes(1e7),
                                   .received = Bytes(3.2e8),
                                   .count = seconds.size(),
                                   .least = Seconds(1e9)};
  for (const double time : seconds) {
    record.each.emplace_back(time);
    record.least = std::min(record.least, Seconds(time));
  }
  observe::Profile profile;
  profile.collectives = {record};
  return profile;
}

TEST_CASE("links are as fast as the middle call, on the rank that waits for none") {
  const HealthyRun run = healthy_run({.layout = {.dp = 32, .zero_stage = 3}}, 4);
  const auto network = [&](const std::vector<observe::Profile>& profiles) {
    Readings readings;
    read_links(profiles, run.scenario, readings);
    REQUIRE(readings.size() == 1);
    CHECK(readings[0].symptom == Symptom::network);
    return readings[0].value;
  };
  const double steady = network({gathering({0.01, 0.01, 0.01}), gathering({0.01, 0.01, 0.01})});
  // Either rank waits for the other in turn.
  CHECK(network({gathering({0.01, 0.05, 0.01}), gathering({0.03, 0.01, 0.04})}) == Approx(steady));
  // One call that found free links does not make them fast, and one that did not does not slow
  // them.
  CHECK(network({gathering({0.004, 0.01, 0.01}), gathering({0.004, 0.01, 0.01})}) ==
        Approx(steady));
  CHECK(network({gathering({0.01, 0.01, 0.08}), gathering({0.01, 0.01, 0.08})}) == Approx(steady));
  CHECK(network({gathering({0.02, 0.02, 0.02}), gathering({0.02, 0.03, 0.02})}) ==
        Approx(steady + std::log(2)));
  // A rank alone does not tell waits from the rest.
  CHECK(network({gathering({0.01, 0.05, 0.03})}) == Approx(steady));
  // Nor do ranks that have other calls than one another.
  CHECK(network({gathering({0.02, 0.05, 0.03}), gathering({0.01})}) == Approx(steady));
}

// What tells faults of the network apart, which all make the same collectives longer.
TEST_CASE("spread of calls tells a cable from a NIC, and ports what neither shows") {
  const HealthyRun run = healthy_run({.layout = {.dp = 32, .zero_stage = 3}}, 4);
  const auto odds = [&](const Seen& seen, CauseKind mine, CauseKind other) {
    return probability(run, seen, mine) / probability(run, seen, other);
  };
  const auto of = [&](CauseKind kind, int form = 0) {
    Seen seen = shown(with_fault(run.state, kind, 2, 0, run.links, form));
    seen.can_name = false;  // no counters
    return seen;
  };
  using enum CauseKind;
  const Seen steady = of(slow_nic), uneven = of(bad_cable);
  CHECK(odds(uneven, bad_cable, slow_nic) > 3 * odds(steady, bad_cable, slow_nic));
  // Flows of one run meet in every call, as a NIC is slow in every call: no profile tells which.
  const Seen apart = without(steady, {Symptom::call_spread});
  CHECK(odds(of(colliding_flows), colliding_flows, slow_nic) ==
        Approx(odds(steady, colliding_flows, slow_nic)));
  const double before = odds(apart, slow_nic, colliding_flows);
  for (const auto& [trouble, mine] :
       {std::pair{port_is_slow, slow_nic}, std::pair{"port errors", bad_cable},
        std::pair{port_is_congested, colliding_flows}}) {
    Seen named = apart;
    named.can_name = true;
    named.name(trouble);
    INFO(trouble);
    for (const CauseKind other : {slow_nic, bad_cable, colliding_flows})
      if (other != mine) CHECK(odds(named, mine, other) > 2);
  }
  CHECK(before < 1);  // NICs break seldom
}

TEST_CASE("calls of a network are held against their like, and few tell nothing") {
  const HealthyRun run = healthy_run({.layout = {.dp = 32, .zero_stage = 3}}, 4);
  const auto spread = [&](const std::vector<double>& seconds) -> std::optional<double> {
    Readings readings;
    read_links({gathering(seconds), gathering(seconds)}, run.scenario, readings);
    for (const Reading& reading : readings)
      if (reading.symptom == Symptom::call_spread) return std::exp(reading.value);
    return std::nullopt;
  };
  std::vector<double> seconds;
  for (int i = 0; i < 40; ++i) seconds.push_back(0.01 * (1 + 0.1 * (i % 2)));
  CHECK(*spread(seconds) == Approx(1.4826 * 0.05).epsilon(0.1));
  // One that waited long for a rank is no spread of links.
  seconds[7] = 1;
  CHECK(*spread(seconds) == Approx(1.4826 * 0.05).epsilon(0.1));
  seconds.resize(12);
  CHECK_FALSE(spread(seconds));
}

TEST_CASE("profiles tell how much of a wait passes while ranks compute") {
  const HealthyRun run = pair_of_ranks();
  const double step = run.state.healthy_s;
  const auto share = [&](double waits, double shown) {
    std::vector<observe::Profile> ranks(2);
    const auto i = static_cast<std::size_t>(observe::KernelClass::communication);
    for (observe::Profile& p : ranks) {
      p.mean.by_class[i] = Seconds(0.1 * step);
      p.mean.exposed_communication = Seconds(0.05 * step);
    }
    ranks[1].mean.by_class[i] += Seconds(waits * step);
    ranks[1].mean.exposed_communication += Seconds(shown * waits * step);
    return share_of_wait_exposed(ranks, std::nullopt, run.state);
  };
  const double judged = run.state.profiled.exposed_wait;
  CHECK(share_of_wait_exposed({}, std::nullopt, run.state) == judged);
  CHECK(share(0, 0) == Approx(judged));
  CHECK(share(0.01, 0) == Approx(judged).margin(0.01));
  for (const double shown : {0.3, 0.7, 1.0}) CHECK(share(1, shown) == Approx(shown).margin(0.03));
  // The rest of a wait slows kernels of those that wait.
  RunState all = run.state, none = run.state;
  all.profiled.exposed_wait = 1;
  none.profiled.exposed_wait = 0;
  all.delay(0, 0.2 * step);
  none.delay(0, 0.2 * step);
  CHECK(all.ranks[1].products_s == run.state.ranks[1].products_s);
  CHECK(none.ranks[1].products_s > run.state.ranks[1].products_s);
  CHECK(none.ranks[1].exposed_s == run.state.ranks[1].exposed_s);
}

TEST_CASE("kernels that name an older chip are told, products in 32 bits left out") {
  using observe::KernelClass;
  observe::Profile p;
  p.device.compute_major = 9;
  const auto add = [&](const char* name, KernelClass what, std::optional<Format> format) {
    const double seconds = format == Format::fp32 ? 3 : 1;
    p.kernels.push_back(
        {.name = name, .what = what, .format = format, .count = 1, .total = Seconds(seconds)});
  };
  add("fmha_cutlassF_bf16_aligned_64x128_rf_sm80", KernelClass::attention, Format::bf16);
  add("sm80_xmma_gemm_f32f32", KernelClass::product, Format::fp32);
  add("nvjet_sm90_tst", KernelClass::product, Format::bf16);
  Scenario scenario;
  const auto older = [&](const std::vector<observe::Profile>& profiles, KernelClass what) {
    return has_older_kernels(profiles, what, scenario);
  };
  CHECK(older({p}, KernelClass::attention));
  CHECK_FALSE(older({p}, KernelClass::product));
  p.device.compute_major = 8;
  CHECK_FALSE(older({p}, KernelClass::attention));
  CHECK_FALSE(older({}, KernelClass::attention));
  // FlashAttention 2 is Ampere's; where the stack was predicted with it, it is what should run.
  observe::Profile flash;
  flash.device.compute_major = 9;
  flash.kernels.push_back({.name = "void flash::flash_fwd_kernel<Flash_fwd_kernel_traits<128>>",
                           .what = KernelClass::attention,
                           .format = Format::bf16,
                           .count = 1,
                           .total = Seconds(1)});
  scenario.stack.kernels.attention = Library::flash3;
  CHECK(older({flash}, KernelClass::attention));
  scenario.stack.kernels.attention = Library::flash2;
  CHECK_FALSE(older({flash}, KernelClass::attention));
}

TEST_CASE(
    "collectives that never run beside compute are told where they should, and hosts run ahead") {
  RunState healthy;
  healthy.healthy_s = 1;
  healthy.layers = 32;
  healthy.ranks.resize(1);
  healthy.ranks[0].exposed_s = 0.1;
  const auto alone = [&](double calls, double shown, double idle, std::size_t waits = 1) {
    observe::Profile p;
    p.mean.number = 1;
    p.mean.end = Seconds(1);
    p.mean.compute = Seconds(0.7);
    p.mean.by_class[static_cast<std::size_t>(observe::KernelClass::product)] = Seconds(0.7);
    p.mean.by_class[static_cast<std::size_t>(observe::KernelClass::communication)] = Seconds(calls);
    p.mean.exposed_communication = Seconds(shown);
    p.mean.idle = Seconds(idle);
    p.mean.waits = waits;
    return has_collectives_alone({p}, std::nullopt, healthy);
  };
  CHECK(alone(0.2, 0.2, 0));
  CHECK_FALSE(alone(0.2, 0.15, 0));      // some run beside compute
  CHECK_FALSE(alone(0.105, 0.105, 0));   // hardly any should
  CHECK_FALSE(alone(0.2, 0.2, 0.3));     // the host is late
  CHECK_FALSE(alone(0.2, 0.2, 0, 100));  // or waits
  CHECK_FALSE(has_collectives_alone({}, std::nullopt, healthy));
}

TEST_CASE("threads are counted of kernels whose number follows the batch") {
  using observe::KernelClass;
  const auto add = [](observe::Profile& p, const char* name, double ms, std::int64_t blocks) {
    p.kernels.push_back({.name = name,
                         .what = KernelClass::elementwise,
                         .count = 1,
                         .total = Seconds(ms / 1e3),
                         .shape = {.grid = {blocks, 1, 1}}});
  };
  std::vector<observe::Profile> two(2);
  for (std::int64_t rank = 0; rank < 2; ++rank) {
    observe::Profile& p = two[static_cast<std::size_t>(rank)];
    add(p, "gelu", 4, 600 + 200 * rank);
    add(p, "cast of weights", 6, 5000);
  }
  add(two[1], "chosen on one rank", 5, 9000);
  CHECK(threads_of(two) == std::vector<double>{600, 800});
  // A small kernel that alone differs is chance and does not count.
  two[0].kernels[0].total = two[1].kernels[0].total = Seconds(1e-5);
  two[1].kernels.pop_back();
  CHECK(threads_of(two) == std::vector<double>{5000, 5000});
  // Nor do kernels of which some have more blocks on a rank and some fewer: a library chose there.
  add(two[0], "joined", 3, 760);
  add(two[1], "joined", 3, 507);
  add(two[0], "copied", 2, 1000);
  add(two[1], "copied", 2, 1500);
  CHECK(threads_of(two) == std::vector<double>{5000, 5000});
  CHECK(threads_of({}).empty());
}

TEST_CASE("a tool lists devices that the run does not use, which are none of its ranks") {
  using observe::Counter;
  const HealthyRun run = one_gpu();
  observe::CounterLog log;
  const auto add = [&](Counter counter, const char* device, double value) {
    observe::CounterSeries series;
    series.counter = counter;
    series.device = device;
    for (int i = 0; i < 4; ++i) series.readings.push_back({.time_s = 1.0 * i, .value = value});
    log.series.push_back(series);
  };
  add(Counter::sm_clock, "0", 345e6);
  add(Counter::sm_clock, "1", 0.97 * run.state.clock_hz);
  add(Counter::power, "0", 75);
  add(Counter::power, "1", 600);
  Observations seen;
  seen.counters.push_back(log);
  CHECK(ranks_seen(seen, 1).size() == 1);
  CHECK(ranks_seen(seen, 2).size() == 2);
  Readings readings;
  read_counters_of(seen.counters, 1, run.state, readings);
  REQUIRE(readings.size() == 1);
  CHECK(readings[0].symptom == Symptom::clock);
  CHECK(readings[0].value == Approx(std::log(0.97)));
}

}  // namespace
}  // namespace orrery
