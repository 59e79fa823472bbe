// SPDX-License-Identifier: Apache-2.0
// Ends transfers of traces that share the links of a cluster.
#include <fmt/format.h>

#include <array>
#include <deque>
#include <map>
#include <tuple>
#include <unordered_map>

#include "sim/base/errors/check.h"
#include "sim/base/text/words.h"
#include "sim/chakra/transfers.h"
#include "sim/engine/flows/clock.h"
#include "sim/engine/network/alone_price.h"
#include "sim/engine/network/flow_classes.h"

namespace orrery {
namespace {

constexpr std::size_t most_uses = std::size_t{1} << 26;  // of links by flows: 3 GB
constexpr std::size_t nobody = SIZE_MAX;

class FlowTransfers final : public Transfers {
 public:
  FlowTransfers(const TraceGround& ground, const Traces& traces, const TraceProgram& program,
                const Conditions& conditions)
      : ground_(ground),
        program_(program),
        flows_(ground.cluster().fabric, ground.job(), conditions, {.each_rank = true}) {
    for (const auto& group : program.groups) shapes_.push_back(ground.shape(group));
    lay_out(traces);
    clock_.emplace(flows_.table());
    owner_.assign(flows_.table().flows.size(), nobody);
    start_background(flows_.table(), *clock_, {});
  }

  void collective(const Event& tag, std::size_t group, const TraceNode& node, Ticks now) override {
    begin(tag, lane_of(group), group_collective(group, node), now);
  }
  void message(const Event& tag, std::int64_t from, std::int64_t to, double bytes,
               Ticks now) override {
    begin(tag, lane_of(from, to), pair_collective(from, to, bytes), now);
  }
  std::optional<End> next(std::optional<Ticks> until) override;

 private:
  // Where one transfer follows another: a group's communicator, or one rank's sends to another.
  using Lane = std::array<std::int64_t, 2>;
  static Lane lane_of(std::size_t group) { return {-1, static_cast<std::int64_t>(group)}; }
  static Lane lane_of(std::int64_t from, std::int64_t to) { return {from, to}; }
  using Way = std::tuple<Lane, CollectiveKind, CollectiveAlgorithm, CollectiveProtocol>;
  static Way way_of(const Lane& lane, const Collective& c, const CollectiveTime& alone) {
    return {lane, c.kind, alone.algorithm, alone.protocol};
  }
  struct Transfer {
    Event tag;
    Lane lane;
    Collective collective;
    std::size_t left = 0;  // flows that have not ended
  };
  struct Queue {
    bool busy = false;
    std::deque<std::size_t> waiting;
  };

  // NICs are shared by what is under way, not by what could be.
  static Collective by_itself(Collective c) {
    c.group.sharing = 1;
    return c;
  }
  Collective group_collective(std::size_t group, const TraceNode& node) const {
    return by_itself(ground_.collective(node.collective, node.bytes, shapes_[group]));
  }
  Collective pair_collective(std::int64_t from, std::int64_t to, double bytes) const {
    return by_itself(ground_.message(from, to, bytes));
  }
  const CollectiveTime& alone(const Collective& c);
  void lay_out(const Traces& traces);
  void lay(const Lane& lane, std::span<const std::int64_t> ranks, const Collective& c);
  void begin(const Event& tag, const Lane& lane, const Collective& c, Ticks now);
  void start(std::size_t transfer, Ticks now);
  void begin_flows(std::size_t transfer, Ticks now);
  Event end(std::size_t transfer, Ticks now);

  const TraceGround& ground_;
  const TraceProgram& program_;
  FlowGround flows_;
  std::vector<GroupShape> shapes_;
  std::unordered_map<Collective, CollectiveTime, CollectiveHash> alone_;
  std::map<Way, FlowRange> laid_;
  std::optional<FlowClock> clock_;
  std::vector<std::size_t> owner_;  // transfer of a flow that runs
  std::vector<Transfer> transfers_;
  std::vector<std::size_t> free_;  // of transfers_
  std::map<Lane, Queue> lanes_;
  EventQueue begins_;  // of flows, after the latency of their transfer
};

const CollectiveTime& FlowTransfers::alone(const Collective& c) {
  const auto known = alone_.find(c);
  if (known != alone_.end()) return known->second;
  const Cluster& on = ground_.cluster();
  const CollectiveTime time =
      c.group.size < 2 ? CollectiveTime{} : collective_time(c, on.fabric, on.collective_costs);
  return alone_.emplace(c, time).first->second;
}

// Of every lane the flows of all that will run on it: a table of links and flows stays as it is.
void FlowTransfers::lay_out(const Traces& traces) {
  for (std::size_t g = 0; g < program_.groups.size(); ++g) {
    const auto& ranks = program_.groups[g];
    if (ranks.size() < 2) continue;
    const RankTrace& trace = traces.ranks[static_cast<std::size_t>(ranks.front())];
    for (const std::uint32_t i : program_.collectives[g].front())
      lay(lane_of(g), ranks, group_collective(g, trace.nodes[i]));
  }
  for (std::size_t r = 0; r < traces.ranks.size(); ++r)
    for (const TraceNode& node : traces.ranks[r].nodes) {
      if (node.type != TraceNodeType::send) continue;
      const std::array ranks{static_cast<std::int64_t>(r), node.peer};
      lay(ranks, ranks, pair_collective(ranks[0], ranks[1], node.bytes));
    }
}

void FlowTransfers::lay(const Lane& lane, std::span<const std::int64_t> ranks,
                        const Collective& c) {
  const auto [laid, is_new] = laid_.try_emplace(way_of(lane, c, alone(c)));
  if (!is_new) return;
  laid->second = flows_.add_group(ranks, c, alone(c));
  const std::size_t uses = flows_.table().uses.size();
  if (uses > most_uses)
    throw Error({.file = "traces",
                 .found = fmt::format("flows over {} links, counted for each flow", grouped(uses)),
                 .expected = fmt::format("at most {}: fewer ranks, or the ideal network",
                                         grouped(most_uses))});
}

void FlowTransfers::begin(const Event& tag, const Lane& lane, const Collective& c, Ticks now) {
  if (free_.empty()) {
    free_.push_back(transfers_.size());
    transfers_.emplace_back();
  }
  const std::size_t transfer = free_.back();
  free_.pop_back();
  transfers_[transfer] = {.tag = tag, .lane = lane, .collective = c};
  Queue& queue = lanes_[lane];
  if (queue.busy) return queue.waiting.push_back(transfer);
  queue.busy = true;
  start(transfer, now);
}

void FlowTransfers::start(std::size_t transfer, Ticks now) {
  begins_.push(now + flow_latency(alone(transfers_[transfer].collective)),
               {.kind = 0, .a = static_cast<std::int64_t>(transfer), .b = 0});
}

void FlowTransfers::begin_flows(std::size_t transfer, Ticks now) {
  Transfer& t = transfers_[transfer];
  const CollectiveTime& time = alone(t.collective);
  const auto laid = laid_.find(way_of(t.lane, t.collective, time));
  if (laid == laid_.end()) return;  // a rank with itself
  const FlowRange range = laid->second;
  const double bytes = rank_bytes(range, time);
  t.left = range.last - range.first;
  for (FlowIndex f = range.first; f < range.last; ++f) {
    clock_->start(f, bytes * flows_.table().flows[f].bytes, now);
    owner_[f] = transfer;
  }
}

Event FlowTransfers::end(std::size_t transfer, Ticks now) {
  free_.push_back(transfer);
  Queue& queue = lanes_[transfers_[transfer].lane];
  queue.busy = !queue.waiting.empty();
  if (queue.busy) {
    start(queue.waiting.front(), now);
    queue.waiting.pop_front();
  }
  return transfers_[transfer].tag;
}

std::optional<Transfers::End> FlowTransfers::next(std::optional<Ticks> until) {
  while (true) {
    Ticks begin;
    Event event;
    const bool begins = begins_.peek(begin) && (!until || begin <= *until);
    std::optional<Ticks> limit = until;
    if (begins) limit = begin;
    const auto ended = limit ? clock_->next_until(*limit) : clock_->next();
    std::size_t transfer = nobody;
    Ticks time;
    if (ended) {
      time = ended->time;
      transfer = owner_[ended->flow];
      owner_[ended->flow] = nobody;
      --transfers_[transfer].left;
    } else if (begins) {
      begins_.pop(time, event);
      transfer = static_cast<std::size_t>(event.a);
      begin_flows(transfer, time);
    } else {
      return std::nullopt;
    }
    if (transfers_[transfer].left > 0) continue;
    return End{time, end(transfer, time)};
  }
}

}  // namespace

std::unique_ptr<Transfers> flow_transfers(const TraceGround& ground, const Traces& traces,
                                          const TraceProgram& program,
                                          const Conditions& conditions) {
  return std::make_unique<FlowTransfers>(ground, traces, program, conditions);
}

}  // namespace orrery
