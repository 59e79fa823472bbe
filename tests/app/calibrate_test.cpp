// SPDX-License-Identifier: Apache-2.0
// Tests the calibrate command on lines that a GPU would have written.
#include <catch2/catch.hpp>

#include "sim/base/json/tree.h"
#include "tests/app/run_binary.h"
#include "tests/calibrate/doctored_log.h"

namespace orrery {
namespace {

using test::add;
using test::Doctor;
using test::Outcome;
using test::run;

bool has(const std::string& text, const std::string& words) {
  return text.find(words) != std::string::npos;
}

// Bandwidth that is 10% low, twice measured; the noise of the two runs differs.
std::string log_in(const ScratchFolder& folder, const std::string& name, const Doctor& doctor) {
  return add(folder, name + ".jsonl", test::doctored_log(doctor));
}

}  // namespace

TEST_CASE("compare tells a slow GPU from a healthy one by its exit code", "[calibrate]") {
  const ScratchFolder folder("compare");
  const std::string healthy = log_in(folder, "healthy", {.noise = 0.02, .seed = 1});
  const std::string again = log_in(folder, "again", {.noise = 0.02, .seed = 2});
  const std::string memory = log_in(folder, "memory", {.memory = 0.9, .noise = 0.02, .seed = 3});
  const std::string clocks =
      log_in(folder, "clocks", {.compute = 0.9, .clock = 0.9, .noise = 0.02, .seed = 4});

  const Outcome same = run("calibrate compare " + healthy + " " + healthy);
  INFO(same.out << same.err);
  CHECK(same.code == 0);
  CHECK(has(same.out, "healthy"));
  CHECK(run("calibrate compare " + again + " " + healthy).code == 0);

  const Outcome slow = run("calibrate compare " + memory + " " + healthy);
  INFO(slow.out << slow.err);
  CHECK(slow.code == 1);
  CHECK(has(slow.out, "suspect: memory bandwidth"));
  CHECK(has(slow.out, "memory copy"));

  const Outcome capped = run("--json calibrate compare " + clocks + " " + healthy);
  CHECK(capped.code == 1);
  const auto json = SortedJson::parse(capped.out);
  CHECK_FALSE(json.at("healthy").get<bool>());
  CHECK(has(json.at("findings").at(0).get<std::string>(), "SM clock 10% low"));
  CHECK(json.at("lines").size() > 12);
}

TEST_CASE("compare takes devices and the calibration of a log's device", "[calibrate]") {
  const ScratchFolder folder("devices");
  const std::string clocks = log_in(folder, "clocks", {.compute = 0.9, .clock = 0.9});
  const Outcome own = run("calibrate compare " + clocks);
  INFO(own.out << own.err);
  CHECK(own.code == 1);
  CHECK(has(own.out, "against h200-sxm"));
  CHECK(run("calibrate compare h200-sxm h200-sxm").code == 0);
  const Outcome other = run("calibrate compare h100-sxm h200-sxm");
  INFO(other.out << other.err);
  CHECK(other.code == 0);
  CHECK(has(other.out, "memory copy"));
  CHECK(has(other.out, "slow by"));
  CHECK(has(other.out, "different kinds"));
  CHECK_FALSE(has(other.out, "suspect"));
  CHECK(other.err.empty());
}

TEST_CASE("compare says what share of the datasheet's peaks is reached", "[calibrate]") {
  const ScratchFolder folder("specification");
  const Outcome alone = run("calibrate compare h200-sxm");
  INFO(alone.out << alone.err);
  CHECK(alone.code == 0);
  CHECK(has(alone.out, "against the specification of h200-sxm"));
  CHECK(has(alone.out, "memory copy"));
  CHECK_FALSE(has(alone.out, "SM clock"));

  const auto share = [&](const std::string& name, const Doctor& doctor) {
    const std::string log = log_in(folder, name, doctor);
    const Outcome o = run("--json calibrate compare " + log + " specification");
    CHECK(o.code == 0);
    const auto json = SortedJson::parse(o.out);
    for (const auto& line : json.at("lines"))
      if (line.at("question") == "memory copy") return line.at("of_specified").get<double>();
    return 0.0;
  };
  const double full = share("full", {.noise = 0}),
               slow = share("slow", {.memory = 0.9, .noise = 0});
  CHECK(full > 0.5);
  CHECK(full <= 1);
  CHECK(slow == Approx(0.9 * full));
}

TEST_CASE("fit reads measured lines, names their device and writes a calibration", "[calibrate]") {
  const ScratchFolder folder("fit");
  const std::string log = log_in(folder, "all", {});
  const std::string out = (folder / "fit.json").string();
  const Outcome o = run("calibrate fit " + log + " --output " + out);
  INFO(o.out << o.err);
  CHECK(o.code == 0);
  CHECK(has(o.out, "h200-sxm"));
  CHECK(has(o.out, "Written to " + out));
  const auto json = SortedJson::parse(test::read_file(out));
  CHECK(json.at("device") == "h200-sxm");
  CHECK_FALSE(json.at("curves").empty());
  // What was written can be held against the device's own.
  const Outcome back = run("calibrate compare " + out + " h200-sxm");
  INFO(back.out << back.err);
  CHECK(back.code != 2);
}

TEST_CASE("show draws what was measured and what is predicted", "[calibrate]") {
  const ScratchFolder folder("show");
  const std::string log = log_in(folder, "all", {});
  const std::string plots = (folder / "plots").string();
  const Outcome o = run("calibrate show --device h200-sxm " + log + " --plots " + plots);
  INFO(o.out << o.err);
  CHECK(o.code == 0);
  CHECK(has(o.out, "gemm"));
  CHECK(has(o.out, "Measured on"));
  for (const char* page : {"products", "memory", "attention", "collectives", "ratios"}) {
    const std::string svg = test::read_file(folder / ("plots/" + std::string(page) + ".svg"));
    INFO(page);
    CHECK(has(svg, "</svg>"));
    CHECK(has(svg, "<circle"));
  }
}

TEST_CASE("validate holds measured lines against predictions, by what fits never saw",
          "[calibrate]") {
  const ScratchFolder folder("validate");
  const std::string log = log_in(folder, "all", {.noise = 0.01});
  const Outcome o = run("--quiet validate " + log);
  INFO(o.out << o.err);
  CHECK(o.code == 0);
  CHECK(has(o.out, "h200-sxm, measured by orrery-measured-h200-sxm"));
  CHECK(has(o.out, "gemm, s"));
  CHECK(has(o.out, "of 4"));
  CHECK_FALSE(has(o.out, "memory verdict"));
  CHECK_FALSE(has(o.out, "library"));
  CHECK(has(run("--quiet validate --regions " + log).out, ".2-2ms"));

  const auto json = SortedJson::parse(run("--quiet --json validate " + log).out);
  int groups = 0;
  for (const auto& group : json.at("groups")) {
    if (group.at("kind") != "kernel" || group.at("work") != "gemm") continue;
    ++groups;
    CHECK(group.at("source") == "orrery-measured-h200-sxm");
    CHECK(group.at("bar_median").get<double>() == 0.04);
    // The log is the model's own times with 1% of noise.
    CHECK(group.at("from_20_us").at("median_absolute_error").get<double>() < 0.03);
  }
  CHECK(groups >= 3);
  CHECK(json.at("rows").size() > 60);
}

TEST_CASE("rows that a fit saw do not count, and slow kernels fail their bar", "[calibrate]") {
  const ScratchFolder folder("bars");
  const auto verdict = [&](const std::string& name, const Doctor& doctor) {
    const std::string out = run("--quiet validate " + log_in(folder, name, doctor)).out;
    const auto line = out.find("\n  attention-forward");
    REQUIRE(line != std::string::npos);
    return out.substr(line + 1, out.find('\n', line + 1) - line - 1);
  };
  CHECK(verdict("right", {.noise = 0.001}).ends_with("6/15  yes"));
  CHECK(verdict("slow", {.compute = 0.7, .noise = 0.001}).ends_with("6/15  no"));

  const auto rows =
      SortedJson::parse(run("--quiet --json validate " + log_in(folder, "counted", {})).out)
          .at("rows");
  std::size_t held = 0;
  for (const auto& row : rows) held += row.at("held_out").get<bool>() ? 1 : 0;
  CHECK(held > 10);
  CHECK(held < rows.size());
}

TEST_CASE("a folder of folders of measured lines is read whole", "[calibrate]") {
  const ScratchFolder folder("machines");
  const std::string one = log_in(folder, "one", {.seed = 1}),
                    two = log_in(folder, "two", {.seed = 2});
  namespace fs = std::filesystem;
  for (const char* machine : {"a", "b"}) fs::create_directories(folder / "all" / machine);
  fs::rename(one, folder / "all/a/gemm.jsonl");
  fs::rename(two, folder / "all/b/gemm.jsonl");
  const auto count = [&](const std::string& path) {
    const Outcome o = run("--quiet --json validate " + (folder / path).string());
    INFO(o.err);
    REQUIRE(o.code == 0);
    return SortedJson::parse(o.out).at("rows").size();
  };
  CHECK(count("all") == 2 * count("all/a"));
  add(folder, "all/b/gemm.jsonl", "{\n");
  const Outcome broken = run("validate " + (folder / "all").string());
  CHECK(broken.code == 2);
  CHECK(has(broken.err, "b/gemm.jsonl, line 1"));
}

TEST_CASE("a folder that is no measurement is refused with its name", "[calibrate]") {
  const ScratchFolder folder("empty");
  const Outcome o = run("validate " + (folder / "").string());
  CHECK(o.code == 2);
  CHECK(has(o.err, "no *.jsonl"));
  const Outcome lines = run("calibrate compare " + add(folder, "a.jsonl", "{}\n"));
  CHECK(lines.code == 2);
  CHECK(has(lines.err, "record"));
}

}  // namespace orrery
