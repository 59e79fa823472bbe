// SPDX-License-Identifier: Apache-2.0
// Says what the host of a stack does for a step: dispatches, synchronisations, waits.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "sim/base/text/enum_names.h"
#include "workloads/layout/layout.h"
#include "workloads/stack/unstated.h"

namespace orrery {

// How kernels reach the device.
enum class LaunchMode : std::uint8_t {
  eager,         // one host dispatch per operation
  scoped_graph,  // attention and dense parts in CUDA graphs, expert parts eager
  full_graph,    // the whole iteration is one CUDA graph
};
inline constexpr auto launch_mode_text =
    enum_names<LaunchMode>({"eager", "scoped-graph", "full-graph"});
constexpr std::string_view to_text(LaunchMode mode) { return launch_mode_text[mode]; }

// Counts of framework operations that the host dispatches for one layer (or the head), by phase.
struct HostOperations {
  Sourced<double> layer_forward, layer_backward;  // a dense layer
  Sourced<double> moe_forward, moe_backward;  // added by an expert layer (router, permute, loops)
  // Added for every expert of a rank: products, quantise kernels and biases that the host launches
  // expert by expert.
  Sourced<double> expert_forward = unstated(0.0), expert_backward = unstated(0.0);
  Sourced<double> head;        // final norm, head and loss, per phase
  Sourced<double> collective;  // added by one collective call
};

// Wrappers that check every collective call: host time of a call for each rank of its group.
struct DebugWrappers {
  Sourced<Seconds> per_rank;
  Sourced<Seconds> per_remote_rank = unstated(Seconds(0));  // added for each rank on another host
  // Share of hosts on which calls take longer, and by how much of their time: a job waits for the
  // slowest of its hosts.
  Sourced<double> slow_hosts = unstated(0.0), slow_cost = unstated(0.0);
};

// What the host does between kernels, and how they wait for it.
struct StackHost {
  LaunchMode launch = LaunchMode::eager;  // launch_mode() says what a layout runs with
  // Modules that cannot run again inside graphs of parts of a layer, as these releases draw them.
  std::vector<RecomputeModule> graphs_refuse;
  bool graphs_refuse_shards = false;  // no graphs where gradients are sharded (ZeRO-2 and 3)
  Sourced<Seconds> dispatch;          // host time of one operation
  HostOperations operations;
  Sourced<Seconds> moe_sync;  // added per dropless expert layer, forward plus backward
  Sourced<double> sync_exposed = unstated(0.0);  // share of the expert part's dispatch that shows:
                                                 // the host cannot run ahead of a synchronisation
  // Added where micro_batch * heads / tp % 4 != 0 to the forward, recompute and backward of a layer
  // together: a third to each that runs, so two thirds to a layer that nothing recomputes.
  Sourced<Seconds> softmax_fallback;
  // Device time that a layer, or the head, waits for the host, forward plus backward, whoever is
  // slower: small kernels and starts of passes leave the device idle though the host is ahead.
  Sourced<Seconds> layer_sync = unstated(Seconds(0));
  // What each tensor-parallel collective of training waits for the last of its ranks, for every
  // doubling of them. The host runs ahead meanwhile.
  Sourced<Seconds> rank_wait = unstated(Seconds(0));
  // Standard deviation over mean of the host time of a pass, from pass to pass and rank to rank:
  // passes of ranks that wait for each other take the slowest host's.
  Sourced<double> spread = unstated(0.0);
  bool blocking_launches = false;  // the host waits for each kernel: its time adds to the device's
  DebugWrappers debug;
  bool runs_ahead = false;         // a stage's host dispatches passes whose input has not arrived;
                                   // else it waits for each message of the pipeline
  Sourced<Seconds> step_overhead;  // host and logging work per step that nothing hides
  // Share of its memory bandwidth at which the host runs the update of what is offloaded.
  // ZeRO-Offload (arXiv 2101.06840) reports 2.57 s for Adam on 10 billion parameters, 30 B each, on
  // two sockets of six DDR4-2666 channels (256 GB/s).
  Sourced<double> update_share = unstated(0.46, 0.25, 0.7, Evidence::estimated,
                                          "vectorised Adam on all cores; low end: half of "
                                          "it where cores are fewer or not bound to ranks",
                                          "zero-offload-paper");
};

}  // namespace orrery
