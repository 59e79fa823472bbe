// SPDX-License-Identifier: Apache-2.0
// Tests traces as a user makes and runs them: --chakra-out, `replay`, exit codes and errors.
#include <catch2/catch.hpp>

#include "sim/base/json/tree.h"
#include "tests/app/run_binary.h"

using namespace orrery::test;
using orrery::ScratchFolder;
using orrery::SortedJson;

namespace {

const std::string job =
    "simulate --model llama3-8b --cluster dgx-h100 --seq 4096 --global-batch 32 --ranges false "
    "--reasons false ";

SortedJson json_of(const std::string& arguments) {
  const Outcome o = run(arguments + " --json");
  INFO(o.err);
  REQUIRE(o.code == 0);
  return SortedJson::parse(o.out);
}

void expect_error(const std::string& arguments, const std::string& words) {
  const Outcome o = run(arguments);
  INFO(o.err);
  CHECK(o.code == 2);
  CHECK(o.out.empty());
  CHECK(lines(o.err) == 1);
  CHECK(o.err.find(words) != std::string::npos);
}

}  // namespace

TEST_CASE("a prediction that is written as traces is replayed in its time") {
  const ScratchFolder scratch("replay");
  const std::string folder = (scratch / "traces").string();
  const std::string layout = job + "--gpus 16 --tp 2 --pp 4 --chakra-out " + folder;
  const SortedJson predicted = json_of(layout);
  CHECK(!predicted.at("question").contains("chakra_out"));
  const SortedJson replayed = json_of("replay " + folder + " --cluster dgx-h100");
  CHECK(replayed.at("step_time_s").get<double>() ==
        Approx(predicted.at("prediction").at("step_time_s").get<double>()).epsilon(2e-5));
  REQUIRE(replayed.at("ranks").size() == 16);
  for (const SortedJson& rank : replayed.at("ranks"))
    CHECK(rank.at("compute_s").get<double>() + rank.at("exposed_s").get<double>() +
              rank.at("idle_s").get<double>() ==
          Approx(replayed.at("step_time_s").get<double>()));
  // The last stage has the head.
  CHECK(replayed.at("slowest_rank").get<int>() == 12);
  // Files in any order are the folder; a second writing is the same bytes.
  std::string files;
  for (int rank = 15; rank >= 0; --rank) files += folder + "/step." + std::to_string(rank) + ".et ";
  CHECK(json_of("replay " + files + "--cluster dgx-h100").at("step_time_s") ==
        replayed.at("step_time_s"));
  const std::string before = read_file(folder + "/step.5.et");
  REQUIRE(run(layout).code == 0);
  CHECK(read_file(folder + "/step.5.et") == before);
  const Outcome text = run("replay " + folder + " --cluster dgx-h100 --gpus 64");
  CHECK(text.code == 0);
  CHECK(text.out.find("12-15") != std::string::npos);
}

TEST_CASE("traces share the links of the network as it is wired") {
  const ScratchFolder scratch("replay_flow");
  const std::string folder = (scratch / "traces").string();
  REQUIRE(run(job + "--gpus 32 --zero 3 --chakra-out " + folder).code == 0);
  const std::string replayed = "replay " + folder + " --cluster dgx-h100 ";
  const auto step = [&](const std::string& flags) {
    return json_of(replayed + flags).at("step_time_s").get<double>();
  };
  // Gathers and scatters of two streams meet at the NICs.
  const double ideal = step(""), flow = step("--network flow");
  CHECK(flow > 1.005 * ideal);
  CHECK(flow < 1.1 * ideal);
  const std::string fault =
      "--network flow --faults '[{\"kind\": \"nic\", \"gpu\": 3, \"remaining\": 0.5}]' --seed 4";
  CHECK(step(fault) > 1.1 * flow);
  CHECK(step("--slow-gpus '[{\"gpu\": 5, \"speed\": 0.8}]'") > 1.02 * ideal);
  // The question holds all of it.
  const std::string kept = (scratch / "kept.json").string();
  REQUIRE(run(replayed + fault + " --json > " + kept).code == 0);
  CHECK(json_of("rerun " + kept) == SortedJson::parse(read_file(kept)));
  expect_error(replayed + "--faults '[]'", "expected network flow");
  expect_error(replayed + "--seed 3", "--network flow");
  expect_error(replayed + "--network flow --faults '[{\"kind\": \"nick\", \"gpu\": 3}]'",
               "did you mean \"nic\"");
  expect_error(replayed + "--network flow --slow-gpus '[{\"gpu\": 32, \"speed\": 0.5}]'",
               "of the 32 in use");
}

TEST_CASE("traces that cannot be written or run get one line") {
  const ScratchFolder scratch("replay_bad");
  const std::string folder = (scratch / "traces").string();
  REQUIRE(run(job + "--gpus 8 --tp 2 --chakra-out " + folder).code == 0);
  expect_error(job + "--gpus 4 --tp 2 --chakra-out " + folder, "traces of another step");
  expect_error(job + "--gpus 8 --tp 2 --chakra-out /proc/none", "/proc/none");
  expect_error(
      "simulate --model llama3-8b --cluster dgx-h100 --gpus 8192 --seq 4096 "
      "--global-batch 8192 --tp 2 --ranges false --chakra-out " +
          (scratch / "many").string(),
      "8192 ranks");
  CHECK(!std::filesystem::exists(scratch / "many"));
  expect_error("replay " + folder, "--cluster: found nothing");
  expect_error("replay --cluster dgx-h100", "no file");
  expect_error("replay " + folder + " --cluster dgx-h1000", "dgx-h100");
  expect_error("replay " + folder + " --cluster dgx-h100 --gpus 4", "at least 8");
  expect_error("replay " + folder + "/nothing --cluster dgx-h100", "no such file or folder");
  std::filesystem::remove(folder + "/step.3.et");
  expect_error("replay " + folder + " --cluster dgx-h100", "no file of rank 3");
  const std::string bytes = read_file(folder + "/step.2.et");
  scratch.add("cut.0.et", bytes.substr(0, bytes.size() / 2));
  expect_error("replay " + (scratch / "cut.0.et").string() + " --cluster dgx-h100", "cut.0.et");
}
