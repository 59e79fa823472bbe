// SPDX-License-Identifier: Apache-2.0
// Fits values of serving stacks to served runs, family and campaign left out.
#include "sim/validate/served/served_nested.h"

#include <fmt/format.h>

#include <cmath>
#include <map>
#include <set>

#include "hw_models/catalogue_hash.h"
#include "sim/base/parallel.h"

namespace orrery {
namespace {

// Half a range is of the time of a token where throughput was measured.
double log_time_error(const ServedBlind& b) {
  return b.quantity == ServedQuantity::tokens_s_gpu ? b.log_error : -b.log_error;
}

BlindResidual residual_of(const ServedBlind& b) {
  const ServingRow& row = *b.row->shipped.row;
  const RunKind run = run_kind(b.row->shipped);
  return {.run = b.quantity == ServedQuantity::ttft ? run : after_first_token(run),
          .source = row.campaign,
          .cell = cell_of(*b.row),
          .twin = row.id,
          .log_error = log_time_error(b),
          .stated = {}};
}

constexpr double one_vote = 0;  // of each cell, however many rows it has

std::vector<const ServedBlind*> of_quantity(const std::vector<ServedBlind>& rows,
                                            ServedQuantity quantity) {
  std::vector<const ServedBlind*> out;
  for (const ServedBlind& b : rows)
    if (b.quantity == quantity) out.push_back(&b);
  return out;
}

// What ranges of a quantity are made of. Few runs measured throughput: times of a token, which make
// it, say how far off it may be too.
std::vector<const ServedBlind*> evidence_for(const std::vector<ServedBlind>& rows,
                                             ServedQuantity quantity) {
  std::vector<const ServedBlind*> out = of_quantity(rows, quantity);
  if (quantity == ServedQuantity::tokens_s_gpu)
    for (const ServedBlind* b : of_quantity(rows, ServedQuantity::tpot)) out.push_back(b);
  return out;
}

// The error that rows sharing neither family nor campaign have.
ModelError error_without(const std::vector<const ServedBlind*>& rows, const ServedFold& fold,
                         const ModelError& shared) {
  std::vector<BlindResidual> others;
  for (const ServedBlind* b : rows)
    if (!leaves_out(fold, *b->row)) others.push_back(residual_of(*b));
  return error_of_others(others, shared);
}

std::vector<NestedPoint> points_of(const std::vector<const ServedBlind*>& rows,
                                   const std::vector<const ServedBlind*>& evidence,
                                   const ModelError& shared) {
  std::map<ServedFold, ModelError> errors;
  std::vector<NestedPoint> points;
  for (const ServedBlind* b : rows) {
    const ServingRow& row = *b->row->shipped.row;
    const ServedFold fold = fold_of(*b->row);
    if (!errors.contains(fold)) errors.emplace(fold, error_without(evidence, fold, shared));
    const RangeScore range = score_range(residual_of(*b), errors.at(fold));
    points.push_back(
        {.family = row.family,
         .source = fmt::format("{} of {}", served_quantity_text[b->quantity], engine_of(row)),
         .most_gpus = row.gpus(),
         .rows = 1,
         .log_error = b->log_error,
         .covered = range.covered ? 1.0 : 0.0,
         .width = range.length,
         .score = range.score});
  }
  return points;
}

const char* title(ServedQuantity quantity) {
  return quantity == ServedQuantity::ttft   ? "served TTFT"
         : quantity == ServedQuantity::tpot ? "served TPOT"
                                            : "served tokens/s/GPU";
}

// Lines of a quantity: all without guessed tokens, each kind of deployment, of guessed tokens also
// each family (what they gain was counted with DeepSeek-R1 alone), each stack.
void add_sets(NestedErrors& errors, const std::vector<const ServedBlind*>& rows,
              const std::vector<NestedPoint>& points, const std::string& name) {
  const auto add = [&](const std::string& set, const auto& belongs) {
    std::vector<const NestedPoint*> chosen;
    for (std::size_t i = 0; i < rows.size(); ++i)
      if (belongs(*rows[i])) chosen.push_back(&points[i]);
    if (!chosen.empty()) errors.sets.push_back({.set = set, .numbers = nested_numbers(chosen)});
  };
  const auto kind = [](const ServedBlind& b) { return run_kind(b.row->shipped).kind; };
  const std::string guessed = served_kind(false, true);
  std::set<std::string> kinds, families, stacks;
  for (const ServedBlind* b : rows) {
    kinds.insert(kind(*b));
    if (kind(*b) == guessed) families.insert(b->row->shipped.row->family);
    stacks.insert(b->row->stack);
  }
  add(name, [&](const ServedBlind& b) { return kind(b) != guessed; });
  for (const std::string& one : kinds)
    add(name + ", " + one, [&](const ServedBlind& b) { return kind(b) == one; });
  for (const std::string& family : families)
    add(fmt::format("{}, {} of {}", name, guessed, family), [&](const ServedBlind& b) {
      return kind(b) == guessed && b.row->shipped.row->family == family;
    });
  for (const std::string& stack : stacks)
    add(name + ", " + stack,
        [&](const ServedBlind& b) { return b.row->stack == stack && kind(b) != guessed; });
}

}  // namespace

std::vector<ServedBlind> predict_served_blind(const ServedModel& model, const FitRun& run) {
  std::map<std::pair<std::string, ServedFold>, std::vector<double>> fits;
  for (const ServedSlopes& s : model.rows) fits[{s.stack, fold_of(s)}];
  std::vector<std::pair<const std::pair<std::string, ServedFold>*, std::vector<double>*>> tasks;
  for (auto& [key, fit] : fits) tasks.emplace_back(&key, &fit);
  parallel_for(tasks.size(), run.threads, [&](std::size_t t) {
    const auto& [stack, fold] = *tasks[t].first;
    *tasks[t].second = fit_served(model, stack, &fold, 1).deviations;
  });
  std::vector<ServedBlind> out;
  for (const ServedSlopes& s : model.rows) {
    const std::vector<double>& deviations = fits.at({s.stack, fold_of(s)});
    for (const ServedQuantity q : served_quantities)
      if (const auto value = measured(s.shipped, q))
        out.push_back({.row = &s,
                       .quantity = q,
                       .log_error = s.log_predicted(q, deviations) - std::log(*value)});
  }
  return out;
}

ServedError served_error(const std::vector<ServedBlind>& rows, int threads) {
  const auto fitted = [&](ServedQuantity quantity) {
    std::vector<BlindResidual> residuals;
    for (const ServedBlind* b : evidence_for(rows, quantity)) residuals.push_back(residual_of(*b));
    if (residuals.empty()) return ModelError{};
    return fit_model_error(residuals, {.cell_power = one_vote, .threads = threads});
  };
  return {.ttft = fitted(ServedQuantity::ttft),
          .tpot = fitted(ServedQuantity::tpot),
          .tokens_s_gpu = fitted(ServedQuantity::tokens_s_gpu)};
}

NestedErrors served_nested(const std::vector<ServedBlind>& rows, const ServedError& shared) {
  NestedErrors errors{.catalogue = catalogue_hash(), .sets = {}, .groups = {}, .transfers = {}};
  for (const auto& [quantity, error] : {std::pair{ServedQuantity::tpot, &shared.tpot},
                                        {ServedQuantity::ttft, &shared.ttft},
                                        {ServedQuantity::tokens_s_gpu, &shared.tokens_s_gpu}}) {
    const auto chosen = of_quantity(rows, quantity);
    const std::vector<NestedPoint> points = points_of(chosen, evidence_for(rows, quantity), *error);
    add_sets(errors, chosen, points, title(quantity));
    std::vector<const NestedPoint*> all;
    for (const NestedPoint& p : points) all.push_back(&p);
    for (NestedGroup& group : nested_groups(all)) errors.groups.push_back(std::move(group));
  }
  return errors;
}

}  // namespace orrery
