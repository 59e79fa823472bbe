// SPDX-License-Identifier: Apache-2.0
// Says with which libraries a stack communicates, and what of it hides under compute.
#pragma once

#include <cstdint>
#include <optional>

#include "sim/base/names.h"
#include "workloads/stack/unstated.h"

namespace orrery {

// What a rank sends and how, and what of it shows. Shares are of the collective's own time.
struct StackCommunication {
  // All-reduces of tensor parallelism in inference, where a stack has kernels of its own for them.
  std::optional<CollectiveLibrary> inference_all_reduce;
  bool fp8_dispatch = false;  // expert all-to-all carries fp8 tokens forward
  CollectiveLibrary expert_library = CollectiveLibrary::nccl;  // deepep: deduplicated
  bool expert_deduplicated = true;  // a token crosses once per destination rank and node
  Sourced<double> tensor_exposed;   // of tensor-parallel collectives; 1: nothing overlapped
  Sourced<double> expert_exposed;   // of expert all-to-all
  // What layouts must have for these two to hold, else nothing is hidden. Userbuffers split rows
  // over the tensor ranks: without sequence parallelism there are no gathers to overlap. An
  // exchange that runs beside another microbatch's pass needs such a pass in the schedule.
  bool tensor_overlap_needs_rows = false;
  bool tensor_pieces = false;  // products are cut so that their traffic runs beside (userbuffers)
  bool exchange_beside_passes = false;
  // The same of expert exchanges that run beside passes, where the program can do that but this
  // stack's runs do not (exchange_beside_passes is false). 1: it cannot.
  Sourced<double> overlapped_expert_exposed = unstated(1.0);
  Sourced<double> context_exposed;      // least share of context-parallel traffic left visible
  Sourced<double> data_overlap_window;  // share of the last microbatch's pass that hides gradients
  Sourced<double> overlap_cost;   // time that hidden traffic costs the compute beside it, over
                                  // the traffic's own: processors, memory and power it takes
  bool gradient_overlap = true;   // gradients reduced under the last backward
  bool parameter_overlap = true;  // parameters gathered under the first forward
  bool muon_overlap = true;       // both with Muon too
  // Microbatches that one run of the pipeline's schedule takes: a step runs it as often as it has
  // to, each time with a warm-up and a drain. Never fewer than stages. 0: all microbatches.
  std::int64_t schedule_microbatches = 0;
  bool pipeline_sends_block = true;
  bool interleaved_sends_block = false;  // those of pipelines with several chunks a stage
  bool scatter_gather_sends = true;      // pipeline messages split over tp ranks
  bool splits_gradient_sends = true;     // those of the backward pass too
};

}  // namespace orrery
