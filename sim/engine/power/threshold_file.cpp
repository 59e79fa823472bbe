// SPDX-License-Identifier: Apache-2.0
// Divides clocks by the full one.
#include "sim/engine/power/threshold_file.h"

#include "hw_models/catalog.h"

namespace orrery {

ThresholdPreset load_threshold_preset(const std::string& name) {
  const JsonValue entry =
      load_catalog_entry("sim/engine/catalog/power_policies", "thresholds", name);
  entry.expect_only({"title", "release", "first", "second", "release_below", "full_clock", "low",
                     "lower", "high", "not_modelled"});
  const auto value = [&](const char* key) { return entry.at(key).at("value"); };
  const Hertz full = value("full_clock").quantity<Hertz>();
  const auto share_of_clock = [&](const char* key) {
    const double share = value(key).quantity<Hertz>() / full;
    if (!(share > 0 && share <= 1)) value(key).fail("a clock above 0, at most full_clock");
    return share;
  };
  ThresholdPreset preset{.title = entry.at("title").text(),
                         .release = entry.at("release").text(),
                         .first = value("first").number(),
                         .second = value("second").number(),
                         .release_below = value("release_below").number(),
                         .low = share_of_clock("low"),
                         .lower = share_of_clock("lower"),
                         .high = share_of_clock("high")};
  if (!(preset.first > 0 && preset.first <= preset.second && preset.second <= 1))
    value("first").fail("shares with 0 < first <= second <= 1");
  for (const JsonValue& line : entry.at("not_modelled").items())
    preset.not_modelled.push_back(line.text());
  return preset;
}

}  // namespace orrery
