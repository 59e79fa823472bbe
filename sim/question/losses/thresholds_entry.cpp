// SPDX-License-Identifier: Apache-2.0
// Lays what is asked over the controller of the catalogue, and turns clocks into levels of caps.
#include "sim/question/losses/thresholds_entry.h"

#include <fmt/format.h>

#include <cmath>

#include "hw_models/power.h"

namespace orrery {
namespace {

constexpr const char* usual_controller = "polca";

void read_shares(const JsonValue& at, ThresholdPreset& shares) {
  const auto read = [&](const char* key, double& share, double least, const char* expected) {
    const auto value = at.find(key);
    if (!value) return;
    share = value->number();
    if (!(share >= least && share <= 1)) value->fail(expected);
  };
  read("first", shares.first, 1e-9, "a share of a limit above 0, at most 1");
  read("second", shares.second, 1e-9, "a share of a limit above 0, at most 1");
  read("release", shares.release_below, 0, "a share of a limit from 0 to 1");
  const double least = least_measured_clock();
  const std::string expected = fmt::format(
      "a share of the full clock from {:.3f} to 1: below, no clock was measured", least);
  for (const auto& [key, clock] :
       {std::pair("low", &shares.low), {"lower", &shares.lower}, {"high", &shares.high}})
    read(key, *clock, least, expected.c_str());
}

}  // namespace

AskedThresholds read_thresholds(const std::optional<JsonValue>& at) {
  AskedThresholds out{.shares = load_threshold_preset(usual_controller)};
  if (!at) return out;
  at->expect_only({"first", "second", "release", "low", "lower", "high", "high_priority"});
  read_shares(*at, out.shares);
  if (out.shares.first > out.shares.second)
    at->fail(fmt::format("first at most second, which is {:.4g}", out.shares.second),
             fmt::format("first {:.4g}", out.shares.first));
  if (out.shares.release_below >= out.shares.first)
    at->fail(fmt::format("release below first, which is {:.4g}", out.shares.first),
             fmt::format("release {:.4g}", out.shares.release_below));
  if (out.shares.lower > out.shares.low)
    at->fail(fmt::format("lower at most low, which is {:.4g}", out.shares.low),
             fmt::format("lower {:.4g}", out.shares.lower));
  if (const auto from = at->find("high_priority"))
    out.high_priority = static_cast<std::int32_t>(from->integer(INT16_MIN, INT16_MAX));
  return out;
}

PowerThresholds power_thresholds(const AskedThresholds& asked) {
  const auto level = [](double clock) {
    constexpr double rounding = 1e-9;
    return static_cast<std::int64_t>(
        std::floor(cap_steps * (2 * budget_of_clock(clock) - 1) + rounding));
  };
  return {.first = asked.shares.first,
          .second = asked.shares.second,
          .release = asked.shares.release_below,
          .low = level(asked.shares.low),
          .lower = level(asked.shares.lower),
          .high = level(asked.shares.high),
          .high_from = asked.high_priority};
}

}  // namespace orrery
