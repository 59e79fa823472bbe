// SPDX-License-Identifier: Apache-2.0
// What does not run is said in place of a speed, in the JSON's verdict and by exit code 3.
#include <catch2/catch.hpp>

#include "sim/app/answer/exit_code.h"
#include "sim/base/json/tree.h"
#include "tests/app/run_binary.h"

namespace orrery {
namespace {

using test::run;

const std::string job = "--model llama3.1-8b --gpus 8 --seq 8192 --global-batch 32 ";

void expect_refused(const std::string& machine, const std::string& why) {
  for (const char* command : {"simulate ", "advise "}) {
    INFO(command << machine);
    const test::Outcome text = run(command + job + machine);
    CHECK(text.code == to_int(ExitCode::cannot_exist));
    CHECK(text.err.empty());
    CHECK(text.out.find("It does not run: ") != std::string::npos);
    CHECK(text.out.find("step time") == std::string::npos);
    const test::Outcome answer = run(command + job + machine + " --json");
    CHECK(answer.code == to_int(ExitCode::cannot_exist));
    const SortedJson verdict = SortedJson::parse(answer.out)["verdict"];
    CHECK(verdict["runs"] == false);
    CHECK(verdict["probability"] == 0.0);
    CHECK(verdict["why"].get<std::string>().find(why) != std::string::npos);
  }
}

TEST_CASE("recipes and stacks that a device has not are refused with the reason") {
  expect_refused("--cluster dgx-h100 --precision mxfp8", "MXFP8");
  expect_refused("--cluster tpu-v5p --precision fp8-current", "FP8");
  expect_refused("--cluster mi300x-8 --stack nemo", "primus");
  expect_refused("--cluster tpu-v5p --stack megatron-core", "maxtext");
  expect_refused("--cluster trn2 --stack megatron-core", "neuronx-distributed");
}

TEST_CASE("any precision is any that the device and the stack have") {
  const test::Outcome o =
      run("advise " + job + "--cluster dgx-h100 --precision any --top 1 --json");
  CHECK(o.code == 0);
}

TEST_CASE("a plan of a stack that does not run there says so, and exits with 3") {
  const test::Outcome o =
      run("plan --model llama3.1-8b --tokens 1T --seq 8192 --global-batch 512 --cluster mi300x-8 "
          "--gpus 256 --stack nemo --quiet");
  INFO(o.out << o.err);
  CHECK(o.code == to_int(ExitCode::cannot_exist));
  CHECK(o.out.find("primus") != std::string::npos);
  const test::Outcome machine =
      run("plan --model llama3.1-8b --tokens 1T --seq 8192 --global-batch 512 --cluster mi300x-8 "
          "--gpus 256 --stack nemo --quiet --json");
  const SortedJson verdict = SortedJson::parse(machine.out)["verdict"];
  CHECK(verdict["runs"] == false);
  CHECK(verdict["fits"] == false);
}

}  // namespace
}  // namespace orrery
