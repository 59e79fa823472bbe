// SPDX-License-Identifier: Apache-2.0
// Counts the values of stacks that are neither specified, nor measured on a part, nor read from a
// program, how many measured runs each rests on, and how far those runs decide it.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "sim/base/json/tree.h"
#include "sim/validate/fit/fit.h"
#include "sim/validate/score/report.h"

namespace orrery {

// A value that is announced, estimated or assumed, where runs that are scored use it. The same
// value with the same reason is one, in however many stacks and releases it holds. Effects that are
// taken to be absent (0, or a factor of 1, with a range of nothing) are left out.
struct FreeValue {
  std::string stack, name;  // "nemo" or "several", "kernel_age"
  double value = 0, low = 0, high = 0;
  bool fitted = false;  // made from whole steps; else judged, or assumed
  std::string reason;
  // Operating points as nested errors have them, each with the first of its rows (ValueUse).
  std::map<std::string, const PreparedRow*> points;
  std::set<std::string> families, sources;
  // Rules that a value made from steps breaks: a second family, and at least five points.
  bool on_one_family() const { return fitted && families.size() == 1; }
  bool on_few_points() const { return fitted && points.size() < 5; }

  // From compare_with_fit(), for values that a fit may move. The prior's middle; its 5th and its
  // 95th percentile are low and high.
  std::optional<double> prior;
  // How far runs rather than the prior decide it, 0 to 1: of values made from whole steps in a fit
  // of these alone, of judged ones in a fit of all.
  std::optional<double> share;
  // As a fit to all runs of a stack has it, where that moves the value: least and most over stacks.
  std::optional<double> refit_low, refit_high;
};

// What uses a stack's values: an operating point of a family and a source. `row` is the first of
// the point's rows of training; nullptr: a served one.
struct ValueUse {
  std::string point, family, source;
  const PreparedRow* row = nullptr;
};

// Collects the values that are no facts of stack after stack.
class FreeValueSet {
 public:
  void add(const Stack& stack, const ValueUse& use);
  std::vector<FreeValue> by_stack_and_name() const;

 private:
  // Name, value, low, high and reason tell values apart.
  using Key = std::tuple<std::string, double, double, double, std::string>;
  std::map<Key, FreeValue> found_;
};

// Those of the scored rows, which must outlive them, by stack and name.
std::vector<FreeValue> free_values(const std::vector<ScoredRow>& rows);

// Adds priors, shares and what a fit to these rows gives. Predicts a row of each operating point
// twice for each of its values.
void compare_with_fit(std::vector<FreeValue>& values, const std::vector<ScoredRow>& rows,
                      const FitRun& run);

// How many values there are for how many operating points, of a stack or in all.
struct FreeCounts {
  std::string stack;  // empty: all
  std::size_t fitted = 0, judged = 0;
  std::size_t one_family = 0, few_points = 0;  // of the fitted: on one family, on fewer than five
  std::set<std::string> points;
  double effective = 0;          // parameters: sum of the shares of fitted values
  double effective_of_both = 0;  // and of those of judged ones that a fit may move
};
// By stack, then all.
std::vector<FreeCounts> free_counts(const std::vector<FreeValue>& values);

// A fitted value that rests on one family, and whose range is narrower than what fitted values of
// the same name spread over other families. Both as factors to either side of the middle that hold
// nine tenths.
struct NarrowValue {
  const FreeValue* value = nullptr;
  double range = 1, spread = 1;
  std::size_t others = 0;
};
std::vector<NarrowValue> narrow_values(const std::vector<FreeValue>& values);

std::string free_values_text(const std::vector<FreeValue>& values);
Json free_values_json(const std::vector<FreeValue>& values);

}  // namespace orrery
