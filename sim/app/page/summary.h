// SPDX-License-Identifier: Apache-2.0
// Knows what a meeting needs first of an answer: a verdict, and a few numbers with what they rest
// on.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "sim/base/json/json.h"
#include "sim/paper/document.h"

namespace orrery {

struct KeyNumber {
  std::string label;   // "step time"
  std::string value;   // "4.06 s"
  std::string detail;  // "90% range 3.70 s to 4.41 s"; may be empty
  Document rests_on;   // what it is made of, what it rests on, and how sure that is
};

struct Summary {
  std::string title;         // "Llama 3 8B on 16 x dgx-h100"
  std::optional<bool> good;  // whether what was asked for can exist; none: nothing is judged
  std::string verdict;       // one or two sentences
  std::vector<KeyNumber> numbers = {};
};

// Of an answer for machines, of any command. Errors name what an answer changed by hand lacks.
Summary summary_of(const JsonValue& answer);

// A time as pages show it: "4.06 s".
std::string time_text(double seconds);

// A document of one paragraph: what a simple number rests on.
Document said(const std::string& words);

// By command.
Summary step_summary(const JsonValue& answer);    // simulate
Summary advice_summary(const JsonValue& answer);  // advise
Summary plan_summary(const JsonValue& answer);
Summary service_summary(const JsonValue& answer);
Summary fleet_summary(const JsonValue& answer);  // schedule
Summary network_summary(const JsonValue& answer);
Summary validation_summary(const JsonValue& answer);

}  // namespace orrery
