// SPDX-License-Identifier: Apache-2.0
// Places gradients and parameters so that they show what the prediction says they show.
#include "sim/chakra/stage_tail.h"

#include <algorithm>
#include <cmath>

#include "sim/engine/step/ending.h"
#include "sim/engine/step/tail.h"

namespace orrery {
namespace {

// Of a kind of buckets that are more, one node stands for several.
constexpr double most_buckets = 1024;

// Which ranks share what the collective moves: its shape tells.
StepGroup group_of(const GroupShape& shape, const Placement& p) {
  const std::pair<const GroupShape&, StepGroup> known[] = {
      {p.data_context, StepGroup::replicas},
      {p.shard, StepGroup::shard},
      {p.shard_replica, StepGroup::shard_replica},
      {p.expert_data, StepGroup::expert_replicas},
      {p.expert_shard, StepGroup::expert_shard},
      {p.expert_shard_replica, StepGroup::expert_shard_replica}};
  for (const auto& [of, group] : known)
    if (of == shape) return group;
  return StepGroup::ends;
}

// What the labels say of all passes of the stage together.
std::array<Ticks, label_count> of_passes(const PricedStep& step, std::int64_t stage) {
  std::array<Ticks, label_count> sum{};
  const Layout& layout = step.asked.layout;
  const std::int64_t times =
      microbatches_a_chunk(layout.schedule, layout.microbatches(step.asked.job));
  for (std::int64_t c = 0; c < step.chunks.per_stage(); ++c) {
    const ChunkTime& t = step.chunks.at(stage, c);
    const bool split = splits_backward(layout.schedule);
    for (std::size_t l = 0; l < sum.size(); ++l) {
      sum[l] += t.forward.label[l] * times;
      sum[l] += split ? (t.input_gradient.label[l] + t.weight_gradient.label[l]) * times
                      : t.backward.label[l] * times;
    }
  }
  return sum;
}

// Starts at this instant of the predicted step: after the last pass that has ended by then.
NodeList begin_at(Seconds instant, const std::string& name, const StagePasses& passes,
                  StageTrace& out) {
  NodeList after;
  Seconds since;
  for (const StagePasses::Ended& pass : passes.ended) {
    if (to_seconds(pass.time) > instant) break;
    after = pass.nodes;
    since = to_seconds(pass.time);
  }
  return out.host(name, instant - since, after);
}

}  // namespace

Seconds StageTail::time_of(const std::vector<Buckets>& all) {
  Seconds sum;
  for (const Buckets& b : all) sum += static_cast<double>(b.count) * b.each.time;
  return sum;
}

// The last buckets, as many as take no longer than this.
std::vector<StageTail::Buckets> StageTail::split_off(std::vector<Buckets>& from, Seconds time) {
  std::vector<Buckets> taken;
  while (!from.empty()) {
    Buckets& last = from.back();
    const double fits = last.each.time > Seconds(0) ? time / last.each.time : 0;
    const auto count = std::min(last.count, static_cast<std::int64_t>(std::floor(fits)));
    if (count > 0) taken.insert(taken.begin(), {.each = last.each, .count = count});
    last.count -= count;
    time = time - static_cast<double>(count) * last.each.time;
    if (last.count > 0) break;
    from.pop_back();
  }
  return taken;
}

NodeIndex StageTail::add(const StepCollective& c, const NodeList& after, StageTrace& out) {
  return out.add({.name = c.name,
                  .type = TraceNodeType::collective,
                  .after = after,
                  .collective = c.kind,
                  .bytes = c.bytes,
                  .group = c.group});
}

NodeList StageTail::chain(const std::vector<Buckets>& buckets, NodeList after, StageTrace& out) {
  for (const Buckets& b : buckets)
    for (std::int64_t i = 0; i < b.count; ++i) after = {add(b.each, after, out)};
  return after;
}

StageTail::StageTail(const PricedStep& step, const StageBreakdown& breakdown, TracePrices& prices,
                     std::int64_t stage) {
  const Placement& placement = step.layers.placement;
  const auto told = [&](const Collective& c, double count) {
    const double nodes = std::clamp(std::round(count), 1.0, most_buckets);
    Collective each = c;
    each.bytes = c.bytes * (count / nodes);
    const StepGroup group = group_of(c.group, placement);
    const bool gathers = c.kind == CollectiveKind::all_gather;
    const char* name = group == StepGroup::ends ? "word table"
                       : gathers                ? "parameters"
                                                : "gradients";
    const StepCollective own = prices.collective(each, group, stage, name);
    if (group == StepGroup::ends)
      tables_.push_back(own);
    else
      (gathers ? early_parameters_ : gradients_)
          .push_back({.each = own, .count = static_cast<std::int64_t>(nodes)});
  };
  list_data_traffic(step, ending_of(step.asked.layout), stage, told);
  const auto in_passes = of_passes(step, stage);
  const auto beyond = [&](Label label) {
    return to_seconds(max(Ticks{}, breakdown[label] - in_passes[static_cast<std::size_t>(label)]));
  };
  // The prediction says what gradients and parameters show together: each shows its part.
  const Seconds gradients = time_of(gradients_), parameters = time_of(early_parameters_);
  const Seconds shown = beyond(Label::data_comm);
  shown_gradients_ =
      gradients > Seconds(0) ? shown * (gradients / (gradients + parameters)) : Seconds(0);
  const Seconds shown_parameters = shown - shown_gradients_;
  late_parameters_ = split_off(early_parameters_, shown_parameters);
  optimizer_ = beyond(Label::optimizer);
  rest_ = beyond(Label::host) + shown_parameters - time_of(late_parameters_);
}

void StageTail::begin(StageTrace& out) { chain(early_parameters_, {}, out); }

void StageTail::end(const StagePasses& passes, StageTrace& out) {
  const StagePasses::Ended& last = passes.ended.back();
  NodeList now = last.nodes;
  if (!gradients_.empty()) {
    const Seconds start = to_seconds(last.time) + shown_gradients_ - time_of(gradients_);
    const NodeList begin =
        begin_at(std::max(Seconds(0), start), "first gradients are complete", passes, out);
    now = now + chain(gradients_, begin, out);
  }
  // Both ends of the model have to be there, which the prediction does not wait for.
  for (const StepCollective& table : tables_) add(table, last.nodes, out);
  now = out.compute("optimizer", optimizer_, now, StageTrace::Span::alone);
  now = chain(late_parameters_, now, out);
  out.host("step's end", rest_, now);
}

}  // namespace orrery
