// SPDX-License-Identifier: Apache-2.0
// Fits step-level values of each stack to measured runs and predicts the runs that were left out.
#include "sim/validate/fit/fit.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdio>
#include <optional>
#include <set>

#include <fmt/format.h>

#include "sim/base/content_hash.h"
#include "sim/base/errors/interrupt.h"
#include "sim/base/parallel.h"
#include "sim/base/tasks/task_value.h"
#include "sim/calibrate/steps/step_fit.h"
#include "sim/paper/tables.h"
#include "sim/validate/score/predict.h"
#include "workloads/stack/values.h"

namespace orrery {
namespace {

constexpr std::size_t rows_of_a_cell = 24;  // of one source and model family in one fit

struct StackFit {
  std::vector<std::string> names;
  StepFit fit;
  std::size_t rows = 0;
};
auto fields(EitherConst<StackFit> auto& s) {
  auto& [names, fit, rows] = s;
  auto& [deviations, before, after] = fit;
  return std::tie(names, deviations, before, after, rows);
}

Stack moved(const Stack& stack, const std::vector<std::string>& names,
            std::span<const double> deviations) {
  Stack changed = stack;
  for (std::size_t i = 0; i < names.size(); ++i) set_step_value(changed, names[i], deviations[i]);
  return changed;
}

using Cell = std::pair<std::string, std::string>;
Cell cell_of(const ScoredRow& s) { return {s.row->source, s.row->family}; }

// At most so many rows of each source and model family, evenly spread: sweeps must not outvote the
// rest. Odd rows teach nothing.
std::vector<const ScoredRow*> thinned(const std::vector<const ScoredRow*>& rows) {
  std::map<Cell, std::vector<const ScoredRow*>> cells;
  for (const ScoredRow* s : rows)
    if (!is_odd(*s->row)) cells[cell_of(*s)].push_back(s);
  std::vector<const ScoredRow*> kept;
  for (const auto& [cell, list] : cells) {
    const std::size_t take = std::min(rows_of_a_cell, list.size());
    for (std::size_t i = 0; i < take; ++i) kept.push_back(list[i * list.size() / take]);
  }
  return kept;
}

// Rows with the same key have the same stack: what its conditions depend on.
std::string stack_key(const PreparedRow& row) {
  const Device& device = row.cluster->cluster.device;
  return fmt::format("{} {} {} {} {}", row.release, device.name, row.model.name,
                     to_text(row.layout.precision), to_text(row.job.task));
}

StackFit fit_stack(const std::vector<const ScoredRow*>& rows, int threads) {
  StackFit result;
  const auto kept = thinned(rows);
  std::map<std::string, const Stack*> releases;
  std::map<Cell, std::size_t> sizes;
  for (const ScoredRow* s : kept) {
    ++sizes[cell_of(*s)];
    releases.emplace(stack_key(*s->row), &s->row->stack);
  }
  std::vector<const Stack*> stacks;
  for (const auto& [key, stack] : releases) stacks.push_back(stack);
  result.names = fittable_step_values(stacks);
  std::vector<StepSample> samples;
  for (const ScoredRow* s : kept) {
    const PreparedRow& row = *s->row;
    const auto& names = result.names;
    samples.push_back({.measured = *row.measured.tokens_per_second_per_gpu,
                       .predicted =
                           [&row, &names](std::span<const double> deviations) {
                             const Stack stack = moved(row.stack, names, deviations);
                             return tokens_per_second(row, predict_step(row, stack));
                           },
                       .weight = weight_among(sizes[cell_of(*s)])});
  }
  result.rows = samples.size();
  result.fit = fit_steps(result.names.size(), samples, {.threads = threads});
  return result;
}

// Of the row's speed, with the values that the fit found: predicted / measured - 1. `values` has
// them where its stack is not the row's own.
double speed_error(const PreparedRow& row, const PreparedRow& values, const StackFit& fit) {
  const Stack fitted = moved(values.stack, fit.names, fit.fit.deviations);
  const Stack stack = &row == &values ? fitted : with_step_values(row.stack, fitted, fit.names);
  const double predicted = tokens_per_second(row, predict_step(row, stack));
  return predicted / *row.measured.tokens_per_second_per_gpu - 1;
}

std::string stated_range(const Stack& stack, const std::string& wanted) {
  std::string text;
  visit_stack_values(stack, [&](const std::string& name, const auto& value) {
    if (name != wanted || !value.low || !value.high) return;
    text = fmt::format("{:.4g} to {:.4g}", in_si(*value.low), in_si(*value.high));
  });
  return text;
}

std::map<std::string, std::vector<const ScoredRow*>> by_stack(const std::vector<ScoredRow>& rows) {
  std::map<std::string, std::vector<const ScoredRow*>> stacks;
  for (const ScoredRow& s : rows)
    if (is_scored(s)) stacks[s.row->stack.name].push_back(&s);
  return stacks;
}

std::string source_fold(const PreparedRow& row) { return "source " + row.source; }
std::string cell_fold(const PreparedRow& row) {
  return fmt::format("{}, {}, {} GPUs", row.source, row.model.name, row.layout.gpus());
}

std::string nested_fold(const PreparedRow& row) { return row.family + ", " + row.source; }

// Which fold predicts each row, and which rows a fold leaves out.
class Folds {
 public:
  Folds(const std::vector<ScoredRow>& rows, std::string kind) : kind_(std::move(kind)) {
    for (const ScoredRow& s : rows) {
      if (!is_scored(s)) continue;
      if (kind_ == "blind") sources_[{s.row->stack.name, s.row->gpu}].insert(s.row->source);
      if (kind_ == "nested") nested_[nested_fold(*s.row)] = cell_of(s);
    }
  }
  const std::string& kind() const { return kind_; }
  bool whole_source(const PreparedRow& row) const {
    const auto found = sources_.find({row.stack.name, row.gpu});
    return found == sources_.end() || found->second.size() > 1;
  }
  std::string of(const PreparedRow& row) const {
    if (kind_ == "model") return row.family;
    if (kind_ == "release") return row.release;
    if (kind_ == "source") return row.source;
    if (kind_ == "nested") return nested_fold(row);
    return whole_source(row) ? source_fold(row) : cell_fold(row);
  }
  bool leaves_out(const std::string& fold, const PreparedRow& row) const {
    if (kind_ == "nested") {
      const auto& [source, family] = nested_.at(fold);
      return row.source == source || row.family == family;
    }
    if (kind_ != "blind") return of(row) == fold;
    return source_fold(row) == fold || cell_fold(row) == fold;
  }

 private:
  std::string kind_;
  std::map<std::pair<std::string, std::string>, std::set<std::string>> sources_;
  std::map<std::string, Cell> nested_;  // what each fold is of
};

// Rows of one stack that one fold predicts.
struct FoldRows {
  std::string stack, fold;
  std::optional<StackFit>* fit = nullptr;
  std::vector<std::size_t> rows = {};         // of the blind rows
  std::vector<const ScoredRow*> values = {};  // beside each: whose stack has the values
};

}  // namespace

const std::vector<std::string>& leave_out_kinds() {
  static const std::vector<std::string> kinds = {"source", "model", "release", "blind", "nested"};
  return kinds;
}

struct FoldFits::Kept {
  const std::vector<ScoredRow>* rows = nullptr;
  Folds folds;
  std::map<std::string, std::vector<const ScoredRow*>> stacks;
  std::map<std::pair<std::string, std::string>, std::optional<StackFit>> fits;  // by stack and fold

  StackFit fit(const std::string& stack, const std::string& fold) const {
    std::vector<const ScoredRow*> others;
    if (const auto list = stacks.find(stack); list != stacks.end())
      for (const ScoredRow* s : list->second)
        if (!folds.leaves_out(fold, *s->row)) others.push_back(s);
    return fit_stack(others, 1);
  }
};

FoldFits::FoldFits(const std::vector<ScoredRow>& rows, const std::string& kind)
    : kept_(std::make_unique<Kept>(Kept{&rows, Folds(rows, kind), by_stack(rows), {}})) {}
FoldFits::~FoldFits() = default;

std::vector<BlindRow> predict_blind(FoldFits& fits, const FitRun& run,
                                    const std::vector<ScoredRow>* unseen,
                                    const std::vector<ScoredRow>* settings) {
  FoldFits::Kept& kept = *fits.kept_;
  const std::vector<ScoredRow>& rows = *kept.rows;
  const Folds& folds = kept.folds;
  std::vector<BlindRow> blind;
  std::vector<FoldRows> tasks;
  std::map<std::pair<std::string, std::string>, std::size_t> index;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const ScoredRow& s = rows[i];
    if (!is_scored(s)) continue;
    const bool hidden = unseen != nullptr && is_scored((*unseen)[i]);
    const ScoredRow& values = hidden ? (*unseen)[i] : s;
    const ScoredRow& predicted = settings && is_scored((*settings)[i]) ? (*settings)[i] : values;
    const std::string fold = folds.of(*s.row), stack = values.row->stack.name;
    if (run.only && !run.only->contains(fold)) continue;
    const auto [at, added] = index.emplace(std::pair{stack, fold}, tasks.size());
    if (added) tasks.push_back({stack, fold, &kept.fits[{stack, fold}]});
    tasks[at->second].rows.push_back(blind.size());
    tasks[at->second].values.push_back(&values);
    blind.push_back({.row = &predicted, .fold = fold, .whole_source = folds.whole_source(*s.row)});
  }
  std::atomic<std::size_t> done{0};
  parallel_for(tasks.size(), run.threads, [&](std::size_t t) {
    if (interrupted()) return;
    const FoldRows& task = tasks[t];
    if (!*task.fit)
      *task.fit = task_value<StackFit>(
          run.tasks, content_hash(fmt::format("{}\n{}\n{}", folds.kind(), task.stack, task.fold)),
          [&] { return kept.fit(task.stack, task.fold); });
    if (!*task.fit) return;
    for (std::size_t k = 0; k < task.rows.size(); ++k) {
      BlindRow& b = blind[task.rows[k]];
      b.speed_error = speed_error(*b.row->row, *task.values[k]->row, **task.fit);
    }
    const std::size_t count = ++done;
    if (!run.quiet && (count % 20 == 0 || count == tasks.size()))
      fmt::print(stderr, "{} of {} fits\n", count, tasks.size());
  });
  return blind;
}

std::vector<BlindRow> predict_transfer(const std::vector<ScoredRow>& rows, const Transfer& transfer,
                                       const FitRun& run) {
  std::vector<BlindRow> out;
  for (const auto& [name, list] : by_stack(rows)) {
    if (interrupted()) break;
    std::vector<const ScoredRow*> learned;
    for (const ScoredRow* s : list)
      if (transfer.learns(*s->row)) learned.push_back(s);
    if (learned.empty()) continue;
    const auto fit = task_value<StackFit>(
        run.tasks, content_hash(fmt::format("transfer\n{}\n{}", transfer.name, name)),
        [&] { return fit_stack(learned, run.threads); });
    if (!fit) continue;
    for (const ScoredRow* s : list)
      if (transfer.target(*s->row))
        out.push_back(
            {.row = s, .fold = transfer.name, .speed_error = speed_error(*s->row, *s->row, *fit)});
  }
  return out;
}

std::vector<LeftOut> left_out_groups(const std::vector<BlindRow>& rows, const std::string& kind) {
  std::vector<LeftOut> groups;
  std::map<std::string, std::size_t> index;
  LeftOut experts{.group = "experts (MoE)", .subtotal = true};
  const auto add = [](LeftOut& group, const BlindRow& b) {
    ++group.rows;
    group.shipped.push_back(*b.row->speed_error);
    group.without.push_back(b.speed_error);
  };
  for (const BlindRow& b : rows) {
    const std::string name = kind == "blind" ? b.row->row->source : b.fold;
    const auto [at, added] = index.emplace(name, groups.size());
    if (added) groups.push_back({.group = name});
    add(groups[at->second], b);
    if (b.row->row->model.has_experts()) add(experts, b);
  }
  if (experts.rows > 0) groups.push_back(experts);
  return groups;
}

std::vector<BlindRow> ordinary(const std::vector<BlindRow>& rows) {
  std::vector<BlindRow> out;
  for (const BlindRow& b : rows)
    if (!is_odd(*b.row->row)) out.push_back(b);
  return out;
}

std::string blind_rules_text(const std::vector<BlindRow>& rows) {
  // (source, device): rows and what each was predicted without.
  struct Rule {
    bool whole = true;
    std::size_t rows = 0;
    std::set<std::string> folds;
  };
  std::map<std::pair<std::string, std::string>, Rule> rules;
  for (const BlindRow& b : rows) {
    Rule& rule = rules[{b.row->row->source, b.row->row->gpu}];
    rule.whole = b.whole_source;
    ++rule.rows;
    rule.folds.insert(b.fold);
  }
  Table table({"source", "GPU", "rows", "predicted by a fit without"},
              {Align::left, Align::left, Align::right, Align::left});
  for (const auto& [key, rule] : rules) {
    const std::size_t n = rule.folds.size();
    table.add({key.first.size() > 46 ? key.first.substr(0, 45) + "…" : key.first, key.second,
               fmt::format("{}", rule.rows),
               rule.whole
                   ? "the whole source"
                   : fmt::format("its model and GPU count ({} group{})", n, n == 1 ? "" : "s")});
  }
  return "\nWhat was left out: a whole source where its stack and device occur in another, else\n"
         "one (source, model, GPU count) at a time\n" +
         table.text();
}

std::vector<StackValues> fit_stacks(const std::vector<ScoredRow>& rows, const FitRun& run) {
  std::vector<StackValues> fits;
  for (const auto& [name, list] : by_stack(rows)) {
    if (interrupted()) break;
    const StackFit fit = fit_stack(list, run.threads);
    fits.push_back({.stack = name, .names = fit.names, .deviations = fit.fit.deviations});
  }
  return fits;
}

std::string fit_text(const std::vector<ScoredRow>& rows, const FitRun& run) {
  std::string out;
  for (const auto& [name, list] : by_stack(rows)) {
    if (interrupted()) break;
    if (!run.quiet) fmt::print(stderr, "fitting {}\n", name);
    const StackFit fit = fit_stack(list, run.threads);
    out += fmt::format(
        "\n{}: {} rows, weighted mean |log error| {:.3f} at the middles of the stated ranges, "
        "{:.3f} fitted\n",
        name, fit.rows, fit.fit.before, fit.fit.after);
    std::map<std::string, Stack> releases;  // one for each set of values
    for (const ScoredRow* s : list) releases.insert_or_assign(s->row->release, s->row->stack);
    Table table({"release", "value", "deviations", "shipped", "fitted", "stated range"},
                {Align::left, Align::left});
    for (const auto& [release, stack] : releases) {
      const Stack changed = moved(stack, fit.names, fit.fit.deviations);
      for (std::size_t i = 0; i < fit.names.size(); ++i)
        table.add({i == 0 ? release : "", fit.names[i],
                   fmt::format("{:+.2f}", fit.fit.deviations[i]),
                   fmt::format("{:.4g}", step_value(stack, fit.names[i])),
                   fmt::format("{:.4g}", step_value(changed, fit.names[i])),
                   stated_range(stack, fit.names[i])});
    }
    out += table.text();
  }
  return out;
}

}  // namespace orrery
