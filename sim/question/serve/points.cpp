// SPDX-License-Identifier: Apache-2.0
// Knows which settings of a served model may be several.
#include "sim/question/serve/points.h"

#include "sim/question/serve/serve.h"

namespace orrery {

bool is_one_value(const std::string& key) {
  return key == "slo" || key == "tiers" || key == "for" || key == "classes";
}

std::vector<QuestionPoint> points_of(const JsonValue& settings) {
  const auto load = settings.find("for");
  if (load && load->is_array()) load->fail("one load");
  std::vector<std::string> keys;
  for (const Setting& setting : serve_settings())
    if (std::string(setting.key) != "classes") keys.emplace_back(setting.key);
  return combinations_of(settings, keys);
}

}  // namespace orrery
