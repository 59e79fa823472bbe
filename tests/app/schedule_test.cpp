// SPDX-License-Identifier: Apache-2.0
// Tests `schedule` as a user types it: tables, stories, rows, errors, exit codes.
#include <catch2/catch.hpp>

#include "sim/base/json/tree.h"
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
  const SortedJson& fifo = answer.at("points").at(0);
  const SortedJson& easy = answer.at("points").at(1);
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
  CHECK(table.find("\neasy,pack,c,default,1,2.000000,0.000000,5.000000,2.000000,7.000000,1,\n") !=
        std::string::npos);
  CHECK(lines(table) == 9);
  const std::string kept = scratch.add("answer.json", o.out).string();
  const Outcome again = run("rerun " + kept);
  INFO(again.err);
  CHECK(again.code == 0);
  const Outcome text = run(on_16 + "--trace " + file + " --job c");
  CHECK(text.out.find("behind job b, which asks for 16 GPUs") != std::string::npos);
}

TEST_CASE("a placement that is drawn depends on its seed", "[schedule]") {
  const std::string line =
      "schedule --cluster dgx-h100 --gpus 640 --trace philly --days 20 --json ";
  const Outcome one = run(line + "--place random --seed 1");
  REQUIRE(one.code == 0);
  CHECK(run(line + "--place random --seed 1 --threads 1").out == one.out);
  CHECK(run(line + "--place random --seed 2").out != one.out);
  expect_failure("schedule --cluster dgx-h100 --gpus 640 --trace philly --seed 2",
                 "--place random");
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
  const std::string some = scratch.add("some.csv", three_jobs + "e,4,1,17\n").string();
  const Outcome o = run(on_16 + "--trace " + some);
  CHECK(o.code == 0);
  CHECK(o.out.find("more GPUs than the cluster has: 1 job") != std::string::npos);
}
