// SPDX-License-Identifier: Apache-2.0
// Reads answers of `calibrate kernel`.
#include "sim/app/calibrate/kernel_kept.h"

namespace orrery {
namespace {

constexpr std::int64_t most_of_a_figure = 1'000'000'000;

Sizes sizes_of(const JsonValue& at) {
  Sizes out;
  for (const JsonValue& size : at.items()) out.push_back(size.integer());
  return out;
}

std::string text_or_none(const JsonValue& at, const char* key) {
  const auto value = at.find(key);
  return value ? value->text() : "";
}

// Five runs whose quartiles are those that were told.
KernelTiming timing_of(const JsonValue& at) {
  const double low = at.at("cold_low_s").number(), high = at.at("cold_high_s").number();
  KernelTiming out{.shape = sizes_of(at.at("shape"))};
  out.cold = {low, low, at.at("cold_s").number(), high, high};
  if (const auto warm = at.find("warm_s")) out.warm = {warm->number()};
  if (const auto mhz = at.find("clock_mhz")) out.mhz = mhz->number();
  out.ok = true;
  for (const double seconds : out.cold)
    if (!(seconds > 0)) at.at("cold_s").fail("times above 0");
  return out;
}

KernelTrial trial_of(const JsonValue& at) {
  KernelTrial out;
  const auto correct = at.find("correct");
  out.no_device = !correct;
  const double worst = at.find("worst_error") ? at.at("worst_error").number() : 0;
  for (const JsonValue& one : at.at("wrong").items()) {
    const std::string data = one.at("data").text(), failure = one.at("failure").text();
    if (data == "timed")
      out.timed.push_back({.shape = sizes_of(one.at("shape")), .failure = failure, .worst = worst});
    else
      out.cases.push_back(
          {.shape = sizes_of(one.at("shape")), .data = data, .failure = failure, .worst = worst});
  }
  // Which cases were right is not told: as many as are left.
  const auto cases = static_cast<std::size_t>(at.at("cases").integer(0, most_of_a_figure));
  while (out.cases.size() < cases) out.cases.push_back({.worst = worst, .ok = true});
  for (const JsonValue& shape : at.at("shapes").items()) out.timed.push_back(timing_of(shape));
  if (correct && !correct->boolean() && out.right()) out.failure = "it was wrong";
  return out;
}

BuiltKernel built_of(const JsonValue& at) {
  BuiltKernel out{.compiled = at.at("compiled").boolean()};
  if (!out.compiled) out.complaint = at.at("feedback").text();
  const auto resources = at.find("resources");
  if (!resources) return out;
  const auto figure = [&](const char* key) {
    return static_cast<int>(resources->at(key).integer(0, most_of_a_figure));
  };
  out.resources = {.registers = figure("registers"),
                   .shared_bytes = figure("shared_bytes"),
                   .spilled_bytes = figure("spilled_bytes"),
                   .kernels = 1};
  return out;
}

}  // namespace

KeptKernels read_kept_kernels(const std::string& file) {
  const JsonValue answer = JsonValue::load(file);
  KeptKernels out{.spec = read_kernel_spec(answer.at("question").at("spec"))};
  const auto host = answer.at("question").find("host");
  out.host = host && host->boolean();
  out.ran_on = text_or_none(answer, "ran_on");
  out.device = text_or_none(answer, "device");
  for (const JsonValue& one : answer.at("present").items()) {
    PresentTimes kernel{.name = one.at("name").text(), .failure = text_or_none(one, "failure")};
    for (const JsonValue& time : one.at("times").items())
      kernel.timed.push_back(
          {.shape = sizes_of(time.at("shape")), .cold = {time.at("cold_s").number()}, .ok = true});
    out.present.push_back(std::move(kernel));
  }
  for (const JsonValue& one : answer.at("candidates").items())
    out.candidates.push_back({one.at("file").text(), built_of(one), trial_of(one)});
  if (out.candidates.empty()) answer.at("candidates").fail("at least one candidate");
  return out;
}

}  // namespace orrery
