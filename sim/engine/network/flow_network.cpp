// SPDX-License-Identifier: Apache-2.0
// Knows how collectives end on the network as it is wired: shared links, hashing, faults, others.
#include "sim/engine/network/flow_network.h"

#include <algorithm>
#include <bit>
#include <span>

#include "sim/engine/flows/last_end.h"
#include "sim/engine/network/flow_classes.h"
#include "sim/engine/network/flow_memory.h"
#include "sim/engine/network/shared_part.h"

namespace orrery {
namespace {

constexpr std::size_t nobody = SIZE_MAX;

bool crosses(const Collective& collective) { return collective.group.domains > 1; }

// On a better network all stages are as slow as the one with the slowest paths (which one that is
// only the cluster knows); none is faster than that because something else is broken or busy, or
// because domains are farther apart.
void not_below(const CollectiveTime& better, FlowPrice& price) {
  const auto raise = [&](CollectiveTime& time) {
    if (time.time < better.time) time = better;
  };
  raise(price.time);
  for (CollectiveTime& stage : price.by_stage) raise(stage);
}

}  // namespace

FlowNetwork::FlowNetwork(const Fabric& fabric, const CollectiveCosts& costs, const JobGround& job,
                         const Conditions& conditions, const FlowOptions& options,
                         FlowMemory* memory)
    : fabric_(fabric),
      costs_(costs),
      conditions_(conditions),
      memory_(memory),
      options_(options),
      job_(job),
      ground_(std::in_place, fabric, shared_part(job, fabric),
              is_large(job) ? Conditions{} : conditions, options) {}

std::size_t FlowNetwork::instance_for(const Collective& collective, const CollectiveTime& alone) {
  Collective like = collective;
  like.bytes = {};
  const auto rate = [](const CollectiveTime& t, Bytes bytes) {
    return std::bit_cast<std::uint64_t>(t.transfer.si() > 0 ? (bytes / t.transfer).si() : 0.0);
  };
  for (std::size_t i = 0; i < instances_.size(); ++i) {
    const Instance& other = instances_[i];
    if (!other.busy && other.like == like && other.alone.algorithm == alone.algorithm &&
        other.alone.protocol == alone.protocol &&
        rate(other.alone, other.alone.scale_up_bytes) == rate(alone, alone.scale_up_bytes) &&
        rate(other.alone, other.alone.scale_out_bytes) == rate(alone, alone.scale_out_bytes))
      return i;
  }
  FlowRange range;
  if (crosses(collective) && conditions_.background.empty()) {
    const LaidFlows::Laid& laid = part_flows().of(collective, alone);
    range = ground_->add_laid(laid.ground, laid.range);
  } else {
    range = ground_->add(collective, alone);
  }
  instances_.push_back({.like = like, .alone = alone, .range = range});
  return instances_.size() - 1;
}

// Of the part that start() runs, where it is not the whole job.
LaidFlows& FlowNetwork::part_flows() {
  if (!is_large(job_)) return laid_flows();
  if (!part_.laid)
    part_.laid = std::make_unique<LaidFlows>(fabric_, ground_->job(), Conditions{}, options_);
  return *part_.laid;
}

// After its flows began, where nothing else runs or is to begin; nullopt: only a run can tell.
std::optional<Ticks> FlowNetwork::end_alone(const Running& running) {
  const Instance& instance = instances_[running.instance];
  if (!crosses(instance.like) || !conditions_.background.empty()) return std::nullopt;
  for (const EndAlone& known : part_.ends)
    if (known.instance == running.instance && known.bytes == running.bytes) return known.end;
  const LaidFlows::Laid& laid = part_flows().of(instance.like, instance.alone);
  part_.ends.push_back({.instance = running.instance,
                        .bytes = running.bytes,
                        .end = last_end(laid.ground.table(), running.bytes)});
  return part_.ends.back().end;
}

CollectiveId FlowNetwork::start(const Collective& collective, Ticks time) {
  const CollectiveTime alone = collective_time(collective, fabric_, costs_);
  const std::size_t instance =
      instance_for(is_large(job_) ? shared_part(collective) : collective, alone);
  instances_[instance].busy = true;
  counts_.begun = std::max<std::size_t>(counts_.begun, instances_[instance].range.last);
  const CollectiveId id{started_++};
  begins_.push(time + flow_latency(alone),
               {.kind = 0, .a = static_cast<std::int64_t>(running_.size()), .b = 0});
  running_.push_back(
      {.id = id, .instance = instance, .bytes = rank_bytes(instances_[instance].range, alone)});
  return id;
}

// New collectives split classes; what runs goes on in the parts with what it has left.
void FlowNetwork::refold(Ticks now) {
  if (clock_ && counts_.folded == counts_.begun) return;
  note_rates();
  counts_.folded = counts_.begun;
  const std::vector<FlowIndex> old_class = std::move(folded_.flow_class);
  const std::vector<std::size_t> old_owner = std::move(owner_);
  const std::unique_ptr<FlowClock> old_clock = std::move(clock_);
  const FlowTable old_table = std::move(folded_.table);
  const FlowTable& table = ground_->table();
  folded_ = options_.folded ? classes_of(*ground_, guess_ ? guess_->links.of(table) : table)
                            : unfolded(table);
  clock_ = std::make_unique<FlowClock>(folded_.table);
  owner_.assign(folded_.table.flows.size(), nobody);
  start_background(folded_.table, *clock_, now);
  for (Running& r : running_) r.left = 0;
  for (FlowIndex c = 0; c < owner_.size(); ++c) {
    const FlowIndex flow = folded_.representative[c];
    if (flow >= old_class.size()) continue;
    const std::size_t owner = old_owner[old_class[flow]];
    if (owner == nobody) continue;
    // Not its size less what moved: it may be in its second table already.
    clock_->start(c, old_clock->bytes_left(old_class[flow]), now);
    owner_[c] = owner;
    ++running_[owner].left;
  }
}

void FlowNetwork::note_rates() {
  if (!guess_) return;
  std::vector<double>& most = guess_->most_rates;
  most.resize(ground_->table().flows.size(), 0);
  if (!clock_) return;
  for (FlowIndex f = 0; f < folded_.flow_class.size(); ++f)
    most[f] = std::max(most[f], clock_->most_rate(folded_.flow_class[f]));
}

void FlowNetwork::guess_limits() {
  if (!options_.folded) return;
  if (!guess_) guess_.emplace();
  guess_->begun_before = counts_.begun;
  guess_->most_rates.clear();
}

// What was laid out stays; it begins as if it had not.
bool FlowNetwork::missed_limits() {
  note_rates();
  const bool missed = guess_ && guess_->links.missed(ground_->table(), guess_->most_rates);
  if (!missed) return false;
  guess_->most_rates.clear();
  clock_.reset();
  counts_.begun = guess_->begun_before;
  return true;
}

void FlowNetwork::begin_flows(std::size_t running, Ticks now) {
  refold(now);
  Running& r = running_[running];
  for (const FlowIndex f : one_of_each(folded_, instances_[r.instance].range)) {
    const FlowIndex c = folded_.flow_class[f];
    clock_->start(c, r.bytes * ground_->table().flows[f].bytes, now);
    owner_[c] = running;
    ++r.left;
  }
}

std::optional<Completion> FlowNetwork::next_completion() {
  while (true) {
    Ticks begin;
    Event event;
    const bool waits = begins_.peek(begin);
    std::optional<FlowClock::End> end;
    if (clock_) end = waits ? clock_->next_until(begin) : clock_->next();
    std::size_t owner;
    Ticks time;
    if (end) {
      owner = owner_[end->flow];
      owner_[end->flow] = nobody;
      time = end->time;
      --running_[owner].left;
    } else if (waits) {
      begins_.pop(time, event);
      owner = static_cast<std::size_t>(event.a);
      const bool idle = !clock_ || clock_->idle();
      const auto end_here = idle && begins_.empty() ? end_alone(running_[owner]) : std::nullopt;
      if (end_here)
        time += *end_here;
      else
        begin_flows(owner, time);
    } else {
      return std::nullopt;
    }
    if (running_[owner].left > 0) continue;
    instances_[running_[owner].instance].busy = false;
    now_ = time;
    return Completion{.id = running_[owner].id, .time = time};
  }
}

LaidFlows& FlowNetwork::laid_flows() {
  if (memory_ != nullptr && job_.scattered() && conditions_.healthy_network())
    return memory_->place(fabric_, job_, conditions_.seed, options_);
  if (!laid_) laid_ = std::make_unique<LaidFlows>(fabric_, job_, conditions_, options_);
  return *laid_;
}

const FlowPrice& FlowNetwork::details(const Collective& collective) {
  const auto known = memo_.find(collective);
  if (known != memo_.end()) return known->second;
  FlowPrice price =
      options_.ends_only
          ? ends_price(collective, fabric_, costs_, job_, conditions_, options_, laid_flows())
          : flow_price(collective, fabric_, costs_, job_, conditions_, options_);
  if (FlowNetwork* whole = better()) not_below(whole->details(collective).time, price);
  return memo_.emplace(collective, std::move(price)).first->second;
}

FlowNetwork* FlowNetwork::better() {
  const bool healthy = conditions_.healthy_network();
  if (healthy && !job_.scattered()) return nullptr;
  if (better_ != nullptr) return better_;
  const JobGround job = healthy ? job_.side_by_side() : job_;
  if (memory_ != nullptr)
    return better_ = &memory_->network(fabric_, costs_, job, conditions_, options_);
  own_better_ = std::make_unique<FlowNetwork>(fabric_, costs_, job,
                                              Conditions{.seed = conditions_.seed}, options_);
  return better_ = own_better_.get();
}

const TwoStreams* FlowNetwork::known(std::span<const StreamItem> main,
                                     std::span<const StreamItem> side) const {
  const auto like = [&](const Streams& s) {
    return std::equal(s.main.begin(), s.main.end(), main.begin(), main.end()) &&
           std::equal(s.side.begin(), s.side.end(), side.begin(), side.end());
  };
  const auto found = std::find_if(streams_.begin(), streams_.end(), like);
  return found == streams_.end() ? nullptr : &found->took;
}

// Of a scattered job no two networks are alike, and one network is asked once.
void FlowNetwork::remember(std::span<const StreamItem> main, std::span<const StreamItem> side,
                           const TwoStreams& streams) {
  if (memory_ == nullptr || job_.scattered()) return;
  streams_.push_back({{main.begin(), main.end()}, {side.begin(), side.end()}, streams});
  forget_flows();
}

// All have ended; others would only look at their links.
void FlowNetwork::forget_flows() {
  ground_.emplace(fabric_, shared_part(job_, fabric_), is_large(job_) ? Conditions{} : conditions_,
                  options_);
  folded_ = {};
  clock_.reset();
  counts_ = {};
  guess_.reset();
  instances_.clear();
  running_.clear();
  part_.ends.clear();
  owner_.clear();
  begins_ = {};
  now_ = {};
}

const CollectiveTime& FlowNetwork::price(const Collective& collective, std::int64_t stage) {
  const FlowPrice& price = details(collective);
  return price.by_stage.empty() ? price.time : price.by_stage[static_cast<std::size_t>(stage)];
}

}  // namespace orrery
