// SPDX-License-Identifier: Apache-2.0
// Checks how jobs of a list name others that they come after, and which are refused.
#include <algorithm>
#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "sim/base/random.h"
#include "tests/base/error_text.h"
#include "tests/base/fresh_seed.h"
#include "workloads/cluster_job/job_dependencies.h"
#include "workloads/job_traces/job_trace.h"

namespace orrery {
namespace {

constexpr std::int64_t second = 1'000'000;

// "b after a", "c after a, any, 30 s".
std::vector<std::string> texts_of(const ClusterJobs& list) {
  std::vector<std::string> out;
  for (const JobDependency& one : list.dependencies)
    out.push_back(list.id_of(one.job) + " after " + list.id_of(one.after) +
                  (one.any ? ", any" : "") +
                  (one.think.us > 0 ? ", " + std::to_string(one.think.us / second) + " s" : ""));
  return out;
}

using Texts = std::vector<std::string>;

std::string refused(const std::string& text) {
  return error_text([&] { parse_jobs(text, job_format_of(text), "t"); });
}

// Jobs a, b, c with these cells.
std::string three(const std::string& a, const std::string& b, const std::string& c) {
  return "id,submit_s,length_s,gpus,after\na,0,1,1," + a + "\nb,1,1,1," + b + "\nc,2,1,1," + c +
         "\n";
}
Texts read(const std::string& text) { return texts_of(parse_jobs(text, job_format_of(text), "t")); }

}  // namespace

TEST_CASE("dependencies: ids, and Slurm's words before them") {
  CHECK(read(three("", "a", "a;b")) == Texts{"b after a", "c after a", "c after b"});
  CHECK(read(three("", "afterok:a", " afterany:a:b ; ")) ==
        Texts{"b after a", "c after a, any", "c after b, any"});
  CHECK(read(three("", "", "\"afterok:a,afterany:b\"")) == Texts{"c after a", "c after b, any"});
  CHECK(read(three("b", "", "")) == Texts{"a after b"});  // that is submitted later
  CHECK(read("submit_s,length_s,gpus,after\n5,1,1,2\n0,1,1,\n") == Texts{"1 after 2"});
  CHECK(read("{\"id\": \"a\", \"submit_s\": 3, \"length_s\": 1, \"gpus\": 1}\n"
             "{\"id\": 7, \"submit_s\": 2, \"length_s\": 1, \"gpus\": 1, \"after\": \"a\"}\n"
             "{\"id\": 8, \"submit_s\": 1, \"length_s\": 1, \"gpus\": 1, \"after\": 7}\n"
             "{\"id\": 9, \"submit_s\": 0, \"length_s\": 1, \"gpus\": 1, "
             "\"after\": [\"afterany:a\", 8]}\n") ==
        Texts{"9 after a, any", "9 after 8", "8 after 7", "7 after a"});
  // Ids may have what stands between ids and words.
  CHECK(read("id,submit_s,length_s,gpus,after\nx:1,0,1,1,\nok,0,1,1,afterany:x:1\n") ==
        Texts{"ok after x:1, any"});
}

TEST_CASE("dependencies: the preceding job of the Standard Workload Format, and think times") {
  const std::string front = " 5 60 4 -1 -1 8 120 -1 1 3 1 -1 2 -1 ";
  const std::string text = "1 0" + front + "-1 -1\n2 10" + front + "1 30\n3 20" + front +
                           "2 -1\n4 20 5 -1 4 -1 -1 8 120 -1 1 3 1 -1 2 -1 -1 -1\n5 30" + front +
                           "4 3\n";
  const ClusterJobs list = parse_jobs(text, job_format_of(text), "t");
  CHECK(texts_of(list) == Texts{"2 after 1, any, 30 s", "3 after 2, any"});
  CHECK(list.notes[1] == "1 job comes after one that was left out");
  CHECK(refused("1 0" + front + "9 3\n") ==
        "t: line 1, column 17 (preceding job): found \"9\"; expected ids of jobs of the same file");
  CHECK(refused("1 0" + front + "1 4e10\n") ==
        "t: line 1, column 18 (think time): found \"4e10\"; expected a time between 0 and 1,000 "
        "years (31,536,000,000 s)");
}

TEST_CASE("dependencies: what cannot be is refused in one sentence") {
  CHECK(refused(three("", "a", "bb")) ==
        "t: line 4, column after: found \"bb\"; expected ids of jobs of the same file; did you "
        "mean \"b\"?");
  CHECK(refused(three("", "afternotok:a", "")) ==
        "t: line 3, column after: found \"afternotok:a\"; expected ids with ';' between them, "
        "behind afterok: (which is meant without a word) or afterany:");
  CHECK(refused(three("", "b", "")) ==
        "t: line 3, column after: found a circle: b after b; expected jobs that come after others "
        "in no circle");
  CHECK(refused(three("c", "a", "b")) ==
        "t: line 2, column after: found a circle: a after c after b after a; expected jobs that "
        "come after others in no circle");
  CHECK(refused("submit_s,length_s,gpus,after\n0,1,1,\n0,1,1,3\n") ==
        "t: line 3, column after: found \"3\"; expected rows of jobs, counted from 1 below the "
        "header");
  std::string text = "submit_s,length_s,gpus,after\n0,1,1,1000\n";
  for (int i = 1; i < 1000; ++i) text += "0,1,1," + std::to_string(i) + "\n";
  CHECK(refused(text) ==
        "t: line 2, column after: found a circle: 1 after 1000 after 999 after 998 after 997 after "
        "996 after .. after 1; expected jobs that come after others in no circle");
}

TEST_CASE("law: circles are found, and nothing else is one") {
  const std::uint64_t seed = fresh(5);
  INFO("seed " << seed);
  for (std::uint64_t round = 0; round < 200; ++round) {
    RandomStream random(seed + round, 0);
    ClusterJobs list;
    const auto count = static_cast<std::uint32_t>(2 + random.below(40));
    for (std::uint32_t i = 0; i < count; ++i) list.jobs.push_back({.row = i + 1});
    for (std::uint32_t i = 1; i < count; ++i)
      for (std::uint64_t n = random.below(3); n > 0; --n)
        list.dependencies.push_back({i, static_cast<std::uint32_t>(random.below(i))});
    REQUIRE(dependency_circle(list).empty());
    // Back from a job to one that comes after it, over a few others.
    auto to = static_cast<std::uint32_t>(random.below(count));
    const std::uint32_t from = to;
    for (const JobDependency& one : list.dependencies)
      if (one.after == to) to = one.job;
    list.dependencies.push_back({from, to});
    const std::vector<std::uint32_t> circle = dependency_circle(list);
    REQUIRE_FALSE(circle.empty());
    for (std::size_t i = 0; i < circle.size(); ++i) {
      const std::uint32_t after = circle[(i + 1) % circle.size()];
      REQUIRE(std::any_of(
          list.dependencies.begin(), list.dependencies.end(),
          [&](const JobDependency& one) { return one.job == circle[i] && one.after == after; }));
    }
  }
}

TEST_CASE("dependencies: who comes after jobs that are cut off goes with them") {
  const std::string text = three("c", "a", "") + "d,3,1,1,\n";
  ClusterJobs list = parse_jobs(text, job_format_of(text), "t");
  CHECK(keep_first(list, 4) == 0);
  CHECK(texts_of(list) == Texts{"a after c", "b after a"});
  ClusterJobs fewer = list;
  CHECK(keep_first(fewer, 3) == 0);
  CHECK(texts_of(fewer) == Texts{"a after c", "b after a"});
  CHECK(keep_first(list, 2) == 2);
  CHECK(list.jobs.empty());
  CHECK(list.dependencies.empty());
}

}  // namespace orrery
