// SPDX-License-Identifier: Apache-2.0
// Puts a step's breakdown and the differences between layouts into sentences.
#include "sim/explain/explain.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include <fmt/format.h>

#include "sim/base/sorting.h"
#include "sim/base/text/words.h"

namespace orrery {

namespace {

std::string setting(Label label, const Layout& layout, const Job& job) {
  switch (label) {
    case Label::bubble: {
      const std::string chunks =
          layout.vpp > 1 ? fmt::format(" of {} chunks", layout.vpp) : std::string();
      return fmt::format(", from {} stages{} and {} microbatches", layout.pp, chunks,
                         layout.microbatches(job));
    }
    case Label::recompute:
      return fmt::format(", {} recompute", to_text(layout.recompute_choice()));
    case Label::tensor_comm:
      return fmt::format(", over TP{}", layout.tp);
    case Label::context_comm:
      return fmt::format(", over CP{}", layout.cp);
    case Label::expert_comm:
      return fmt::format(", over EP{}", layout.ep);
    case Label::data_comm:
      return fmt::format(", ZeRO-{} over {} ranks", layout.zero_stage, layout.dense_replicas());
    case Label::pipeline_comm:
      return fmt::format(", between {} stages", layout.pp);
    default:
      return {};
  }
}

std::vector<Label> largest_losses(const StageBreakdown& time) {
  std::vector<Label> losses;
  for (int i = 0; i < label_count; ++i) {
    const Label label = static_cast<Label>(i);
    if (!is_useful(label) && time[label].ps > 0) losses.push_back(label);
  }
  sort_stably(losses, [&](Label a, Label b) { return time[a] > time[b]; });
  return losses;
}

double share_percent(Ticks part, Ticks whole) {
  return whole.ps > 0 ? 100 * static_cast<double>(part.ps) / static_cast<double>(whole.ps) : 0;
}

// Two digits, without an exponent.
std::string percent_text(double percent) {
  return percent < 10 ? fmt::format("{:.2g}", percent) : fmt::format("{:.0f}", percent);
}

std::string context_text(const Layout& layout) {
  if (layout.context_inner == 0) return std::string(to_text(layout.context));
  return fmt::format("{} ({})", to_text(layout.context), layout.context_inner);
}

std::string sharding(const Layout& layout) {
  if (layout.shard_group == 0) return fmt::format("ZeRO-{}", layout.zero_stage);
  return fmt::format("ZeRO-{} in groups of {}", layout.zero_stage, layout.shard_group);
}

std::string recompute_text(const Layout& layout) {
  if (layout.recompute != Recompute::full || layout.recompute_layers == 0)
    return to_text(layout.recompute_choice());
  return fmt::format("full ({} {} a stage)", layout.recompute_layers,
                     layout.recompute_layers == 1 ? "layer" : "layers");
}

std::string moved_text(const Layout& layout) {
  std::string text = offload_text(layout);
  return text.empty() ? "nothing" : text;
}

std::string bucket_text(const Layout& layout) {
  return layout.bucket > Bytes(0) ? to_text(layout.bucket) : "the stack's";
}

// What is told of two layouts that agree in all else.
std::vector<std::string> small_differences(const Layout& best, const Layout& other) {
  std::vector<std::string> parts;
  if (best.stage_layers != other.stage_layers)
    parts.push_back(fmt::format("{} layers on the first and last stage",
                                other.stage_layers.empty() ? "as many" : "other numbers of"));
  if (best.per_domain != other.per_domain)
    parts.emplace_back("another number of accelerators used of a domain");
  if (best.bucket != other.bucket)
    parts.push_back(
        fmt::format("buckets of {} in place of {}", bucket_text(other), bucket_text(best)));
  return parts;
}

// Where stages are uneven, most of a mean stage's bubble is no fault of the schedule.
std::string waiting(Ticks bubble, Ticks of_schedule) {
  const Ticks rest = bubble - of_schedule;
  if (10 * rest.ps < bubble.ps) return "";
  return fmt::format(": {} in the schedule, {} waiting for the stage with most work",
                     to_text(to_seconds(of_schedule)), to_text(to_seconds(rest)));
}

// dp is left out: it is what the other dimensions leave.
std::vector<std::string> different_decisions(const Layout& best, const Layout& other) {
  std::vector<std::string> parts;
  const auto size = [&parts](const char* name, std::int64_t was, std::int64_t is) {
    if (was != is) parts.push_back(fmt::format("{}{} in place of {}{}", name, is, name, was));
  };
  const auto word = [&parts](std::string_view was, std::string_view is, std::string_view what) {
    if (was != is) parts.push_back(fmt::format("{}{} in place of {}", is, what, was));
  };
  size("TP", best.tp, other.tp);
  size("CP", best.cp, other.cp);
  size("PP", best.pp, other.pp);
  size("EP", best.ep, other.ep);
  size("ETP", best.etp, other.etp);
  word(to_text(best.schedule), to_text(other.schedule), "");
  size("VPP", best.vpp, other.vpp);
  size("MB", best.micro_batch, other.micro_batch);
  word(sharding(best), sharding(other), "");
  const std::string again = recompute_text(other);
  if (again != recompute_text(best))
    word(recompute_text(best), again == "none" ? "no" : again, " recompute");
  word(moved_text(best), moved_text(other), " offloaded");
  word(to_text(best.precision), to_text(other.precision), "");
  word(to_text(best.optimizer), to_text(other.optimizer), "");
  if (best.rank_order != other.rank_order)
    parts.push_back(fmt::format("ranks {} in place of {}", to_text(other.rank_order),
                                to_text(best.rank_order)));
  if (best.cp > 1 && other.cp > 1)
    word(context_text(best), context_text(other), " context exchange");
  if (best.tp > 1 && other.tp > 1 && best.sequence_parallel != other.sequence_parallel)
    parts.push_back(
        fmt::format("{} sequence parallelism", other.sequence_parallel ? "with" : "without"));
  if (parts.empty()) return small_differences(best, other);
  return parts;
}

std::string signed_text(std::int64_t ps) {
  const Seconds size(std::abs(static_cast<double>(ps)) * 1e-12);
  return fmt::format("{}{}", ps < 0 ? "-" : "+", to_text(size));
}

// The three largest changes; those below a twentieth of the largest say nothing.
std::vector<std::string> largest_changes(const StageBreakdown& from, const StageBreakdown& to) {
  std::vector<std::pair<std::int64_t, Label>> changes;
  for (int i = 0; i < label_count; ++i) {
    const Label label = static_cast<Label>(i);
    const std::int64_t change = to[label].ps - from[label].ps;
    if (change != 0) changes.push_back({change, label});
  }
  sort_stably(changes,
              [](const auto& a, const auto& b) { return std::abs(a.first) > std::abs(b.first); });
  std::vector<std::string> texts;
  for (const auto& [change, label] : changes) {
    if (texts.size() == 3 || std::abs(change) * 20 < std::abs(changes.front().first)) break;
    texts.push_back(fmt::format("{} {}", signed_text(change), phrase(label)));
  }
  return texts;
}

}  // namespace

StageBreakdown mean_breakdown(const StepResult& result) {
  StageBreakdown mean;
  const auto stages = static_cast<double>(std::max<std::size_t>(1, result.stages.size()));
  for (std::size_t i = 0; i < label_count; ++i) {
    double sum = 0;  // of many stages: could pass int64 picoseconds
    for (const StageBreakdown& stage : result.stages) sum += static_cast<double>(stage.label[i].ps);
    mean.label[i] = {std::llround(sum / stages)};
  }
  return mean;
}

Ticks least_bubble(const StepResult& result) {
  Ticks least = result.stages.empty() ? Ticks{} : result.stages.front()[Label::bubble];
  for (const StageBreakdown& stage : result.stages)
    if (stage[Label::bubble] < least) least = stage[Label::bubble];
  return least;
}

std::string explain_limit(const Layout& layout, const Job& job, const StageBreakdown& time,
                          std::optional<Ticks> schedule_bubble) {
  const Ticks whole = time.total();
  Ticks useful;
  for (int i = 0; i < label_count; ++i)
    if (is_useful(static_cast<Label>(i))) useful += time[static_cast<Label>(i)];
  std::string text = fmt::format("The model's own compute takes {:.1f}% of the step ({} of {}).",
                                 share_percent(useful, whole), to_text(to_seconds(useful)),
                                 to_text(to_seconds(whole)));
  const std::vector<Label> losses = largest_losses(time);
  if (losses.empty()) return text;
  const auto part = [&](Label label) {
    return fmt::format(
        "{}, {:.1f}% ({}{}{})", phrase(label), share_percent(time[label], whole),
        to_text(to_seconds(time[label])), setting(label, layout, job),
        label == Label::bubble && schedule_bubble ? waiting(time[label], *schedule_bubble) : "");
  };
  text += fmt::format(" The largest loss is {}", part(losses[0]));
  if (losses.size() > 1) text += fmt::format("; next comes {}", part(losses[1]));
  return text + ".";
}

std::string explain_difference(const Layout& best, const StageBreakdown& best_time,
                               const Layout& other, const StageBreakdown& other_time) {
  const std::vector<std::string> decisions = different_decisions(best, other);
  const std::int64_t change = other_time.total().ps - best_time.total().ps;
  std::string text = decisions.empty() ? "the same decisions" : joined(decisions, ", ");
  if (change == 0)
    text += ": equally fast";
  else
    text += fmt::format(": {}% {} ({})",
                        percent_text(std::abs(share_percent({change}, best_time.total()))),
                        change > 0 ? "slower" : "less time", signed_text(change));
  const std::vector<std::string> changes = largest_changes(best_time, other_time);
  if (!changes.empty()) text += fmt::format(": {}", joined(changes, ", "));
  return text + ".";
}

std::string explain_nothing(std::int64_t considered, const std::string& nearest_miss,
                            std::int64_t invalid, const std::string& invalid_example) {
  if (considered > 0)
    return fmt::format("No valid layout fits in memory. The nearest: {}", nearest_miss);
  if (invalid == 1) return fmt::format("The one layout is not valid: {}", invalid_example);
  if (invalid > 0)
    return fmt::format("None of {} layouts is valid. The first: {}", invalid, invalid_example);
  return "The limits leave no layout to search.";
}

}  // namespace orrery
