// SPDX-License-Identifier: Apache-2.0
// Orders the nodes of traces, resolves groups, and finds what cannot run.
#include "sim/chakra/program.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <numeric>
#include <queue>
#include <tuple>
#include <unordered_map>

#include "sim/base/errors/check.h"

namespace orrery {
namespace {

[[noreturn]] void fail(const RankTrace& trace, const TraceNode& node, const std::string& found,
                       const std::string& expected) {
  throw Error({.file = trace.file, .path = node_words(node), .found = found, .expected = expected});
}

void link(const RankTrace& trace, RankProgram& out) {
  std::unordered_map<std::uint64_t, std::uint32_t> index;
  index.reserve(trace.nodes.size());
  for (std::uint32_t i = 0; i < trace.nodes.size(); ++i)
    if (!index.try_emplace(trace.nodes[i].id, i).second)
      fail(trace, trace.nodes[i], "its id a second time", "ids that differ");
  out.waits_for.resize(trace.nodes.size());
  out.waiting.resize(trace.nodes.size());
  for (std::uint32_t i = 0; i < trace.nodes.size(); ++i)
    for (const std::uint64_t id : trace.nodes[i].after) {
      const auto before = index.find(id);
      if (before == index.end())
        fail(trace, trace.nodes[i], fmt::format("a dependency on node {}", id),
             "a node of the trace");
      out.waiting[before->second].push_back(i);
      ++out.waits_for[i];
    }
}

// The first node in the trace's order goes first where several may.
void sort_by_dependencies(const RankTrace& trace, RankProgram& out) {
  std::priority_queue<std::uint32_t, std::vector<std::uint32_t>, std::greater<>> ready;
  std::vector<std::uint32_t> left = out.waits_for;
  for (std::uint32_t i = 0; i < left.size(); ++i)
    if (left[i] == 0) ready.push(i);
  out.place.resize(left.size());
  while (!ready.empty()) {
    const std::uint32_t node = ready.top();
    ready.pop();
    out.place[node] = static_cast<std::uint32_t>(out.order.size());
    out.order.push_back(node);
    for (const std::uint32_t next : out.waiting[node])
      if (--left[next] == 0) ready.push(next);
  }
  if (out.order.size() == left.size()) return;
  // Whoever goes back over nodes that are left goes round in the end.
  const auto is_left = [&](std::uint32_t i) { return left[i] > 0; };
  std::unordered_map<std::uint64_t, std::uint32_t> index;
  std::uint32_t at = 0;
  for (std::uint32_t i = 0; i < left.size(); ++i) index[trace.nodes[i].id] = i;
  while (!is_left(at)) ++at;
  for (std::size_t steps = 0; steps < left.size(); ++steps)
    for (const std::uint64_t id : trace.nodes[at].after)
      if (is_left(index[id])) {
        at = index[id];
        break;
      }
  fail(trace, trace.nodes[at], "dependencies that lead back to it",
       "dependencies without a circle");
}

// Names of groups, as numbers; group 0 is all ranks.
class Groups {
 public:
  Groups(const Traces& traces, TraceProgram& out) : traces_(traces), out_(out) {
    std::vector<std::int64_t> all(traces.ranks.size());
    std::iota(all.begin(), all.end(), 0);
    out_.groups.push_back(all);
    for (const TraceGroup& group : traces.groups) {
      index_[group.name] = static_cast<std::int32_t>(out_.groups.size());
      out_.groups.push_back(group.ranks);
      std::sort(out_.groups.back().begin(), out_.groups.back().end());
    }
    for (const auto& group : out_.groups) out_.collectives.emplace_back(group.size());
  }

  std::int32_t of(const RankTrace& trace, const TraceNode& node) const {
    if (node.group.empty()) return 0;
    const auto known = index_.find(node.group);
    if (known != index_.end()) return known->second;
    if (traces_.groups_file.empty())
      fail(trace, node, "the group " + in_quotes(node.group), "a file of groups (--comm-group)");
    fail(trace, node, "the group " + in_quotes(node.group), "one of " + traces_.groups_file);
  }

  void add(std::int64_t rank, std::uint32_t node, std::int32_t group) {
    const auto g = static_cast<std::size_t>(group);
    const auto& ranks = out_.groups[g];
    const auto at = std::lower_bound(ranks.begin(), ranks.end(), rank);
    const RankTrace& trace = traces_.ranks[static_cast<std::size_t>(rank)];
    if (at == ranks.end() || *at != rank)
      fail(trace, trace.nodes[node], "a group without this rank", "a group of its own");
    out_.collectives[g][static_cast<std::size_t>(at - ranks.begin())].push_back(node);
  }

  // The n-th collective of a group is the same on all its ranks.
  void check() const {
    for (std::size_t g = 0; g < out_.groups.size(); ++g) {
      const auto& lists = out_.collectives[g];
      for (std::size_t r = 1; r < lists.size(); ++r) check(g, lists[0], lists[r], r);
    }
  }

 private:
  void check(std::size_t g, const std::vector<std::uint32_t>& first,
             const std::vector<std::uint32_t>& other, std::size_t r) const {
    const RankTrace& one = traces_.ranks[static_cast<std::size_t>(out_.groups[g][0])];
    const RankTrace& two = traces_.ranks[static_cast<std::size_t>(out_.groups[g][r])];
    const std::size_t both = std::min(first.size(), other.size());
    for (std::size_t i = 0; i < both; ++i) {
      const TraceNode &a = one.nodes[first[i]], &b = two.nodes[other[i]];
      if (a.collective != b.collective || a.bytes != b.bytes)
        fail(two, b, fmt::format("{} of {:.0f} bytes", to_text(b.collective), b.bytes),
             fmt::format("{} of {:.0f} bytes, as {} of {}", to_text(a.collective), a.bytes,
                         node_words(a), one.file));
    }
    if (first.size() == other.size()) return;
    const bool one_more = first.size() > other.size();
    const RankTrace& trace = one_more ? one : two;
    fail(trace, trace.nodes[one_more ? first[both] : other[both]],
         "no collective for it in " + (one_more ? two : one).file,
         "one on every rank of the group");
  }

  const Traces& traces_;
  TraceProgram& out_;
  std::map<std::string, std::int32_t> index_;
};

// As many receives as sends from one rank to another under a tag, and no bytes that differ.
void check_messages(const Traces& traces, const TraceProgram& program) {
  struct Side {
    std::vector<const TraceNode*> sends, receives;
  };
  std::map<std::tuple<std::int64_t, std::int64_t, std::int64_t>, Side> pairs;
  const auto count = static_cast<std::int64_t>(traces.ranks.size());
  for (std::int64_t rank = 0; rank < count; ++rank) {
    const RankTrace& trace = traces.ranks[static_cast<std::size_t>(rank)];
    for (const std::uint32_t i : program.ranks[static_cast<std::size_t>(rank)].order) {
      const TraceNode& node = trace.nodes[i];
      const bool sends = node.type == TraceNodeType::send;
      if (!sends && node.type != TraceNodeType::receive) continue;
      if (node.peer >= count || node.peer == rank)
        fail(trace, node, fmt::format("rank {} as its peer", node.peer),
             fmt::format("another of the {} ranks", count));
      if (sends)
        pairs[{rank, node.peer, node.tag}].sends.push_back(&node);
      else
        pairs[{node.peer, rank, node.tag}].receives.push_back(&node);
    }
  }
  for (const auto& [key, side] : pairs) {
    const auto& [from, to, tag] = key;
    const std::size_t both = std::min(side.sends.size(), side.receives.size());
    if (side.sends.size() > both)
      fail(traces.ranks[static_cast<std::size_t>(from)], *side.sends[both],
           fmt::format("a send that rank {} does not receive", to),
           fmt::format("a COMM_RECV_NODE with comm_tag {} there", tag));
    if (side.receives.size() > both)
      fail(traces.ranks[static_cast<std::size_t>(to)], *side.receives[both],
           fmt::format("a receive that rank {} does not send", from),
           fmt::format("a COMM_SEND_NODE with comm_tag {} there", tag));
  }
}

}  // namespace

std::string node_words(const TraceNode& node) {
  return fmt::format("node {} {}", node.id, in_quotes(node.name));
}

TraceProgram trace_program(const Traces& traces) {
  TraceProgram out;
  Groups groups(traces, out);
  for (std::size_t rank = 0; rank < traces.ranks.size(); ++rank) {
    const RankTrace& trace = traces.ranks[rank];
    RankProgram& program = out.ranks.emplace_back();
    link(trace, program);
    sort_by_dependencies(trace, program);
    program.group.assign(trace.nodes.size(), -1);
    for (const std::uint32_t i : program.order) {
      if (trace.nodes[i].type != TraceNodeType::collective) continue;
      program.group[i] = groups.of(trace, trace.nodes[i]);
      groups.add(static_cast<std::int64_t>(rank), i, program.group[i]);
    }
  }
  groups.check();
  check_messages(traces, out);
  return out;
}

}  // namespace orrery
