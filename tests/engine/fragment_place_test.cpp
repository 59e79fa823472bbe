// SPDX-License-Identifier: Apache-2.0
// Tests that jobs of a shared cluster go where fragments grow least, as tasks that never end do.
#include <algorithm>
#include <catch2/catch.hpp>
#include <map>
#include <tuple>

#include "sim/base/random.h"
#include "sim/engine/cluster/fleet_run.h"
#include "sim/engine/jobs/placer.h"
#include "sim/engine/packing/fill_score.h"
#include "tests/base/fresh_seed.h"
#include "tests/engine/parts_case.h"

namespace orrery {
namespace {

HostState host_with(std::int32_t free) {
  HostState host = empty_host({.gpus = 8, .model = 0});
  std::fill(host.gpu_milli.begin() + free, host.gpu_milli.end(), 0);
  return host;
}

// Some hosts of a small cluster have some of their accelerators taken.
void take_some(Slots& slots, RandomStream& random) {
  for (std::int32_t host = 0; host < slots.shape().hosts; ++host) {
    const auto taken = static_cast<std::int32_t>(random.below(9));
    const HostGrant grant{.host = host, .hosts = 1, .gpus = taken};
    if (taken > 0) slots.take({&grant, 1});
  }
}

TEST_CASE("law: the rest of a gang goes to a host that fill would choose", "[fleet][fragments]") {
  const std::uint64_t seed = fresh(61);
  INFO("seed " << seed);
  RandomStream random(seed, 0);
  int found = 0, unlike_pack = 0;
  for (int round = 0; round < 3'000; ++round) {
    const ClusterJobs list = random_jobs(seed + static_cast<std::uint64_t>(round), 12, 40, false);
    const std::vector<UsualTask> usual = usual_pieces(list.jobs, 8, false);
    Placer placer(JobPlace::fragmentation, seed, std::make_shared<const FragmentTable>(usual, 8));
    Slots slots(small_cluster(8));
    take_some(slots, random);
    const auto gpus = static_cast<std::int32_t>(1 + random.below(20));
    Grants place, packed;
    REQUIRE(placer.find(slots, gpus, place) == Placer::fits(slots, gpus));
    if (place.empty()) continue;
    Placer(JobPlace::pack, seed).find(slots, gpus, packed);
    unlike_pack += place == packed ? 0 : 1;
    REQUIRE(gpus_of_place(place) == gpus);
    ++found;
    if (gpus % 8 == 0) {
      REQUIRE(place == packed);
      continue;
    }
    // Whole hosts are those of lowest number; of the others none is better for the rest.
    const SharedTask rest{.gpus = gpus % 8, .gpu_milli = whole_gpu};
    std::int32_t best = -1, chosen = -1;
    for (const HostGrant& grant : place)
      if (grant.gpus < 8)
        chosen =
            fill_score(FillRule::fragmentation, host_with(slots.free_of(grant.host)), rest, usual)
                .points;
    for (std::int32_t host = 0; host < 8; ++host) {
      const bool whole = std::any_of(place.begin(), place.end(), [&](const HostGrant& grant) {
        return grant.gpus == 8 && host >= grant.host && host < grant.host + grant.hosts;
      });
      if (whole) continue;
      const HostState there = host_with(slots.free_of(host));
      best = std::max(best, fill_score(FillRule::fragmentation, there, rest, usual).points);
    }
    REQUIRE(chosen >= 0);
    REQUIRE(chosen == best);
    slots.take(place);  // it is free, or a check fails
  }
  CHECK(found > 1'500);
  CHECK(unlike_pack > 20);
}

TEST_CASE("usual pieces are counted by host, and those of a trace by frequency", "[fragments]") {
  std::vector<ClusterJob> jobs(4);
  jobs[0].gpus = 20;  // two whole hosts and four
  jobs[1].gpus = 4;
  jobs[2].milli = 300;
  jobs[3].milli = 300;
  const std::vector<UsualTask> shared = usual_pieces(jobs, 8, true);
  REQUIRE(shared.size() == 3);
  for (const UsualTask& one : shared) CHECK(one.share == Approx(1.0 / 3));
  const std::vector<UsualTask> whole = usual_pieces(jobs, 8, false);
  REQUIRE(whole.size() == 3);
  CHECK(whole[0].task.gpus * whole[1].task.gpus * whole[2].task.gpus == 1 * 4 * 8);
  for (const UsualTask& one : whole) CHECK(one.task.gpu_milli == whole_gpu);
}

// Hosts as fill has them, from what is told.
class HostsByFill {
 public:
  HostsByFill(const ClusterJobs& list, const std::vector<UsualTask>& usual, std::int32_t hosts)
      : list_(list),
        usual_(usual),
        hosts_(static_cast<std::size_t>(hosts), empty_host({.gpus = 8, .model = 0})) {}

  void take(const FleetEvent& event) {
    using enum FleetEventKind;
    if (event.kind == start) begin(event);
    if (event.kind == stop || event.kind == end || event.kind == cut) leave(event);
  }
  int joined = 0, opened_beside = 0;

 private:
  struct Where {
    std::size_t host = 0, gpu = 0;
    std::int32_t milli = 0;
  };
  // What fragments of all of a host grow by.
  double growth(std::size_t host, std::size_t gpu, std::int32_t milli) const {
    HostState after = hosts_[host];
    after.gpu_milli[gpu] -= milli;
    return fragments(after, usual_) - fragments(hosts_[host], usual_);
  }
  void begin(const FleetEvent& event) {
    const ClusterJob& job = list_.jobs[event.job];
    const auto host = static_cast<std::size_t>(event.place->front().host);
    if (!job.is_part()) {
      for (const HostGrant& grant : *event.place)
        for (std::int32_t h = grant.host; h < grant.host + grant.hosts; ++h)
          hold(event.job, static_cast<std::size_t>(h), grant.gpus);
      return;
    }
    double least = 1e9, here = 1e9;
    std::size_t gpu = 0;
    bool could_join = false;
    for (std::size_t h = 0; h < hosts_.size(); ++h)
      for (std::size_t g = 0; g < hosts_[h].gpu_milli.size(); ++g) {
        const std::int32_t room = hosts_[h].gpu_milli[g];
        if (room < job.milli) continue;
        could_join = could_join || room < whole_gpu;
        const double grown = growth(h, g, job.milli);
        least = std::min(least, grown);
        if (h != host) continue;
        // Of equals the one with the least room, then the oldest.
        const bool equal = grown < here + 1e-6 && grown > here - 1e-6;
        const bool first = std::tuple(room, opened_[{h, g}]) <
                           std::tuple(hosts_[h].gpu_milli[gpu], opened_[{h, gpu}]);
        if (equal ? !first : grown > here) continue;
        here = grown;
        gpu = g;
      }
    REQUIRE(here == Approx(least).margin(1e-5));
    const SharedTask task{.gpus = 1, .gpu_milli = job.milli};
    std::int32_t best = -1;
    for (const HostState& one : hosts_)
      best = std::max(best, fill_score(FillRule::fragmentation, one, task, usual_).points);
    REQUIRE(fill_score(FillRule::fragmentation, hosts_[host], task, usual_).points == best);
    const bool opens = hosts_[host].gpu_milli[gpu] == whole_gpu;
    REQUIRE(opens == (event.place->front().gpus == 1));
    joined += opens ? 0 : 1;
    opened_beside += opens && could_join ? 1 : 0;
    if (opens) opened_[{host, gpu}] = ++openings_;
    hosts_[host].gpu_milli[gpu] -= job.milli;
    where_[event.job].push_back({host, gpu, job.milli});
  }
  void hold(std::uint32_t job, std::size_t host, std::int32_t gpus) {
    for (std::size_t gpu = 0; gpu < 8 && gpus > 0; ++gpu) {
      if (hosts_[host].gpu_milli[gpu] < whole_gpu) continue;
      hosts_[host].gpu_milli[gpu] = 0;
      where_[job].push_back({host, gpu, whole_gpu});
      --gpus;
    }
    REQUIRE(gpus == 0);
  }
  void leave(const FleetEvent& event) {
    for (const Where& at : where_[event.job]) hosts_[at.host].gpu_milli[at.gpu] += at.milli;
    where_.erase(event.job);
  }

  const ClusterJobs& list_;
  const std::vector<UsualTask>& usual_;
  std::vector<HostState> hosts_;
  std::map<std::uint32_t, std::vector<Where>> where_;
  std::map<std::pair<std::size_t, std::size_t>, int> opened_;  // by host, accelerator
  int openings_ = 0;
};

TEST_CASE("law: parts go where fragments of all hosts grow least", "[fleet][fragments]") {
  const std::uint64_t seed = fresh(67);
  INFO("seed " << seed);
  int joined = 0, opened_beside = 0;
  for (std::uint64_t round = 0; round < 24; ++round) {
    ClusterJobs list = jobs_with_parts(seed + round, 300);
    // Few sizes, as clusters have them: equal rooms are many, so that ties are.
    for (ClusterJob& job : list.jobs) {
      if (!job.is_part()) continue;
      job.milli = static_cast<std::uint16_t>((job.milli / 250 + 1) * 200);
      // Halves are so usual that a small part spares them.
      if (round % 2 == 1) job.milli = job.milli < 800 ? 500 : 100;
    }
    if (round % 2 == 1)
      for (ClusterJob& job : list.jobs)
        if (!job.is_part() && job.row % 4 != 0) {
          job.gpus = 1;
          job.milli = 500;
        }
    FleetQuestion question =
        sharing(round % 3 == 0 ? JobOrder::priority : JobOrder::fifo,
                round % 2 == 0 ? JobFit::easy : JobFit::any, JobPlace::fragmentation);
    question.policy.preempts = round % 3 == 0;
    question.works[0].save_steps = question.policy.preempts ? 60'000'000 : 0;
    const std::vector<UsualTask> usual = usual_pieces(list.jobs, 8, true);
    HostsByFill hosts(list, usual, question.shape.hosts);
    question.tell = [&](const FleetEvent& event) { hosts.take(event); };
    const FleetRecord record = run_fleet(list, question);
    CHECK(record.use.work.all() == record.use.held * 1'000'000);
    for (const JobRecord& job : record.jobs) REQUIRE((job.end != fleet_never || job.rejected));
    joined += hosts.joined;
    opened_beside += hosts.opened_beside;
  }
  CHECK(joined > 1'000);
  CHECK(opened_beside > 20);
}

}  // namespace
}  // namespace orrery
