// SPDX-License-Identifier: Apache-2.0
// Writes what was found of a candidate as a paragraph.
#include "sim/calibrate/kernel/feedback.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "sim/base/text/words.h"

namespace orrery {
namespace {

bool on_grid(const KernelSpec& spec, const Sizes& shape) {
  constexpr std::int64_t grid = 8;
  // Sizes along which kernels move packs; counts of rows, heads and groups are any.
  const std::set<std::string> packed = {"m", "n", "k", "width", "dim", "queries", "keys"};
  for (std::size_t i = 0; i < shape.size(); ++i)
    if (packed.contains(spec.sizes[i]) && spec.operation != "top-k" && shape[i] % grid != 0)
      return false;
  return true;
}

// A pattern in what fails says where to look.
std::string pattern(const KernelSpec& spec, const std::vector<KernelCase>& cases) {
  std::size_t wrong = 0, wrong_on_grid = 0, right_on_grid = 0;
  std::set<std::string> kinds, right_kinds;
  for (const KernelCase& one : cases) {
    const bool grid = on_grid(spec, one.shape);
    wrong += !one.ok;
    wrong_on_grid += !one.ok && grid;
    right_on_grid += one.ok && grid;
    (one.ok ? right_kinds : kinds).insert(one.data);
  }
  if (wrong_on_grid == 0 && right_on_grid > 0)
    return " Only shapes with a size that is no multiple of 8 fail: look at the tails.";
  if (!kinds.contains("random") && right_kinds.contains("random"))
    return fmt::format(
        " Random data are right, {} data fail: look at range, order of sums and precision, not at "
        "indices.",
        enumeration({kinds.begin(), kinds.end()}));
  if (!kinds.contains("equal") && right_kinds.contains("equal"))
    return " Equal data are right, so that sums have the right length: look at indices or "
           "rounding.";
  return "";
}

std::string of_wrong(const KernelSpec& spec, const KernelJudgement& judgement) {
  const KernelTrial& trial = judgement.trial;
  const auto wrong =
      std::count_if(trial.cases.begin(), trial.cases.end(), [](const auto& c) { return !c.ok; });
  std::string text = "Wrong: ";
  if (wrong > 0) {
    const auto first =
        std::find_if(trial.cases.begin(), trial.cases.end(), [](const auto& c) { return !c.ok; });
    text += fmt::format("{} of {} cases fail. The first: {} with {} data: {}.", wrong,
                        trial.cases.size(), shape_text(spec, first->shape), first->data,
                        first->failure);
    return text + pattern(spec, trial.cases);
  }
  for (const KernelTiming& timing : trial.timed)
    if (!timing.ok)
      return text +
             fmt::format("right where it was checked, but not while it was timed, with {}: {}.",
                         shape_text(spec, timing.shape), timing.failure);
  return text + judgement.wrong + ".";
}

std::string of_shape(const KernelSpec& spec, const ShapeJudgement& s) {
  std::string text =
      fmt::format("{}: {} from memory ({} to {}), {} from the cache", shape_text(spec, s.shape),
                  short_time(s.cold), short_time(s.low), short_time(s.high), short_time(s.warm));
  if (s.present) text += fmt::format("; {} takes {}", s.present_name, short_time(*s.present));
  if (s.limit) {
    const KernelLimit& limit = *s.limit;
    text += fmt::format(
        "; the limit is {} of {}, of which it reaches {}", short_time(limit.seconds),
        limit.memory ? fmt::format("memory for {:.4g} MB", limit.bytes / 1e6)
                     : fmt::format("the tensor units for {:.4g} GFLOP", limit.flop / 1e9),
        percent(limit.seconds / s.cold));
  }
  return text;
}

std::string of_resources(const BuiltKernel& built) {
  const KernelResources& r = built.resources;
  if (r.kernels == 0) return "";
  std::string text = fmt::format(
      " The largest of {} takes {} registers a thread, which lets {} of 64 warps live on a "
      "processor, and {} bytes of static shared memory.",
      plural(r.kernels, "kernel"), r.registers, r.warps(), grouped(r.shared_bytes));
  if (r.spilled_bytes > 0)
    text += fmt::format(" {} bytes spill to memory: use fewer registers or a smaller tile.",
                        r.spilled_bytes);
  return text;
}

// The next thing to try, by what limits.
std::string advice(const KernelJudgement& judgement) {
  const auto worst = std::min_element(
      judgement.shapes.begin(), judgement.shapes.end(), [](const auto& a, const auto& b) {
        return a.limit && b.limit && a.limit->seconds / a.cold < b.limit->seconds / b.cold;
      });
  if (worst == judgement.shapes.end() || !worst->limit) return "";
  const double share = worst->limit->seconds / worst->cold;
  constexpr double near = 0.85, few_us = 5e-6;
  if (worst->cold < few_us) return " So short a kernel is mostly its launch: join it with another.";
  if (share > near) return " Little is left to gain here.";
  if (worst->limit->memory)
    return " Memory limits it: move 16 bytes a thread, read every byte once, and keep more loads "
           "in "
           "flight.";
  return " The tensor units limit it and wait for operands: try larger tiles, more stages of "
         "copies "
         "ahead, or wider instructions of the units.";
}

}  // namespace

std::string short_time(double seconds) {
  if (seconds < 1e-3) return fmt::format("{:.4g} us", 1e6 * seconds);
  return seconds < 1 ? fmt::format("{:.4g} ms", 1e3 * seconds) : fmt::format("{:.4g} s", seconds);
}

std::string kernel_feedback(const KernelSpec& spec, const KernelJudgement& judgement,
                            const KernelMachine* machine) {
  if (!judgement.compiled) return "It does not compile: " + judgement.built.complaint + ".";
  if (judgement.trial.no_device)
    return fmt::format("It compiles; {}.", judgement.trial.failure.empty()
                                               ? "there is no GPU to run it on"
                                               : "it cannot run here: " + judgement.trial.failure) +
           of_resources(judgement.built);
  if (judgement.trial.cases.empty() && judgement.trial.timed.empty())
    return "It compiles and does not start: " + judgement.wrong + ".";
  if (!judgement.correct) return of_wrong(spec, judgement);
  std::string text =
      fmt::format("Right in {}, with errors of at most {:.2f} of the tolerance. ",
                  plural(judgement.trial.cases.size(), "case"), judgement.trial.worst());
  for (std::size_t i = 0; i < judgement.shapes.size(); ++i)
    text += (i > 0 ? ". " : "") + of_shape(spec, judgement.shapes[i]);
  text += ".";
  if (judgement.speed)
    text += fmt::format(" It is {:.3f} times as fast as today ({:.3f} to {:.3f}).",
                        judgement.speed->middle, judgement.speed->low, judgement.speed->high);
  text += of_resources(judgement.built);
  return machine != nullptr ? text + advice(judgement) : text;
}

}  // namespace orrery
