// SPDX-License-Identifier: Apache-2.0
// Tests what advise says of limits that no layout meets, and of an order that is not the table's.
#include <catch2/catch.hpp>

#include "tests/app/run_binary.h"

namespace {

using namespace orrery::test;

const std::string question =
    "advise --model llama3.1-8b --cluster dgx-h100 --gpus 16 --seq 8192 --global-batch 32 ";

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

void expect_refused(const std::string& limits, const std::string& why) {
  const Outcome o = run(question + limits);
  INFO(limits << "\n" << o.out << o.err);
  CHECK(o.code == 3);
  CHECK(o.out.empty());
  CHECK(has(o.err, why));
}

TEST_CASE("limits that no layout meets are an error that says which") {
  expect_refused("--bucket -40MB", "bucket");
  expect_refused("--per-domain 16", "per_domain");
  expect_refused("--recompute full --recompute-layers 99", "recompute_layers 99 of 32 layers");
  expect_refused("--stage-layers 16,17 --pp 2", "adds up to 33 of 32 layers");
  expect_refused("--tp 2 --pp 2 --cp 1 --dp 3", "dp 3");
  expect_refused("--tp 3", "tp 3 does not divide 16 GPUs");
  expect_refused("--cp 16 --context-parallel all-to-all", "key-value heads");
}

TEST_CASE("memory that forbids all is an answer, not an error") {
  const Outcome o =
      run("advise --model llama3.1-405b --cluster dgx-h100 --gpus 8 --seq 8192 --global-batch 8");
  CHECK(o.code == 3);
  CHECK(has(o.out, "fits in memory"));
}

TEST_CASE("an order by energy says what it counts besides the column") {
  const Outcome o = run(question + "--objective energy --tp 8 --top 3");
  REQUIRE(o.code == 0);
  CHECK(has(o.out, "Ranked by the energy of accelerators"));
}

}  // namespace
