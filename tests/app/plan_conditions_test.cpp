// SPDX-License-Identifier: Apache-2.0
// Tests what plans say beside their answer: sites, contracts, spot machines, unused limits.
#include <catch2/catch.hpp>

#include "tests/app/run_binary.h"

namespace {

using namespace orrery::test;
using orrery::ScratchFolder;

const std::string small =
    "plan --model llama3.2-1b --tokens 200B --seq 4096 --global-batch 128 --micro-batch 1 "
    "--recompute none --pp 1 ";

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

// Without line breaks, which fall where a page ends.
std::string flat(const std::string& arguments) {
  const Outcome o = run(arguments);
  INFO(arguments << "\n" << o.err);
  REQUIRE((o.code == 0 || o.code == 3));  // 3: it misses a limit
  std::string out;
  for (const char c : o.out) {
    const char one = c == '\n' ? ' ' : c;
    if (one != ' ' || out.empty() || out.back() != ' ') out += one;
  }
  return out;
}

void expect_error(const std::string& arguments, const std::string& part) {
  const Outcome o = run(arguments);
  INFO(arguments << "\n" << o.err);
  CHECK(o.code == 2);
  CHECK(o.out.empty());
  CHECK(has(o.err, part));
}

TEST_CASE("a winner that its site cannot hold is marked, and the answer says so") {
  const std::string air = flat(small + "--cluster gb200-nvl72 --gpus 64 --site us-industrial");
  CHECK(has(air, "cannot be installed at"));
  CHECK(has(air, "*!"));
  CHECK(has(air, "not installable at the site"));
  CHECK_FALSE(
      has(flat(small + "--cluster dgx-h100 --gpus 16 --site us-industrial"), "installable"));
  // Of a site that nobody named it is told what it has to be, not that it is not.
  const std::string open = flat(small + "--cluster gb200-nvl72 --gpus 64");
  CHECK_FALSE(has(open, "installable"));
  CHECK(has(open, "needs liquid cooling there"));
}

TEST_CASE("a reserved contract says what it commits to") {
  const std::string text = flat(
      small + "--cluster dgx-h100 --gpus 16 --ownership rent --contract on-demand,reserved-3y");
  CHECK(has(text, "the contract commits 16 accelerators for 3 years"));
  CHECK(has(text, "Reserved contracts commit for their whole term"));
}

TEST_CASE("how often spot machines are taken back is told, and can be set") {
  const std::string spot = small + "--cluster dgx-h100 --gpus 16 --ownership rent --contract spot ";
  CHECK(has(flat(spot), "1.8 a host and year (0.6 .. 3.6)"));
  CHECK(has(flat(spot + "--spot-interruptions 12"), "12 a host and year"));
  expect_error(spot + "--spot-interruptions 0", "times a year");
}

TEST_CASE("limits that are not used up have a reason") {
  const std::string text = flat(
      "plan --model llama3.2-1b --tokens 200B --seq 4096 --global-batch 128 --cluster dgx-h100 "
      "--capital '2e9 USD'");
  CHECK(has(text, "Larger machines within the limits are no faster than"));
  // Twice as many GPUs leave a sequence for none of them: no limit ends it.
  const std::string sizes = flat(small + "--cluster dgx-h100 --power '20 MW'");
  CHECK_FALSE(has(sizes, "ruled out by: power"));
}

TEST_CASE("counts of one are not many, and small numbers have units") {
  const std::string text = flat(
      "plan --model llama3.2-1b --tokens 1 --seq 4096 --global-batch 1 --cluster dgx-h100 "
      "--gpus 1 --racks 1");
  CHECK(has(text, "Limits: 1 rack."));
  CHECK(has(text, "1 GPU of dgx-h100"));
  CHECK(has(text, "1 sequence of"));
  CHECK(has(text, "1 point. "));
  for (const char* tiny : {"e-05", "e-06", "e-07", "e-08", "e-09", "e-1"})
    CHECK_FALSE(has(text, tiny));
  CHECK(has(text, "left over in whole hosts"));
}

TEST_CASE("a limit that is missed by little shows that it is missed") {
  const std::string late = flat(small + "--cluster dgx-h100 --gpus 16 --racks 0.999");
  CHECK_FALSE(has(late, "racks 1x"));
}

TEST_CASE("speedups are bounded, and today's kernels may lead their list") {
  const std::string one = small + "--cluster dgx-h100 --gpus 8 ";
  CHECK(has(flat(one + "--speedup none,gemm=1.3,attention=1.5"), "gemm=1.3,attention=1.5"));
  expect_error(one + "--speedup gemm=1e308", "at most a million");
}

TEST_CASE("a question without a count or a limit is told what would find one") {
  expect_error(small + "--cluster dgx-h100", "a limit that finds it");
}

TEST_CASE("two machines have two names") {
  const ScratchFolder scratch("plan");
  const auto question = [&](const std::string& name) {
    return "plan " +
           add(scratch, "question.json",
               R"({"model": "llama3.2-1b", "tokens": "200B", "seq": 4096,
      "global_batch": 128, "gpus": 8, "cluster": ["dgx-h100", {"based_on": "dgx-h100", "name": ")" +
                   name + R"(", "overrides": {"accelerator": {"power_limit": "500 W"}}}]})");
  };
  expect_error(question("dgx-h100"), "two different machines named dgx-h100");
}

}  // namespace
