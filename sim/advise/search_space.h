// Knows the documented finite grid of layouts that advise searches, in a fixed order.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "workloads/layout.h"
#include "workloads/stack.h"

namespace orrery {

// Fixed dimensions narrow the grid; empty means the documented default list. A fixed value may lie
// outside of its default list ("--tp 6").
struct SearchLimits {
  std::optional<std::int64_t> tp, pp, vpp, dp, cp, ep, etp, micro_batch;
  std::optional<int> zero_stage;
  std::optional<std::int64_t> shard_group;
  std::optional<Schedule> schedule;
  std::optional<RecomputeChoice> recompute;
  std::optional<bool> sequence_parallel;
  std::optional<ContextKind> context;
  std::optional<std::int64_t> context_inner;
  PrecisionRecipe precision = PrecisionRecipe::bf16;
  Optimizer optimizer = Optimizer::adam_fp32;
};

// Lazy: next() yields each valid layout once, in the same order every time; only one family
// (tp, cp, pp) is held at a time. dp is what is left of the GPUs. The grid, from the outermost
// dimension to the innermost:
//   tp           divisors of the GPUs within the scale-up domain that are powers of two or divide
//                the attention heads
//   cp           1; from 8,192 tokens on also powers of two that leave a rank 4,096 tokens or more
//   pp           divisors of gpus / (tp cp) up to the number of layers
//   ep           divisors of the experts that divide tp cp dp / etp; 1 without experts
//   etp          1 and tp; 1 without experts
//   schedule     pp 1: 1f1b, which is every schedule there. Else of those that the stack has:
//                1f1b, zero-bubble, zb-v, dualpipe and dualpipe-v for expert models, and
//                interleaved with each vpp from 2 to 8 that divides the layers of the fullest
//                stage; vpp is 2 for zb-v and dualpipe-v, which need two layers a stage, and 1 for
//                the others. gpipe only when asked for
//   micro_batch  1, 2, 4, 8, 16
//   zero         1; with pp 1 and more than one data-parallel rank also 3, and 3 that shards over
//                the ranks inside one scale-up domain only (shard_group) where that is not all
//   recompute    none, selective, full
//   context      ring, all-gather and all-to-all when cp is above 1; hierarchical with the most
//                ranks of its group that lie in one scale-up domain, where not all do
// sequence_parallel follows the stack's default when tp is above 1 and is false otherwise, where it
// means nothing. Offload, recomputed layers and uneven stages are not searched. Precision and
// optimizer are the question's. Inference has no schedule, micro-batch, ZeRO or recompute to
// choose.
class SearchSpace {
 public:
  SearchSpace(const Model& model, const Job& job, std::int64_t gpus, std::int64_t domain,
              const SearchLimits& limits, const Stack& stack);
  std::optional<Layout> next();
  std::int64_t invalid() const { return invalid_; }  // grid points skipped so far as not valid
  // Why the first of them is not valid; empty when there is none.
  const std::string& invalid_example() const { return invalid_example_; }
  double share() const;  // of the families begun, 0 to 1: for progress

 private:
  struct Family {
    std::int64_t tp = 1, cp = 1, pp = 1;
  };
  struct Scheduling {
    Schedule schedule = Schedule::one_f_one_b;
    std::int64_t vpp = 1;
  };
  struct Sharding {
    int zero_stage = 1;
    std::int64_t shard_group = 0;
  };
  struct Exchange {
    ContextKind kind = ContextKind::ring;
    std::int64_t inner = 0;
  };
  std::vector<std::int64_t> tensor_sizes() const;
  std::vector<std::int64_t> context_sizes() const;
  std::vector<std::int64_t> pipeline_sizes(std::int64_t rest) const;
  std::vector<Layout> expert_layouts(const Layout& outer) const;
  std::vector<Scheduling> schedulings(std::int64_t pp) const;
  std::vector<Sharding> shardings(const Layout& outer) const;
  std::vector<Exchange> exchanges(const Layout& outer) const;
  void add_families();
  void fill(const Family& family);
  void add(const Layout& layout);
  void reject(std::string reason);

  Model model_;
  Job job_;
  std::int64_t gpus_, domain_;
  SearchLimits limits_;
  bool sequence_parallel_;
  std::vector<Schedule> schedules_;  // that the stack has
  std::vector<Family> families_;
  std::size_t next_family_ = 0;
  std::vector<Layout> ready_;  // valid layouts of the family at hand
  std::size_t next_ready_ = 0;
  std::int64_t invalid_ = 0;
  std::string invalid_example_;
};

}  // namespace orrery
