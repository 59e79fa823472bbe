// SPDX-License-Identifier: Apache-2.0
// Tests searches of `schedule` as a user types them, limits of time, and figures of nobody.
#include <catch2/catch.hpp>

#include <set>

#include "sim/base/json/tree.h"
#include "tests/app/pages.h"
#include "tests/app/run_binary.h"

using namespace orrery::test;
using orrery::ScratchFolder;
using orrery::SortedJson;

namespace {

const std::string on_16 = "schedule --cluster dgx-h100 --gpus 16 ";

// a takes a host; b wants both and waits for its end; c and d are small.
const std::string jobs = "id,submit_s,length_s,gpus\na,0,600,8\nb,1,600,16\nc,2,50,1\nd,3,5000,1\n";

void expect_failure(const std::string& arguments, const std::string& words) {
  const Outcome o = run(arguments);
  INFO(arguments << "\n" << o.err);
  CHECK(o.code == 2);
  CHECK(o.out.empty());
  CHECK(lines(o.err) == 1);
  CHECK(o.err.find(words) != std::string::npos);
}

SortedJson answer(const std::string& arguments) {
  const Outcome o = run(arguments + " --json");
  INFO(arguments << "\n" << o.err);
  REQUIRE(o.code == 0);
  return SortedJson::parse(o.out);
}

std::set<std::string> values_of(const SortedJson& answer, const std::string& key) {
  std::set<std::string> values;
  for (const SortedJson& point : answer.at("points"))
    values.insert(point.contains(key) ? point.at(key).get<std::string>()
                                      : point.at("varied").at(key).get<std::string>());
  return values;
}

}  // namespace

TEST_CASE("a search tries the values that a question allows", "[schedule]") {
  const ScratchFolder scratch("schedule_search");
  const std::string trace = " --trace " + scratch.add("jobs.csv", jobs).string();
  const SortedJson all = answer(on_16 + trace + " --search policy,place");
  const std::set<std::string> policies = values_of(all, "policy"), places = values_of(all, "place");
  for (const char* policy : {"fifo", "easy", "conservative", "goodput", "slurm-default", "rsc"})
    CHECK(policies.contains(policy));
  CHECK(!policies.contains("deadline"));  // no job has one
  CHECK(places == std::set<std::string>{"pool", "pack", "spread", "least-level", "fragmentation",
                                        "least-contention", "tree", "block"});
  // A rule that places by itself is one point, whatever the place.
  std::set<std::pair<std::string, std::string>> names;
  for (const SortedJson& point : all.at("points"))
    CHECK(
        names.insert({point.at("policy").get<std::string>(), point.at("place").get<std::string>()})
            .second);
  const SortedJson& left_out = all.at("search").at("left_out");
  REQUIRE(!left_out.empty());
  CHECK(left_out.front().at("points").get<int>() > 0);
  // A list of its own stays, and so does the rest of the question.
  const SortedJson some = answer(on_16 + trace + " --policy fifo,easy --search policy,place");
  CHECK(values_of(some, "policy") == std::set<std::string>{"fifo", "easy"});
  const std::string file = scratch
                               .add("q.json", R"({"cluster": "dgx-h100", "gpus": 32,
      "search": "gpus, power_limit", "jobs": [{"mix": "philly", "per_day": 9}], "days": 1,
      "seeds": 1})")
                               .string();
  const SortedJson sizes = answer("schedule " + file);
  CHECK(values_of(sizes, "gpus") == std::set<std::string>{"24", "32"});
  CHECK(values_of(sizes, "power_limit").size() == 4);
  const std::string kept = scratch.add("answer.json", sizes.dump()).string();
  CHECK(run("rerun " + kept).code == 0);
}

TEST_CASE("what cannot be searched has one line", "[schedule]") {
  const ScratchFolder scratch("schedule_search_bad");
  const std::string question =
      on_16 + "--trace " + scratch.add("jobs.csv", jobs).string() + " --policy fifo,easy";
  expect_failure(question + " --search polcy", "did you mean \"policy\"");
  expect_failure(question + " --search place,place", "twice");
  expect_failure(question + " --search days", "--search: found \"days\"; expected one of policy");
  expect_failure(question + " --search spares", "nothing fails");
  expect_failure(question + " --limit wait.p99=4h", "did you mean \"--limits\"");
  expect_failure(question + " --time-limit 5m", "such as \"5 min\"");
  expect_failure(question + " --time-limit 0", "above 0");
  expect_failure(question + " --time-limit 1e-9", "more time");
  expect_failure(question + " --time-limit 9 --results " + (scratch / "kept").string(),
                 "no limit of time");
  expect_failure(question + " --search place --shard 1/2 --results " + (scratch / "two").string(),
                 "a race");
  // A mistake in the question itself is no value that it does not allow.
  expect_failure(question + " --search place --round \"6 min\"", "decides in rounds");
  expect_failure(question + " --search place --preempt-after \"-1 h\"", "--preempt-after");
  const std::string now = scratch.add("now.json", R"({"polcy": "easy"})").string();
  expect_failure(question + " --like " + now, "did you mean \"policy\"");
  const std::string two = scratch.add("two.json", R"({"policy": ["easy", "sjf"]})").string();
  expect_failure(question + " --like " + two, "one value of each setting");
}

TEST_CASE("a limit of time ends a search with what is known, and says so", "[schedule]") {
  const std::string question =
      "schedule --cluster dgx-h100 --gpus 640 --trace philly --reliability llama3-h100 "
      "--search policy,place,spares --seeds 5 --time-limit 3";
  const Outcome o = run(question + " --json");
  INFO(o.err);
  REQUIRE(o.code == 0);
  const SortedJson timed = SortedJson::parse(o.out);
  const SortedJson& search = timed.at("search");
  CHECK(search.at("out_of_time").get<bool>());
  CHECK(search.at("time_limit_s").get<double>() == 3);
  CHECK(search.at("runs").get<int>() < 5 * search.at("considered").get<int>());
  // Seeds stand in their order: no point has a later one without those before.
  for (const SortedJson& point : timed.at("points"))
    for (std::size_t i = 0; i < point.at("runs").size(); ++i)
      CHECK(point.at("runs").at(i).at("seed").get<std::size_t>() == i);
  CHECK(run(question).out.find("The limit of 3.00 s ended it") != std::string::npos);
  const Outcome enough =
      run("schedule --cluster dgx-h100 --gpus 640 --trace philly --days 3 --time-limit \"10 min\"");
  CHECK(enough.out.find("ended it") == std::string::npos);
}

// Of the runs that the answer has, by hand.
TEST_CASE("an answer says what would change it", "[schedule]") {
  const ScratchFolder scratch("schedule_reasons");
  const std::string file =
      scratch
          .add("q.json", R"({"cluster": "dgx-h100", "gpus": 64, "days": 4, "seeds": 6,
                  "policy": ["fifo", "easy", "sjf-easy"], "place": ["pack", "spread"],
                  "jobs": [{"mix": "philly", "per_day": 300}]})")
          .string();
  const std::string now =
      scratch.add("now.json", R"({"policy": "priority", "place": "pack"})").string();
  const SortedJson a = answer("schedule " + file + " --like " + now);
  const auto mean = [&](std::size_t point) {
    double sum = 0;
    for (const SortedJson& one : a.at("points").at(point).at("runs"))
      sum += one.at("completion_s").get<double>() / 6;
    return sum;
  };
  const auto best = a.at("best").get<std::size_t>();
  const SortedJson& reasons = a.at("reasons");
  const auto next = reasons.at("runner_up").get<std::size_t>();
  CHECK(reasons.at("more").at("mean").get<double>() == Approx(mean(next) - mean(best)));
  for (std::size_t i = 0; i < a.at("points").size(); ++i)
    CHECK((i == best || mean(i) >= Approx(mean(next))));
  std::set<std::string> values;
  for (const SortedJson& value : reasons.at("by_value")) {
    const SortedJson& point = a.at("points").at(value.at("best").get<std::size_t>());
    CHECK(point.at(value.at("setting").get<std::string>()) == value.at("value"));
    CHECK(value.at("more").at("mean").get<double>() ==
          Approx(mean(value.at("best").get<std::size_t>()) - mean(best)));
    values.insert(value.at("value").get<std::string>());
  }
  CHECK(values.size() == 4);  // three other policies, one of them that of now, and a place
  const auto as_now = a.at("search").at("now").get<std::size_t>();
  CHECK(as_now == 6);
  CHECK(a.at("points").at(as_now).at("policy").get<std::string>() == "priority");
  CHECK(run("schedule " + file + " --like " + now).out.find("Now, priority, pack, has +") !=
        std::string::npos);
  // A limit that the best point breaks makes another one the best.
  const SortedJson& won = a.at("points").at(best);
  CHECK(reasons.at("without_limits").is_null());
  const Outcome limited = run("schedule " + file + " --limits useful=0.99");
  CHECK(limited.code == 3);
  CHECK(won.at("takes_most").get<bool>());
}

TEST_CASE("a point that turns jobs away is not the best while others take them", "[schedule]") {
  const ScratchFolder scratch("schedule_away");
  const std::string trace =
      scratch.add("jobs.csv", "submit_s,length_s,gpus\n0,36000,24\n0,60,8\n0,60,8\n").string();
  const SortedJson a = answer("schedule --cluster dgx-h100 --gpus 16,24 --trace " + trace);
  CHECK(a.at("best").get<int>() == 1);
  CHECK(a.at("points").front().at("turned_away").get<double>() == 1);
  CHECK(!a.at("points").front().at("takes_most").get<bool>());
  const Outcome o = run("schedule --cluster dgx-h100 --gpus 16,24 --trace " + trace);
  CHECK(o.out.find("Not in question, since others take jobs that they turn away: fifo, pack, gpus "
                   "16 (1 job)") != std::string::npos);
  // All turn one away: the faster one is the best.
  CHECK(answer("schedule --cluster dgx-h100 --gpus 8,16 --trace " + trace).at("best").get<int>() ==
        1);
}

TEST_CASE("a figure of no job is null, and a dash for people", "[schedule]") {
  const ScratchFolder scratch("schedule_null");
  const std::string trace =
      scratch.add("jobs.csv", "submit_s,length_s,gpus\n0,3600,16\n0,3600,16\n").string();
  const std::string question = on_16 + "--trace " + trace + " --horizon \"30 min\"";
  const std::string page = (scratch / "page.html").string();
  const Outcome o = run(question + " --json --html " + page);
  INFO(o.err);
  REQUIRE(o.code == 0);
  const SortedJson point = SortedJson::parse(o.out).at("points").front();
  CHECK(point.at("runs").front().at("completion_s").is_null());
  CHECK(point.at("runs").front().at("wait_s").get<double>() == 0);
  const SortedJson& first = point.at("first");
  for (const char* key : {"mean", "p50", "p90", "p99", "max"})
    CHECK(first.at("completion_s").at(key).is_null());
  CHECK(first.at("completion_s").at("jobs").get<int>() == 0);
  CHECK(first.at("slowdown").at("mean").is_null());
  CHECK(first.at("fairness").at("jain").is_null());
  CHECK(read_file(page).find("of no job") != std::string::npos);
  CHECK(run(question).out.find("fifo    pack         0 s     0 s  0 s  0 s           -") !=
        std::string::npos);
}

TEST_CASE("jobs that run as a list begins are no waits of 0 s", "[schedule]") {
  const std::string question = "schedule --cluster dgx-h100 --trace " +
                               (source_folder() / "tests/schedule/squeue.txt").string() +
                               " --gpus ";
  const SortedJson first = answer(question + "64").at("points").front().at("first");
  CHECK(first.at("jobs").at("submitted").get<int>() == 18);
  CHECK(first.at("wait_s").at("jobs").get<int>() == 10);
  double sum = 0;
  int jobs = 0;
  for (const SortedJson& group : first.at("by_size")) {
    sum += group.at("wait_s").at("sum").get<double>();
    jobs += group.at("wait_s").at("jobs").get<int>();
  }
  CHECK(jobs == 10);
  CHECK(first.at("wait_s").at("mean").get<double>() == Approx(sum / 10));
  // On half of the GPUs some of those that run find no room: they do wait.
  CHECK(
      answer(question + "32").at("points").front().at("first").at("wait_s").at("jobs").get<int>() >
      10);
}
