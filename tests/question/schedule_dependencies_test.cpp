// SPDX-License-Identifier: Apache-2.0
// Tests how a question says which jobs come after which, and what the answer counts.
#include <algorithm>
#include <catch2/catch.hpp>

#include "tests/question/scheduled_case.h"

namespace orrery {
namespace {

const std::string pipelines = ORRERY_SOURCE_DIR "/tests/schedule/pipelines.csv";

SortedJson training(const std::string& id, const SortedJson& after) {
  SortedJson out = {{"id", id}, {"model", "llama3-8b"}, {"gpus", 16},         {"tp", 8},
                    {"dp", 2},  {"seq", 8192},          {"global_batch", 64}, {"length", "1 h"}};
  if (!after.is_null()) out["after"] = after;
  return out;
}

SortedJson question(const SortedJson& jobs) {
  return {{"cluster", "dgx-h100"}, {"gpus", 64}, {"policy", "easy"}, {"jobs", jobs}};
}

std::size_t place(const ClusterJobs& list, const std::string& id) {
  return static_cast<std::size_t>(std::find(list.ids.begin(), list.ids.end(), id) -
                                  list.ids.begin());
}

}  // namespace

TEST_CASE("dependencies of a trace: who is held, who is cancelled", "[schedule]") {
  const Scheduled s = scheduled({{"cluster", "dgx-h100"},
                                 {"gpus", 64},
                                 {"policy", {"fifo", "easy", "slurm-default", "goodput"}},
                                 {"trace", pipelines}});
  for (const SchedulePoint& point : s.points) {
    const FleetMeasures& m = point.measures.front();
    CHECK(m.dependencies.jobs == 6);
    CHECK(m.dependencies.cancelled == 1);
    CHECK(m.dependencies.still_held == 0);
    CHECK(m.dependencies.held.count == 5);
    CHECK(m.submitted == 12);
    CHECK(m.finished == 11);
    CHECK(m.bad_ends.failed == 1);
    const JobRecord& report = point.record.jobs[place(*point.list, "report")];
    const JobRecord& tune = point.record.jobs[place(*point.list, "tune")];
    const JobRecord& evaluate = point.record.jobs[place(*point.list, "evaluate")];
    CHECK(report.held == std::max(tune.end, evaluate.end));
    CHECK(m.wait.count == 11);
  }
}

TEST_CASE("jobs may be held as the run ends", "[schedule]") {
  SortedJson settings = {{"cluster", "dgx-h100"},
                         {"gpus", 64},
                         {"policy", "easy"},
                         {"trace", pipelines},
                         {"horizon", "10 h"}};
  const Scheduled s = scheduled(settings);
  const FleetMeasures& m = s.points.front().measures.front();
  CHECK(m.dependencies.still_held > 0);
  CHECK(m.dependencies.jobs ==
        m.dependencies.held.count + m.dependencies.cancelled + m.dependencies.still_held);
}

TEST_CASE("a deadline counts from the submission, and not for those that are cancelled",
          "[schedule]") {
  const std::string text =
      "id,submit_s,length_s,gpus,deadline_s,fate,after\na,0,100,8,,failed,\n"
      "b,0,100,8,150,completed,afterany:a\nc,0,100,8,250,completed,afterany:a\n"
      "d,0,100,8,500,completed,a\n";
  const Scheduled s = scheduled({{"cluster", "dgx-h100"},
                                 {"gpus", 64},
                                 {"policy", "easy"},
                                 {"trace", {{"name", "t"}, {"text", text}}}});
  const FleetDeadlines& d = s.points.front().measures.front().deadlines;
  CHECK(d.jobs == 2);
  CHECK(d.met == 1);
  CHECK(d.late.si() == 50);
}

TEST_CASE("entries come after entries and after jobs of a trace", "[schedule]") {
  const Scheduled s = scheduled(question({{{"trace", pipelines}},
                                          training("first", pipelines + ":data"),
                                          training("second", {"afterany:first"})}));
  const SchedulePoint& point = s.points.front();
  const auto record = [&](const std::string& id) {
    return point.record.jobs[place(*point.list, id)];
  };
  CHECK(record("first").held == record(pipelines + ":data").end);
  CHECK(record("second").held == record("first").end);
  CHECK(record("second").start >= record("first").end);
  CHECK(record(pipelines + ":report").held >= record(pipelines + ":tune").end);
  CHECK(point.measures.front().dependencies.jobs == 8);
}

TEST_CASE("what an entry cannot come after is said in one sentence", "[schedule]") {
  CHECK(schedule_failure(question({training("a", "b"), training("b", "a")})) ==
        "test: jobs[0].after: found a circle: a after b after a; expected jobs that come after "
        "others in no circle");
  CHECK(schedule_failure(question({training("a", nullptr), training("b", {"aa"})})) ==
        "test: jobs[1].after[0]: found \"aa\"; expected ids of jobs that end: trainings, batches "
        "and RL (a, b), or of a trace (jobs.csv:7, as answers call them); did you mean \"a\"?");
  CHECK(schedule_failure(question(SortedJson::array({training("a", "aftercorr:a")}))) ==
        "test: jobs[0].after: found \"aftercorr:a\"; expected ids with ';' between them, behind "
        "afterok: (which is meant without a word) or afterany:");
}

}  // namespace orrery
