// SPDX-License-Identifier: Apache-2.0
// Describes what a step consists of: operations of every layer class and phase, chunks, and their
// traffic.
#pragma once

#include <cstdint>
#include <variant>
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
  expert_ranks,          // all that hold parts of a layer's experts
  shard,                 // ranks that share one copy of dense parameters,
  expert_shard,          // of experts
  shard_replica,         // ranks that hold the same shard of two copies
  expert_shard_replica,  // of experts
};

// A collective over one of a rank's groups.
struct CollectiveOperation {
  CollectiveKind kind = CollectiveKind::all_reduce;
  CollectiveLibrary library = CollectiveLibrary::nccl;
  GroupKind group = GroupKind::tensor;
  Bytes bytes;                  // as sim/engine/collectives/collectives.h counts them
  double exposed = 1;           // share of its time that nothing hides
  Seconds rank_wait;            // for the last rank, hidden by nothing
  bool beside_compute = false;  // on a side stream: hidden by the segment's compute
  bool told_again = false;      // the exposed share of the collective that follows: its bytes are
                                // counted there
  bool beside_passes = false;   // what is not exposed runs under another microbatch's pass
  // Experts' all-to-all: of the copies of a token in `bytes` a rank or a domain gets one; what a
  // library that knows tokens is told; the busiest rank's rows over the mean.
  bool deduplicated = false;
  TokenExchange exchange{};
  double skew = 1;
};

// The device idles until the host goes on.
struct HostWait {
  Seconds time;
};

// One operation of a layer's phase, `count` times in a row.
struct Operation {
  Label label = Label::gemm;
  double count = 1;
  std::variant<Kernel, CollectiveOperation, HostWait> work;
  bool side_kernel = false;  // a kernel before a collective of a side stream: hidden as that is

  // What it is; nullptr where it is something else.
  const Kernel* kernel() const { return std::get_if<Kernel>(&work); }
  const CollectiveOperation* collective() const { return std::get_if<CollectiveOperation>(&work); }
  const HostWait* host_wait() const { return std::get_if<HostWait>(&work); }
};

// Kernels of a second stream, and those operations of the first that they run beside: [from, to).
struct SecondStream {
  std::vector<Operation> operations;
  std::size_t from = 0, to = 0;
};

// One layer class (or embedding, head) in one phase, on one rank.
struct Segment {
  std::vector<Operation> operations;
  SecondStream second;
  Seconds host_time;  // of the host, which dispatches the whole segment
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
// NOLINTNEXTLINE(bugprone-exception-escape): small_vector moves its elements
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

// How often a chunk runs each of its parts: visit(part, plain, recomputed). `of` has one for each
// layer class, for the embedding, the head and a module: a program's operations, times, counts.
template <class Parts, class Visit>
void visit_parts(Parts& of, const ChunkProgram& chunk, const Visit& visit) {
  for (std::size_t i = 0; i < of.classes.size(); ++i)
    visit(of.classes[i], chunk.layers[i], chunk.recomputed[i]);
  if (chunk.embedding) visit(of.embedding, 1, 0);
  if (chunk.head) visit(of.head, 1 + chunk.modules, 0);
  const double again = chunk.recomputes_modules ? chunk.modules : 0;
  visit(of.module, chunk.modules - again, again);
}

// A step of one rank per stage, of training or inference, before anything is timed.
struct StepProgram {
  std::vector<LayerProgram> classes;
  LayerProgram embedding, head;
  LayerProgram module;                       // what an MTP module has beside its layer and the head
  std::vector<ChunkProgram> chunks;          // [stage * vpp + chunk]
  Bytes send_bytes;                          // activation message between stages, one rank
  Bytes gradient_send_bytes;                 // what comes back for it
  double optimizer_bytes_per_parameter = 0;  // traffic of the update of one parameter
  // Products of the update (Muon, Shampoo), and how many of them one parameter takes.
  Kernel optimizer_product{};
  double optimizer_products_per_parameter = 0;
};

}  // namespace orrery
