// Knows question files of plan: settings and limits, each a value, a list or a range.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "sim/advise/plan.h"
#include "sim/base/json.h"

namespace orrery {

// A plan and what its report tells beside it.
struct PlanFile {
  std::string title, note;
  std::string start;  // date, or empty
  Plan plan;
  std::vector<std::string> shared;        // sentences: what all choices have in common
  std::vector<std::string> availability;  // sentences: machines that cannot be had at the start
};

// Name in workloads/catalog/questions, or a path (with '/' or ending in ".json").
JsonValue load_plan_file(const std::string& name);

// Errors name the key. Choices are the cross product of all lists and ranges, in the order of
// plan_keys(); the last varies fastest. At most 4,096.
PlanFile read_plan(const JsonValue& file);

// The keys of a question file, in order.
std::vector<std::string> plan_keys();

// The values of one key: a list's items, a range's numbers ({"from": 1024, "to": 16384, "times": 2}
// or "step"; all three may be texts with one unit), else the value itself.
std::vector<nlohmann::json> plan_values(const JsonValue& at);

// "15T", "300B", "1.5e12" or a number.
double tokens_from(const JsonValue& at);
// Days since 1970-01-01 of "2027-06-30".
std::int64_t date_from(const JsonValue& at);
std::string date_text(std::int64_t days_since_1970);

}  // namespace orrery
