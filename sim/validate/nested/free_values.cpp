// SPDX-License-Identifier: Apache-2.0
// Collects the uncertain values of the stacks that measured runs use.
#include "sim/validate/nested/free_values.h"

#include <map>
#include <tuple>

#include <fmt/format.h>

#include "sim/paper/tables.h"
#include "sim/validate/nested/groups.h"
#include "workloads/stack/values.h"

namespace orrery {
namespace {

// What whole steps have made, by its source.
bool is_fitted(const std::string& source) {
  return source == "orrery-step-fit" || source == "orrery-first-study" ||
         source == "orrery-published-runs";
}

template <class T>
bool is_free(const Sourced<T>& value) {
  return is_uncertain(value.evidence) && value.value && value.low && value.high &&
         in_si(*value.low) < in_si(*value.high);
}

struct Totals {
  std::size_t fitted = 0, judged = 0, one_family = 0, few_points = 0;
};

Totals totals_of(const std::vector<FreeValue>& values) {
  constexpr std::size_t enough_points = 5;
  Totals t;
  for (const FreeValue& v : values) {
    ++(v.fitted ? t.fitted : t.judged);
    if (!v.fitted) continue;
    if (v.families.size() == 1) ++t.one_family;
    if (v.points.size() < enough_points) ++t.few_points;
  }
  return t;
}

std::set<std::string> all_points(const std::vector<FreeValue>& values) {
  std::set<std::string> points;
  for (const FreeValue& v : values) points.insert(v.points.begin(), v.points.end());
  return points;
}

}  // namespace

std::vector<FreeValue> free_values(const std::vector<ScoredRow>& rows) {
  std::map<std::tuple<std::string, double, double, std::string>, FreeValue> found;
  for (const ScoredRow& s : rows) {
    if (!is_scored(s)) continue;
    const PreparedRow& row = *s.row;
    visit_stack_values(row.stack, [&](const std::string& name, const auto& value) {
      if (!is_free(value)) return;
      FreeValue& free = found[{name, in_si(*value.value), in_si(*value.high), value.reason}];
      free.stack = free.stack.empty() || free.stack == row.stack.name ? row.stack.name : "several";
      free.name = name;
      free.value = in_si(*value.value);
      free.low = in_si(*value.low);
      free.high = in_si(*value.high);
      free.fitted = is_fitted(value.source);
      free.reason = value.reason;
      free.points.insert(operating_point(row));
      free.families.insert(row.family);
      free.sources.insert(row.source);
    });
  }
  std::map<std::tuple<std::string, std::string, double, std::string>, FreeValue> ordered;
  for (auto& [key, value] : found)
    ordered[{value.stack, value.name, value.value, value.reason}] = std::move(value);
  std::vector<FreeValue> out;
  for (auto& [key, value] : ordered) out.push_back(std::move(value));
  return out;
}

std::string free_values_text(const std::vector<FreeValue>& values) {
  const Totals t = totals_of(values);
  Table table({"stack", "value", "is", "from", "to", "by", "points", "families", "sources"},
              {Align::left, Align::left, Align::right, Align::right, Align::right, Align::left});
  for (const FreeValue& v : values)
    table.add({v.stack, v.name, fmt::format("{:.3g}", v.value), fmt::format("{:.3g}", v.low),
               fmt::format("{:.3g}", v.high), v.fitted ? "whole steps" : "judgement",
               fmt::format("{}", v.points.size()), fmt::format("{}", v.families.size()),
               fmt::format("{}", v.sources.size())});
  return fmt::format(
             "Values of stacks that are no facts, where scored runs use them: {} made from whole "
             "steps,\n{} judged or assumed, for {} operating points. Of those made from steps {} "
             "rest on one\nfamily of models and {} on fewer than five operating points.\n",
             t.fitted, t.judged, all_points(values).size(), t.one_family, t.few_points) +
         table.text();
}

Json free_values_json(const std::vector<FreeValue>& values) {
  const Totals t = totals_of(values);
  Json list = Json::array();
  for (const FreeValue& v : values)
    list.push_back({{"stack", v.stack},
                    {"name", v.name},
                    {"value", v.value},
                    {"low", v.low},
                    {"high", v.high},
                    {"fitted", v.fitted},
                    {"reason", v.reason},
                    {"points", v.points.size()},
                    {"families", v.families.size()},
                    {"sources", v.sources.size()}});
  return {{"fitted", t.fitted},
          {"judged", t.judged},
          {"points", all_points(values).size()},
          {"on_one_family", t.one_family},
          {"on_few_points", t.few_points},
          {"values", list}};
}

}  // namespace orrery
