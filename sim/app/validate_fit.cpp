// Fits step-level values of each stack to measured runs and predicts the runs that were left out.
#include "sim/app/validate_fit.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <set>

#include <fmt/format.h>

#include "sim/app/tables.h"
#include "sim/app/validate_predict.h"
#include "sim/base/interrupt.h"
#include "sim/calibrate/step_fit.h"

namespace orrery {
namespace {

constexpr std::size_t rows_of_a_source = 100;  // in one fit: sweeps must not outvote the rest

struct StackFit {
  std::vector<std::string> names;
  StepFit fit;
  std::size_t rows = 0;
};

Stack scaled(const Stack& stack, const std::vector<std::string>& names,
             std::span<const double> factors) {
  Stack changed = stack;
  for (std::size_t i = 0; i < names.size(); ++i) scale_step_value(changed, names[i], factors[i]);
  return changed;
}

bool is_scored(const ScoredRow& s) {
  return s.speed_error && s.row->full_config && is_training(s.row->job.task);
}

std::string group_of(const ScoredRow& s, const std::string& kind) {
  if (kind == "source") return s.row->source;
  return kind == "model" ? s.row->family : s.row->release;
}

// Rows of one stack, at most so many of a source, evenly spread.
std::vector<const ScoredRow*> thinned(const std::vector<const ScoredRow*>& rows) {
  std::map<std::string, std::vector<const ScoredRow*>> by_source;
  for (const ScoredRow* s : rows) by_source[s->row->source].push_back(s);
  std::vector<const ScoredRow*> kept;
  for (const auto& [source, list] : by_source) {
    const std::size_t take = std::min(rows_of_a_source, list.size());
    for (std::size_t i = 0; i < take; ++i) kept.push_back(list[i * list.size() / take]);
  }
  return kept;
}

StackFit fit_stack(const std::vector<const ScoredRow*>& rows, const ValidateOptions& options) {
  StackFit result;
  const auto kept = thinned(rows);
  std::set<std::string> free;
  for (const ScoredRow* s : kept)
    for (const std::string& name : fittable_step_values(s->row->stack)) free.insert(name);
  for (const std::string& name : step_value_names())
    if (free.contains(name)) result.names.push_back(name);
  std::vector<StepSample> samples;
  for (const ScoredRow* s : kept) {
    const PreparedRow& row = *s->row;
    const auto& names = result.names;
    samples.push_back({.measured = *row.measured.tokens_per_second_per_gpu,
                       .predicted = [&row, &names](std::span<const double> factors) {
                         const Stack stack = scaled(row.stack, names, factors);
                         return tokens_per_second(row, predict_step(row, stack));
                       }});
  }
  result.rows = samples.size();
  result.fit = fit_steps(result.names.size(), samples, {.threads = options.threads});
  return result;
}

std::string stated_range(const Stack& stack, const std::string& wanted) {
  std::string text;
  visit_stack_values(stack, [&](const std::string& name, const auto& value) {
    if (name != wanted || !value.low || !value.high) return;
    if constexpr (std::is_same_v<std::remove_cvref_t<decltype(*value.low)>, double>)
      text = fmt::format("{:.4g} to {:.4g}", *value.low, *value.high);
    else
      text = fmt::format("{:.4g} to {:.4g}", value.low->si(), value.high->si());
  });
  return text;
}

std::map<std::string, std::vector<const ScoredRow*>> by_stack(const std::vector<ScoredRow>& rows) {
  std::map<std::string, std::vector<const ScoredRow*>> stacks;
  for (const ScoredRow& s : rows)
    if (is_scored(s)) stacks[s.row->stack.name].push_back(&s);
  return stacks;
}

}  // namespace

std::vector<LeftOut> leave_out_groups(const std::vector<ScoredRow>& rows, const std::string& kind,
                                      const ValidateOptions& options) {
  std::vector<LeftOut> groups;
  std::map<std::string, std::size_t> index;
  const auto stacks = by_stack(rows);
  for (const auto& [stack, list] : stacks) {
    std::set<std::string> names;
    for (const ScoredRow* s : list) names.insert(group_of(*s, kind));
    for (const std::string& name : names) {
      if (interrupted()) return groups;
      if (!options.quiet) fmt::print(stderr, "fitting {} without {}\n", stack, name);
      std::vector<const ScoredRow*> others, own;
      for (const ScoredRow* s : list) (group_of(*s, kind) == name ? own : others).push_back(s);
      const StackFit fit = fit_stack(others, options);
      const auto [at, added] = index.emplace(name, groups.size());
      if (added) groups.push_back({.group = name});
      LeftOut& group = groups[at->second];
      for (const ScoredRow* s : own) {
        const PreparedRow& row = *s->row;
        const Stack changed = scaled(row.stack, fit.names, fit.fit.factors);
        const double predicted = tokens_per_second(row, predict_step(row, changed));
        ++group.rows;
        group.shipped.push_back(*s->speed_error);
        group.without.push_back(predicted / *row.measured.tokens_per_second_per_gpu - 1);
      }
    }
  }
  return groups;
}

std::string fit_text(const std::vector<ScoredRow>& rows, const ValidateOptions& options) {
  std::string out;
  for (const auto& [name, list] : by_stack(rows)) {
    if (interrupted()) break;
    if (!options.quiet) fmt::print(stderr, "fitting {}\n", name);
    const StackFit fit = fit_stack(list, options);
    out += fmt::format("\n{}: {} rows, mean |log error| {:.3f} as shipped, {:.3f} fitted\n", name,
                       fit.rows, fit.fit.before, fit.fit.after);
    const Stack& newest = list.back()->row->stack;
    Table table({"value", "factor", "shipped, " + newest.release, "fitted", "stated range"},
                {Align::left});
    for (std::size_t i = 0; i < fit.names.size(); ++i) {
      const double shipped = step_value(newest, fit.names[i]);
      table.add({fit.names[i], fmt::format("{:.3f}", fit.fit.factors[i]),
                 fmt::format("{:.4g}", shipped),
                 fmt::format("{:.4g}", shipped * fit.fit.factors[i]),
                 stated_range(newest, fit.names[i])});
    }
    out += table.text();
  }
  return out;
}

}  // namespace orrery
