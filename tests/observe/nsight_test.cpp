// SPDX-License-Identifier: Apache-2.0
// Tests exports of Nsight Systems, made by its documented schema, and databases of others.
#include "tests/observe/made_export.h"

#include <catch2/catch.hpp>

#include "sim/observe/profile/profile.h"
#include "tests/base/error_text.h"
#include "tests/base/scratch_folder.h"

namespace orrery::observe {
namespace {

TEST_CASE("an export of Nsight Systems gives steps, kernels, copies and the process that worked") {
  const ScratchFolder scratch("observe_nsight");
  const auto file = scratch / "a ?#%.sqlite";
  make_export(file);
  const Profile profile = read_nsight(file);
  CHECK(profile.source == ProfileSource::nsight);
  CHECK(profile.device.name == "NVIDIA H100 80GB HBM3");
  CHECK(profile.device.multiprocessors == 132);
  CHECK(profile.rank.host == "node-a");
  CHECK(profile.step_source == StepSource::annotated);
  REQUIRE(profile.steps.size() == 2);
  const ProfiledStep& step = profile.steps[0];
  CHECK(step.number == 1);
  CHECK(in_microseconds(step.end - step.begin) == Approx(100));
  CHECK(in_microseconds(step.busy) == Approx(53));
  CHECK(in_microseconds(step.exposed_communication) == Approx(20));
  CHECK(step.launches == 2);
  CHECK(step.waits == 1);
  CHECK(in_microseconds(step.idle_by_host[static_cast<std::size_t>(HostWork::synchronise)]) ==
        Approx(7));  // 60-62 and 65-70
  REQUIRE(profile.kernels.size() == 4);
  const auto product =
      std::find_if(profile.kernels.begin(), profile.kernels.end(),
                   [](const KernelRow& row) { return row.what == KernelClass::product; });
  REQUIRE(product != profile.kernels.end());
  CHECK(product->format == Format::fp16);
  CHECK(product->count == 2);
  CHECK(product->shape.grid == std::array<std::int64_t, 3>{128, 2, 1});
  CHECK(product->shape.shared_bytes == 201024);
  CHECK(profile.runtime_calls.at(1).name == "cudaLaunchKernel");
  CHECK(profile.runtime_calls.at(1).count == 4);
  CHECK(profile.notes.at(0) ==
        "Kernels of 2 processes are in the file: the one that worked most is read.");
  CHECK(profile.notes.back().find("no real file") != std::string::npos);
}

TEST_CASE("an export that lacks tables and columns is read as far as it goes") {
  const ScratchFolder scratch("observe_nsight");
  const auto file = scratch / "a.sqlite";
  run_sql(file, R"(CREATE TABLE StringIds (id INTEGER, value TEXT);
    INSERT INTO StringIds VALUES (1, 'gemm');
    CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start INTEGER, end INTEGER, demangledName INTEGER);
    INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (10, 35, 1), (50, 40, 1), (60, 'x', 1);)");
  const Profile profile = read_nsight(file);
  REQUIRE(profile.kernels.size() == 1);
  CHECK(profile.kernels[0].count == 1);
  CHECK(profile.kernels[0].total.si() == Approx(25e-9));
}

TEST_CASE("databases that are no exports are refused in one line, and views are not run") {
  const ScratchFolder scratch("observe_nsight");
  const auto refusal = [&](const std::string& name) {
    return error_text([&] { read_nsight(scratch / name); });
  };
  run_sql(scratch / "other.sqlite", "CREATE TABLE a (b)");
  CHECK(refusal("other.sqlite").find("a database without the tables StringIds") !=
        std::string::npos);
  scratch.add("text.sqlite", "SQLite format 3 it is not");
  CHECK(refusal("text.sqlite").find("file is not a database") != std::string::npos);
  run_sql(scratch / "empty.sqlite",
          "CREATE TABLE StringIds (id, value); CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start)");
  CHECK(refusal("empty.sqlite").find("a trace without kernels") != std::string::npos);
  run_sql(scratch / "view.sqlite",
          "CREATE TABLE StringIds (id, value); CREATE VIEW CUPTI_ACTIVITY_KIND_KERNEL AS WITH "
          "RECURSIVE n(start) AS (SELECT 1 UNION ALL SELECT start FROM n) SELECT * FROM n");
  CHECK(refusal("view.sqlite").find("a database without the tables") != std::string::npos);
}

}  // namespace
}  // namespace orrery::observe
