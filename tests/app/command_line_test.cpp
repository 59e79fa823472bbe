// SPDX-License-Identifier: Apache-2.0
// The command line's front: help, numbers as people write them, what is missing, exit codes.
#include <catch2/catch.hpp>

#include <fmt/format.h>

#include <sstream>

#include "hw_models/catalogue_hash.h"
#include "sim/app/answer/version.h"
#include "sim/app/commands.h"
#include "sim/app/line/help.h"
#include "sim/app/line/line.h"
#include "sim/base/errors/check.h"
#include "sim/base/json/tree.h"
#include "sim/question/settings/counts.h"
#include "tests/app/run_binary.h"

using namespace orrery::test;
using namespace orrery;

namespace {

const std::string machine = "--model llama3.2-1b --cluster dgx-h100 --gpus 8 ";

std::string sizes(const std::string& command) {
  const Outcome o = run(command + " --markdown");
  INFO(command << "\n" << o.err);
  REQUIRE(o.code == 0);
  return o.out;
}

void expect_error(const std::string& arguments, const std::string& part) {
  const Outcome o = run(arguments);
  INFO(arguments << "\n" << o.err);
  CHECK(o.code == 2);
  CHECK(o.out.empty());
  CHECK(lines(o.err) == 1);
  CHECK(o.err.find(part) != std::string::npos);
}

ParsedLine parsed(const std::vector<std::string>& words, const std::vector<Command>& known) {
  return parse_line(words, known);
}

}  // namespace

TEST_CASE("every command's help has groups, two examples and only flags that it takes") {
  const std::vector<Command> known = commands();
  REQUIRE(known.size() >= 7);
  for (const Command& command : known) {
    INFO(command.name);
    const std::string help = help_text(command);
    CHECK(command.examples.size() >= 2);
    CHECK((command.run != nullptr) != (command.answer != nullptr));
    for (const Flag& flag : command.flags) {
      INFO(flag.name);
      CHECK(!flag.help.empty());
      CHECK(!flag.group.empty());
      CHECK(help.find("\n  " + flag.name) != std::string::npos);
    }
    const std::vector<FlagGroup> groups = flag_groups(command);
    CHECK(groups.back().heading == output_group);
    for (const FlagGroup& group : groups) CHECK(group.flags.size() <= 22);
    CHECK(run(command.name + " --help").out == help);
  }
  const std::string advise = run("advise --help").out;
  for (const char* refused : {"--phase", "--batch ", "--context ", "--launch", "--network",
                              "--faults", "--slow-gpus", "--background", "--seed", "--trace"}) {
    INFO(refused);
    CHECK(advise.find(std::string("  ") + refused) == std::string::npos);
  }
}

TEST_CASE("examples of the help are lines that parse") {
  const std::vector<Command> known = commands();
  for (const Command& command : known)
    for (const Example& example : command.examples) {
      INFO(example.line);
      std::vector<std::string> words;
      std::string word;
      bool quoted = false;
      for (const char c : example.line + " ") {
        if (c == '"')
          quoted = !quoted;
        else if (c == ' ' && !quoted)
          words.push_back(std::exchange(word, ""));
        else
          word += c;
      }
      REQUIRE(words.front() == "orrery");
      words.erase(words.begin());
      if (command.name == "calibrate" && words[1] == "measure") continue;  // flags of the script
      CHECK(parsed(words, known).command->name == command.name);
    }
}

TEST_CASE("flags stand anywhere, and words after -- are no flags") {
  const std::vector<Command> known = commands();
  const ParsedLine line =
      parsed({"--json", "simulate", "--tp=2", "job.json", "--pp", "4", "--threads", "1"}, known);
  CHECK(line.command->name == "simulate");
  CHECK(line.given.flags == std::map<std::string, std::string>{
                                {"--json", ""}, {"--tp", "2"}, {"--pp", "4"}, {"--threads", "1"}});
  CHECK(line.given.words == std::vector<std::string>{"job.json"});
  CHECK(parsed({"simulate", "--", "--tp"}, known).given.words == std::vector<std::string>{"--tp"});
  CHECK(parsed({"simulate", "--gpu-hour-price", "-1"}, known).given.text("--gpu-hour-price") ==
        "-1");
  CHECK(parsed({"simulate", "--nonsense", "--help"}, known).help);
  CHECK_THROWS_AS(parsed({"simulate", "--tp", "--pp", "2"}, known), Error);
  CHECK_THROWS_AS(parsed({"simulate", "--tp", "2", "--tp", "2"}, known), Error);
}

TEST_CASE("whole numbers are read as people write them") {
  CHECK(whole_in("8192") == 8192);
  CHECK(whole_in("1e6") == 1'000'000);
  CHECK(whole_in("1.5e3") == 1500);
  for (const char* text : {"", "1.5", "1e-3", "1e99", "0x10", "nan", "1e6x", "8k", "e5", " 8"}) {
    INFO(text);
    CHECK(!whole_in(text));
  }
  CHECK(count_in("seq", "8k", "--seq") == 8192);
  CHECK(count_in("seq", "128K", "--seq") == 131072);
  CHECK(count_in("context", "1M", "--context") == 1048576);
  CHECK(count_in("seq", "0.5k", "--seq") == 512);
  CHECK_THROWS_AS(count_in("seq", "0.3k", "--seq"), Error);
  CHECK_THROWS_AS(count_in("gpus", "16k", "--gpus"), Error);
  CHECK_THROWS_AS(count_in("global_batch", "2k", "--global-batch"), Error);
  CHECK(with_counts({{"seq", "8k"}, {"global_batch", "4M"}}, "f") ==
        SortedJson({{"seq", 8192}, {"global_batch", 512}}));
  CHECK_THROWS_AS(with_counts({{"seq", 3000}, {"global_batch", "4M"}}, "f"), Error);
  CHECK_THROWS_AS(with_counts({{"global_batch", "4M"}}, "f"), Error);
}

TEST_CASE("letters after a count give the same answer as the count, everywhere") {
  const std::string plain = sizes("simulate " + machine + "--seq 8192 --global-batch 512");
  CHECK(sizes("simulate " + machine + "--seq 8k --global-batch 4M") == plain);
  CHECK(sizes("simulate " + machine + "--seq 8.192e3 --global-batch 512") == plain);
  CHECK(plain.find("512 sequences of 8,192 tokens") != std::string::npos);
  const ScratchFolder scratch("counts");
  const std::string file = add(scratch, "q.json", R"({"seq": "8k", "global_batch": "4M"})");
  CHECK(sizes("simulate " + machine + file) == plain);
  const std::string plan = "plan --model llama3.2-1b --cluster dgx-h100 --gpus 16 --tokens 1T ";
  const auto points = [&](const std::string& sizes) {
    return SortedJson::parse(run(plan + sizes + " --json").out).at("points");
  };
  CHECK(points("--seq 8k --global-batch 4M") == points("--seq 8192 --global-batch 512"));
  expect_error("simulate " + machine + "--seq 8k --global-batch 2k", "tokens in M");
  expect_error("simulate " + machine + "--seq 3000 --global-batch 4M", "sequences of 3000");
  expect_error("topology dgx-h100 --gpus 16k", "whole number");
  expect_error(plan + "--seq 0x1000 --global-batch 512", "--seq");
  expect_error("simulate " + machine + "--seq 8k --global-batch 512 --gpu-hour-price 0x3",
               "a number");
  expect_error(
      "simulate --model llama3.2-1b --cluster dgx-h100 --gpus 16k --seq 8k "
      "--global-batch 4M",
      "16k may mean 16000 or 16384");
  CHECK(run("topology dgx-h100 --gpus 1e3").code == 0);
}

TEST_CASE("all that is missing is asked for at once") {
  expect_error("simulate", "no --model, --cluster, --gpus, --seq and --global-batch");
  expect_error("advise --model llama3-8b", "no --cluster, --gpus, --seq and --global-batch");
  expect_error("simulate --phase decode --model llama3-8b --cluster dgx-h100",
               "no --gpus, --batch and --context");
  expect_error("plan --model llama3-8b", "no --cluster, --seq, --global-batch and --tokens");
  expect_error("simulate " + machine + "--seq 8k", "--global-batch: found nothing");
  const ScratchFolder scratch("missing");
  const std::string file = add(scratch, "q.json", R"({"model": "llama3-8b", "seq": 8192})");
  expect_error("simulate " + file, "q.json: found no cluster, gpus and global_batch");
}

TEST_CASE("text follows a terminal from 80 to 140 columns, and is 100 wide elsewhere") {
  const std::string binary = ORRERY_BINARY;
  const std::string job = " simulate " + machine + "--seq 8k --global-batch 4M --recompute full";
  const std::string piped = run_shell("COLUMNS=140 " + binary + job).out;
  CHECK(piped == run_shell("COLUMNS=80 " + binary + job).out);
  const auto widest = [&](const std::string& columns, const std::string& arguments) {
    const Outcome o = run_shell("COLUMNS=" + columns + " script -qec '" + binary + arguments +
                                "' /dev/null </dev/null | tr -d '\\r'");
    std::istringstream text(o.out);
    std::size_t most = 0;
    for (std::string line; std::getline(text, line);) most = std::max(most, orrery::columns(line));
    CHECK(o.out.find('\x1b') == std::string::npos);  // no colours, so nothing for NO_COLOR to stop
    return most;
  };
  for (const std::string& arguments : {job, std::string(" plan --help")}) {
    INFO(arguments);
    const std::size_t narrow = widest("80", arguments), wide = widest("140", arguments);
    CHECK(narrow <= 80);
    CHECK(wide > 100);
    CHECK(wide <= 140);
    CHECK(widest("20", arguments) == narrow);
    CHECK(widest("1000", arguments) == wide);
  }
}

TEST_CASE("exit codes are documented, and those of a full disk and of a broken one are kept") {
  const std::string help = run("--help").out;
  for (const ExitMeaning& exit : exit_meanings())
    CHECK(help.find(fmt::format("\n  {}  ", to_int(exit.code))) != std::string::npos);
  const std::string job = "simulate " + machine + "--seq 8k --global-batch 4M";
  CHECK(run(job).code == 0);
  CHECK(run_shell(std::string(ORRERY_BINARY) + " " + job + " 2>&1 >/dev/full").code == 4);
  const Outcome full = run(job + " --trace-out /dev/full");
  CHECK(full.code == 4);
  CHECK(full.out.empty());
  CHECK(lines(full.err) == 1);
  CHECK(run(job + " --trace-out /nowhere/x.json").code == 2);
}

TEST_CASE("--version tells the version and the catalogue") {
  const Outcome o = run("--version");
  CHECK(o.code == 0);
  CHECK(o.out == "orrery " + program_version() + ", catalogue " + catalogue_hash() + "\n");
  CHECK(run("simulate --version").out == o.out);
}

TEST_CASE("a process that is pinned to one core says nothing of threads") {
  const Outcome o = run_shell("taskset -c 0 " + std::string(ORRERY_BINARY) + " advise " + machine +
                              "--seq 8k --global-batch 4M --top 1 --threads 2");
  CHECK(o.code == 0);
  CHECK(o.err.empty());
}

TEST_CASE("a torus is called a torus") {
  const std::string text = run("topology tpu-v5p").out;
  CHECK(text.find("a torus of 3 axes") != std::string::npos);
  CHECK(text.find("fat-tree") == std::string::npos);
  CHECK(text.find("ecmp") == std::string::npos);
  const auto json = SortedJson::parse(run("topology tpu-v5p --json").out);
  CHECK(json["scale_up_kind"] == "torus");
  const std::string flow = run("simulate --model llama3-8b --cluster tpu-v5p --gpus 64 --seq 8k "
                               "--global-batch 4M --zero 3 --network flow")
                               .out;
  CHECK(flow.find("inside a torus of 3 axes") != std::string::npos);
  CHECK(flow.find("ecmp") == std::string::npos);
}
