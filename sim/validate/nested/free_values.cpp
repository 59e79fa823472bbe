// SPDX-License-Identifier: Apache-2.0
// Collects the uncertain values of the stacks that measured runs use, and counts them.
#include "sim/validate/nested/free_values.h"

#include <algorithm>
#include <cmath>
#include <tuple>

#include "sim/base/sorting.h"
#include "sim/base/statistics.h"
#include "sim/calibrate/steps/step_fit.h"
#include "sim/validate/nested/groups.h"
#include "workloads/stack/values.h"

namespace orrery {
namespace {

template <class T>
bool is_free(const Sourced<T>& value) {
  return is_uncertain(value.evidence) && value.value && value.low && value.high &&
         in_si(*value.low) < in_si(*value.high);
}

void count(FreeCounts& counts, const FreeValue& v) {
  ++(v.fitted ? counts.fitted : counts.judged);
  for (const auto& [point, row] : v.points) counts.points.insert(point);
  counts.effective_of_both += v.share.value_or(0);
  if (v.fitted) counts.effective += v.share.value_or(0);
  if (v.on_one_family()) ++counts.one_family;
  if (v.on_few_points()) ++counts.few_points;
}

bool share_a_family(const FreeValue& a, const FreeValue& b) {
  return std::any_of(a.families.begin(), a.families.end(),
                     [&b](const std::string& family) { return b.families.contains(family); });
}

// Logarithms of the fitted values of that name that rest on none of the value's families, each
// value once.
std::vector<double> elsewhere(const FreeValue& value, const std::vector<FreeValue>& values) {
  std::set<double> found;
  for (const FreeValue& v : values)
    if (v.fitted && v.name == value.name && v.value > 0 && !share_a_family(v, value))
      found.insert(std::log(v.value));
  return {found.begin(), found.end()};
}

}  // namespace

void FreeValueSet::add(const Stack& stack, const ValueUse& use) {
  visit_stack_values(stack, [&](const std::string& name, const auto& value) {
    if (!is_free(value)) return;
    const double low = in_si(*value.low), high = in_si(*value.high);
    FreeValue& free = found_[{name, in_si(*value.value), low, high, value.reason}];
    free.stack = free.stack.empty() || free.stack == stack.name ? stack.name : "several";
    free.name = name;
    free.value = in_si(*value.value);
    free.low = low;
    free.high = high;
    free.fitted = is_made_of_steps(value.source);
    free.reason = value.reason;
    free.points.emplace(use.point, use.row);
    free.families.insert(use.family);
    free.sources.insert(use.source);
  });
}

std::vector<FreeValue> FreeValueSet::by_stack_and_name() const {
  std::vector<FreeValue> out;
  for (const auto& [key, value] : found_) out.push_back(value);
  sort_stably(out, [](const FreeValue& a, const FreeValue& b) {
    return std::tie(a.stack, a.name) < std::tie(b.stack, b.name);
  });
  return out;
}

std::vector<FreeValue> free_values(const std::vector<ScoredRow>& rows) {
  FreeValueSet values;
  for (const ScoredRow& s : rows) {
    if (!is_scored(s)) continue;
    const PreparedRow& row = *s.row;
    values.add(
        row.stack,
        {.point = operating_point(row), .family = row.family, .source = row.source, .row = &row});
  }
  return values.by_stack_and_name();
}

std::vector<FreeCounts> free_counts(const std::vector<FreeValue>& values) {
  std::map<std::string, FreeCounts> stacks;
  FreeCounts all;
  for (const FreeValue& v : values) {
    FreeCounts& own = stacks[v.stack];
    own.stack = v.stack;
    count(own, v);
    count(all, v);
  }
  std::vector<FreeCounts> out;
  for (auto& [name, counts] : stacks) out.push_back(std::move(counts));
  out.push_back(std::move(all));
  return out;
}

std::vector<NarrowValue> narrow_values(const std::vector<FreeValue>& values) {
  constexpr std::size_t enough = 3;  // others, for a spread
  std::vector<NarrowValue> narrow;
  for (const FreeValue& v : values) {
    if (!v.on_one_family() || v.low <= 0) continue;
    const std::vector<double> others = elsewhere(v, values);
    if (others.size() < enough) continue;
    const NarrowValue n{.value = &v,
                        .range = std::sqrt(v.high / v.low),
                        .spread = std::exp(normal_95 * sample_deviation(others)),
                        .others = others.size()};
    if (n.range < n.spread) narrow.push_back(n);
  }
  return narrow;
}

}  // namespace orrery
