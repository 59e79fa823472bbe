// Knows the parts that reports share: numbers for people, the subject, one prediction in detail.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "sim/engine/scenario.h"
#include "sim/outcome/prediction.h"

namespace orrery {

std::string grouped(double v);       // "1,048,576"
std::string significant(double v);   // three digits, or grouped from a thousand on
std::string dollars_text(double v);  // three digits with trailing zeros: "3.30"

// The unit that suits a step: its name, how many of them a second holds, decimals.
struct TimeUnit {
  const char* name;
  double per_second;
  int decimals;
};
TimeUnit unit_for(Seconds step);

// Model, cluster, job and stack, a line each.
std::string subject(const Scenario& scenario);

// Headline, where the time goes, memory, and what it rests on.
std::string prediction_detail(const Scenario& scenario, const Prediction& prediction);

// A curve used outside its region, with the keys of every report's JSON.
nlohmann::ordered_json extrapolation_json(const Extrapolation& extrapolation);

}  // namespace orrery
