// SPDX-License-Identifier: Apache-2.0
// Writes the stacks' uncertain values for people and for machines.
#include <fmt/format.h>

#include "sim/paper/tables.h"
#include "sim/validate/nested/free_values.h"

namespace orrery {
namespace {

std::string number(double value) { return fmt::format("{:.3g}", value); }

std::string refit_text(const FreeValue& v) {
  if (!v.refit_low) return "";
  const std::string low = number(*v.refit_low), high = number(*v.refit_high);
  return low == high ? low : low + " to " + high;
}

std::string share_text(const FreeValue& v) {
  return v.share ? fmt::format("{:.2f}", *v.share) : "";
}

std::string points_each(const FreeCounts& c, double values) {
  return values > 0 ? fmt::format("{:.1f}", static_cast<double>(c.points.size()) / values) : "";
}

// Which of the two rules for values made from steps the value breaks.
std::string breaks_text(const FreeValue& v) {
  std::string text;
  if (v.on_one_family()) text = "one family";
  if (v.on_few_points()) text += text.empty() ? "few points" : ", few points";
  return text;
}

std::string head_text(const FreeCounts& all) {
  return fmt::format(
      "Values of stacks that are no facts, where scored runs use them: {} made from whole steps,\n"
      "{} judged or assumed, for {} operating points. {} of those made from steps rest on one\n"
      "family of models and {} on fewer than five operating points.\n"
      "A share says how far runs decide a value: 0 is its prior alone (5th percentile `from`,\n"
      "95th `to`), 1 the runs alone. Shares of the values made from steps sum to {:.1f} "
      "parameters,\n"
      "one for every {} points; with the judged values that a fit may move to {:.1f}.\n",
      all.fitted, all.judged, all.points.size(), all.one_family, all.few_points, all.effective,
      points_each(all, all.effective), all.effective_of_both);
}

std::string counts_text(const std::vector<FreeCounts>& counts) {
  Table table({"stack", "judged", "from steps", "points", "points a value", "parameters",
               "points a parameter", "one family", "few points"},
              {Align::left});
  for (const FreeCounts& c : counts)
    table.add({c.stack.empty() ? "all" : c.stack, fmt::format("{}", c.judged),
               fmt::format("{}", c.fitted), fmt::format("{}", c.points.size()),
               points_each(c, static_cast<double>(c.fitted)), fmt::format("{:.1f}", c.effective),
               points_each(c, c.effective), fmt::format("{}", c.one_family),
               fmt::format("{}", c.few_points)});
  return "\n" + table.text();
}

std::string narrow_text(const std::vector<NarrowValue>& narrow) {
  if (narrow.empty()) return "";
  Table table({"stack", "value", "is", "range", "others spread", "others"},
              {Align::left, Align::left});
  for (const NarrowValue& n : narrow)
    table.add({n.value->stack, n.value->name, number(n.value->value),
               fmt::format("x {:.2f}", n.range), fmt::format("x {:.2f}", n.spread),
               fmt::format("{}", n.others)});
  return "\nOn one family, with a range narrower than such values spread over other families and\n"
         "programs (factors to either side that hold nine tenths)\n" +
         table.text();
}

Json optional_json(const std::optional<double>& value) {
  return value ? Json(*value) : Json(nullptr);
}

Json counts_json(const FreeCounts& c) {
  return {{"fitted", c.fitted},
          {"judged", c.judged},
          {"points", c.points.size()},
          {"on_one_family", c.one_family},
          {"on_few_points", c.few_points},
          {"parameters", c.effective},
          {"parameters_with_judged", c.effective_of_both}};
}

Json value_json(const FreeValue& v) {
  return {{"stack", v.stack},
          {"name", v.name},
          {"value", v.value},
          {"low", v.low},
          {"high", v.high},
          {"prior", optional_json(v.prior)},
          {"refit_low", optional_json(v.refit_low)},
          {"refit_high", optional_json(v.refit_high)},
          {"share", optional_json(v.share)},
          {"fitted", v.fitted},
          {"reason", v.reason},
          {"points", v.points.size()},
          {"families", v.families},
          {"sources", v.sources}};
}

}  // namespace

std::string free_values_text(const std::vector<FreeValue>& values) {
  const std::vector<FreeCounts> counts = free_counts(values);
  Table table({"stack", "value", "prior", "from", "to", "is", "fit to all", "share", "by", "points",
               "families", "sources", "breaks"},
              {Align::left, Align::left, Align::right, Align::right, Align::right, Align::right,
               Align::right, Align::right, Align::left, Align::right, Align::right, Align::right,
               Align::left});
  for (const FreeValue& v : values)
    table.add({v.stack, v.name, v.prior ? number(*v.prior) : "", number(v.low), number(v.high),
               number(v.value), refit_text(v), share_text(v),
               v.fitted ? "whole steps" : "judgement", fmt::format("{}", v.points.size()),
               fmt::format("{}", v.families.size()), fmt::format("{}", v.sources.size()),
               breaks_text(v)});
  return head_text(counts.back()) + counts_text(counts) + "\n" + table.text() +
         narrow_text(narrow_values(values));
}

Json free_values_json(const std::vector<FreeValue>& values) {
  const std::vector<FreeCounts> counts = free_counts(values);
  Json out = counts_json(counts.back());
  out["stacks"] = Json::array();
  for (const FreeCounts& c : counts) {
    if (c.stack.empty()) continue;
    Json line = {{"stack", c.stack}};
    line.update(counts_json(c));
    out["stacks"].push_back(line);
  }
  out["values"] = Json::array();
  for (const FreeValue& v : values) out["values"].push_back(value_json(v));
  out["narrow"] = Json::array();
  for (const NarrowValue& n : narrow_values(values))
    out["narrow"].push_back({{"stack", n.value->stack},
                             {"name", n.value->name},
                             {"value", n.value->value},
                             {"range_factor", n.range},
                             {"spread_factor", n.spread},
                             {"others", n.others}});
  return {{"free", out}};
}

}  // namespace orrery
