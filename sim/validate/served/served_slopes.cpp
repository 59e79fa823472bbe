// SPDX-License-Identifier: Apache-2.0
// Serves measured rows with values of their stacks moved, one at a time.
#include "sim/validate/served/served_slopes.h"

#include <fmt/format.h>

#include <atomic>
#include <cmath>
#include <cstdio>

#include "sim/base/content_hash.h"
#include "sim/base/errors/interrupt.h"
#include "sim/base/parallel.h"
#include "sim/base/tasks/task_value.h"
#include "sim/calibrate/steps/step_fit.h"
#include "workloads/stack/values.h"

namespace orrery {
namespace {

constexpr double apart = 1;  // deviations to either side of the shipped value

std::size_t index_of(ServedQuantity quantity) { return static_cast<std::size_t>(quantity); }

void add_names(std::vector<std::string>& names, const Stack& stack) {
  visit_stack_values(stack, [&](const std::string& name, const auto& value) {
    if (is_made_of_steps(value.source) && step_prior(stack, name) &&
        std::find(names.begin(), names.end(), name) == names.end())
      names.push_back(name);
  });
}

// Fills lines of one value and side: how far the row moves with it.
void add_side(ServedSlopes& slopes, std::size_t value, double side, const ServedRow& moved) {
  if (!moved.skipped.empty()) return;
  for (const ServedQuantity q : served_quantities) {
    auto& lines = slopes.lines[index_of(q)];
    const double change = std::log(predicted(moved, q) / predicted(slopes.shipped, q));
    if (std::isfinite(change)) (side < 0 ? lines.below : lines.above)[value] = change / side;
  }
}

ServedSlopes slopes_of(const ServingRow& row, const Stack& stack,
                       const std::vector<std::string>& names) {
  ServedSlopes slopes{.shipped = serve_row(row), .stack = stack.name, .at = {}, .lines = {}};
  if (!slopes.shipped.skipped.empty()) return slopes;
  for (auto& lines : slopes.lines)
    lines.below.resize(names.size()), lines.above.resize(names.size());
  for (std::size_t v = 0; v < names.size(); ++v) {
    const auto prior = step_prior(stack, names[v]);
    slopes.at.push_back(prior ? prior->deviations_of(step_value(stack, names[v])) : 0);
    if (!prior) continue;
    for (const double side : {-apart, apart})
      add_side(slopes, v, side,
               serve_row(row, {.name = names[v], .deviations = slopes.at[v] + side}));
  }
  return slopes;
}

// What a task keeps of a row's slopes.
struct KeptSlopes {
  std::string skipped;
  double ttft = 0, tpot = 0, tokens_s_gpu = 0, waits = 0;
  std::vector<double> at;
  std::array<std::array<std::vector<double>, 2>, 3> lines;  // of each quantity, below and above
};
auto fields(EitherConst<KeptSlopes> auto& k) {
  auto& [skipped, ttft, tpot, tokens_s_gpu, waits, at, lines] = k;
  return std::tie(skipped, ttft, tpot, tokens_s_gpu, waits, at, lines);
}

KeptSlopes kept_slopes(const ServedSlopes& s) {
  KeptSlopes kept{.skipped = s.shipped.skipped,
                  .ttft = s.shipped.ttft,
                  .tpot = s.shipped.tpot,
                  .tokens_s_gpu = s.shipped.tokens_s_gpu,
                  .waits = s.shipped.waits,
                  .at = s.at,
                  .lines = {}};
  for (std::size_t q = 0; q < s.lines.size(); ++q)
    kept.lines[q] = {s.lines[q].below, s.lines[q].above};
  return kept;
}

ServedSlopes slopes_of(const KeptSlopes& kept, const ServingRow& row, const std::string& stack) {
  ServedSlopes slopes{.shipped = {.row = &row,
                                  .skipped = kept.skipped,
                                  .ttft = kept.ttft,
                                  .tpot = kept.tpot,
                                  .tokens_s_gpu = kept.tokens_s_gpu,
                                  .waits = kept.waits},
                      .stack = stack,
                      .at = kept.at,
                      .lines = {}};
  for (std::size_t q = 0; q < slopes.lines.size(); ++q)
    slopes.lines[q] = {.below = kept.lines[q][0], .above = kept.lines[q][1]};
  return slopes;
}

}  // namespace

double ServedSlopes::log_predicted(ServedQuantity quantity,
                                   std::span<const double> deviations) const {
  double log_value = std::log(predicted(shipped, quantity));
  const Lines& l = lines[index_of(quantity)];
  for (std::size_t v = 0; v < at.size(); ++v) {
    const double moved = deviations[v] - at[v];
    log_value += moved * (moved < 0 ? l.below : l.above)[v];
  }
  return log_value;
}

ServedModel served_model(const std::vector<ServingRow>& rows, const FitRun& run) {
  std::vector<const ServingRow*> asked;
  for (const ServingRow& row : rows)
    if (row.skipped.empty()) asked.push_back(&row);
  std::vector<std::optional<Stack>> stacks(asked.size());
  parallel_for(asked.size(), run.threads, [&](std::size_t i) { stacks[i] = stack_of(*asked[i]); });
  ServedModel model;
  for (const auto& stack : stacks)
    if (stack) add_names(model.names[stack->name], *stack);
  std::vector<std::optional<ServedSlopes>> found(asked.size());
  std::atomic<std::size_t> done{0};
  parallel_for(asked.size(), run.threads, [&](std::size_t i) {
    if (!stacks[i]) return;
    const auto kept = task_value<KeptSlopes>(
        run.tasks, content_hash("served slopes\n" + asked[i]->id),
        [&]() -> std::optional<KeptSlopes> {
          if (interrupted()) return std::nullopt;
          return kept_slopes(slopes_of(*asked[i], *stacks[i], model.names.at(stacks[i]->name)));
        });
    if (kept) found[i] = slopes_of(*kept, *asked[i], stacks[i]->name);
    if (found[i] && !found[i]->shipped.skipped.empty()) found[i].reset();
    constexpr std::size_t step = 200;
    if (const std::size_t count = ++done; !run.quiet && count % step == 0)
      fmt::print(stderr, "{} of {} served runs predicted, each value moved\n", count, asked.size());
  });
  for (auto& slopes : found)
    if (slopes) model.rows.push_back(std::move(*slopes));
  return model;
}

}  // namespace orrery
