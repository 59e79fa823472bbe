// SPDX-License-Identifier: Apache-2.0
// Tests `schedule` as a user types it: tables, stories, rows, errors, exit codes.
#include <catch2/catch.hpp>

#include "sim/base/json/tree.h"
#include "tests/app/pages.h"
#include "tests/app/run_binary.h"

using namespace orrery::test;
using orrery::ScratchFolder;
using orrery::SortedJson;

namespace {

const std::string on_16 = "schedule --cluster dgx-h100 --gpus 16 ";

// a takes a host; b wants both and waits for its end; c fits at once, and is shorter than that.
const std::string three_jobs =
    "id,submit_s,length_s,gpus\na,0,60,8\nb,1,60,16\nc,2,5,1\nd,3,500,1\n";

void expect_failure(const std::string& arguments, const std::string& words, int code = 2) {
  const Outcome o = run(arguments);
  INFO(arguments << "\n" << o.err);
  CHECK(o.code == code);
  CHECK(o.out.empty());
  CHECK(lines(o.err) == 1);
  CHECK(o.err.find(words) != std::string::npos);
}

}  // namespace

TEST_CASE("jobs wait, pass and are told why", "[schedule]") {
  const ScratchFolder scratch("schedule");
  const std::string file = scratch.add("jobs.csv", three_jobs).string();
  const std::string rows = (scratch / "rows.csv").string();
  const Outcome o = run(on_16 + "--trace " + file +
                        " --policy fifo,easy --place pack --job b --json --jobs-out " + rows);
  INFO(o.err);
  REQUIRE(o.code == 0);
  const SortedJson answer = SortedJson::parse(o.out);
  const SortedJson& fifo = answer.at("points").at(0).at("first");
  const SortedJson& easy = answer.at("points").at(1).at("first");
  // b starts at 60 either way; c waits behind it, or passes; d would delay b and does not pass.
  for (const SortedJson* point : {&fifo, &easy}) {
    CHECK(point->at("job").at("wait_s").get<double>() == 59);
    CHECK(point->at("job").at("short_s").get<double>() == 59);
    double sum = 0;
    for (const auto& [name, share] : point->at("gpu_share").items()) sum += share.get<double>();
    CHECK(sum == Approx(1));
  }
  CHECK(fifo.at("wait_s").at("sum").get<double>() == 59 + 118 + 117);
  CHECK(easy.at("wait_s").at("sum").get<double>() == 59 + 0 + 117);
  CHECK(answer.at("best").get<int>() == 1);
  const std::string table = read_file(rows);
  CHECK(table.find("\neasy,pack,c,default,1,2.000000,0.000000,5.000000,2.000000,7.000000,1,,0\n") !=
        std::string::npos);
  CHECK(lines(table) == 9);
  const std::string kept = scratch.add("answer.json", o.out).string();
  const Outcome again = run("rerun " + kept);
  INFO(again.err);
  CHECK(again.code == 0);
  const Outcome text = run(on_16 + "--trace " + file + " --job c");
  CHECK(text.out.find("behind job b, which asks for 16 GPUs") != std::string::npos);
}

// Two trainings, one of which asks for more than is left, on hosts that break.
TEST_CASE("trainings run in steps on a cluster that breaks", "[schedule]") {
  const ScratchFolder scratch("schedule_lab");
  const std::string model =
      R"("model": "llama3-8b", "gpus": 64, "global_batch": 256, "seq": 8192, "dp": 64, "zero": 3)";
  const std::string file =
      scratch
          .add("lab.json",
               R"({"cluster": "dgx-h100", "gpus": 96, "reliability": "llama3-h100",
                   "failure_rate": 40, "spares": 8, "repair_crews": 2, "policy": ["easy"],
                   "place": "least-level", "horizon": "20 day", "jobs": [
                   {"id": "a", "length": "8 day", )" +
                   model + R"(}, {"id": "b", "submit": "1 day", "steps": 100000, )" + model + "}]}")
          .string();
  const Outcome o = run("schedule " + file + " --seeds 4 --json --job b");
  INFO(o.err);
  REQUIRE(o.code == 0);
  const SortedJson answer = SortedJson::parse(o.out);
  CHECK(answer.at("points").at(0).at("runs").size() == 4);
  const SortedJson& point = answer.at("points").at(0).at("first");
  CHECK(point.at("stops").get<int>() > 0);
  for (const char* part : {"useful", "checkpoint", "restart", "lost", "repair", "slowed"})
    CHECK(point.at("gpu_share").at(part).get<double>() > 0);
  double sum = 0;
  for (const auto& [name, share] : point.at("gpu_share").items()) sum += share.get<double>();
  CHECK(sum == Approx(1));
  CHECK(point.at("power").at("mean_w").get<double>() > 96 * 100);
  CHECK(answer.at("horizon_s").get<double>() == 20 * 86400);
  // The step is that of simulate, alone.
  const Outcome alone =
      run("simulate --cluster dgx-h100 --model llama3-8b --gpus 64 --global-batch 256 --seq 8192 "
          "--dp "
          "64 --zero 3 --json");
  REQUIRE(alone.code == 0);
  CHECK(answer.at("trainings").at(0).at("step_s").get<double>() ==
        SortedJson::parse(alone.out).at("prediction").at("step_time_s").get<double>());
  const std::string kept = scratch.add("answer.json", o.out).string();
  const Outcome again = run("rerun " + kept);
  INFO(again.err);
  CHECK(again.code == 0);
  const Outcome text = run("schedule " + file + " --seeds 4 --policy fifo,easy");
  CHECK(text.out.find("Compared on the same arrivals and failures") != std::string::npos);
}

// Alone it takes all that it may have; a rule that does not size gives it what it asks for.
TEST_CASE("a training of several sizes takes what is free", "[schedule]") {
  const ScratchFolder scratch("schedule_sizes");
  const auto question = [&](const std::string& entry) {
    return "schedule " +
           scratch
               .add("q.json",
                    R"({"cluster": "dgx-h100", "gpus": 64, "policy": ["easy", "goodput"], "jobs": [
                   {"id": "a", "steps": 5000, "model": "llama3-8b", "gpus": 32, "global_batch": 64,
                    "seq": 8192, "tp": 2, "stack": "megatron-core")" +
                        entry + "}]}")
               .string();
  };
  const Outcome o = run(question(R"(, "sizes": "16..64")") + " --json");
  INFO(o.err);
  REQUIRE(o.code == 0);
  const SortedJson answer = SortedJson::parse(o.out);
  const SortedJson& training = answer.at("trainings").at(0);
  REQUIRE(training.at("sizes").size() == 2);
  const auto took = [&](std::size_t point) {
    return answer.at("points").at(point).at("first").at("completion_s").at("mean").get<double>();
  };
  CHECK(took(0) == training.at("length_s").get<double>());
  CHECK(took(1) == training.at("sizes").at(1).at("length_s").get<double>());
  // What a rule may stop saves, every hour or as its entry says.
  const auto saves_every = [&](const std::string& entry) {
    const Outcome one =
        run(question(R"(, "sizes": "16..64")" + entry) + " --policy goodput --json");
    INFO(one.err);
    REQUIRE(one.code == 0);
    const SortedJson said = SortedJson::parse(one.out);
    return said.at("trainings").at(0).at("save_interval_s").get<double>();
  };
  CHECK(saves_every("") == 3600);
  CHECK(saves_every(R"(, "save_interval": "10 min")") == 600);
  const SortedJson& sized = answer.at("points").at(1).at("first").at("sized").at(0);
  CHECK(sized.at("mean_gpus").get<double>() == 64);
  CHECK(sized.at("moves").get<int>() == 0);
  // One size is none.
  const Outcome one = run(question(R"(, "sizes": [32])") + " --json");
  const Outcome none = run(question("") + " --json");
  const SortedJson a = SortedJson::parse(one.out), b = SortedJson::parse(none.out);
  CHECK(a.at("points") == b.at("points"));
  // The batch goes with the size: 1 + N / B, with N four batches of 32 accelerators.
  const Outcome free = run(question(R"(, "sizes": "16..64", "noise_scale": 2097152)") + " --json");
  INFO(free.err);
  REQUIRE(free.code == 0);
  const SortedJson free_answer = SortedJson::parse(free.out);
  const SortedJson& scaled = free_answer.at("trainings").at(0).at("sizes");
  const auto steps = [&](std::size_t i) {
    return scaled.at(i).at("length_s").get<double>() / scaled.at(i).at("step_s").get<double>();
  };
  CHECK(steps(0) == Approx(5000 * (1 + 8.0) / (1 + 4.0)).epsilon(1e-6));
  CHECK(steps(1) == Approx(5000 * (1 + 2.0) / (1 + 4.0)).epsilon(1e-6));
  const auto refused = [&](const std::string& entry, const std::string& why) {
    expect_failure(question(entry), why);
  };
  refused(R"(, "sizes": [16, 64])", "sizes with the 32 that gpus says");
  refused(R"(, "sizes": [0, 32])", "0");
  refused(R"(, "sizes": [31, 32])", "31");
  refused(R"(, "noise_scale": 1e6)", "nothing without sizes");
  refused(R"(, "sizes": [16, 32], "noise_scale": 0)", "tokens above 0");
  expect_failure(question("") + " --policy easy --round 60s", "--round");
  expect_failure(question("") + R"( --queues '{"training": {"gpus": 16}}')", "priorities");
}

TEST_CASE("a point at which no job ends is not the best", "[schedule]") {
  const ScratchFolder scratch("schedule_none");
  const std::string trace = scratch.add("one.csv", "submit_s,length_s,gpus\n0,3600,64\n").string();
  const std::string question = "schedule --cluster dgx-h100 --trace " + trace;
  const Outcome two = run(question + " --gpus 32,64");
  CHECK(two.out.find("Best by completion.mean: fifo, pack, gpus 64.") != std::string::npos);
  CHECK(run(question + " --gpus 32,64 --limits wait.p99=1h").out.find("gpus 64.") !=
        std::string::npos);
  const Outcome none = run(question + " --gpus 64,72 --horizon \"30 min\"");
  CHECK(none.out.find("completion.mean is not known") != std::string::npos);
  CHECK(none.out.find("Best by") == std::string::npos);
  // It started, so that its wait is known.
  const Outcome wait = run(question + " --gpus 64,72 --horizon \"30 min\" --objective wait.mean");
  CHECK(wait.out.find("Best by wait.mean") != std::string::npos);
}

TEST_CASE("what a question does not use is refused, and so is more than there is", "[schedule]") {
  const ScratchFolder scratch("schedule_useless");
  const std::string trace = scratch.add("jobs.csv", "submit_s,length_s,gpus\n0,60,8\n").string();
  const std::string question = "schedule --cluster dgx-h100 --gpus 64 --trace " + trace;
  expect_failure(question + " --first-queue 3", "nothing without las");
  expect_failure(question + " --meeting aligned", "nothing without trainings");
  expect_failure(question + " --defragment pays --policy conservative", "never beside this policy");
  expect_failure(question + R"( --queues '{"default": {"gpus": 99}}')", "at most the 64 GPUs");
  CHECK(run(question + R"( --queues '{"default": {"gpus": 99, "borrows": true}}')").code == 0);
  const std::string other = scratch.add("other.csv", "name,age\nx\ny,2,3\n").string();
  expect_failure("schedule --cluster dgx-h100 --gpus 64 --trace " + other, "column \"name\"");
  const std::string job = R"({"trace": ")" + trace + R"(", "within": "rack"})";
  expect_failure("schedule --cluster dgx-h100 --gpus 4096 --policy easy --jobs '[" + job + "]'",
                 "leaf group");
}

// Of three sizes the largest is surely the best; the smallest cannot be.
TEST_CASE("a race finds the best point with fewer runs", "[schedule]") {
  const ScratchFolder scratch("schedule_race");
  const std::string file =
      scratch
          .add("race.json", R"({"cluster": "dgx-h100", "gpus": [64, 96, 256], "days": 4,
                  "policy": ["fifo", "easy"], "jobs": [{"mix": "philly", "per_day": 300}]})")
          .string();
  const Outcome o = run("schedule " + file + " --seeds 40 --confidence 0.95 --json");
  INFO(o.err);
  REQUIRE(o.code == 0);
  const SortedJson answer = SortedJson::parse(o.out);
  const SortedJson& best = answer.at("points").at(answer.at("best").get<std::size_t>());
  CHECK(best.at("varied").at("gpus").get<std::string>() == "256");
  CHECK(best.at("chance").get<double>() >= 0.95);
  CHECK(answer.at("search").at("runs").get<int>() < 6 * 40);
  CHECK(run("schedule " + file + " --seeds 40 --confidence 0.95 --json --threads 1").out == o.out);
  const std::string kept = scratch.add("answer.json", o.out).string();
  CHECK(run("rerun " + kept).code == 0);
  // A point that a bound rules out was not run, and has nothing to tell of its moves.
  const Outcome ruled = run("schedule " + file +
                            " --gpus 24,512 --seeds 12 --confidence 0.95"
                            " --defragment pays");
  INFO(ruled.err);
  CHECK(ruled.code == 0);
  CHECK(ruled.out.find("fifo, pack, gpus 512: jobs were moved") != std::string::npos);
  CHECK(ruled.out.find("gpus 24: jobs were moved") == std::string::npos);
  const Outcome limited = run("schedule " + file + " --seeds 8 --limits wait.p99=1s --gpus 64");
  INFO(limited.err);
  CHECK(limited.code == 3);
  CHECK(limited.out.find("No point keeps all limits") != std::string::npos);
}

// The main loop starts a at the first second; b waits for its minute; the plan lets c pass, whose
// minute is over by then, and d not.
TEST_CASE("Slurm's loops decide at their seconds", "[schedule]") {
  const ScratchFolder scratch("schedule_slurm");
  const std::string file = scratch
                               .add("jobs.csv",
                                    "id,submit_s,length_s,gpus,limit_s\na,0,100,8,120\nb,1,60,16,"
                                    "60\nc,2,5,1,60\nd,3,500,1,540\n")
                               .string();
  const Outcome o = run(on_16 + "--trace " + file + " --policy slurm-default --json --jobs-out " +
                        (scratch / "rows.csv").string());
  INFO(o.err);
  REQUIRE(o.code == 0);
  const std::string rows = read_file((scratch / "rows.csv").string());
  INFO(rows);
  CHECK(rows.find("slurm-default,tree,a,default,8,0.000000,0.000000") != std::string::npos);
  const SortedJson answer = SortedJson::parse(o.out);
  CHECK(answer.at("points").at(0).at("first").at("jobs").at("finished").get<int>() == 4);
}

// The lab with a job of RL beside a recorded one.
TEST_CASE("a job of RL runs in its predicted steps", "[schedule]") {
  const ScratchFolder scratch("schedule_rl");
  const auto question = [&](const std::string& more) {
    return "schedule " +
           scratch
               .add("rl.json", R"({"cluster": "dgx-h100", "gpus": 64, "policy": "easy", "jobs": [
                   {"id": "post", "rl": {"model": "llama3.1-8b", "gpus": 16, "program": "nemo-rl",
                    "prompt": 128, "response": 1000, "context": 4096, "responses": 512})" +
                                   more + "}]}")
               .string();
  };
  const Outcome o = run(question(R"(, "steps": 1000)") + " --json");
  INFO(o.err);
  REQUIRE(o.code == 0);
  const SortedJson answer = SortedJson::parse(o.out);
  const SortedJson& job = answer.at("post_trainings").at(0);
  const double step = job.at("step").at("step_s").get<double>();
  CHECK(step > job.at("step").at("rollout_s").get<double>());
  const SortedJson& first = answer.at("points").at(0).at("first");
  CHECK(first.at("completion_s").at("mean").get<double>() == Approx(1000 * step).epsilon(1e-6));
  CHECK(first.at("gpu_share").at("useful").get<double>() == Approx(16.0 / 64));
  expect_failure(question(""), "without an end");
  expect_failure(question(R"(, "steps": 0)"), "at least 1");
  expect_failure(question(R"(, "steps": 1, "length": "2 day")"), "both");
  expect_failure(question(R"(, "steps": 1, "tokens": 5)"), "tokens");
  const auto other = [&](const std::string& model) {
    question(R"(, "steps": 1)");
    std::string text = read_file(scratch / "rl.json");
    return "schedule " +
           scratch.add("other.json", text.replace(text.find("llama3.1-8b"), 11, model)).string();
  };
  expect_failure(other("llama3.1-8c"), "other.json: jobs[0].rl: model: found");
  // A model file that an entry names one deeper stands in the answer.
  const auto model = scratch.add(
      "mine.json", read_file(source_folder() / "workloads/catalog/models/llama3.1-8b.json"));
  const Outcome named = run(other(model.string()) + " --json");
  INFO(named.err);
  REQUIRE(named.code == 0);
  std::filesystem::remove(model);
  CHECK(run("rerun " + scratch.add("named.json", named.out).string()).code == 0);
  expect_failure(other("llama3.1-70b"), "jobs[0].rl: generation: found", 3);
}

TEST_CASE("recorded jobs may take longer where they are scattered", "[schedule]") {
  const std::string line = "schedule --cluster dgx-h100 --gpus 2048 --trace philly --days 30 ";
  const auto first = [&](const std::string& more) {
    const Outcome o = run(line + "--json " + more);
    INFO(o.err);
    REQUIRE(o.code == 0);
    const SortedJson answer = SortedJson::parse(o.out);
    return answer.at("points").at(0).at("first");
  };
  CHECK(first("--place random --scatter-cost 1") == first("--place random"));
  CHECK(first("--place random --scatter-cost 1.2").at("gpu_share").at("slowed").get<double>() > 0);
  expect_failure(line + "--scatter-cost 0.9", "a factor from 1 to 10");
  expect_failure(line + "--place pool --scatter-cost 1.2", "a rule with hosts");
}

TEST_CASE("a placement that is drawn depends on its seed", "[schedule]") {
  const std::string line =
      "schedule --cluster dgx-h100 --gpus 640 --trace philly --days 20 --json ";
  const Outcome one = run(line + "--place random --seed 1");
  REQUIRE(one.code == 0);
  CHECK(run(line + "--place random --seed 1 --threads 1").out == one.out);
  CHECK(run(line + "--place random --seed 2").out != one.out);
  expect_failure("schedule --cluster dgx-h100 --gpus 640 --trace philly --seed 2",
                 "something is drawn");
}

TEST_CASE("bad questions to schedule have one line", "[schedule]") {
  const ScratchFolder scratch("schedule_bad");
  const std::string file = scratch.add("jobs.csv", three_jobs).string();
  const std::string big = scratch.add("big.csv", "submit_s,length_s,gpus\n0,1,17\n").string();
  expect_failure(on_16, "--trace: found nothing");
  expect_failure("schedule --gpus 16 --trace " + file, "--cluster: found nothing");
  expect_failure("schedule --cluster dgx-h100 --trace " + file, "--gpus: found nothing");
  expect_failure("schedule --cluster dgx-h100 --gpus 0 --trace " + file, "--gpus");
  expect_failure(on_16 + "--trace phily", "philly");
  expect_failure(on_16 + "--trace " + file + " --policy fifi", "did you mean \"fifo\"");
  expect_failure(on_16 + "--trace " + file + " --policy fifo,fifo", "twice");
  expect_failure(on_16 + "--trace " + file + " --place packed", "did you mean \"pack\"");
  expect_failure(on_16 + "--trace " + file + " --days -1", "--days");
  expect_failure(on_16 + "--trace " + file + " --job e", "the id of a job");
  expect_failure(on_16 + "--trace " + file + " --jobs-out /no/such/folder/rows.csv", "/no/such");
  expect_failure(on_16 + "--trace " + big, "at most 16", 3);
  expect_failure(on_16 + "--trace " + (scratch / "none.csv").string(), "none.csv");
  expect_failure(on_16 + "--trace " + file + " --spares 8", "nothing without reliability");
  expect_failure(on_16 + "--trace " + file + " --seeds 3", "nothing is drawn");
  expect_failure(on_16 + "--trace " + file + " --power-limit 1kW", "idle cluster");
  expect_failure(on_16 + "--trace " + file + " --reliability llama3-h101", "llama3-h100");
  expect_failure(on_16 + "--trace " + file + " --reliability llama3-h100 --spares 3",
                 "whole hosts");
  expect_failure(on_16 + "--trace " + file + " --reliability llama3-h100 --place pool",
                 "a rule with hosts");
  expect_failure(on_16 + "--trace " + file + " --policy slurm-default --power-limit 1MW",
                 "Slurm's loops know neither");
  expect_failure(on_16 + "--trace " + file + " --objective waits", "wait.mean");
  expect_failure(on_16 + "--trace " + file + " --limits wait.p99", "such as wait.p99=4h");
  expect_failure(on_16 + "--trace " + file + " --preempt-after 2h",
                 "without a policy that stops jobs");
  const auto question = [&](const std::string& jobs) {
    return "schedule " +
           scratch.add("q.json", R"({"cluster": "dgx-h100", "gpus": 16, "jobs": [)" + jobs + "]}")
               .string();
  };
  const std::string model =
      R"("id": "a", "model": "llama3-8b", "gpus": 8, "global_batch": 8, "seq": 2048, "zero": 3)";
  expect_failure(question("{" + model + "}"), "a training without an end");
  expect_failure(question("{" + model + R"(, "steps": 5, "length": "1 day"})"), "one of tokens");
  expect_failure(question("{" + model + R"(, "steps": 5, "cluster": "dgx-h200"})"),
                 "none: all jobs");
  expect_failure(question("{" + model + R"(, "steps": 5, "dq": 8})"), "did you mean \"dp\"");
  expect_failure(
      question("{" + model + R"(, "steps": 5, "tp": 1}, {)" + model + R"(, "steps": 5, "tp": 1})"),
      "each id once");
  expect_failure(question(R"({"mix": "philly", "per_day": 3})"), "for how many days");
  expect_failure(question(R"({"trace": "philly", "gpus": 3})"), "gpus");
  const std::string some = scratch.add("some.csv", three_jobs + "e,4,1,17\n").string();
  const Outcome o = run(on_16 + "--trace " + some);
  CHECK(o.code == 0);
  CHECK(o.out.find("more GPUs than the cluster has: 1 job") != std::string::npos);
}
