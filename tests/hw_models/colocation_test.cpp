// SPDX-License-Identifier: Apache-2.0
// Holds the speeds of processes that share a device to an H100 that ran ten kinds of work two,
// three and four at a time.
#include "hw_models/colocation.h"

#include <fmt/format.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <map>
#include <string>
#include <vector>

#include "sim/base/json/json.h"
#include "sim/base/random.h"
#include "tests/base/fresh_seed.h"
#include "tests/base/worst_rows.h"

namespace orrery {
namespace {

struct Alone {
  double rate = 0;         // iterations/s
  double kernels_s = 0;    // of an iteration, from the profiler
  double kernels = 0;      // of an iteration
  bool waits_for = false;  // its host: it launches less than the device could do
};

struct Shared {
  std::vector<std::string> jobs;
  std::vector<double> speeds;  // measured, each over its own alone
};

std::vector<JsonValue> lines(const std::string& device) {
  std::ifstream file(std::filesystem::path(ORRERY_SOURCE_DIR) /
                     "validation/measurements/shared_gpu" / (device + ".jsonl"));
  REQUIRE(file);
  std::vector<JsonValue> all;
  for (std::string text; std::getline(file, text);) all.push_back(JsonValue::parse(text, device));
  return all;
}

// Kinds of work as they run alone in a mode.
std::map<std::string, Alone> alone_in(const std::vector<JsonValue>& all, const std::string& mode) {
  std::map<std::string, Alone> kinds;
  for (const JsonValue& line : all) {
    const std::string record = line.at("record").text();
    if (record == "work") {
      Alone& kind = kinds[line.at("kind").text()];
      kind.kernels_s = line.at("kernel_s").number();
      kind.kernels = line.at("kernels").number();
    } else if (record == "sample" && line.at("mode").text() == mode &&
               line.at("jobs").items().size() == 1) {
      kinds[line.at("jobs").items()[0].text()].rate = line.at("rates").items()[0].number();
    }
  }
  // A fill of a few microseconds goes with each of these kernels.
  for (const char* name : {"product-large", "half-busy", "attention"}) kinds[name].kernels = 1;
  for (const char* name : {"product-small", "step-small"}) kinds[name].waits_for = true;
  return kinds;
}

DeviceUse use_of(const std::string& name, const Alone& kind) {
  const double iteration = 1 / kind.rate;
  double busy = 1;
  if (kind.waits_for) busy = std::min(1.0, kind.kernels_s / iteration);
  if (name == "half-busy") busy = 0.5;
  return {.busy = busy, .kernel = seconds(busy * iteration / kind.kernels)};
}

std::vector<Shared> groups_in(const std::vector<JsonValue>& all, const std::string& mode,
                              const std::map<std::string, Alone>& kinds) {
  std::vector<Shared> groups;
  for (const JsonValue& line : all) {
    if (line.at("record").text() != "sample" || line.at("mode").text() != mode) continue;
    Shared group;
    for (const JsonValue& job : line.at("jobs").items()) group.jobs.push_back(job.text());
    if (group.jobs.size() < 2) continue;
    for (std::size_t i = 0; i < group.jobs.size(); ++i)
      group.speeds.push_back(line.at("rates").items()[i].number() / kinds.at(group.jobs[i]).rate);
    groups.push_back(group);
  }
  return groups;
}

struct Errors {
  std::vector<double> all, of_full;  // relative; of groups whose processes never wait for a host
  void print(const std::string& what) {
    std::sort(all.begin(), all.end());
    std::sort(of_full.begin(), of_full.end());
    fmt::print(
        "{}: {} speeds off by {:.1f}% in the median, {:.0f}% at the 90th percentile; "
        "{} where no host is waited for: {:.1f}, {:.0f}%\n",
        what, all.size(), 100 * at(all, 0.5), 100 * at(all, 0.9), of_full.size(),
        100 * at(of_full, 0.5), 100 * at(of_full, 0.9));
  }
  static double at(const std::vector<double>& sorted, double share) {
    return sorted[static_cast<std::size_t>(share * static_cast<double>(sorted.size()))];
  }
};

Errors errors_of(const std::string& device, DeviceShare how, const char* mode, WorstRows& worst) {
  const std::vector<JsonValue> all = lines(device);
  const auto kinds = alone_in(all, mode);
  Errors errors;
  for (const Shared& group : groups_in(all, mode, kinds)) {
    std::vector<DeviceUse> uses;
    bool full = true;
    for (const std::string& job : group.jobs) {
      uses.push_back(use_of(job, kinds.at(job)));
      full = full && uses.back().busy == 1;
    }
    const std::vector<double> speeds = shared_speeds(how, uses);
    for (std::size_t i = 0; i < speeds.size(); ++i) {
      const double error = std::abs(speeds[i] / group.speeds[i] - 1);
      errors.all.push_back(error);
      if (full) errors.of_full.push_back(error);
      worst.add(fmt::format("{} of {}", group.jobs[i], fmt::join(group.jobs, ", ")), speeds[i],
                group.speeds[i], 100 * error, "%");
    }
  }
  return errors;
}

// The constant of the model is of the H100's equal processes. The H200 ran once that was written.
TEST_CASE("processes that take turns on H100 and H200 get equal shares") {
  for (const std::string device : {"h100", "h200"}) {
    WorstRows worst;
    Errors errors = errors_of(device, DeviceShare::time_slices, "slice", worst);
    errors.print(device + ", time slices");
    worst.print("time slices");
    CHECK(errors.all.size() == 180);
    CHECK(Errors::at(errors.all, 0.5) < 0.04);
    CHECK(Errors::at(errors.all, 0.9) < 0.21);
    CHECK(Errors::at(errors.of_full, 0.5) < 0.015);
    CHECK(Errors::at(errors.of_full, 0.9) < 0.09);
  }
}

TEST_CASE("processes under MPS take turns by kernels") {
  for (const std::string device : {"h100", "h200"}) {
    WorstRows worst;
    Errors errors = errors_of(device, DeviceShare::mps, "mps", worst);
    errors.print(device + ", MPS");
    worst.print("MPS");
    CHECK(errors.all.size() == 180);
    CHECK(Errors::at(errors.all, 0.5) < 0.06);
    CHECK(Errors::at(errors.of_full, 0.9) < 0.2);
  }
}

// A device as a whole does little more than one process alone would.
TEST_CASE("processes under MPS win little by kernels of other needs") {
  for (const auto& [device, most] : {std::pair{"h100", 1.125}, std::pair{"h200", 1.18}}) {
    const std::vector<JsonValue> all = lines(device);
    const auto kinds = alone_in(all, "mps");
    int groups = 0;
    for (const Shared& group : groups_in(all, "mps", kinds)) {
      double time = 0, asked = 0;
      for (std::size_t i = 0; i < group.jobs.size(); ++i) {
        const double busy = use_of(group.jobs[i], kinds.at(group.jobs[i])).busy;
        time += busy * group.speeds[i];
        asked += busy;
      }
      if (asked < 1.2) continue;
      INFO(fmt::format("{}: {}", device, fmt::join(group.jobs, ", ")));
      CHECK(time < most);
      ++groups;
    }
    CHECK(groups > 50);
  }
}

TEST_CASE("law: processes on one device never get more than it has, nor more than alone") {
  RandomStream random(fresh(31), 1);
  for (int round = 0; round < 200; ++round) {
    std::vector<DeviceUse> uses(1 + random.below(6));
    for (DeviceUse& use : uses)
      use = {.busy = 0.01 + 0.99 * random.uniform(),
             .kernel = microseconds(1 + 999 * random.uniform()),
             .part = 1 / static_cast<double>(uses.size())};
    for (const DeviceShare how :
         {DeviceShare::time_slices, DeviceShare::mps, DeviceShare::mps_limits}) {
      const std::vector<double> speeds = shared_speeds(how, uses);
      double time = 0;
      for (std::size_t i = 0; i < uses.size(); ++i) {
        CHECK(speeds[i] > 0);
        CHECK(speeds[i] <= 1 + 1e-12);
        time += speeds[i] * uses[i].busy;
      }
      CHECK(time <= 1 + 1e-12);
      if (uses.size() == 1) CHECK(speeds[0] == Approx(1));
    }
  }
}

TEST_CASE("one that asks for little gets it, and the others share the rest by turns or kernels") {
  const std::vector<DeviceUse> uses = {{.busy = 0.1}, {.busy = 1}, {.busy = 1}};
  const std::vector<double> turns = shared_speeds(DeviceShare::time_slices, uses);
  CHECK(turns[0] == Approx(1));
  CHECK(turns[1] == Approx((0.905 - 0.1) / 2));
  CHECK(turns[2] == Approx(turns[1]));
  const std::vector<DeviceUse> kernels = {{.kernel = microseconds(10)},
                                          {.kernel = microseconds(30)}};
  const std::vector<double> mixed = shared_speeds(DeviceShare::mps, kernels);
  CHECK(mixed[0] == Approx(0.25));
  CHECK(mixed[1] == Approx(0.75));
}

}  // namespace
}  // namespace orrery
