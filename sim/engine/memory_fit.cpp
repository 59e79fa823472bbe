// SPDX-License-Identifier: Apache-2.0
// Judges whether a layout fits and says why not, with sizes.
#include "sim/engine/memory_fit.h"

#include <algorithm>
#include <array>
#include <cmath>

#include <fmt/format.h>

#include "sim/base/statistics.h"
#include "sim/base/text/enum_names.h"

namespace orrery {
namespace {

using C = MemoryCategory;

double rounding_of(const Stack& stack) {
  return stack.memory.allocator_rounding.known()
             ? std::max(stack.memory.allocator_rounding.get(), 1.0)
             : 1.0;
}

Bytes context_of(const Stack& stack) {
  return stack.memory.context.known() ? stack.memory.context.get() : Bytes();
}

std::vector<StageMemory> memory_of(const Model& model, const Job& job, const Layout& layout,
                                   const Stack& stack) {
  return is_training(job.task) ? training_memory(model, job, layout, stack)
                               : inference_memory(model, job, layout, stack);
}

std::size_t worst_of(const std::vector<StageMemory>& stages) {
  std::size_t worst = 0;
  for (std::size_t s = 1; s < stages.size(); ++s)
    if (stages[s].peak() > stages[worst].peak()) worst = s;
  return worst;
}

// Up to three largest categories with their sizes.
std::string largest_categories(const StageMemory& m) {
  std::array<int, memory_category_count> order{};
  for (int i = 0; i < memory_category_count; ++i) order[static_cast<std::size_t>(i)] = i;
  std::stable_sort(order.begin(), order.end(),
                   [&](int a, int b) { return m[static_cast<C>(a)] > m[static_cast<C>(b)]; });
  std::string text;
  for (std::size_t i = 0; i < 3; ++i) {
    const C category = static_cast<C>(order[i]);
    if (m[category].si() <= 0) break;
    text +=
        fmt::format("{}{} {}", text.empty() ? "" : ", ", to_text(category), to_text(m[category]));
  }
  return text;
}

// What one change of the layout would take off the worst stage, the best of a few.
std::string remedy(const Model& model, const Job& job, const Layout& layout, const Stack& stack,
                   Bytes peak) {
  if (!is_training(job.task)) return "";
  std::string best;
  Bytes saved = gibibytes(0.05);  // less is not worth a word
  const auto attempt = [&](const Layout& changed, const char* name) {
    const auto stages = training_memory(model, job, changed, stack);
    const Bytes gain = peak - stages[worst_of(stages)].peak();
    if (gain <= saved) return;
    saved = gain;
    best = fmt::format("; {} would save {}", name, to_text(gain));
  };
  Layout changed = layout;
  if (layout.recompute != Recompute::full || layout.recompute_layers > 0) {
    changed.recompute = Recompute::full;
    changed.recompute_layers = 0;
    attempt(changed, "full recompute");
  }
  changed = layout;
  if (layout.zero_stage == 0 && layout.dense_replicas() > 1) {
    changed.zero_stage = 1;
    attempt(changed, "sharding the optimizer (ZeRO-1)");
  }
  changed = layout;
  if (layout.micro_batch > 1) {
    changed.micro_batch = 1;
    attempt(changed, "a microbatch of one sequence");
  }
  return best;
}

bool host_holds(Bytes offloaded, const ResolvedDevice& device) {
  return device.host_memory <= Bytes(0) || offloaded <= device.host_memory;
}

// Whether `also` holds too of every stage whose accelerator holds it.
template <class Also>
bool all_hold(const Model& model, const Job& job, const Layout& layout, const Stack& stack,
              const ResolvedDevice& device, Also&& also) {
  const double rounding = rounding_of(stack);
  const Bytes free = device.memory_capacity - context_of(stack);
  const auto holds = [&](const StageMemory& m) { return m.peak() * rounding <= free && also(m); };
  if (is_training(job.task)) return every_training_stage(model, job, layout, stack, holds);
  const std::vector<StageMemory> stages = inference_memory(model, job, layout, stack);
  return std::all_of(stages.begin(), stages.end(), holds);
}

// Fills range, probability and standing from what the verdict holds already.
void judge(MemoryVerdict& v, const Stack& stack) {
  const double used = rounding_of(stack);
  const double low = std::clamp(stack.memory.allocator_rounding.low.value_or(used), 1.0, used);
  const double high = std::max(stack.memory.allocator_rounding.high.value_or(used), used);
  const Bytes context = context_of(stack);
  const Bytes least = std::min(stack.memory.context.low.value_or(context), context);
  const Bytes most = std::max(stack.memory.context.high.value_or(context), context);
  // Ends of three independent ranges meet seldom: their distances add as squares.
  const auto joined = [](Bytes a, Bytes b, Bytes c) {
    return Bytes(std::hypot(a.si(), b.si(), c.si()));
  };
  const Bytes error = v.peak * peak_error;
  v.needed_low = v.needed - joined(error, v.peak * (used - low), context - least);
  v.needed_high = v.needed + joined(error, v.peak * (high - used), most - context);
  const Bytes away = v.capacity - v.needed;
  const Bytes width = away.si() < 0 ? v.needed - v.needed_low : v.needed_high - v.needed;
  const double deviations =
      width.si() > 0 ? normal_95 * (away / width) : (away.si() < 0 ? -10.0 : 10.0);
  v.probability = 0.5 * std::erfc(-deviations / std::sqrt(2.0));
  v.standing = v.capacity < v.needed_low    ? MemoryStanding::does_not_fit
               : v.capacity < v.needed_high ? MemoryStanding::near_limit
                                            : MemoryStanding::fits;
}

}  // namespace

std::string_view to_text(MemoryStanding standing) {
  constexpr auto words = enum_names<MemoryStanding>({"fits", "near the limit", "does not fit"});
  return words[standing];
}

MemoryVerdict memory_fit(const Model& model, const Job& job, const Layout& layout,
                         const Stack& stack, const ResolvedDevice& device) {
  MemoryVerdict v;
  v.stages = memory_of(model, job, layout, stack);
  CHECK_THAT(!v.stages.empty(), "a layout has at least one stage");
  const double rounding = rounding_of(stack);
  const std::size_t worst = worst_of(v.stages);
  for (StageMemory& m : v.stages) m[C::fragmentation] = m.peak() * (rounding - 1);
  v.worst_stage = static_cast<std::int64_t>(worst);
  v.peak = v.stages[worst].peak();
  v.reserved = v.peak * rounding;
  v.needed = v.reserved + context_of(stack);
  v.capacity = device.memory_capacity;
  for (const StageMemory& m : v.stages) v.host = std::max(v.host, m.offloaded);
  v.margin = v.needed.si() > 0 ? v.capacity / v.needed - 1 : 0;
  judge(v, stack);
  v.fits = v.needed <= v.capacity;
  if (!v.fits)
    v.reason =
        fmt::format("stage {} needs {:.1f} GiB of {:.1f} GiB: {}{}", worst, in_gibibytes(v.needed),
                    in_gibibytes(v.capacity), largest_categories(v.stages[worst]),
                    remedy(model, job, layout, stack, v.peak));
  if (host_holds(v.host, device)) return v;
  if (v.fits)
    v.reason =
        fmt::format("{:.0f} GiB are offloaded to a host's memory, a rank's share is {:.0f} GiB",
                    in_gibibytes(v.host), in_gibibytes(device.host_memory));
  v.margin = std::min(v.margin, device.host_memory / v.host - 1);
  v.fits = false;
  v.probability = 0;
  v.standing = MemoryStanding::does_not_fit;
  return v;
}

bool accelerator_fits(const Model& model, const Job& job, const Layout& layout, const Stack& stack,
                      const ResolvedDevice& device) {
  return all_hold(model, job, layout, stack, device, [](const StageMemory&) { return true; });
}

bool memory_fits(const Model& model, const Job& job, const Layout& layout, const Stack& stack,
                 const ResolvedDevice& device) {
  return all_hold(model, job, layout, stack, device,
                  [&](const StageMemory& m) { return host_holds(m.offloaded, device); });
}

}  // namespace orrery
