// SPDX-License-Identifier: Apache-2.0
// Knows question files of plan: settings and limits, each a value, a list or a range.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "sim/base/date.h"
#include "sim/base/json/json.h"
#include "sim/base/json/tree.h"
#include "sim/plan/plan.h"

namespace orrery {

// A plan and what its report tells beside it.
struct PlanFile {
  std::string title, note;
  std::optional<Date> start;
  Plan plan;
  SortedJson question;                    // as it was asked, without keys that are null
  std::vector<std::string> shared;        // sentences: what all choices have in common
  std::vector<std::string> availability;  // sentences: from when machines can be had
  std::vector<std::string> left_out;  // sentences: clusters of "all" that the question does not fit
  std::vector<std::string> premises;  // sentences: what hypothetical machines take for granted
};

// Name in workloads/catalog/questions, or a path (with '/' or ending in ".json").
JsonValue load_plan_file(const std::string& name);
// The question with flags' values on top: tokens take the place of flop and flop that of tokens.
// No name: flags alone.
JsonValue merge_plan_flags(const std::string& name, const SortedJson& flags);
JsonValue merge_plan_flags(const JsonValue& question, const SortedJson& flags);

// Errors name the key; one that is null is as one that is not there. Choices are the cross product
// of all lists and ranges, in the order of plan_keys(); the last varies fastest. At most 4,096.
PlanFile read_plan(const JsonValue& question);

// The values of one key: a list's items, a range's numbers ({"from": 1024, "to": 16384, "times": 2}
// or "step"; all three may be texts with one unit; or in one text, "1024..16384", each twice the
// last, "1024..16384x4", "10 MW..50 MW+20 MW"), else the value itself. At most 256.
std::vector<SortedJson> plan_values(const JsonValue& at);

// "15T", "300B", "1.5e12" or a number.
double tokens_from(const JsonValue& at);
// A compute budget: "1e26", "1e26 FLOP" or a number.
Flop flop_from(const JsonValue& at);

// Some of a question's points, each for itself: a row, not a part of a comparison.
struct PlanPart {
  struct Point {
    SortedJson values;                  // of the keys that vary
    std::optional<std::size_t> choice;  // in the plan; none: `error`
    std::optional<Error> error;
  };
  PlanFile file;
  std::vector<Point> points;
};

// The combinations of a question's lists and ranges, which are made when they are asked for: there
// may be any number of them.
class PlanPoints {
 public:
  explicit PlanPoints(const JsonValue& question);  // Error for keys that no question has
  std::size_t count() const { return count_; }
  // Keys that have several values, and these.
  struct Varied {
    std::string key;
    std::vector<SortedJson> values;
  };
  const std::vector<Varied>& varied() const { return varied_; }
  PlanPart read(std::size_t from, std::size_t to) const;

 private:
  JsonValue question_;
  std::size_t count_ = 0;
  std::vector<Varied> varied_;
};

}  // namespace orrery
