// SPDX-License-Identifier: Apache-2.0
// Serves measured rows with values of their stacks moved, one at a time.
#include "sim/validate/served/served_slopes.h"

#include <fmt/format.h>

#include <atomic>
#include <cmath>
#include <cstdio>

#include "sim/base/parallel.h"
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
    ServedSlopes slopes{
        .shipped = serve_row(*asked[i]), .stack = stacks[i]->name, .at = {}, .lines = {}};
    if (!slopes.shipped.skipped.empty()) return;
    const std::vector<std::string>& names = model.names.at(slopes.stack);
    for (auto& lines : slopes.lines)
      lines.below.resize(names.size()), lines.above.resize(names.size());
    for (std::size_t v = 0; v < names.size(); ++v) {
      const auto prior = step_prior(*stacks[i], names[v]);
      slopes.at.push_back(prior ? prior->deviations_of(step_value(*stacks[i], names[v])) : 0);
      if (!prior) continue;
      for (const double side : {-apart, apart})
        add_side(slopes, v, side,
                 serve_row(*asked[i], {.name = names[v], .deviations = slopes.at[v] + side}));
    }
    found[i] = std::move(slopes);
    constexpr std::size_t step = 200;
    if (const std::size_t count = ++done; !run.quiet && count % step == 0)
      fmt::print(stderr, "{} of {} served runs predicted, each value moved\n", count, asked.size());
  });
  for (auto& slopes : found)
    if (slopes) model.rows.push_back(std::move(*slopes));
  return model;
}

}  // namespace orrery
