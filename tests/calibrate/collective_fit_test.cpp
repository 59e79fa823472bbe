// SPDX-License-Identifier: Apache-2.0
// Tests fits of collectives: known constants come back, overlays read as written, overlap adds up.
#include "sim/calibrate/fit/collective_fit.h"
#include "sim/base/json/tree.h"

#include <fmt/format.h>

#include <catch2/catch.hpp>
#include <cmath>
#include <filesystem>
#include <fstream>

#include "hw_models/catalog.h"
#include "sim/calibrate/fit/overlap_fit.h"
#include "sim/engine/collectives/collectives.h"

namespace orrery {
namespace {

namespace fs = std::filesystem;
using Catch::Matchers::Contains;

// Lines of a log, as validation/microbench writes them, in a file that goes with this object.
class LogFile {
 public:
  LogFile() : path_(fs::temp_directory_path() / "orrery_collective_fit_test.jsonl") {
    text_ = R"({"record":"conditions","program":"collectives","device":"NVIDIA H200","gpu":0,)"
            R"("gpus":4,"driver":"580","cuda":"13.0","libraries":{"nccl":"2.28.9","nvls":"off"},)"
            R"("power_limit_w":700,"max_clock_mhz":1980,"memory_clock_mhz":3201,"host":"x",)"
            R"("date":"2026-11-21"})"
            "\n";
  }
  ~LogFile() { fs::remove(path_); }
  LogFile(const LogFile&) = delete;
  LogFile& operator=(const LogFile&) = delete;
  void add(const std::string& keys, double time_us) {
    text_ +=
        fmt::format(R"({{"record":"sample","library":"nccl","mode":"graph",{},"time_us":{:.6g},)"
                    R"("low_us":{:.6g},"high_us":{:.6g},"repeats":5,"calls":50}})"
                    "\n",
                    keys, time_us, time_us, time_us);
  }
  MeasuredLog read() const {
    std::ofstream(path_) << text_;
    return read_measured_log({path_});
  }

 private:
  fs::path path_;
  std::string text_;
};

Fabric domain() {
  Fabric fabric;
  fabric.scale_up.domain = 8;
  fabric.scale_up.bandwidth = load_device("h200-sxm").scale_up_bandwidth;
  fabric.scale_out.kind = ScaleOutKind::none;
  return fabric;
}

Collective call(CollectiveKind kind, std::int64_t ranks, double bytes) {
  Collective c{.kind = kind, .bytes = Bytes(bytes)};
  c.group.size = c.group.per_domain = c.group.span = ranks;
  return c;
}

constexpr CollectiveKind kinds[] = {CollectiveKind::all_reduce,     CollectiveKind::all_gather,
                                    CollectiveKind::reduce_scatter, CollectiveKind::all_to_all,
                                    CollectiveKind::broadcast,      CollectiveKind::send_receive};

// Calls of a machine that has `costs`, a percent or two off, in a regular pattern.
MeasuredLog log_of(const CollectiveCosts& costs) {
  LogFile file;
  const Fabric fabric = domain();
  const auto add = [&](const Collective& c, std::optional<CollectiveProtocol> forced, int i) {
    const double noise = 1 + 0.01 * (i % 3 - 1);
    const auto time =
        forced ? collective_time_with(c, fabric, costs, CollectiveAlgorithm::ring, *forced)
               : std::optional(collective_time(c, fabric, costs));
    file.add(fmt::format(R"("part":"collectives","kind":"{}","ranks":{},"bytes":{},)"
                         R"("protocol":"{}","algorithm":"{}")",
                         to_text(c.kind), c.group.size, c.bytes.si(),
                         forced ? to_text(*forced) : "default", forced ? "ring" : "default"),
             1e6 * noise * time->time.si());
  };
  int i = 0;
  for (const CollectiveKind kind : kinds)
    for (const std::int64_t ranks : {2, 4})
      for (double bytes = 1024; bytes < 2e9; bytes *= 2) {
        add(call(kind, ranks, bytes), std::nullopt, ++i);
        if (kind != CollectiveKind::all_reduce) continue;
        for (int p = 0; p < collective_protocol_count; ++p)
          add(call(kind, ranks, bytes), static_cast<CollectiveProtocol>(p), ++i);
      }
  return file.read();
}

// The generation's constants, moved by known factors.
CollectiveCosts moved_costs() {
  CollectiveCosts costs = load_collective_costs(Architecture::hopper);
  for (auto& algorithm : costs.steps)
    for (StepCosts& step : algorithm) {
      if (!step.present) continue;
      *step.base.value = *step.base.value * 0.8;
      if (step.share.known()) *step.share.value *= 0.9;
    }
  StepCosts& send = costs.send[static_cast<int>(CollectiveProtocol::simple)];
  *send.base.value = *send.base.value * 1.9;
  return costs;
}

const CollectiveConstant& constant(const CollectiveFit& fit, const std::string& path) {
  for (const CollectiveConstant& c : fit.constants)
    if (c.path == path) return c;
  throw std::runtime_error("no " + path);
}

CollectiveFitOptions quick(int refits) {
  CollectiveFitOptions options;
  options.search.starts = 1;
  options.search.refits = refits;
  return options;
}

TEST_CASE("a fit finds the constants of a machine that has others than its generation") {
  const CollectiveCosts truth = moved_costs();
  const MeasuredLog log = log_of(truth);
  const CollectiveFit fit = fit_collectives(log, "h200-sxm", quick(0));
  CHECK(fit.least_ranks == 2);
  CHECK(fit.most_ranks == 4);
  int held = 0;
  for (const CollectiveErrors& e : fit.errors) {
    INFO(errors_text(fit));
    held += e.held_out;
    CHECK(e.median < 0.03);
    CHECK(e.p90 < 0.08);
  }
  CHECK(held > 50);
  const auto is_near = [&](const char* path, double value, double within) {
    INFO(path);
    CHECK(constant(fit, path).value == Approx(value).epsilon(within));
  };
  const auto of = [&](CollectiveAlgorithm a, CollectiveProtocol p) { return truth.of(a, p); };
  is_near("ring.simple.share",
          *of(CollectiveAlgorithm::ring, CollectiveProtocol::simple).share.value, 0.03);
  is_near("ring.ll.base", of(CollectiveAlgorithm::ring, CollectiveProtocol::ll).base.get().si(),
          0.1);
  is_near("send.simple.base",
          truth.send[static_cast<int>(CollectiveProtocol::simple)].base.get().si(), 0.05);
}

TEST_CASE("a fit is written as an overlay that reads back as the same costs") {
  const MeasuredLog log = log_of(moved_costs());
  const CollectiveFit fit = fit_collectives(log, "h200-sxm", quick(4));
  CHECK(constant(fit, "ring.simple.share").error > 0);
  const SortedJson section = collectives_section(fit);
  REQUIRE(section.contains("ring"));
  CHECK(section["send"]["simple"]["base"]["evidence"] == "measured");
  CHECK_FALSE(section.contains("nvls"));
  SortedJson merged =
      load_catalog_entry("hw_models/calibration/collectives", "collective costs", "hopper").raw();
  merge_overlay(merged, section);
  const CollectiveCosts read = read_collective_costs(JsonValue::from(merged, "merged"));
  CHECK(read.kinds.size() == 6);  // three kinds on rings in ll and simple
  const Fabric fabric = domain();
  for (const CollectiveKind kind : kinds)
    for (const double bytes : {2e3, 3e5, 5e6, 7e8}) {
      const Collective c = call(kind, 4, bytes);
      CHECK(collective_time(c, fabric, read).time.si() ==
            Approx(collective_time(c, fabric, fit.costs).time.si()).epsilon(2e-3));
    }
}

// Small messages on part of the channels, as NCCL says by the SMs that it takes.
TEST_CASE("a fit tells what a channel takes, and what one that is not full spares") {
  CollectiveCosts truth = load_collective_costs(Architecture::hopper);
  StepCosts& ll = truth.steps[static_cast<int>(CollectiveAlgorithm::ring)]
                             [static_cast<int>(CollectiveProtocol::ll)];
  ll.channels.value = 24;
  ll.channel.value = Bytes(4096);
  ll.pass.value = Seconds(0.35e-6);
  LogFile file;
  const Fabric fabric = domain();
  for (const std::int64_t ranks : {2, 4})
    for (double bytes = 1024; bytes < 4e6; bytes *= std::sqrt(2.0)) {
      const Collective c = call(CollectiveKind::all_reduce, ranks, std::round(bytes / 512) * 512);
      const double part = c.bytes.si() / static_cast<double>(ranks);
      const auto time =
          collective_time_with(c, fabric, truth, CollectiveAlgorithm::ring, CollectiveProtocol::ll);
      file.add(fmt::format(R"("part":"collectives","kind":"all-reduce","ranks":{},"bytes":{},)"
                           R"("protocol":"ll","algorithm":"ring","sms":{})",
                           ranks, c.bytes.si(), std::clamp(std::floor(part / 4096), 1.0, 24.0)),
               1e6 * time->time.si());
    }
  const CollectiveFit fit = fit_collectives(file.read(), "h200-sxm", quick(0));
  CHECK(constant(fit, "ring.ll.channels").value == 24);
  CHECK(constant(fit, "ring.ll.channel").value == Approx(4096).epsilon(0.1));
  CHECK(constant(fit, "ring.ll.pass").value == Approx(0.35e-6).epsilon(0.2));
  for (const CollectiveErrors& e : fit.errors) CHECK(e.median < 0.03);
}

TEST_CASE("a message that does not fit into its channels' threads waits for another pass") {
  CollectiveCosts costs = load_collective_costs(Architecture::hopper);
  StepCosts& ll = costs.steps[static_cast<int>(CollectiveAlgorithm::ring)]
                             [static_cast<int>(CollectiveProtocol::ll)];
  const Fabric fabric = domain();
  const auto time = [&](double bytes) {
    return collective_time_with(call(CollectiveKind::all_reduce, 4, bytes), fabric, costs,
                                CollectiveAlgorithm::ring, CollectiveProtocol::ll)
        ->time.si();
  };
  const double before = time(40960);
  ll.channels.value = 24;
  ll.channel.value = Bytes(4096);
  ll.pass.value = Seconds(0.3e-6);
  // Two channels for ten KiB of each rank's part: five do not fit into four. Seven turns.
  CHECK(time(40960) - before == Approx(2 * 7 * 0.3e-6).epsilon(0.01));
  CHECK(time(65536) < time(40960));
  CHECK(time(1024) < time(16384) - 6 * 0.3e-6 * 0.9);
}

TEST_CASE("a log without collectives fits nothing") {
  LogFile file;
  file.add(R"("part":"launch","kind":"launch","variant":"graph")", 1);
  const CollectiveFit fit = fit_collectives(file.read(), "h200-sxm", quick(0));
  CHECK(fit.constants.empty());
  CHECK(fit.errors.empty());
  CHECK(collectives_section(fit).is_null());
  CHECK_THROWS_AS(fit_collectives(file.read(), "h2000", quick(0)), Error);
}

TEST_CASE(
    "a kind's own constants hold for that kind alone, and what they leave out is the ring's") {
  const auto generation =
      load_catalog_entry("hw_models/calibration/collectives", "collective costs", "hopper");
  SortedJson merged = generation.raw();
  merge_overlay(merged, SortedJson::parse(R"({"kinds": {"broadcast": {"ring": {"simple":
      {"base": {"value": "90 us", "evidence": "measured", "source": "x"}}}}}})"));
  const CollectiveCosts own = read_collective_costs(JsonValue::from(merged, "own"));
  const CollectiveCosts plain = read_collective_costs(generation);
  const Fabric fabric = domain();
  const auto simple = [&](CollectiveKind kind, const CollectiveCosts& costs) {
    return collective_time_with(call(kind, 4, 1e8), fabric, costs, CollectiveAlgorithm::ring,
                                CollectiveProtocol::simple)
        ->time.si();
  };
  const double base =
      plain.of(CollectiveAlgorithm::ring, CollectiveProtocol::simple).base.get().si();
  CHECK(simple(CollectiveKind::broadcast, own) - simple(CollectiveKind::broadcast, plain) ==
        Approx(90e-6 - base));
  CHECK(simple(CollectiveKind::all_gather, own) == simple(CollectiveKind::all_gather, plain));
  for (const char* text : {R"({"kinds": {"broadcasts": {"ring": {}}}})",
                           R"({"kinds": {"broadcast": {"rings": {}}}})"}) {
    SortedJson broken = generation.raw();
    merge_overlay(broken, SortedJson::parse(text));
    CHECK_THROWS_WITH(read_collective_costs(JsonValue::from(broken, "own")), Contains("broadcast"));
  }
}

TEST_CASE("a hidden collective costs compute the share of its time that both lose") {
  LogFile file;
  const auto add = [&](const char* compute, double bytes, double beside, double slow) {
    file.add(fmt::format(R"("part":"overlap","kind":"overlap","variant":"x","compute":"{}",)"
                         R"("collective":"all-reduce","priority":"same","ranks":4,"bytes":{},)"
                         R"("most_ctas":0,"compute_alone_us":100,"compute_beside_us":{},)"
                         R"("collective_alone_us":50,"collective_beside_us":{})",
                         compute, bytes, beside, slow),
             beside);
  };
  add("gemm", 1e6, 125, 100);  // a fifth of each second, for two collectives' time: 0.4
  add("gemm", 1e6, 100, 50);   // neither notices the other
  add("copy", 1e6, 200, 100);
  const auto pairs = overlap_pairs(file.read());
  REQUIRE(pairs.size() == 3);
  CHECK(pairs[0].compute_cost == Approx(0.4));
  CHECK(pairs[0].collective_cost == Approx(0.625));
  CHECK(pairs[1].compute_cost == 0);
  // One engine for both, shared evenly: hiding gains nothing.
  CHECK(pairs[2].compute_cost == Approx(1));
  const auto costs = overlap_costs(pairs);
  REQUIRE(costs.size() == 3);
  CHECK(costs.back().group == "all");
  CHECK(costs.back().pairs == 2);
  CHECK(costs.back().median == Approx(0.2));
  CHECK(costs.front().compute_slowdown == Approx(2));
  CHECK(costs[1].group == "1 MB beside gemm, all-reduce");
  CHECK(costs[1].low == 0);
  CHECK(costs[1].high == Approx(0.4));
  CHECK_THAT(overlap_text(costs), Contains("1 MB beside gemm, all-reduce"));
  CHECK(overlap_section(costs)[1]["overlap_cost"].get<double>() == Approx(0.2));
  CHECK(overlap_section({}).is_null());
  add("gemm", 1e6, 0, 100);
  CHECK_THROWS_AS(overlap_pairs(file.read()), Error);
}

}  // namespace
}  // namespace orrery
