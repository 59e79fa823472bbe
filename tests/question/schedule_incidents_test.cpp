// SPDX-License-Identifier: Apache-2.0
// Tests questions with incidents: which hosts are meant, what a bad list is told.
#include <algorithm>
#include <catch2/catch.hpp>

#include "sim/question/losses/feeds_entry.h"
#include "sim/question/losses/incidents_entry.h"
#include "sim/question/schedule/inline_jobs.h"
#include "sim/question/schedule/settings.h"
#include "tests/base/error_text.h"
#include "tests/base/scratch_folder.h"
#include "tests/question/scheduled_case.h"

namespace orrery {
namespace {

SlotShape pods() {
  return {.hosts = 22,
          .gpus_per_host = 8,
          .last_host_gpus = 8,
          .levels = {{"leaf group", 4}, {"pod", 8}}};
}

std::vector<Incident> read(const std::string& list, const FeedTree& feeds = {}) {
  return read_incidents(JsonValue::parse(list, "month.json"), pods(), feeds);
}

std::string failure(const std::string& entry) {
  return error_text([&] { read("[" + entry + "]"); });
}

std::vector<std::int32_t> from_to(std::int32_t from, std::int32_t to) {
  std::vector<std::int32_t> hosts;
  for (std::int32_t host = from; host <= to; ++host) hosts.push_back(host);
  return hosts;
}

SortedJson lab(const SortedJson& more = SortedJson::object()) {
  SortedJson settings = {{"cluster", "dgx-h100"}, {"gpus", 512},      {"days", 8},
                         {"horizon", "10 day"},   {"policy", "easy"}, {"place", "pack"}};
  settings["jobs"] = {{{"mix", "acme-kalos"}, {"per_day", 400}}};
  settings.update(more);
  return settings;
}

}  // namespace

TEST_CASE("incidents name parts of the cluster", "[schedule]") {
  const auto all = read(R"([
    {"at": "100 h", "for": "6 h", "what": "leaf", "which": 1, "latency": "5 min"},
    {"at": "1 day", "for": "1 h", "what": "pod", "which": 2},
    {"at": "0 s", "for": "1 h", "what": "cluster"},
    {"at": "2 h", "for": "1 h", "what": "host", "which": 21},
    {"at": "2 h", "for": "1 h", "what": "host", "hosts": "16-18,3", "drain": true,
     "announced": "30 min", "name": "new cables"}])");
  REQUIRE(all.size() == 5);
  CHECK(all[0].name == "leaf group 1");
  CHECK(all[0].at == FleetTime{INT64_C(360'000'000'000)});
  CHECK(all[0].length == FleetTime{INT64_C(21'600'000'000)});
  CHECK(all[0].latency == FleetTime{INT64_C(300'000'000)});
  CHECK(all[0].hosts == from_to(4, 7));
  CHECK(all[1].hosts == from_to(16, 21));
  CHECK(all[2].hosts == from_to(0, 21));
  CHECK(all[3].hosts == std::vector<std::int32_t>{21});
  CHECK(all[4].hosts == std::vector<std::int32_t>{3, 16, 17, 18});
  CHECK(all[4].name == "new cables");
  CHECK(all[4].announced == FleetTime{INT64_C(1'800'000'000)});
}

TEST_CASE("bad incidents have one line", "[schedule]") {
  CHECK(failure(R"({"at": "1 h", "for": "1 h", "what": "pod", "which": 3})") ==
        "month.json: [0].which: found 3; expected a pod from 0 to 2: this cluster has 3 pods");
  CHECK(failure(R"({"at": "1 h", "for": "1 h", "what": "host", "which": -1})")
            .find("a host from 0 to 21: this cluster has 22 hosts") != std::string::npos);
  CHECK(failure(R"({"at": "1 h", "for": "1 h", "what": "core", "which": 0})")
            .find("a part that this cluster has: host, leaf, pod, cluster") != std::string::npos);
  CHECK(failure(R"({"at": "1 h", "for": "1 h", "hosts": "20-22"})").find("hosts from 0 to 21") !=
        std::string::npos);
  CHECK(failure(R"({"at": "1 h", "for": "1 h", "hosts": "2,1-3"})").find("each host once") !=
        std::string::npos);
  CHECK(failure(R"({"at": "1 h", "for": "1 h", "hosts": "2", "which": 1})")
            .find("nothing beside hosts") != std::string::npos);
  CHECK(failure(R"({"at": "-1 h", "for": "1 h", "what": "cluster"})").find("from 0") !=
        std::string::npos);
  CHECK(failure(R"({"at": "1 h", "what": "cluster"})").find("for") != std::string::npos);
  CHECK(failure(R"({"at": "1 h", "for": "1 h", "what": "cluster", "lenght": 1})").find("lenght") !=
        std::string::npos);
  CHECK(failure(R"({"at": "1 h", "for": "1 h", "what": "cluster", "latency": "1 h"})")
            .find("less than it lasts") != std::string::npos);
  CHECK(failure(R"({"at": "1 h", "for": "1 h", "what": "cluster", "announced": "1 h"})")
            .find("nothing without drain") != std::string::npos);
  CHECK(
      failure(R"({"at": "1 h", "for": "1 h", "what": "cluster", "drain": true, "latency": "1 s"})")
          .find("nothing beside drain") != std::string::npos);
  CHECK(error_text([] { read(R"({"at": "1 h"})"); }).find("a list of incidents") !=
        std::string::npos);
  CHECK(schedule_failure(lab({{"incidents", "no-such.json"}})).find("no-such.json") !=
        std::string::npos);
  const SortedJson out = SortedJson::parse(R"([{"at": "1 h", "for": "1 h", "what": "cluster"}])");
  CHECK(schedule_failure(lab({{"incidents", out}, {"place", "pool"}})).find("a rule with hosts") !=
        std::string::npos);
  CHECK(schedule_failure(lab({{"power_limit", "1 MW"}, {"policy", "slurm-default"}}))
            .find("Slurm's loops know neither") != std::string::npos);
}

TEST_CASE("an incident stops jobs and is counted, the same from a file", "[schedule]") {
  const SortedJson list = SortedJson::parse(
      R"([{"at": "100 h", "for": "6 h", "what": "leaf", "which": 1},
          {"at": "300 h", "for": "6 h", "what": "leaf", "which": 0}])");
  const Scheduled calm = scheduled(lab()), inline_list = scheduled(lab({{"incidents", list}}));
  const FleetRecord& record = inline_list.points.front().record;
  REQUIRE(record.incidents.size() == 2);
  CHECK(record.incidents[0].happened);
  CHECK(record.incidents[0].gpus == 256);
  CHECK(record.incidents[0].stopped > 0);
  CHECK_FALSE(record.incidents[1].happened);  // after the end of the run
  CHECK(record.use.repair == static_cast<GpuMicros>(256) * INT64_C(21'600'000'000));
  CHECK(calm.points.front().record.use.repair == 0);
  const ScratchFolder scratch("incidents");
  const std::string file = scratch.add("month.json", list.dump()).string();
  const Scheduled from_file = scheduled(lab({{"incidents", file}}));
  CHECK(from_file.points.front().record.events == record.events);
  CHECK(from_file.points.front().record.use.work.lost == record.use.work.lost);
  // What the file held stands in the answer.
  CHECK(from_file.settings.at("incidents").at("text").text() == list.dump());
  CHECK(scheduled(from_file.settings.raw()).points.front().record.events == record.events);
  // Nothing happens: nothing changes.
  const SortedJson never = SortedJson::parse(R"([{"at": "1 h", "for": "0 s", "what": "cluster"}])");
  for (const SortedJson& none : {SortedJson::array(), never}) {
    const FleetRecord& same = scheduled(lab({{"incidents", none}})).points.front().record;
    CHECK(same.events == calm.points.front().record.events);
    CHECK(same.power.nanojoules == calm.points.front().record.power.nanojoules);
    CHECK(same.use.idle == calm.points.front().record.use.idle);
  }
}

TEST_CASE("feeds are read from the inside out", "[schedule]") {
  const auto tree = [](const std::string& text) {
    return read_feeds(JsonValue::parse(text, "feeds"), pods(), 100'000);
  };
  const FeedTree all = tree(R"({
    "facility": {"limit": "1 MW"},
    "halls": {"count": 2, "limit": "90 kW", "redundancy": "2N"},
    "racks": {"hosts": 1, "limit": "8 kW", "share_left": 0.5}, "rows": {"hosts": 11}})");
  REQUIRE(all.size() == 4);
  CHECK(all[0].name == "rack");
  CHECK(all[0].share_left == 0.5);
  CHECK(all[1].reach == 11);
  CHECK(all[1].limit == 0);
  CHECK(all[2].reach == 11);
  CHECK(all[2].limit == 90'000'000);
  CHECK(all[2].share_left == 1);
  CHECK(all[3].reach == 22);
  CHECK(all[3].share_left == 0);
  const auto refused = [&](const std::string& text) { return error_text([&] { tree(text); }); };
  const auto has = [&](const std::string& text, const char* part) {
    return refused(text).find(part) != std::string::npos;
  };
  CHECK(has(R"({"racks": {"hosts": 2}, "rows": {"hosts": 5}})",
            "feeds of whole racks: a multiple of 2 hosts"));
  CHECK(has(R"({"racks": {"hosts": 2, "limit": "1.5 kW"}})",
            "more than the 1.6 kW that the idle hosts of a rack draw"));
  CHECK(has(R"({"racks": {"hosts": 2, "limit": "3 kW", "share_left": 0.5}})",
            "more than the 1.6 kW"));
  CHECK(has(R"({"racks": {"hosts": 2, "count": 11}})", "one of count and hosts"));
  CHECK(has(R"({"halls": {"count": 13, "limit": "1 MW"}})", "as many as 22 hosts"));
  CHECK(has(R"({"halls": {"count": 2, "share_left": 0.5}})", "a limit beside it"));
  CHECK(has(R"({"halls": {"count": 2, "limit": "1 MW", "redundancy": "3N"}})", "2N"));
  CHECK(has(R"({"halls": {"count": 2, "limit": "1e30 W"}})", "less than 1 TW"));
  CHECK(has(R"({"hals": {"count": 2}})", "halls"));
  CHECK(has("{}", "facility, halls, rows or racks"));
}

TEST_CASE("a lost feed takes its hosts, or a part of its limit", "[schedule]") {
  const FeedTree feeds = {{"rack", 2, 20'000'000, 0.5}, {"hall", 11, 0, 0}};
  const auto all = read(R"([{"at": "1 h", "for": "1 h", "what": "feed", "which": "hall 1"},
                            {"at": "1 h", "for": "1 h", "what": "feed", "which": "rack 10"}])",
                        feeds);
  CHECK(all[0].hosts == from_to(11, 21));
  CHECK(all[0].feed == -1);
  CHECK(all[1].hosts.empty());
  CHECK(all[1].feed == 10);
  CHECK(all[1].limit_left == 10'000'000);
  CHECK(failure(R"({"at": "1 h", "for": "1 h", "what": "feed", "which": "hall 1"})")
            .find("the question has no feeds") != std::string::npos);
  CHECK(error_text([&] {
          read(R"([{"at": "1 h", "for": "1 h", "what": "feed", "which": "hall 2"}])", feeds);
        }).find("a feed, from rack 0 to hall 1") != std::string::npos);
}

TEST_CASE("racks keep their limits, at the price of scattered jobs", "[schedule]") {
  // Half of what a rack of four hosts of busy recorded jobs draws.
  const SortedJson racks = {{"racks", {{"hosts", 4}, {"limit", "16 kW"}}}};
  const Scheduled open = scheduled(lab()), tight = scheduled(lab({{"feeds", racks}}));
  const auto capped = scheduled(lab({{"feeds", racks}, {"power_policy", "proportional"}}));
  const FleetMeasures& o = open.points.front().measures.front();
  const FleetMeasures& t = tight.points.front().measures.front();
  const FleetMeasures& c = capped.points.front().measures.front();
  CHECK(t.shares.useful + t.shares.in_vain < o.shares.useful + o.shares.in_vain);
  CHECK(c.shares.capped > 0);
  CHECK(tight.points.front().record.power.over.us == 0);
  CHECK(tight.points.front().record.power.most_milliwatts <= 16 * INT64_C(16'000'000));
  CHECK(schedule_failure(lab({{"feeds", racks}, {"policy", "slurm-default"}}))
            .find("another policy beside feeds: Slurm's loops") != std::string::npos);
  CHECK(schedule_failure(lab({{"feeds", racks}, {"place", "pool"}}))
            .find("another place beside feeds") != std::string::npos);
  for (const char* policy : {"goodput", "conservative", "fair"}) {
    const auto kept = scheduled(lab({{"feeds", racks}, {"policy", policy}}));
    CHECK(kept.points.front().record.power.over.us == 0);
    CHECK(kept.points.front().record.power.most_milliwatts <= 16 * INT64_C(16'000'000));
  }
}

TEST_CASE("incidents are a flag too: a list, or a file", "[schedule]") {
  const auto& all = schedule_settings();
  const auto setting = std::find_if(all.begin(), all.end(), [](const Setting& one) {
    return std::string(one.key) == "incidents";
  });
  REQUIRE(setting != all.end());
  const char* text = R"([{"at": "100 h", "for": "6 h", "what": "leaf", "which": 1}])";
  CHECK(setting_value(*setting, text) == SortedJson::parse(text));
  CHECK(setting_value(*setting, "month.json") == SortedJson("month.json"));
  CHECK(error_text([&] { setting_value(*setting, "[{\"at\": }]"); }).find("--incidents") !=
        std::string::npos);
}

}  // namespace orrery
