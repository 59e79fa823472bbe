// SPDX-License-Identifier: Apache-2.0
// Holds changes of hardware that a question's keys make against the same changes in overlays.
#include <fmt/format.h>

#include <catch2/catch.hpp>

#include "hw_models/catalog.h"
#include "sim/base/json/tree.h"
#include "sim/question/plan/question.h"
#include "tests/app/run_binary.h"

using namespace orrery;
using namespace orrery::test;
using Catch::Matchers::Contains;

namespace {

SortedJson question(const SortedJson& cluster) {
  return {{"model", "llama3.1-70b"}, {"tokens", "100B"},    {"seq", 4096}, {"global_batch", 64},
          {"cluster", cluster},      {"gpus", 64},          {"tp", 8},     {"pp", 2},
          {"micro_batch", 1},        {"recompute", "full"}, {"zero", 1}};
}

PlanPoint point(const SortedJson& asked) {
  const PlanFile file = read_plan(JsonValue::from(asked, "question.json"));
  return plan(file.plan, {.full_batches = 0}).points.front();
}

SortedJson tensor_rates(const Device& device, double factor) {
  SortedJson rates = SortedJson::object();
  for (const Format f : {Format::bf16, Format::fp16, Format::fp8, Format::fp4})
    if (const auto& rate = device.tensor_rate[static_cast<std::size_t>(f)]; rate.known())
      rates[std::string(to_text(f))] = fmt::format("{:.17g} FLOP/s", rate.get().si() * factor);
  return {{"accelerator", {{"compute", {{"tensor", rates}}}}}};
}

SortedJson overlay(const std::string& base, const SortedJson& overrides) {
  return {{"based_on", base}, {"name", base + "-changed"}, {"overrides", overrides}};
}

void check_same(const std::string& base, const SortedJson& key, const SortedJson& overrides,
                bool moves = true) {
  SortedJson by_key = question(base);
  by_key.update(key);
  const PlanPoint a = point(by_key), b = point(question(overlay(base, overrides)));
  const PlanPoint today = point(question(base));
  INFO(base << " " << key.dump());
  REQUIRE(a.step.fits);
  REQUIRE(b.step.fits);
  CHECK(a.step.best.step_time.si() == Approx(b.step.best.step_time.si()).epsilon(1e-6));
  CHECK(a.step.best.energy_per_step.si() == Approx(b.step.best.energy_per_step.si()).epsilon(1e-6));
  if (moves) CHECK(a.step.best.step_time != today.step.best.step_time);
}

}  // namespace

TEST_CASE("one change of hardware has one answer, by a key and by an overlay") {
  for (const char* base : {"dgx-h100", "dgx-b200", "mi300x-8"}) {
    const Device device = load_cluster(base, 8).device;
    for (const double factor : {1.5, 3.0, 0.7})
      check_same(base, {{"tensor_rate", factor}}, tensor_rates(device, factor));
    const auto watts = fmt::format("{:.0f} W", 0.7 * device.power_limit.get().si());
    // An MI300X draws little in this job: seven tenths of its limit do.
    check_same(base, {{"power_cap", watts}}, {{"accelerator", {{"power", {{"limit", watts}}}}}},
               std::string(base) != "mi300x-8");
    check_same(base, {{"memory_bandwidth", "9 TB/s"}},
               {{"accelerator", {{"memory", {{"bandwidth", "9 TB/s"}}}}}});
    check_same(base, {{"scale_up_bandwidth", "1.2 TB/s"}},
               {{"fabric", {{"scale_up", {{"bandwidth", "1.2 TB/s"}}}}}});
  }
}

TEST_CASE("an accelerator of one's own that is based on another is that one, changed") {
  const ScratchFolder scratch("own-accelerator");
  const Device h100 = load_device("h100-sxm");
  SortedJson own = {{"based_on", "h100-sxm"}, {"name", "h100-wide"}};
  own["compute"]["tensor"] = SortedJson::object();
  for (const Format f : {Format::bf16, Format::fp16, Format::fp8}) {
    const double rate = h100.tensor_rate[static_cast<std::size_t>(f)].get().si() * 1.5;
    own["compute"]["tensor"][std::string(to_text(f))] = {
        {"value", fmt::format("{:.17g} FLOP/s", rate)},
        {"evidence", "specified"},
        {"source", "orrery-estimate"}};
  }
  const std::string path = add(scratch, "h100-wide.json", own.dump());
  const SortedJson cluster = {{"based_on", "dgx-h100"}, {"name", "wide"}, {"accelerator", path}};
  SortedJson by_key = question("dgx-h100");
  by_key["tensor_rate"] = 1.5;
  const PlanPoint a = point(by_key), b = point(question(cluster));
  REQUIRE(b.step.fits);
  CHECK(a.step.best.step_time.si() == Approx(b.step.best.step_time.si()).epsilon(1e-6));
}

TEST_CASE("an override that changes nothing is refused, with what would") {
  const auto error_of = [](const SortedJson& overrides) -> std::string {
    try {
      point(question(overlay("dgx-h100", overrides)));
    } catch (const Error& error) {
      return error.message();
    }
    return "";
  };
  CHECK_THAT(error_of({{"accelerator", {{"scale_up", {{"bandwidth", "900 GB/s"}}}}}}),
             Contains("scale_up.bandwidth") && Contains("changes nothing") &&
                 Contains("overrides.fabric.scale_up.bandwidth"));
  CHECK_THAT(error_of({{"accelerator", {{"compute", {{"clock", "3 GHz"}}}}}}),
             Contains("compute.clock") && Contains("changes nothing"));
  CHECK(error_of({{"host", {{"power", "5 kW"}}}}).empty());
}
