// SPDX-License-Identifier: Apache-2.0
// Runs ranks node by node: streams, collectives that wait for the last rank, messages.
#include "sim/chakra/replay.h"

#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <functional>
#include <map>
#include <queue>
#include <tuple>

#include "sim/base/errors/check.h"
#include "sim/base/whole.h"
#include "sim/chakra/ground.h"
#include "sim/chakra/program.h"
#include "sim/chakra/transfers.h"
#include "sim/engine/event_queue.h"

namespace orrery {
namespace {

constexpr std::int64_t ticks_a_micro = 1'000'000;

enum EventKind : std::uint32_t { node_ended, collective_ended, message_ended };

// What a kernel takes whose trace says only what it does: the roofline of the device's peaks.
class Roofline {
 public:
  explicit Roofline(const Cluster& cluster) : cluster_(cluster.name) {
    const ResolvedDevice device = cluster.device.resolved();
    const auto rate = [&](Format f) { return device.tensor_rate[static_cast<std::size_t>(f)]; };
    rate_ = rate(Format::bf16) > FlopPerSecond(0) ? rate(Format::bf16) : rate(Format::fp16);
    memory_ = device.memory_bandwidth;
    host_ = device.host_bandwidth;
  }
  Seconds kernel(const TraceNode& n) const {
    return std::max(Flop(n.operations) / rate_, Bytes(n.tensor_bytes) / memory_);
  }
  // Between the device and memory outside of it.
  Seconds transfer(const RankTrace& trace, const TraceNode& n) const {
    if (n.tensor_bytes == 0) return {};
    if (host_ > BytesPerSecond(0)) return Bytes(n.tensor_bytes) / host_;
    throw Error({.file = trace.file,
                 .path = node_words(n),
                 .found = fmt::format("{} without a duration", to_text(n.type)),
                 .expected = fmt::format("one: {} has no known link to its host", cluster_)});
  }

 private:
  std::string cluster_;
  FlopPerSecond rate_;
  BytesPerSecond memory_, host_;
};

// One rank while it runs.
struct RankState {
  std::vector<std::uint32_t> left;  // nodes that a node waits for
  // Kernels that may start, by their place in the order.
  std::priority_queue<std::uint32_t, std::vector<std::uint32_t>, std::greater<>> kernels;
  bool computes = false;
  std::int64_t communicates = 0;             // transfers that go on
  Ticks since;                               // the last change of the two
  std::map<std::int32_t, std::size_t> next;  // collective of a group
  std::vector<bool> ready;                   // of collectives, by node
  std::size_t done = 0;
};

// From one rank to another under one tag: messages that came, and receives that wait for some.
struct Inbox {
  std::int64_t arrived = 0;
  std::deque<std::uint32_t> receives;
};

class Replay {
 public:
  Replay(const Traces& traces, const Cluster& cluster, const ReplayOptions& options);
  ReplayResult run();

 private:
  const TraceNode& node(std::int64_t rank, std::uint32_t i) const {
    return traces_.ranks[at(rank)].nodes[i];
  }

  // Books what the rank did since its state last changed.
  void book(std::int64_t rank);
  void communicate(std::int64_t rank, std::int64_t change);
  bool pop(Event& event);
  Ticks duration(std::int64_t rank, const TraceNode& n);
  void make_ready(std::int64_t rank, std::uint32_t i);
  void start_kernel(std::int64_t rank);
  void end_own(std::int64_t rank, std::uint32_t i);
  void end_node(std::int64_t rank, std::uint32_t i);

  // The rank takes part in a group's next collective if that one may start.
  void join_collective(std::int64_t rank, std::int32_t group);
  const std::vector<std::uint32_t>& own_collectives(std::int64_t rank, std::size_t group) const;
  void end_collective(std::size_t group, std::size_t n);
  void send(std::int64_t rank, std::uint32_t i);
  void end_message(std::int64_t from, std::uint32_t i);
  void receive(std::int64_t rank, std::uint32_t i);
  void deliver(std::int64_t rank, Inbox& inbox);
  void check_all_done() const;
  bool has_ended(std::int64_t rank, std::uint32_t i) const;
  ReplayResult finished();

  const Traces& traces_;
  TraceProgram program_;
  TraceGround ground_;
  Roofline roofline_;
  std::unique_ptr<Transfers> transfers_;
  std::vector<double> speeds_;  // of ranks: shares of their clocks
  std::vector<RankState> states_;
  std::vector<std::vector<std::size_t>> arrived_;  // [group][collective]: ranks that are there
  std::map<std::tuple<std::int64_t, std::int64_t, std::int64_t>, Inbox> inboxes_;
  EventQueue queue_;
  Ticks now_;
  ReplayResult result_;
};

Replay::Replay(const Traces& traces, const Cluster& cluster, const ReplayOptions& options)
    : traces_(traces),
      program_(trace_program(traces)),
      ground_(cluster, static_cast<std::int64_t>(traces.ranks.size()), traces.ranks_per_domain),
      roofline_(cluster) {
  for (const auto& group : program_.groups) ground_.add_group(group);
  transfers_ = options.network == NetworkMode::flow
                   ? flow_transfers(ground_, traces_, program_, options.conditions)
                   : ideal_transfers(ground_, program_);
  speeds_.assign(traces.ranks.size(), 1);
  for (std::size_t r = 0; r < speeds_.size(); ++r)
    for (const SlowGpu& slow : options.conditions.slow_gpus)
      if (slow.gpu == ground_.accelerator(static_cast<std::int64_t>(r)))
        speeds_[r] = std::min(speeds_[r], slow.speed);
  arrived_.resize(program_.groups.size());
  result_.ranks.resize(traces.ranks.size());
  states_.resize(traces.ranks.size());
  for (std::size_t r = 0; r < states_.size(); ++r) {
    states_[r].left = program_.ranks[r].waits_for;
    states_[r].ready.assign(states_[r].left.size(), false);
  }
}

// Transfers that end come before what else happens at their time.
bool Replay::pop(Event& event) {
  Ticks other;
  const bool has_other = queue_.peek(other);
  if (const auto end = transfers_->next(has_other ? std::optional(other) : std::nullopt)) {
    now_ = end->time;
    event = end->tag;
    return true;
  }
  return queue_.pop(now_, event);
}

ReplayResult Replay::run() {
  for (std::int64_t r = 0; r < static_cast<std::int64_t>(states_.size()); ++r) {
    const RankProgram& program = program_.ranks[at(r)];
    for (const std::uint32_t node : program.order)
      if (program.waits_for[node] == 0) make_ready(r, node);
    start_kernel(r);
  }
  Event event;
  while (pop(event)) {
    switch (static_cast<EventKind>(event.kind)) {
      case node_ended:
        end_own(event.a, static_cast<std::uint32_t>(event.b));
        break;
      case collective_ended:
        end_collective(at(event.a), at(event.b));
        break;
      case message_ended:
        end_message(event.a, static_cast<std::uint32_t>(event.b));
        break;
    }
  }
  check_all_done();
  return finished();
}

void Replay::book(std::int64_t rank) {
  RankState& s = states_[at(rank)];
  RankReplay& r = result_.ranks[at(rank)];
  const Ticks span = now_ - s.since;
  if (s.computes) r.compute += span;
  if (s.communicates > 0) r.communication += span;
  if (s.communicates > 0 && !s.computes) r.exposed += span;
  s.since = now_;
}

void Replay::communicate(std::int64_t rank, std::int64_t change) {
  book(rank);
  states_[at(rank)].communicates += change;
}

Ticks Replay::duration(std::int64_t rank, const TraceNode& n) {
  const bool is_kernel = n.type == TraceNodeType::compute && !n.on_host;
  const double speed = is_kernel ? speeds_[at(rank)] : 1;
  const auto slowed = [&](Ticks t) { return speed < 1 ? to_ticks(to_seconds(t) / speed) : t; };
  if (n.micros > 0) return slowed(Ticks{static_cast<std::int64_t>(n.micros)} * ticks_a_micro);
  if (n.on_host) return {};
  const bool loads = n.type == TraceNodeType::load || n.type == TraceNodeType::store;
  if (n.operations > 0 || n.tensor_bytes > 0) ++result_.modelled;
  return slowed(
      to_ticks(loads ? roofline_.transfer(traces_.ranks[at(rank)], n) : roofline_.kernel(n)));
}

void Replay::make_ready(std::int64_t rank, std::uint32_t i) {
  const TraceNode& n = node(rank, i);
  switch (n.type) {
    case TraceNodeType::invalid:
    case TraceNodeType::metadata:
      queue_.push(now_, {node_ended, rank, i});
      return;
    case TraceNodeType::load:
    case TraceNodeType::store:
      queue_.push(now_ + duration(rank, n), {node_ended, rank, i});
      return;
    case TraceNodeType::compute:
      if (n.on_host)
        queue_.push(now_ + duration(rank, n), {node_ended, rank, i});
      else
        states_[at(rank)].kernels.push(program_.ranks[at(rank)].place[i]);
      return;
    case TraceNodeType::collective:
      states_[at(rank)].ready[i] = true;
      join_collective(rank, program_.ranks[at(rank)].group[i]);
      return;
    case TraceNodeType::send:
      send(rank, i);
      return;
    case TraceNodeType::receive:
      receive(rank, i);
      return;
  }
}

void Replay::start_kernel(std::int64_t rank) {
  RankState& s = states_[at(rank)];
  if (s.computes || s.kernels.empty()) return;
  const std::uint32_t i = program_.ranks[at(rank)].order[s.kernels.top()];
  s.kernels.pop();
  book(rank);
  s.computes = true;
  queue_.push(now_ + duration(rank, node(rank, i)), {node_ended, rank, i});
}

void Replay::end_own(std::int64_t rank, std::uint32_t i) {
  const TraceNode& n = node(rank, i);
  if (n.type == TraceNodeType::compute && !n.on_host) {
    book(rank);
    states_[at(rank)].computes = false;
  }
  end_node(rank, i);
}

void Replay::end_node(std::int64_t rank, std::uint32_t i) {
  RankState& s = states_[at(rank)];
  ++s.done;
  result_.ranks[at(rank)].end = max(result_.ranks[at(rank)].end, now_);
  for (const std::uint32_t next : program_.ranks[at(rank)].waiting[i])
    if (--s.left[next] == 0) make_ready(rank, next);
  start_kernel(rank);
}

void Replay::join_collective(std::int64_t rank, std::int32_t group) {
  RankState& s = states_[at(rank)];
  const std::size_t g = static_cast<std::size_t>(group), n = s.next[group];
  const auto& list = own_collectives(rank, g);
  if (n >= list.size() || !s.ready[list[n]]) return;
  if (arrived_[g].size() <= n) arrived_[g].resize(n + 1);
  s.ready[list[n]] = false;  // it is there, once
  if (++arrived_[g][n] < program_.groups[g].size()) return;
  const TraceNode& one = node(rank, list[n]);
  for (const std::int64_t r : program_.groups[g]) communicate(r, 1);
  transfers_->collective({collective_ended, group, static_cast<std::int64_t>(n)}, g, one, now_);
}

const std::vector<std::uint32_t>& Replay::own_collectives(std::int64_t rank,
                                                          std::size_t group) const {
  const auto& ranks = program_.groups[group];
  const auto place = std::lower_bound(ranks.begin(), ranks.end(), rank) - ranks.begin();
  return program_.collectives[group][at(place)];
}

void Replay::end_collective(std::size_t group, std::size_t n) {
  ++result_.collectives;
  const auto g = static_cast<std::int32_t>(group);
  for (const std::int64_t r : program_.groups[group]) {
    communicate(r, -1);
    ++states_[at(r)].next[g];
  }
  for (const std::int64_t r : program_.groups[group]) {
    end_node(r, own_collectives(r, group)[n]);
    join_collective(r, g);
  }
}

void Replay::send(std::int64_t rank, std::uint32_t i) {
  const TraceNode& n = node(rank, i);
  communicate(rank, 1);
  communicate(n.peer, 1);
  transfers_->message({message_ended, rank, i}, rank, n.peer, n.bytes, now_);
}

void Replay::end_message(std::int64_t from, std::uint32_t i) {
  ++result_.messages;
  const TraceNode& n = node(from, i);
  communicate(from, -1);
  communicate(n.peer, -1);
  Inbox& inbox = inboxes_[{from, n.peer, n.tag}];
  ++inbox.arrived;
  end_node(from, i);
  deliver(n.peer, inbox);
}

void Replay::receive(std::int64_t rank, std::uint32_t i) {
  const TraceNode& n = node(rank, i);
  Inbox& inbox = inboxes_[{n.peer, rank, n.tag}];
  inbox.receives.push_back(i);
  deliver(rank, inbox);
}

void Replay::deliver(std::int64_t rank, Inbox& inbox) {
  if (inbox.arrived == 0 || inbox.receives.empty()) return;
  const std::uint32_t i = inbox.receives.front();
  inbox.receives.pop_front();
  --inbox.arrived;
  queue_.push(now_, {node_ended, rank, i});
}

void Replay::check_all_done() const {
  for (std::size_t r = 0; r < states_.size(); ++r) {
    const RankProgram& program = program_.ranks[r];
    if (states_[r].done == program.order.size()) continue;
    const RankTrace& trace = traces_.ranks[r];
    for (const std::uint32_t i : program.order) {
      const TraceNodeType type = trace.nodes[i].type;
      const bool stuck = states_[r].left[i] == 0 &&
                         (type == TraceNodeType::receive || type == TraceNodeType::collective);
      if (!stuck || has_ended(static_cast<std::int64_t>(r), i)) continue;
      throw Error({.file = trace.file,
                   .path = node_words(trace.nodes[i]),
                   .found = "ranks that wait for each other",
                   .expected = "collectives and messages in the same order on all ranks"});
    }
  }
}

bool Replay::has_ended(std::int64_t rank, std::uint32_t i) const {
  const TraceNode& n = node(rank, i);
  if (n.type == TraceNodeType::receive) {
    const auto inbox = inboxes_.find({n.peer, rank, n.tag});
    const auto& waiting = inbox->second.receives;
    return std::find(waiting.begin(), waiting.end(), i) == waiting.end();
  }
  const std::int32_t group = program_.ranks[at(rank)].group[i];
  const auto& list = own_collectives(rank, static_cast<std::size_t>(group));
  const auto next = states_[at(rank)].next.find(group);
  const std::size_t done = next == states_[at(rank)].next.end() ? 0 : next->second;
  return std::find(list.begin(), list.begin() + static_cast<std::ptrdiff_t>(done), i) !=
         list.begin() + static_cast<std::ptrdiff_t>(done);
}

ReplayResult Replay::finished() {
  for (const RankReplay& r : result_.ranks) result_.step = max(result_.step, r.end);
  for (std::size_t i = 0; i < result_.ranks.size(); ++i) {
    RankReplay& r = result_.ranks[i];
    r.idle = result_.step - r.compute - r.exposed;
    if (r.compute > result_.ranks[at(result_.slowest)].compute)
      result_.slowest = static_cast<std::int64_t>(i);
    result_.nodes += static_cast<std::int64_t>(traces_.ranks[i].nodes.size());
  }
  return std::move(result_);
}

}  // namespace

ReplayResult replay(const Traces& traces, const Cluster& cluster, const ReplayOptions& options) {
  return Replay(traces, cluster, options).run();
}

}  // namespace orrery
