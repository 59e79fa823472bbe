// SPDX-License-Identifier: Apache-2.0
// Tests conservative backfilling: nobody starts after a promise, and nobody who comes later
// matters.
#include <catch2/catch.hpp>

#include "sim/engine/backfill/room_plan.h"
#include "sim/engine/cluster/fleet_run.h"
#include "sim/engine/jobs/gang_places.h"
#include "tests/base/fresh_seed.h"
#include "tests/engine/random_jobs.h"

namespace orrery {
namespace {

std::vector<FleetQuestion> conservative_questions(std::int32_t hosts) {
  std::vector<FleetQuestion> out;
  for (const JobPlace place : {JobPlace::pool, JobPlace::pack, JobPlace::spread,
                               JobPlace::least_level, JobPlace::fragmentation, JobPlace::random}) {
    FleetQuestion question;
    question.shape = place == JobPlace::pool ? pool_shape(hosts * 8) : small_cluster(hosts);
    question.policy = {JobOrder::fifo, JobFit::conservative, place};
    out.push_back(question);
  }
  return out;
}

TEST_CASE("law: conservative breaks no promise, and jobs and time are conserved", "[fleet]") {
  const std::uint64_t seed = fresh(51);
  INFO("seed " << seed);
  std::size_t promised = 0, earlier = 0;
  for (std::uint64_t round = 0; round < 20; ++round) {
    const ClusterJobs list = random_jobs(seed + round, 250, 64, round % 2 == 1);
    for (const FleetQuestion& question : conservative_questions(8)) {
      const FleetRecord record = run_fleet(list, question);
      GpuMicros held = 0;
      for (std::size_t i = 0; i < list.jobs.size(); ++i) {
        const JobRecord& r = record.jobs[i];
        REQUIRE(r.start >= list.jobs[i].submit);
        REQUIRE(r.end == r.start + list.jobs[i].length);
        held += static_cast<GpuMicros>(list.jobs[i].gpus) * list.jobs[i].length.us;
        if (r.promise == fleet_never) continue;
        ++promised;
        REQUIRE(r.start <= r.promise);
        earlier += r.start < r.promise ? 1 : 0;
      }
      CHECK(record.use.held == held);
    }
  }
  CHECK(promised > 5000);
  CHECK(earlier > 1000);
}

// Where limits are exact an older job starts as if no younger one came.
TEST_CASE("law: nobody is delayed by jobs that come later, under conservative", "[fleet]") {
  const std::uint64_t seed = fresh(52);
  INFO("seed " << seed);
  std::size_t passed = 0;
  for (std::uint64_t round = 0; round < 10; ++round) {
    const ClusterJobs all = random_jobs(seed + round, 200, 64, false);
    for (const FleetQuestion& question : conservative_questions(8)) {
      const FleetRecord record = run_fleet(all, question);
      for (const std::size_t count : {60U, 120U, 180U}) {
        ClusterJobs first = all;
        first.jobs.resize(count);
        const FleetRecord alone = run_fleet(first, question);
        for (std::size_t i = 0; i < count; ++i)
          REQUIRE(alone.jobs[i].start == record.jobs[i].start);
      }
      for (std::size_t i = 1; i < all.jobs.size(); ++i)
        passed += record.jobs[i].start < record.jobs[i - 1].start ? 1 : 0;
    }
  }
  CHECK(passed > 500);
}

// Each starts at the first instant at which older ones leave it room, as a search over all
// instants finds it.
TEST_CASE("conservative gives each job the first start that older ones leave it", "[fleet]") {
  const std::uint64_t seed = fresh(53);
  INFO("seed " << seed);
  for (std::uint64_t round = 0; round < 10; ++round) {
    ClusterJobs list = random_jobs(seed + round, 120, 40, false);
    for (ClusterJob& job : list.jobs) job.length.us += 1, job.limit = job.length;
    FleetQuestion question;
    question.shape = pool_shape(48);
    question.policy = {JobOrder::fifo, JobFit::conservative, JobPlace::pool};
    const FleetRecord record = run_fleet(list, question);
    const auto used = [&](std::int64_t at, std::size_t before) {
      std::int64_t sum = 0;
      for (std::size_t i = 0; i < before; ++i)
        if (record.jobs[i].start.us <= at && at < record.jobs[i].end.us) sum += list.jobs[i].gpus;
      return sum;
    };
    for (std::size_t i = 0; i < list.jobs.size(); ++i) {
      const ClusterJob& job = list.jobs[i];
      std::vector<std::int64_t> instants{job.submit.us};
      for (std::size_t k = 0; k < i; ++k) instants.push_back(record.jobs[k].end.us);
      std::int64_t first = INT64_MAX;
      for (const std::int64_t at : instants) {
        if (at < job.submit.us || at >= first) continue;
        bool fits = used(at, i) + job.gpus <= 48;
        for (std::size_t k = 0; k < i && fits; ++k) {
          const std::int64_t begin = record.jobs[k].start.us;
          if (begin > at && begin < at + job.length.us) fits = used(begin, i) + job.gpus <= 48;
        }
        if (fits) first = at;
      }
      REQUIRE(record.jobs[i].start.us == first);
    }
  }
}

// Conservative backfilling as it is told: whenever a job ends before its limit the whole plan is
// made anew, and one after the other is put in again.
class PlainConservative {
 public:
  PlainConservative(const ClusterJobs& list, const FleetQuestion& question)
      : list_(list),
        shape_(question.shape),
        slots_(shape_),
        plan_(shape_),
        placer_(question.policy.place, question.seed,
                std::make_shared<const FragmentTable>(usual_pieces(list.jobs, 8, false), 8)),
        starts_(list.jobs.size(), fleet_never) {
    while (step()) {
    }
  }
  const std::vector<FleetTime>& starts() const { return starts_; }

 private:
  struct Held {
    std::size_t job;
    FleetTime from, by_limit, end;
    Grants place;
  };
  bool step() {
    FleetTime now = next_ < list_.jobs.size() ? list_.jobs[next_].submit : fleet_never;
    for (const Held& one : running_) now = std::min(now, one.end);
    for (const Held& one : waiting_) now = std::min(now, one.from);
    if (now == fleet_never) return false;
    bool early = false;
    std::erase_if(running_, [&](const Held& one) {
      if (one.end > now) return false;
      early |= one.by_limit > now;
      slots_.give(one.place);
      return true;
    });
    plan_.advance(now);
    if (early) make_anew(now);
    for (; next_ < list_.jobs.size() && list_.jobs[next_].submit == now; ++next_) {
      waiting_.push_back({.job = next_, .from = fleet_never});
      put_in(waiting_.back());
    }
    std::erase_if(waiting_, [&](Held& one) {
      if (one.from > now) return false;
      one.end = now + list_.jobs[one.job].length;
      starts_[one.job] = now;
      slots_.take(one.place);
      running_.push_back(one);
      return true;
    });
    return true;
  }
  void make_anew(FleetTime now) {
    plan_.clear(now, slots_);
    for (const Held& one : running_) plan_.give(one.place, one.by_limit, fleet_never);
    for (const Held& one : waiting_) plan_.take(one.place, one.from, one.by_limit);
    for (Held& one : waiting_) put_in(one);
  }
  void put_in(Held& one) {
    const ClusterJob& job = list_.jobs[one.job];
    if (one.from != fleet_never) plan_.give(one.place, one.from, one.by_limit);
    std::vector<std::int32_t> room;
    const FleetTime at = plan_.find(job.gpus, job.limit, one.from, room);
    if (at < one.from) {
      one.from = at;
      one.by_limit = at + job.limit;
      Slots view(shape_);
      for (std::int32_t host = 0; host < shape_.hosts; ++host) {
        const HostGrant gone{host, 1, view.free_of(host) - room[static_cast<std::size_t>(host)]};
        if (gone.gpus > 0) view.take({&gone, 1});
      }
      one.place.clear();
      placer_.find(view, job.gpus, one.place);
    }
    plan_.take(one.place, one.from, one.by_limit);
  }

  const ClusterJobs& list_;
  SlotShape shape_;
  Slots slots_;
  RoomPlan plan_;
  Placer placer_;
  std::vector<FleetTime> starts_;
  std::vector<Held> running_, waiting_;
  std::size_t next_ = 0;
};

TEST_CASE("law: promises that are not looked at again are those of a plan made anew", "[fleet]") {
  const std::uint64_t seed = fresh(54);
  INFO("seed " << seed);
  for (std::uint64_t round = 0; round < 12; ++round) {
    ClusterJobs list = random_jobs(seed + round, 300, 64, true);
    for (ClusterJob& job : list.jobs) {
      job.length.us += 1'000'000;
      job.limit.us += 1'000'000;
    }
    for (const FleetQuestion& question : conservative_questions(8)) {
      if (question.policy.place == JobPlace::random) continue;
      const FleetRecord record = run_fleet(list, question);
      const PlainConservative plain(list, question);
      for (std::size_t i = 0; i < list.jobs.size(); ++i)
        REQUIRE(record.jobs[i].start == plain.starts()[i]);
    }
  }
}

}  // namespace
}  // namespace orrery
