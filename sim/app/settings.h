// Knows the settings of a question: flags and files in one strict form, flags win.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "sim/advise/advisor.h"
#include "sim/base/json.h"
#include "sim/engine/scenario.h"
#include "sim/outcome/simulate.h"

namespace orrery {

enum class SettingKind { text, integer, number, on_off, list };

// One setting: its key in files ('_'), its flag ("--global-batch") and what it means.
struct Setting {
  const char* key;
  SettingKind kind;
  const char* help;
  std::string flag() const;
};

// Every setting that advise and simulate share, in the order of the help text.
const std::vector<Setting>& settings();

// Text of a flag as a JSON value of the setting's kind. Error (file "--flag") when it is not one.
nlohmann::json setting_value(const Setting& setting, const std::string& text);

// The file's settings (file may be "") with `flags` on top. Unknown keys are errors.
JsonValue merge_settings(const std::string& file, const nlohmann::json& flags);

// A scenario for simulate: dp defaults to what is left of the cluster. Errors name the setting.
Scenario read_scenario(const JsonValue& settings);
SimulateOptions read_simulate_options(const JsonValue& settings);

// A question for advise: layout settings that are given fix their dimension.
Question read_question(const JsonValue& settings);

// The stack for a precision, or the default for the cluster's accelerator.
Stack read_stack(const std::string& name, const Cluster& cluster, const Model& model,
                 const Job& job, PrecisionRecipe precision);

}  // namespace orrery
