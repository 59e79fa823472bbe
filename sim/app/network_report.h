// Knows how the flow network's part of a prediction is shown: bytes by layer, busiest links,
// losses.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "sim/outcome/prediction.h"

namespace orrery {

// Empty for predictions on the ideal network.
std::string network_text(const Scenario& scenario, const Prediction& prediction);
nlohmann::ordered_json network_json(const Prediction& prediction);

}  // namespace orrery
