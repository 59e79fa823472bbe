// SPDX-License-Identifier: Apache-2.0
// Knows the documented finite grid of layouts that advise searches, in a fixed order.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "topologies/fabric.h"
#include "workloads/layout/layout.h"
#include "workloads/stack/stack.h"

namespace orrery {

// Fixed dimensions narrow the grid; empty means the documented default list. A fixed value may lie
// outside of its default list ("--tp 6").
struct SearchLimits {
  std::optional<std::int64_t> tp, pp, vpp, dp, cp, ep, etp, micro_batch;
  std::optional<int> zero_stage;
  std::optional<std::int64_t> shard_group;
  std::optional<Schedule> schedule;
  std::optional<RecomputeChoice> recompute;
  std::int64_t least_context_tokens = 0;    // of a rank, where cp is not fixed; 0: the grid's own
  std::vector<RecomputeChoice> recomputes;  // where none is fixed: only these; empty: all
  std::optional<std::int64_t> recompute_layers;
  std::optional<bool> sequence_parallel;
  std::optional<ContextKind> context;
  std::optional<std::int64_t> context_inner;
  std::optional<Offload> offload;
  std::optional<std::vector<std::int64_t>> stage_layers;
  std::optional<RankOrder> rank_order;
  std::optional<std::int64_t> per_domain;
  std::optional<Bytes> bucket;
};

// What a search is about beside the limits. All must outlive the space.
struct SearchSubject {
  const Model& model;
  const Job& job;  // training
  const Fabric& fabric;
  const Stack& stack;  // of the recipe's precision
  std::int64_t gpus = 0;
  PrecisionRecipe precision = PrecisionRecipe::bf16;
  Optimizer optimizer = Optimizer::adam_fp32;
  // Whether the machine's host can take what is offloaded.
  bool offload = true, offload_optimizer = true;
};

// One choice in dimensions that are chosen together.
struct PipelineOption {
  Schedule schedule = Schedule::one_f_one_b;
  std::int64_t vpp = 1;
  std::vector<std::int64_t> stage_layers;  // empty: as the stack places them
};
struct MicroBatchOption {
  std::int64_t size = 1;  // sequences
  std::vector<PipelineOption> pipelines;
};
struct ExchangeOption {
  ContextKind kind = ContextKind::ring;
  std::int64_t inner = 0;
};
struct RecomputeOption {
  RecomputeChoice choice;
  std::int64_t layers = 0;  // of full recompute; 0: all
};
struct RankOption {
  RankOrder order;
  std::int64_t per_domain = 0;
};
// ZeRO stages whose passes cost the same: 0, 1 and 2, or 3.
struct ShardOption {
  std::vector<int> zero_stages;
  std::int64_t group = 0;
  std::vector<RankOption> ranks;
  std::vector<Bytes> buckets;
};
// Of a family's lists. A layout's place in the grid's order.
struct GridPoint {
  std::int32_t micro_batch = 0, sequence_parallel = 0, exchange = 0, recompute = 0, shard = 0,
               rank = 0, pipeline = 0, offload = 0, zero = 0, bucket = 0;
  auto operator<=>(const GridPoint&) const = default;
};

// Of a list that a point of the grid points into.
template <class T>
std::int32_t choices(const std::vector<T>& list) {
  return static_cast<std::int32_t>(list.size());
}
template <class T>
const T& choice(const std::vector<T>& list, std::int32_t index) {
  return list[static_cast<std::size_t>(index)];
}

// All layouts with the same tp, cp, pp, ep and etp: the lists that make up the rest of the grid.
// Several families where choices rule each other out: where only sharded weights can lie in host
// memory, those of ZeRO-3 and the others.
struct Family {
  Layout base;  // sizes, precision, optimizer
  std::vector<MicroBatchOption> micro_batches;
  std::vector<bool> sequence_parallel;
  std::vector<ExchangeOption> exchanges;
  std::vector<RecomputeOption> recomputes;  // none first, where it is allowed
  std::vector<ShardOption> shards;
  std::vector<Offload> offloads;  // nothing first, where it is allowed

  std::int64_t leaves() const;  // valid layouts
  // Of one micro-batch, sequence parallelism, exchange, recompute and shard option.
  std::int64_t leaves_below(const MicroBatchOption& micro_batch, const ShardOption& shard) const;
  Layout layout(const GridPoint& point) const;
};

// The grid, from the outermost dimension to the innermost; every valid combination is a layout. A
// stack's choices (StackChoices) narrow it to what the program offers. Limits that only one choice
// has imply it: a shard_group ZeRO 1 to 3, recompute_layers full recompute, a context_inner cp
// above 1 and the hierarchical exchange; what contradicts them leaves no layout.
//   tp           divisors of the GPUs within the scale-up domain that are powers of two or divide
//                the attention heads
//   cp           divisors of the GPUs that divide half the sequence and leave a rank 128 tokens
//                or more
//   pp           divisors of gpus / (tp cp) up to the number of layers, which they divide where the
//                stack wants models with Mamba layers so
//   etp, ep      1 and tp; divisors of the experts that divide tp cp dp / etp; 1 without experts
//   micro_batch  1 to 16, or up to 65,536 tokens of short sequences: what divides a replica's
//   sequence_parallel  on and off when tp is above 1
//   context      ring, all-gather and all-to-all when cp is above 1; hierarchical with the most
//                ranks of its group that lie in one scale-up domain, where not all do
//   recompute    none; every set of modules that the model and the stack have (a module inside
//                another that runs again is left out); full, of all layers of a stage and of every
//                smaller number of them
//   zero         0, 1, 2; 3 with more than one data-parallel rank, where pp is 1 or the stack runs
//                it with pipelines, sharded over all ranks or over those inside one scale-up domain
//   rank_order   orders with tp innermost that differ for these sizes; one when all ranks share a
//                scale-up domain
//   per_domain   as placement finds best; the whole domain where that is more
//   schedule     pp 1: 1f1b, which is every schedule there. Else 1f1b, zero-bubble, zb-v, dualpipe
//                and dualpipe-v for expert models, and interleaved with each vpp from 2 to 16 that
//                divides the layers of the fullest stage. gpipe only when asked for
//   stage_layers as the stack places them; 1f1b, zero-bubble and interleaved also with up to 3
//                layers fewer on the first and on the last position, where all others come out
//                even; where none do, with the rest spread over inner positions, one layer each
//   offload      every set of weights, optimizer and activations; weights under ZeRO-3 alone where
//                the stack moves no others, activations without pipelines and recompute where it
//                cannot else; where it moves any share of the optimizer, each eighth
//   bucket       the stack's; 12.5 MB, and doubled up to 1.6 GB, where gradients are reduced in
//                buckets of a size that can be chosen
// Precision and optimizer are the subject's. Orders are lexicographic in these lists.
class SearchSpace {
 public:
  SearchSpace(const SearchSubject& subject, const SearchLimits& limits);
  const std::vector<Family>& families() const { return families_; }
  std::int64_t leaves() const;
  std::int64_t invalid() const { return invalid_; }  // combinations of sizes that are not valid
  // Why the first of them is not valid; empty when there is none.
  const std::string& invalid_example() const { return invalid_example_; }

 private:
  void add_sizes();
  void add_experts(const Layout& outer);
  void add_family(const Layout& base);
  std::string unmet_reason(const Family& family) const;
  bool add_offloads(Family family);
  bool add_other_offloads(Family family);
  void drop_unsharded();
  void reject(std::string reason);
  std::optional<std::string> wrong(const Layout& layout) const;

  SearchSubject subject_;
  SearchLimits limits_;
  std::vector<Family> families_;
  std::int64_t invalid_ = 0;
  std::string invalid_example_;
};

// Steps to the family's next layout in the grid's order; false after the last, when `point` is the
// first again.
bool advance(const Family& family, GridPoint& point);

}  // namespace orrery
