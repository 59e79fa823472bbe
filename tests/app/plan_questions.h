// SPDX-License-Identifier: Apache-2.0
// Changes questions of plans, and tells what is wrong with them.
#pragma once

#include <string>

#include "sim/base/json/tree.h"
#include "sim/question/plan/question.h"

namespace orrery {

inline SortedJson with(SortedJson question, const std::string& key, const SortedJson& value) {
  question[key] = value;
  return question;
}

// The message of the Error that reading it throws; empty: it is valid.
inline std::string error_of(const SortedJson& question) {
  try {
    read_plan(JsonValue::from(question, "question.json"));
  } catch (const Error& error) {
    return error.message();
  }
  return "";
}

}  // namespace orrery
