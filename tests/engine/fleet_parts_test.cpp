// SPDX-License-Identifier: Apache-2.0
// Tests laws of jobs that ask for parts of accelerators: none is given out twice, all time is
// counted, and equal parts wait as single servers do.
#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <map>
#include <set>

#include "sim/base/random.h"
#include "sim/engine/cluster/fleet_run.h"
#include "tests/base/fresh_seed.h"
#include "tests/engine/parts_case.h"

namespace orrery {
namespace {

constexpr std::int64_t second = 1'000'000, hour = 3600 * second;

std::vector<FleetQuestion> all_questions() {
  std::vector<FleetQuestion> out;
  for (const JobFit fit : {JobFit::block, JobFit::easy, JobFit::any})
    for (const JobPlace place :
         {JobPlace::pack, JobPlace::spread, JobPlace::least_level, JobPlace::random})
      for (const JobOrder order : {JobOrder::fifo, JobOrder::sjf, JobOrder::priority}) {
        out.push_back(sharing(order, fit, place));
        out.back().policy.preempts = order == JobOrder::priority && fit != JobFit::block;
        out.back().works[0].save_steps = out.back().policy.preempts ? 60 * second : 0;
      }
  out.push_back(sharing(JobOrder::las, JobFit::any, JobPlace::pack));
  out.back().policy.preempts = true;
  out.back().policy.first_queue = 300 * second;
  out.push_back(sharing(JobOrder::fifo, JobFit::easy, JobPlace::pack));
  out.back().quotas = {{.gpus = 6, .borrows = false}, {.gpus = 20, .borrows = true}};
  return out;
}

// Places parts by best fit again, from what is told, and knows what each host holds.
class Refilled {
 public:
  explicit Refilled(const ClusterJobs& list, std::int32_t hosts)
      : list_(list), whole_(static_cast<std::size_t>(hosts)) {}

  void take(const FleetEvent& event) {
    using enum FleetEventKind;
    if (event.kind == submit || event.kind == stop) waiting_.insert(event.job);
    if (event.kind == start) begin(event);
    if (event.kind == stop || event.kind == end || event.kind == cut) leave(event);
  }
  // Where whoever has a place may start.
  void look_at_waiting(const Slots& slots) const {
    for (const std::uint32_t job : waiting_) {
      if (!list_.jobs[job].is_part()) continue;
      REQUIRE(slots.free() == 0);
      for (const Gpu& gpu : gpus_) REQUIRE(gpu.taken() + list_.jobs[job].milli > whole_gpu);
    }
  }
  void look(const Slots& slots) const {
    std::vector<std::int32_t> held = whole_;
    for (const Gpu& gpu : gpus_) {
      REQUIRE(!gpu.parts.empty());
      REQUIRE(gpu.taken() <= whole_gpu);
      ++held[static_cast<std::size_t>(gpu.host)];
    }
    for (std::int32_t host = 0; host < slots.shape().hosts; ++host)
      REQUIRE(slots.free_of(host) + held[static_cast<std::size_t>(host)] ==
              slots.shape().gpus_of(host));
    REQUIRE(slots.held() + slots.free() == slots.total());
  }
  std::size_t joined = 0;

 private:
  struct Gpu {
    std::int32_t host = 0;
    std::map<std::uint32_t, std::int32_t> parts = {};
    std::int32_t taken() const {
      std::int32_t sum = 0;
      for (const auto& [job, milli] : parts) sum += milli;
      return sum;
    }
  };
  void begin(const FleetEvent& event) {
    const ClusterJob& job = list_.jobs[event.job];
    waiting_.erase(event.job);
    REQUIRE(event.milli == job.milli);
    if (!job.is_part()) {
      change(event, 1);
      return;
    }
    REQUIRE(event.place->size() == 1);
    Gpu* best = nullptr;
    for (Gpu& gpu : gpus_) {
      if (gpu.taken() + job.milli > whole_gpu) continue;
      const bool better = best == nullptr || gpu.taken() > best->taken() ||
                          (gpu.taken() == best->taken() && gpu.host < best->host);
      if (better) best = &gpu;
    }
    if (best == nullptr) {
      gpus_.push_back({.host = event.place->front().host});
      best = &gpus_.back();
    } else {
      ++joined;
    }
    REQUIRE(best->host == event.place->front().host);
    best->parts[event.job] = job.milli;
  }
  void leave(const FleetEvent& event) {
    if (!list_.jobs[event.job].is_part()) {
      change(event, -1);
      return;
    }
    const auto at = std::find_if(gpus_.begin(), gpus_.end(),
                                 [&](const Gpu& gpu) { return gpu.parts.contains(event.job); });
    REQUIRE(at != gpus_.end());
    at->parts.erase(event.job);
    if (at->parts.empty()) gpus_.erase(at);
  }
  void change(const FleetEvent& event, std::int32_t sign) {
    for (const HostGrant& grant : *event.place)
      for (std::int32_t host = grant.host; host < grant.host + grant.hosts; ++host)
        whole_[static_cast<std::size_t>(host)] += sign * grant.gpus;
  }

  const ClusterJobs& list_;
  std::vector<std::int32_t> whole_;  // accelerators of gangs, by host
  std::vector<Gpu> gpus_;            // in the order in which they were opened
  std::set<std::uint32_t> waiting_;
};

TEST_CASE("law: parts go to the fullest accelerator with room, and none is given out twice",
          "[fleet][parts]") {
  const std::uint64_t seed = fresh(41);
  INFO("seed " << seed);
  std::size_t joined = 0;
  for (std::uint64_t round = 0; round < 6; ++round) {
    const ClusterJobs list = jobs_with_parts(seed + round, 300);
    for (FleetQuestion& question : all_questions()) {
      Refilled refilled(list, question.shape.hosts);
      question.tell = [&](const FleetEvent& event) { refilled.take(event); };
      question.look = [&](FleetTime, const Slots& slots) {
        refilled.look(slots);
        if (question.policy.fit == JobFit::any) refilled.look_at_waiting(slots);
      };
      const FleetRecord record = run_fleet(list, question);
      joined += refilled.joined;
      const FleetUse& use = record.use;
      CHECK(use.work.all() == use.held * 1'000'000);
      CHECK(use.held + use.short_of + use.scattered + use.idle == use.all);
      CHECK(use.work.unshared > 0);
      for (const JobRecord& job : record.jobs) REQUIRE((job.end != fleet_never || job.rejected));
      if (!question.policy.preempts && question.quotas.empty())
        CHECK(use.work.useful == asked_for(list));
    }
  }
  CHECK(joined > 5000);
}

TEST_CASE("law: a promise of easy is kept where parts share", "[fleet][parts]") {
  const std::uint64_t seed = fresh(41);
  INFO("seed " << seed);
  std::size_t promised = 0, to_parts = 0;
  for (std::uint64_t round = 0; round < 60; ++round) {
    ClusterJobs list = jobs_with_parts(seed + round, 300);
    if (round % 2 == 1)  // parts are heads, too
      for (ClusterJob& job : list.jobs) {
        job.gpus = std::min(job.gpus, 2);
        job.submit.us /= 8;
      }
    const FleetRecord record =
        run_fleet(list, sharing(JobOrder::fifo, JobFit::easy, JobPlace::pack));
    for (std::size_t i = 0; i < list.jobs.size(); ++i) {
      const JobRecord& job = record.jobs[i];
      if (job.promise == fleet_never) continue;
      ++promised;
      to_parts += list.jobs[i].is_part() ? 1 : 0;
      REQUIRE(job.start <= job.promise);
    }
  }
  CHECK(promised > 1000);
  CHECK(to_parts > 50);
}

// The same jobs, each with a k-th of one of n accelerators, and with one of n k servers.
TEST_CASE("law: parts of a k-th wait as on k times as many servers", "[fleet][parts]") {
  const std::uint64_t seed = fresh(41);
  INFO("seed " << seed);
  for (const std::int32_t k : {2, 4, 5, 8, 20})
    for (const JobOrder order : {JobOrder::fifo, JobOrder::sjf, JobOrder::priority})
      for (const JobFit fit : {JobFit::block, JobFit::easy, JobFit::any}) {
        const ClusterJobs whole =
            jobs_for_servers(seed + static_cast<std::uint64_t>(k), 800, 2 * k);
        FleetQuestion shared = sharing(order, fit, JobPlace::pack);
        shared.shape = {.hosts = 2, .gpus_per_host = 1, .last_host_gpus = 1};
        const FleetRecord one = run_fleet(whole, with_servers(order, fit, std::int64_t{2} * k));
        const FleetRecord other = run_fleet(with_parts(whole, k), shared);
        check_same_waits(whole, one, other);
        CHECK(one.use.work.useful == k * other.use.work.useful);
      }
}

// Erlang's C for k servers, by its recursion from Erlang's B.
double erlang_wait(int servers, double load) {
  const double offered = load * servers;
  double blocked = 1;
  for (int i = 1; i <= servers; ++i) blocked = offered * blocked / (i + offered * blocked);
  const double waits = blocked / (1 - load * (1 - blocked));
  return waits / (servers * (1 - load));
}

TEST_CASE("law: parts of a k-th of one accelerator are a queue of k servers", "[fleet][parts]") {
  const std::uint64_t seed = fresh(41);
  INFO("seed " << seed);
  constexpr std::size_t parts = 20, of_part = 20'000;
  for (const auto& [servers, load] : {std::pair{2, 0.7}, {5, 0.85}}) {
    RandomStream random(seed, 2);
    ClusterJobs list;
    double at = 0;
    for (std::size_t i = 0; i < parts * of_part; ++i) {
      at += random.exponential(1 / (load * servers));
      ClusterJob job{.submit = {static_cast<std::int64_t>(at * 1e6)}};
      job.length.us = job.limit.us = static_cast<std::int64_t>(random.exponential(1) * 1e6);
      job.milli = static_cast<std::uint16_t>(whole_gpu / servers);
      list.jobs.push_back(job);
    }
    FleetQuestion question = sharing(JobOrder::fifo, JobFit::block, JobPlace::pack);
    question.shape = {.hosts = 1, .gpus_per_host = 1, .last_host_gpus = 1};
    const FleetRecord record = run_fleet(list, question);
    std::vector<double> means(parts, 0);
    for (std::size_t i = 0; i < list.jobs.size(); ++i)
      means[i / of_part] +=
          1e-6 * static_cast<double>((record.jobs[i].start - list.jobs[i].submit).us) / of_part;
    double mean = 0, squares = 0;
    for (const double m : means) mean += m / parts;
    for (const double m : means) squares += (m - mean) * (m - mean);
    const double error = std::sqrt(squares / (parts * (parts - 1)));
    CHECK(std::abs(mean - erlang_wait(servers, load)) < 4 * error);
  }
}

bool same_jobs(const FleetRecord& a, const FleetRecord& b) {
  return std::equal(a.jobs.begin(), a.jobs.end(), b.jobs.begin(), b.jobs.end(),
                    [](const JobRecord& x, const JobRecord& y) {
                      return x.start == y.start && x.end == y.end && x.promise == y.promise &&
                             x.hosts == y.hosts && x.preemptions == y.preemptions;
                    });
}

TEST_CASE("law: where nobody shares, parts are whole accelerators", "[fleet][parts]") {
  const std::uint64_t seed = fresh(41);
  INFO("seed " << seed);
  const ClusterJobs parts = jobs_with_parts(seed, 400);
  ClusterJobs whole = parts;
  for (ClusterJob& job : whole.jobs) job.milli = 0;
  std::vector<FleetQuestion> questions = all_questions();
  for (const JobFit fit : {JobFit::conservative, JobFit::rounds, JobFit::slurm})
    questions.push_back(sharing(JobOrder::priority, fit, JobPlace::pack));
  questions[questions.size() - 2].policy.preempts = true;  // rounds do
  questions.push_back(sharing(JobOrder::fifo, JobFit::easy, JobPlace::pool));
  questions.back().shape = pool_shape(32);
  for (FleetQuestion& question : questions) {
    if (!question.quotas.empty()) continue;                // which count parts as such
    if (question.policy.order == JobOrder::las) continue;  // likewise
    question.policy.share = GpuShare::never;
    const FleetRecord a = run_fleet(parts, question), b = run_fleet(whole, question);
    CHECK(same_jobs(a, b));
    CHECK(a.use.held == b.use.held);
    CHECK(a.use.work.all() == b.use.work.all());
    CHECK(a.use.work.unshared > 0);
    CHECK(b.use.work.unshared == 0);
  }
}

TEST_CASE("law: who may share changes nothing where nobody asks for a part", "[fleet][parts]") {
  const std::uint64_t seed = fresh(41);
  INFO("seed " << seed);
  ClusterJobs list = jobs_with_parts(seed, 400);
  for (ClusterJob& job : list.jobs) job.milli = 0;
  for (FleetQuestion& question : all_questions()) {
    const FleetRecord shared = run_fleet(list, question);
    question.policy.share = GpuShare::never;
    const FleetRecord alone = run_fleet(list, question);
    CHECK(same_jobs(shared, alone));
    CHECK(shared.use.work.useful == alone.use.work.useful);
    CHECK(shared.events == alone.events);
  }
}

// What strikes an accelerator stops all that are on it; what takes a host all on its accelerators.
TEST_CASE("law: whoever shares what breaks is stopped with the others", "[fleet][parts]") {
  const std::uint64_t seed = fresh(41);
  INFO("seed " << seed);
  std::int64_t together = 0, requeued = 0;
  for (std::uint64_t round = 0; round < 20; ++round) {
    FleetQuestion question = sharing(JobOrder::fifo, JobFit::easy, JobPlace::pack);
    question.seed = seed + round;
    question.works[0].save_steps = 100 * second;
    question.works[0].save_ps = 777'777;
    question.works[0].restart.us = 7 * second;
    question.breakdowns.kinds = {
        {.name = "process", .rate = Hertz(1 / 200.0), .reach = 0, .removed = 0},
        {.name = "host", .rate = Hertz(1 / 1500.0), .removed = 0.5, .repair = seconds(900)}};
    const ClusterJobs list = jobs_with_parts(seed + round, 300);
    std::map<std::int64_t, std::set<std::uint32_t>> at;  // by time: whom a process stops
    question.tell = [&](const FleetEvent& event) {
      using enum FleetEventKind;
      if (event.kind == restart && event.cause == "process") at[event.at.us].insert(event.job);
      requeued += event.kind == stop && event.milli > 0 ? 1 : 0;
    };
    const FleetRecord record = run_fleet(list, question);
    const FleetUse& use = record.use;
    CHECK(use.work.all() == use.held * 1'000'000);
    CHECK(use.held + use.short_of + use.scattered + use.idle + use.spare + use.repair == use.all);
    for (const JobRecord& job : record.jobs) REQUIRE(job.end != fleet_never);
    for (const auto& [time, jobs] : at) {
      std::int32_t sum = 0;
      for (const std::uint32_t job : jobs) sum += static_cast<std::int32_t>(list.jobs[job].milli);
      REQUIRE((jobs.size() == 1 || sum <= whole_gpu));
      together += jobs.size() > 1 ? 1 : 0;
    }
  }
  CHECK(together > 20);
  CHECK(requeued > 20);
}

TEST_CASE("a part draws its share of what an accelerator draws above idle", "[fleet][parts]") {
  ClusterJobs list;
  for (const int milli : {250, 500, 600}) {
    ClusterJob job;
    job.length.us = job.limit.us = hour;
    job.milli = static_cast<std::uint16_t>(milli);
    list.jobs.push_back(job);
  }
  FleetQuestion question = sharing(JobOrder::fifo, JobFit::block, JobPlace::pack);
  question.shape = {.hosts = 2, .gpus_per_host = 2, .last_host_gpus = 2};
  question.idle_milliwatts = 100'000;
  question.works[0].milliwatts = 700'000;
  for (const GpuShare share : {GpuShare::never, GpuShare::best_fit}) {
    question.policy.share = share;
    const FleetRecord record = run_fleet(list, question);
    CHECK(record.power.most_milliwatts == 4 * 100'000 + 600 * (250 + 500 + 600));
    CHECK(record.use.held == (share == GpuShare::never ? 3 : 2) * GpuMicros{hour});
    CHECK(record.use.work.useful == GpuPicos{1350} * hour * 1000);
    CHECK(record.use.work.unshared == record.use.held * 1'000'000 - record.use.work.useful);
  }
}

// Seconds; thousandths of one accelerator, or 0 with accelerators.
ClusterJob job_of(std::int64_t submit, std::int64_t length, std::int32_t gpus, int milli) {
  ClusterJob job{.submit = {submit * second}, .length = {length * second}};
  job.limit = job.length;
  job.gpus = gpus;
  job.milli = static_cast<std::uint16_t>(milli);
  return job;
}

FleetQuestion on_hosts_of_one(std::int32_t hosts, JobOrder order, JobFit fit) {
  FleetQuestion question = sharing(order, fit, JobPlace::pack);
  question.shape = {.hosts = hosts, .gpus_per_host = 1, .last_host_gpus = 1};
  return question;
}

TEST_CASE("an accelerator stays held until the last of its jobs has left", "[fleet][parts]") {
  ClusterJobs list;
  list.jobs = {job_of(0, 10, 1, 500), job_of(0, 30, 1, 500), job_of(5, 40, 1, 400),
               job_of(12, 5, 2, 0)};
  const FleetRecord on_two = run_fleet(list, on_hosts_of_one(2, JobOrder::fifo, JobFit::block));
  CHECK(on_two.jobs[2].start.us == 5 * second);  // it opens the second one
  CHECK(on_two.jobs[3].start.us == 45 * second);
  list.jobs[3].gpus = 1;
  const FleetRecord on_one = run_fleet(list, on_hosts_of_one(1, JobOrder::fifo, JobFit::block));
  CHECK(on_one.jobs[2].start.us == 10 * second);
  CHECK(on_one.jobs[3].start.us == 50 * second);
}

TEST_CASE("a part is promised the room that another part leaves", "[fleet][parts]") {
  ClusterJobs list;
  list.jobs = {job_of(0, 10, 1, 500), job_of(0, 100, 1, 500), job_of(1, 5, 1, 400),
               job_of(2, 5, 1, 0)};
  const FleetRecord record = run_fleet(list, on_hosts_of_one(1, JobOrder::fifo, JobFit::easy));
  // Nothing at all is free before: it needs a second one to be asked.
  CHECK(record.jobs[2].start.us == 10 * second);
  list.jobs[1].milli = 450;
  const FleetRecord asked = run_fleet(list, on_hosts_of_one(1, JobOrder::fifo, JobFit::easy));
  CHECK(asked.jobs[2].promise.us == 10 * second);
  CHECK(asked.jobs[2].start.us == 10 * second);
}

TEST_CASE("a part has had its part of an accelerator's time", "[fleet][parts]") {
  ClusterJobs list;
  list.jobs = {job_of(0, 1000, 1, 500), job_of(10, 50, 1, 0)};
  FleetQuestion question = on_hosts_of_one(1, JobOrder::las, JobFit::any);
  question.policy.preempts = true;
  question.policy.first_queue = 100 * second;
  const FleetRecord record = run_fleet(list, question);
  CHECK(record.jobs[1].start.us == 200 * second);
  CHECK(record.jobs[0].preemptions == 1);
}

}  // namespace
}  // namespace orrery
