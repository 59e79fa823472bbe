// SPDX-License-Identifier: Apache-2.0
// Tests what a store that all jobs share does to the answer of schedule.
#include <catch2/catch.hpp>

#include "tests/question/scheduled_case.h"

namespace orrery {
namespace {

SortedJson training(const char* id) {
  return {{"id", id},
          {"length", "12 day"},
          {"model", "llama3-8b"},
          {"gpus", 128},
          {"global_batch", 256},
          {"seq", 8192},
          {"tp", 2},
          {"pp", 1},
          {"stack", "megatron-core"},
          {"priority", 1}};
}

SortedJson lab(const SortedJson& more = SortedJson::object()) {
  SortedJson settings = {{"cluster", "dgx-h100"},
                         {"gpus", 288},
                         {"horizon", "10 day"},
                         {"reliability", "llama3-h100"},
                         {"failure_rate", 20},
                         {"incidents", {{{"at", "50 h"}, {"for", "5 min"}, {"what", "cluster"}}}},
                         {"policy", "easy"}};
  settings["jobs"] = {training("one"), training("two")};
  settings.update(more);
  return settings;
}

const FleetRecord& record(const Scheduled& s) { return s.points.front().record; }

const JobWork& first_work(const Scheduled& s) {
  return s.points.front().asked.jobs->trainings.front().work;
}

}  // namespace

TEST_CASE("a store that is large enough changes no answer", "[schedule]") {
  const Scheduled alone = scheduled(lab()), shared = scheduled(lab({{"store", "1 TB/s"}}));
  CHECK(record(alone).reads.count == 0);
  CHECK(record(shared).reads.count > 100);
  CHECK(record(shared).reads.most == 2);
  CHECK(record(shared).reads.waited == 0);
  CHECK(record(alone).last_end == record(shared).last_end);
  CHECK(record(alone).events == record(shared).events);
  CHECK(record(alone).use.held == record(shared).use.held);
  CHECK(record(alone).use.work.useful == record(shared).use.work.useful);
  CHECK(record(alone).use.work.starting == record(shared).use.work.starting);
  CHECK(first_work(alone).restart == first_work(shared).restart);
  CHECK(first_work(alone).write_ps == first_work(shared).write_ps);
}

TEST_CASE("a small store slows reads and saves", "[schedule]") {
  const Scheduled large = scheduled(lab({{"store", "1 TB/s"}}));
  // 8 billion parameters, 14 bytes each: 112 GB.
  const Scheduled small = scheduled(lab({{"store", "1 GB/s"}, {"store_write", "1 TB/s"}}));
  const FleetRecord& slow = record(small);
  CHECK(to_seconds(first_work(small).later_read.alone).si() == Approx(112).epsilon(0.02));
  CHECK(slow.reads.waited > 0);
  // The incident stops both, of which each reads at half of it.
  CHECK(to_seconds(slow.reads.longest).si() == Approx(224).epsilon(0.03));
  CHECK(slow.use.work.starting > record(large).use.work.starting);
  CHECK(first_work(small).write_ps == first_work(large).write_ps);
  const Scheduled saves = scheduled(lab({{"store", "1 TB/s"}, {"store_write", "1 GB/s"}}));
  CHECK(first_work(saves).later_read.alone == first_work(large).later_read.alone);
  CHECK(static_cast<double>(first_work(saves).write_ps) * 1e-12 >= 112);
  CHECK(record(saves).use.work.lost > record(large).use.work.lost);
  // Together no more than the store takes.
  double written = 0;
  for (const FleetTraining& t : saves.points.front().asked.jobs->trainings)
    written += (t.months->checkpoint / t.save_interval).si();
  CHECK(written <= 1e9 * 1.001);
  // Hosts that take more than the profile's share of a store.
  const Scheduled hosts = scheduled(lab({{"store", "1 TB/s"}, {"store_host", "10 GB/s"}}));
  CHECK(to_seconds(first_work(hosts).later_read.alone).si() == Approx(0.7).epsilon(0.02));
}

TEST_CASE("a store is refused where it means nothing", "[schedule]") {
  CHECK(schedule_failure(lab({{"store", "1 kB/s"}})).find("from 1 MB/s to 1 EB/s") !=
        std::string::npos);
  CHECK(schedule_failure(lab({{"store_host", "1 GB/s"}})).find("nothing without store") !=
        std::string::npos);
  SortedJson nobody = lab({{"store", "1 GB/s"}});
  for (const char* key : {"reliability", "failure_rate"}) nobody.erase(key);
  CHECK(schedule_failure(nobody).find("nothing here") != std::string::npos);
  SortedJson often = lab({{"store", "1 GB/s"}});
  often["jobs"][0]["save_interval"] = often["jobs"][1]["save_interval"] = "150 s";
  CHECK(schedule_failure(often).find("beside the others on the store") != std::string::npos);
}

}  // namespace orrery
