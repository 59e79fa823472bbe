// SPDX-License-Identifier: Apache-2.0
// Tests what is taken from the output of nccl-tests, in columns of old and new releases.
#include <catch2/catch.hpp>

#include "sim/observe/collective/nccl_tests.h"
#include "tests/base/error_text.h"
#include "tests/base/scratch_folder.h"
#include "tests/observe/observed_file.h"

namespace orrery::observe {
namespace {

CollectiveTests read(const std::string& name) { return read_collective_tests(observed_file(name)); }

TEST_CASE("an all-reduce of a new release tells its ranks and its rows") {
  const CollectiveTests tests = read("nccl_all_reduce.txt");
  CHECK(tests.library == "2.30.3+cuda13.0");
  REQUIRE(tests.tables.size() == 1);
  const CollectiveTable& table = tests.tables[0];
  CHECK(table.kind == CollectiveKind::all_reduce);
  CHECK(table.program == "all_reduce_perf");
  CHECK(table.iterations == 20);
  CHECK(table.warm_up == 5);
  REQUIRE(table.ranks.size() == 4);
  CHECK(table.ranks[2].host == "node001");
  CHECK(table.ranks[2].device == 2);
  CHECK(table.ranks[2].bus == "0000:76:00");
  CHECK(table.ranks[2].name == "NVIDIA H100 80GB HBM3");
  REQUIRE(table.rows.size() == 4);
  const CollectiveRow& last = table.rows[3];
  CHECK(last.size.si() == 268435456);
  CHECK(last.count == 67108864);
  CHECK(last.type == "float");
  CHECK(last.reduction == "sum");
  CHECK(last.out_of_place->time.si() == Approx(1210e-6));
  CHECK(last.out_of_place->algorithm.si() == Approx(221.85e9));
  CHECK(last.in_place->bus.si() == Approx(334.15e9));
  CHECK(last.in_place->wrong == 0);
  CHECK(table.mean_bus->si() == Approx(187.075e9));
  CHECK(table.right == true);
}

TEST_CASE("an old release, behind the prefix of a launcher, does not name its collective") {
  const CollectiveTests tests = read("nccl_old.txt");
  REQUIRE(tests.tables.size() == 1);
  const CollectiveTable& table = tests.tables[0];
  CHECK_FALSE(table.kind);
  REQUIRE(table.ranks.size() == 2);
  CHECK(table.ranks[1].name == "A100-SXM4-40GB");
  REQUIRE(table.rows.size() == 2);
  CHECK(table.rows[1].out_of_place->largest_error == Approx(2e-7));
  CHECK_FALSE(table.rows[1].out_of_place->wrong);
  CHECK(tests.notes.size() == 1);
}

TEST_CASE("an all-to-all has no reduction, and results that nobody checked") {
  const CollectiveTests tests = read("nccl_alltoall.txt");
  const CollectiveTable& table = tests.tables.at(0);
  CHECK(table.kind == CollectiveKind::all_to_all);
  CHECK(table.ranks[1].host == "node-b");
  REQUIRE(table.rows.size() == 2);
  CHECK(table.rows[0].reduction.empty());
  CHECK(table.rows[0].out_of_place->bus.si() == Approx(10.41e9));
  CHECK_FALSE(table.rows[0].out_of_place->wrong);
  CHECK(tests.notes ==
        std::vector<std::string>{"1 line between rows are no rows and were left out."});
}

TEST_CASE("two runs in one file are two tables") {
  const ScratchFolder scratch("observe_collectives");
  const CollectiveTests tests = read_collective_tests(scratch.add(
      "a.txt", observed_text_of("nccl_alltoall.txt") + observed_text_of("nccl_all_reduce.txt")));
  REQUIRE(tests.tables.size() == 2);
  CHECK(tests.tables[0].kind == CollectiveKind::all_to_all);
  CHECK(tests.tables[1].kind == CollectiveKind::all_reduce);
  CHECK(tests.tables[1].ranks.size() == 4);
}

TEST_CASE("tables of collectives that are broken are refused with their line") {
  const ScratchFolder scratch("observe_collectives");
  const auto refusal = [&](const std::string& rows) {
    const auto file =
        scratch.add("a.txt", "#       size  count  type  time  algbw  busbw #wrong\n" + rows);
    return error_text([&] { read_collective_tests(file); }).substr(file.string().size() + 2);
  };
  CHECK(refusal("1024 256 float 10.0 0.1 0.1\n") ==
        "line 2: found 6 cells; expected 7, as in the head");
  CHECK(refusal("1024 256 float -3 0.1 0.1 0\n") ==
        "line 2: found \"-3\" in column time; expected a number from 0 on");
  CHECK(refusal("1024 many float 3 0.1 0.1 0\n") == "line 2: found \"many\"; expected a count");
  CHECK(refusal("").starts_with("found no row of a table of nccl-tests"));
}

}  // namespace
}  // namespace orrery::observe
