// SPDX-License-Identifier: Apache-2.0
// What cannot exist is said before its speed, in the JSON's verdict and by exit code 3.
#include <catch2/catch.hpp>

#include "sim/app/answer/exit_code.h"
#include "sim/base/json/tree.h"
#include "tests/app/run_binary.h"

namespace orrery {
namespace {

using test::run;

const std::string kimi = "--model kimi-k2 --cluster dgx-h100 --seq 4096 --global-batch 8 ";
constexpr int cannot_exist = to_int(ExitCode::cannot_exist);

TEST_CASE("a layout that does not fit says so before its speed, and exits with 3") {
  const test::Outcome text = run("simulate " + kimi + "--gpus 8 --tp 1 --pp 1");
  INFO(text.out << text.err);
  CHECK(text.code == cannot_exist);
  CHECK(text.err.empty());
  const std::size_t verdict = text.out.find("does not fit: "), step = text.out.find("step time");
  REQUIRE(verdict != std::string::npos);
  CHECK(verdict < step);
  CHECK(step != std::string::npos);  // it is printed all the same
  const test::Outcome machine = run("simulate " + kimi + "--gpus 8 --tp 1 --pp 1 --json");
  CHECK(machine.code == cannot_exist);
  const SortedJson v = SortedJson::parse(machine.out)["verdict"];
  CHECK(v["fits"] == false);
  CHECK(v["runs"] == true);
  CHECK(v["probability"].get<double>() < 0.01);
  CHECK(v["why"].get<std::string>().find("GiB") != std::string::npos);
}

TEST_CASE("a layout that fits has a verdict too, and exits with 0") {
  const test::Outcome o =
      run("simulate --model llama3.1-8b --cluster dgx-h100 --gpus 8 --seq 8192 --global-batch 32 "
          "--tp 2 --json");
  REQUIRE(o.code == 0);
  const SortedJson v = SortedJson::parse(o.out)["verdict"];
  CHECK(v["fits"] == true);
  CHECK(v["runs"] == true);
  CHECK(v["why"] == "");
  CHECK(v["probability"].get<double>() == Approx(1));
  CHECK(v.size() == 4);
}

TEST_CASE("where nothing fits, advise says from how many accelerators on, which is true") {
  const auto ask = [](const std::string& gpus) {
    return run("advise " + kimi + "--gpus " + gpus + " --json");
  };
  const test::Outcome none = ask("8");
  CHECK(none.code == cannot_exist);
  const SortedJson answer = SortedJson::parse(none.out);
  CHECK(answer["verdict"]["fits"] == false);
  const auto from = answer["fits_from_gpus"].get<std::int64_t>();
  CHECK(from > 8);
  CHECK(ask(std::to_string(from)).code == 0);
  CHECK(ask(std::to_string(from - 8)).code == cannot_exist);
  const test::Outcome text = run("advise " + kimi + "--gpus 8");
  CHECK(text.out.find("It would fit from " + std::to_string(from)) != std::string::npos);
}

TEST_CASE("parts of a box are tried before whole ones") {
  const test::Outcome o =
      run("advise --model llama3.1-70b --cluster dgx-h100 --gpus 1 --seq 4096 --global-batch 64 "
          "--json");
  REQUIRE(o.code == cannot_exist);
  CHECK(SortedJson::parse(o.out)["fits_from_gpus"] == 8);
}

TEST_CASE("a plan without a feasible point exits with 3") {
  const test::Outcome o = run(
      "plan --model llama3.1-405b --tokens 15T --seq 8192 --global-batch 2048 --cluster dgx-h100 "
      "--gpus 1024 --deadline '10 days' --quiet");
  INFO(o.out << o.err);
  CHECK(o.code == cannot_exist);
  CHECK(o.err.empty());
  CHECK(!o.out.empty());
}

}  // namespace
}  // namespace orrery
