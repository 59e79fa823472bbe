// SPDX-License-Identifier: Apache-2.0
// Changes questions of plans, and tells what is wrong with them.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "sim/app/plan_question.h"

namespace orrery {

inline nlohmann::json with(nlohmann::json question, const std::string& key,
                           const nlohmann::json& value) {
  question[key] = value;
  return question;
}

// The message of the Error that reading it throws; empty: it is valid.
inline std::string error_of(const nlohmann::json& question) {
  try {
    read_plan(JsonValue::from(question, "question.json"));
  } catch (const Error& error) {
    return error.message();
  }
  return "";
}

}  // namespace orrery
