// SPDX-License-Identifier: Apache-2.0
// Describes what a step consists of: operations of every layer class and phase, chunks, and their
// traffic.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include <boost/container/small_vector.hpp>

#include "sim/base/token_exchange.h"
#include "sim/base/units/units.h"
#include "sim/base/work.h"
#include "workloads/layout/layout.h"
#include "workloads/operations/label.h"

namespace orrery {

// Which group of ranks a collective runs over.
enum class GroupKind : std::uint8_t {
  tensor,
  context,        // all ranks of context parallelism
  context_heads,  // those that trade rows for heads
  context_rings,  // those that pass keys and values
  expert,
  expert_tensor,
  shard,                 // ranks that share one copy of dense parameters,
  expert_shard,          // of experts
  shard_replica,         // ranks that hold the same shard of two copies
  expert_shard_replica,  // of experts
};

enum class OperationKind : std::uint8_t { kernel, collective, host_wait };

// One operation of a layer's phase, `count` times in a row.
struct Operation {
  OperationKind kind = OperationKind::kernel;
  Label label = Label::gemm;
  Kernel kernel{};                                         // kernel
  CollectiveKind collective = CollectiveKind::all_reduce;  // collective
  CollectiveLibrary collective_library = CollectiveLibrary::nccl;
  GroupKind group = GroupKind::tensor;
  double bytes = 0;             // collective: as sim/engine/collectives/collectives.h counts it
  double exposed = 1;           // collective: share of its time that nothing hides
  bool beside_compute = false;  // collective on a side stream: hidden by the segment's compute
  bool told_again = false;      // the exposed share of the collective that follows: its bytes are
                                // counted there
  bool beside_passes = false;   // what is not exposed runs under another microbatch's pass
  bool deduplicated = false;    // expert all-to-all: of the copies of a token in `bytes` a rank
                                // or a domain gets one
  TokenExchange exchange{};     // expert all-to-all: what a library that knows tokens is told
  double skew = 1;              // expert all-to-all: the busiest rank's rows over the mean
  double seconds = 0;           // host_wait: time that the device idles; collective: that it waits
                                // for the last rank, hidden by nothing
  double count = 1;
};

// One layer class (or embedding, head) in one phase, on one rank.
struct Segment {
  std::vector<Operation> operations;
  double host_seconds = 0;  // host dispatch time of the whole segment
};

struct LayerProgram {
  Segment forward, backward;  // backward: input and weight gradients
  Segment input_gradient,
      weight_gradient;  // the same split; empty where the schedule does not split
  Segment recompute;    // run before backward when the layer is recomputed
};

// Layers of each class. A search makes millions of chunks, of models with a few classes.
using ClassCounts = boost::container::small_vector<std::int32_t, 4>;

// One pipeline position: counts of layer classes, recomputed or not, and what else is there.
struct ChunkProgram {
  ClassCounts layers;      // run plainly, MTP modules' with them
  ClassCounts recomputed;  // run with full recompute
  bool embedding = false, head = false;
  // Trained MTP modules, after the model's last layer: each runs its input's part, a layer like the
  // last (counted above) and the head again.
  double modules = 0;
  bool recomputes_modules = false;
  double parameters = 0;         // dense parameters on one rank (tp-sharded, replicated over data)
  double expert_parameters = 0;  // expert parameters on one rank
  // Of both, those that the job trains: all, or LoRA's adapters.
  double trained = 0, trained_experts = 0;
};

// A training step of one rank per stage, before anything is timed.
struct TrainingProgram {
  std::vector<LayerProgram> classes;
  LayerProgram embedding, head;
  LayerProgram module;                       // what an MTP module has beside its layer and the head
  std::vector<ChunkProgram> chunks;          // [stage * vpp + chunk]
  double send_bytes = 0;                     // activation message between stages, one rank
  double gradient_send_bytes = 0;            // what comes back for it
  double optimizer_bytes_per_parameter = 0;  // traffic of the update of one parameter
  // Products of the update (Muon, Shampoo), and how many of them one parameter takes.
  Kernel optimizer_product{};
  double optimizer_products_per_parameter = 0;
};

}  // namespace orrery
