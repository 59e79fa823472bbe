// SPDX-License-Identifier: Apache-2.0
// Measures how many jobs a second a shared cluster runs in simulation, and places a second.
#include <benchmark/benchmark.h>

#include <cmath>

#include "sim/base/random.h"
#include "sim/engine/cluster/fleet_run.h"
#include "sim/engine/jobs/placer.h"

namespace {

using namespace orrery;

// Gangs of 1 to 512 GPUs, most of them small, lengths of minutes to days, as clusters record them;
// submitted so fast that they hold `load` of the cluster.
ClusterJobs mixed_jobs(std::size_t count, std::int64_t gpus, double load) {
  RandomStream random(7, 0);
  ClusterJobs list;
  double held = 0;
  for (std::size_t i = 0; i < count; ++i) {
    ClusterJob job;
    const double kind = random.uniform();
    job.gpus = kind < 0.7    ? static_cast<std::int32_t>(1 + random.below(8))
               : kind < 0.95 ? static_cast<std::int32_t>(8 * (1 + random.below(8)))
                             : static_cast<std::int32_t>(64 * (1 + random.below(8)));
    const double length = 60 * std::exp(random.normal(3, 1.5));
    job.length.us = static_cast<std::int64_t>(1e6 * length);
    job.limit = job.length;
    held += length * job.gpus;
    list.jobs.push_back(job);
  }
  const double between = held / (load * static_cast<double>(gpus)) / static_cast<double>(count);
  double at = 0;
  for (ClusterJob& job : list.jobs) {
    at += random.exponential(between);
    job.submit.us = static_cast<std::int64_t>(1e6 * at);
  }
  return list;
}

FleetQuestion question_of(JobFit fit, JobPlace place, std::int64_t gpus) {
  FleetQuestion question;
  question.policy = {JobOrder::fifo, fit, place};
  if (place == JobPlace::pool) {
    question.shape = pool_shape(gpus);
    return question;
  }
  const auto hosts = static_cast<std::int32_t>(gpus / 8);
  question.shape = {.hosts = hosts, .gpus_per_host = 8, .last_host_gpus = 8};
  question.shape.levels = {{"leaf group", 32}, {"pod", 1024}};
  return question;
}

void run(benchmark::State& state, JobFit fit, JobPlace place, std::int64_t gpus, double load) {
  const ClusterJobs jobs = mixed_jobs(static_cast<std::size_t>(state.range(0)), gpus, load);
  const FleetQuestion question = question_of(fit, place, gpus);
  std::int64_t waiting = 0;
  for (auto _ : state) waiting = run_fleet(jobs, question).most_waiting;
  state.counters["jobs/s"] = benchmark::Counter(static_cast<double>(state.range(0)),
                                                benchmark::Counter::kIsIterationInvariantRate);
  state.counters["most_waiting"] = static_cast<double>(waiting);
}

void flat_fifo(benchmark::State& state) { run(state, JobFit::block, JobPlace::pool, 1'000, 0.8); }
BENCHMARK(flat_fifo)->Arg(10'000)->Arg(1'000'000)->Unit(benchmark::kMillisecond);

void flat_easy(benchmark::State& state) { run(state, JobFit::easy, JobPlace::pool, 100'000, 0.9); }
BENCHMARK(flat_easy)->Arg(100'000)->Arg(1'000'000)->Unit(benchmark::kMillisecond);

// A year of 100,000 GPUs, as many as a million such jobs fill.
void least_level_easy(benchmark::State& state) {
  run(state, JobFit::easy, JobPlace::least_level, 100'000, 0.9);
}
BENCHMARK(least_level_easy)
    ->Arg(10'000)
    ->Arg(100'000)
    ->Arg(1'000'000)
    ->Unit(benchmark::kMillisecond);

// The same when more is asked for than there is: thousands wait, and heads are promised places.
void least_level_easy_busy(benchmark::State& state) {
  run(state, JobFit::easy, JobPlace::least_level, 100'000, 1.05);
}
BENCHMARK(least_level_easy_busy)->Arg(100'000)->Arg(1'000'000)->Unit(benchmark::kMillisecond);

// The same with limits that are up to three times the lengths, so that most jobs end early.
void least_level_easy_limits(benchmark::State& state) {
  ClusterJobs jobs = mixed_jobs(static_cast<std::size_t>(state.range(0)), 100'000, 1.05);
  RandomStream random(11, 0);
  for (ClusterJob& job : jobs.jobs)
    job.limit.us +=
        static_cast<std::int64_t>(2 * random.uniform() * static_cast<double>(job.length.us));
  const FleetQuestion question = question_of(JobFit::easy, JobPlace::least_level, 100'000);
  for (auto _ : state) benchmark::DoNotOptimize(run_fleet(jobs, question).most_waiting);
  state.counters["jobs/s"] = benchmark::Counter(static_cast<double>(state.range(0)),
                                                benchmark::Counter::kIsIterationInvariantRate);
}
BENCHMARK(least_level_easy_limits)->Arg(100'000)->Unit(benchmark::kMillisecond);

// A year with all that breaks: as often as Llama 3's GPUs (0.17 a year each), hourly saves, spares,
// crews, energy. With `meets` jobs of several leaf groups share links of a 2:1 taper as well.
class GangPrices final : public PlacePrices {
 public:
  PlacePrice price(std::uint16_t, const Grants&) override {
    return {.step_ps = 1'000'000, .trunks = {{.busy = 0.2, .load = 1.5}, {}}};
  }
};

void year_that_breaks(benchmark::State& state, double load, bool meets,
                      JobPlace place = JobPlace::least_level) {
  ClusterJobs jobs = mixed_jobs(static_cast<std::size_t>(state.range(0)), 100'000, load);
  for (ClusterJob& job : jobs.jobs) {  // a million of them fill a year
    job.submit.us *= 30;
    job.length.us *= 30;
    job.limit.us *= 30;
  }
  FleetQuestion question = question_of(JobFit::easy, place, 100'000);
  JobWork saving{.save_steps = INT64_C(3'600'000'000), .save_ps = INT64_C(20'000'000'000'000)};
  saving.start.us = 60'000'000;
  saving.restart.us = 600'000'000;
  saving.milliwatts = 700'000;
  JobWork sharing = saving;
  sharing.priced = true;
  question.works = {saving, sharing};
  GangPrices prices;
  if (meets) {
    question.prices = &prices;
    for (ClusterJob& job : jobs.jobs) job.work = job.gpus >= 64 ? 1 : 0;
  }
  question.idle_milliwatts = 150'000;
  question.breakdowns.kinds = {
      {"host", Hertz(0.12 * 100'000 / 3.15e7), 1, 0.6, seconds(172'800), {}, {}},
      {"software", Hertz(0.05 * 100'000 / 3.15e7), 0, 0, {}, {}, {}}};
  question.breakdowns.spare_hosts = 60;
  question.breakdowns.repair_crews = 100;
  std::int64_t stops = 0;
  for (auto _ : state) {
    const FleetRecord record = run_fleet(jobs, question);
    stops = 0;
    for (const BreakdownCount& count : record.breakdowns) stops += count.stopped;
  }
  state.counters["stops"] = static_cast<double>(stops);
  state.counters["days"] = static_cast<double>(jobs.jobs.back().submit.us) / 86.4e9;
  state.counters["jobs/s"] = benchmark::Counter(static_cast<double>(state.range(0)),
                                                benchmark::Counter::kIsIterationInvariantRate);
}
void year_breaks(benchmark::State& state) { year_that_breaks(state, 0.9, false); }
BENCHMARK(year_breaks)->Arg(100'000)->Arg(1'000'000)->Unit(benchmark::kMillisecond);
void year_breaks_busy(benchmark::State& state) { year_that_breaks(state, 1.0, false); }
BENCHMARK(year_breaks_busy)->Arg(1'000'000)->Unit(benchmark::kMillisecond);
void year_breaks_and_meets(benchmark::State& state) { year_that_breaks(state, 0.9, true); }
BENCHMARK(year_breaks_and_meets)->Arg(100'000)->Arg(1'000'000)->Unit(benchmark::kMillisecond);
void year_least_contention(benchmark::State& state) {
  year_that_breaks(state, 0.9, true, JobPlace::least_contention);
}
BENCHMARK(year_least_contention)->Arg(100'000)->Arg(1'000'000)->Unit(benchmark::kMillisecond);

// Single places for gangs on a cluster of 100,000 GPUs of which a fifth is free.
void place(benchmark::State& state, JobPlace rule) {
  Slots slots(question_of(JobFit::block, rule, 100'000).shape);
  RandomStream random(3, 0);
  Placer placer(rule, 0,
                std::make_shared<const FragmentTable>(
                    usual_pieces(mixed_jobs(10'000, 100'000, 0.9).jobs, 8, false), 8));
  std::vector<Grants> held;
  const auto gang = [&] {
    return static_cast<std::int32_t>(random.below(2) == 0 ? 1 + random.below(8)
                                                          : 8 * (1 + random.below(16)));
  };
  while (slots.free() > slots.total() / 5) {
    Grants grants;
    if (!placer.find(slots, gang(), grants)) break;
    slots.take(grants);
    held.push_back(grants);
  }
  for (auto _ : state) {
    std::swap(held[random.below(held.size())], held.back());
    slots.give(held.back());
    if (!placer.find(slots, gang(), held.back())) held.back() = {};
    slots.take(held.back());
  }
  state.SetItemsProcessed(state.iterations());
}
void place_least_level(benchmark::State& state) { place(state, JobPlace::least_level); }
BENCHMARK(place_least_level);
void place_pack(benchmark::State& state) { place(state, JobPlace::pack); }
BENCHMARK(place_pack);
void place_fragmentation(benchmark::State& state) { place(state, JobPlace::fragmentation); }
BENCHMARK(place_fragmentation);

}  // namespace
