// SPDX-License-Identifier: Apache-2.0
// Knows what an execution trace holds: the nodes of every rank, and the groups of ranks that
// communicate.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "sim/base/text/enum_names.h"

namespace orrery {

// As the schema counts them.
enum class TraceNodeType : std::uint8_t {
  invalid,  // takes no time, as in ASTRA-sim
  metadata,
  load,
  store,
  compute,
  send,
  receive,
  collective,
};
inline constexpr auto trace_node_text =
    enum_names<TraceNodeType>({"INVALID_NODE", "METADATA_NODE", "MEM_LOAD_NODE", "MEM_STORE_NODE",
                               "COMP_NODE", "COMM_SEND_NODE", "COMM_RECV_NODE", "COMM_COLL_NODE"});
constexpr std::string_view to_text(TraceNodeType t) { return trace_node_text[t]; }

enum class TraceCollective : std::uint8_t {
  all_reduce,
  reduce,
  all_gather,
  gather,
  scatter,
  broadcast,
  all_to_all,
  reduce_scatter,
  reduce_scatter_block,
  barrier,
};
inline constexpr auto trace_collective_text = enum_names<TraceCollective>(
    {"ALL_REDUCE", "REDUCE", "ALL_GATHER", "GATHER", "SCATTER", "BROADCAST", "ALL_TO_ALL",
     "REDUCE_SCATTER", "REDUCE_SCATTER_BLOCK", "BARRIER"});
constexpr std::string_view to_text(TraceCollective c) { return trace_collective_text[c]; }

struct TraceNode {
  std::uint64_t id = 0;
  std::string name;
  TraceNodeType type = TraceNodeType::compute;
  std::vector<std::uint64_t> after;  // ids of nodes that end before it starts
  std::uint64_t micros = 0;          // duration; 0: not recorded
  bool on_host = false;              // is_cpu_op
  double operations = 0;             // num_ops: FLOP
  double tensor_bytes = 0;           // tensor_size: bytes that move to and from memory
  // Of communication. Bytes as ASTRA-sim counts them: what a rank has before (all-gather: its own
  // part; all-to-all: all that it sends, its own part included).
  TraceCollective collective = TraceCollective::all_reduce;
  double bytes = 0;
  std::string group;       // pg_name; empty: all ranks
  std::string inputs;      // of metadata: what PyTorch says of its groups
  std::int64_t peer = -1;  // of a send its receiver, of a receive its sender
  std::int64_t tag = 0;
};

// What one file holds.
struct RankTrace {
  std::string file;  // for messages
  std::vector<TraceNode> nodes;
};

struct TraceGroup {
  std::string name;
  std::vector<std::int64_t> ranks;
};

struct Traces {
  std::vector<RankTrace> ranks;  // by rank
  std::vector<TraceGroup> groups;
  std::string groups_file;            // for messages; empty: none was read
  std::int64_t ranks_per_domain = 0;  // accelerators used in a scale-up domain; 0: all of them
};

}  // namespace orrery
