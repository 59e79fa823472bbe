// SPDX-License-Identifier: Apache-2.0
// Law 8: the memory model's peak is at least that of a replayed schedule, per category and stage.
#include <rapidcheck.h>

#include <catch2/catch.hpp>

#include <algorithm>

#include "workloads/layout/pipeline.h"
#include "workloads/memory/activation_memory.h"
#include "workloads/memory/memory.h"

namespace orrery {
namespace {

using C = MemoryCategory;

struct Case {
  Model model;
  Job job;
  Layout layout;
  Stack stack;
};

Model random_model() {
  Model m;
  m.hidden = 64 * *rc::gen::inRange<std::int64_t>(1, 5);
  m.vocab = 1024;
  m.tied_embeddings = *rc::gen::arbitrary<bool>();
  LayerClass dense;
  dense.mixer.heads = 8;
  dense.mixer.kv_heads = 4;
  dense.mixer.qk_dim = dense.mixer.v_dim = 16;
  dense.ffn.width = 4 * m.hidden;
  LayerClass experts = dense;
  experts.ffn.kind = FfnKind::moe;
  experts.ffn.width = m.hidden;
  experts.ffn.experts = 8;
  experts.ffn.topk = 2;
  m.classes = {dense, experts};
  m.layers = *rc::gen::container<std::vector<std::uint8_t>>(
      static_cast<std::size_t>(*rc::gen::inRange(12, 25)), rc::gen::element<std::uint8_t>(0, 1));
  return m;
}

Case random_case() {
  Case c;
  c.model = random_model();
  c.stack.memory.gradient_bucket_copies = *rc::gen::arbitrary<bool>();
  c.stack.sharding.splits_vocabulary = *rc::gen::arbitrary<bool>();
  c.stack.memory.keeps_pipeline_outputs = *rc::gen::arbitrary<bool>();
  c.stack.memory.sequence_buffers.value = *rc::gen::element(0.0, 1.0, 2.0);
  c.stack.kernels.fused_gradient_accumulation = *rc::gen::arbitrary<bool>();
  c.stack.sharding.partition = *rc::gen::element(Partition::even, Partition::by_cost);
  c.stack.kernels.attention = *rc::gen::element(Library::flash2, Library::unfused_attention);
  Layout& l = c.layout;
  l.schedule =
      *rc::gen::element(Schedule::gpipe, Schedule::one_f_one_b, Schedule::interleaved,
                        Schedule::zero_bubble, Schedule::dual_pipe, Schedule::zero_bubble_v,
                        Schedule::dual_pipe_v, Schedule::interleaved_zero_bubble);
  l.pp = *rc::gen::inRange<std::int64_t>(1, 5);
  if (l.schedule == Schedule::dual_pipe) l.pp = *rc::gen::element<std::int64_t>(2, 4);
  if (is_v_shaped(l.schedule)) l.vpp = 2;
  if (loops_over_chunks(l.schedule)) l.vpp = *rc::gen::inRange<std::int64_t>(2, 4);
  l.tp = *rc::gen::element<std::int64_t>(1, 2, 4);
  l.sequence_parallel = *rc::gen::arbitrary<bool>();
  l.dp = *rc::gen::element<std::int64_t>(1, 2);
  l.micro_batch = *rc::gen::inRange<std::int64_t>(1, 3);
  l.zero_stage = *rc::gen::inRange(0, 4);
  l.recompute = *rc::gen::element(Recompute::none, Recompute::selective, Recompute::full);
  l.recompute_layers = *rc::gen::inRange<std::int64_t>(0, 3);
  for (int i = 1; i < recompute_module_count; ++i)
    if (*rc::gen::arbitrary<bool>()) l.recompute_modules.add(static_cast<RecomputeModule>(i));
  std::int64_t microbatches = *rc::gen::inRange<std::int64_t>(1, 13);
  if (l.schedule == Schedule::dual_pipe) microbatches = 2 * (l.pp + microbatches);
  if (is_v_shaped(l.schedule)) microbatches += 2 * l.pp;
  if (l.schedule == Schedule::interleaved_zero_bubble) microbatches *= l.pp;
  c.job.sequence = 128;
  c.job.global_batch = microbatches * l.micro_batch * l.dp;
  return c;
}

constexpr std::array<C, 6> categories = {C::attention_activations, C::ffn_activations,
                                         C::expert_activations,    C::norm_activations,
                                         C::checkpoints,           C::logits};
using Amounts = std::array<double, categories.size()>;

// What one chunk allocates in its forward, by category, and while one of its layers is recomputed.
struct ChunkAmounts {
  Amounts kept{}, recomputed{};
};

ChunkAmounts amounts_of(const Case& c, const Position& p) {
  const MemoryTraits traits = memory_traits(c.stack);
  ChunkAmounts amounts;
  for (std::int64_t l = 0; l < p.layers; ++l) {
    const LayerActivations a = layer_activations(c.model, c.model.layer(p.first_layer + l), c.job,
                                                 c.layout, c.stack, traits);
    const Amounts layer = {a.attention, a.ffn, a.expert, a.norm, 0, 0};
    const bool recompute = c.layout.recompute == Recompute::full &&
                           (c.layout.recompute_layers == 0 || l < c.layout.recompute_layers);
    if (recompute) amounts.kept[4] += a.checkpoint;
    for (std::size_t i = 0; i < layer.size(); ++i) {
      if (recompute)
        amounts.recomputed[i] = std::max(amounts.recomputed[i], layer[i]);
      else
        amounts.kept[i] += layer[i];
    }
  }
  if (p.head) {
    const HeadActivations head = head_activations(c.model, c.job, c.layout, c.stack, traits);
    amounts.kept[3] += head.norm;
    amounts.kept[5] += head.saved;
  }
  return amounts;
}

void check_stage(const Case& c, const PipelineShape& shape, std::int64_t stage,
                 const std::vector<ChunkAmounts>& chunks, const StageMemory& memory) {
  Amounts held{}, worst{};
  double worst_sum = 0;
  const auto look = [&](const Amounts& extra) {
    double sum = 0;
    for (std::size_t i = 0; i < held.size(); ++i) {
      worst[i] = std::max(worst[i], held[i] + extra[i]);
      sum += held[i];
    }
    worst_sum = std::max(worst_sum, sum);
  };
  // DualPipe's report counts an activation until its input gradient; the logits go with the loss.
  const bool early =
      shape.schedule == Schedule::dual_pipe || shape.schedule == Schedule::dual_pipe_v;
  for (const Pass& pass : stage_order(shape, stage)) {
    const ChunkAmounts& chunk = chunks[static_cast<std::size_t>(pass.chunk)];
    const bool backward = pass.kind == PassKind::backward;
    const bool input = pass.kind == PassKind::input_gradient;
    if (pass.kind == PassKind::forward)
      for (std::size_t i = 0; i < held.size(); ++i) held[i] += chunk.kept[i];
    look(pass.kind == PassKind::forward ? Amounts{} : chunk.recomputed);
    const bool frees = backward || (early ? input : pass.kind == PassKind::weight_gradient);
    if (frees)
      for (std::size_t i = 0; i < 5; ++i) held[i] -= chunk.kept[i];
    if (backward || input) held[5] -= chunk.kept[5];
  }
  for (std::size_t i = 0; i < held.size(); ++i) {
    RC_LOG() << "stage " << stage << " of " << c.layout.pp << " "
             << std::string(to_text(categories[i])) << "\n";
    RC_ASSERT(memory[categories[i]].si() >= worst[i] * (1 - 1e-12));
  }
  const double state = (memory[C::parameters] + memory[C::optimizer]).si();
  RC_ASSERT(memory.peak().si() >= (state + worst_sum) * (1 - 1e-12));
}

}  // namespace

TEST_CASE("law 8: no schedule allocates more than the memory model says") {
  REQUIRE(rc::check("per category and stage", [] {
    const Case c = random_case();
    const PipelineShape shape{.schedule = c.layout.schedule,
                              .stages = c.layout.pp,
                              .chunks = c.layout.vpp,
                              .microbatches = c.layout.microbatches(c.job)};
    RC_PRE(!invalid_shape(shape));
    const auto memory = training_memory(c.model, c.job, c.layout, c.stack);
    const auto positions = partition_layers(c.model, c.layout, c.stack.sharding.partition);
    for (std::int64_t stage = 0; stage < c.layout.pp; ++stage) {
      std::vector<ChunkAmounts> chunks;
      if (c.layout.schedule == Schedule::dual_pipe) {
        chunks.push_back(amounts_of(c, positions[static_cast<std::size_t>(stage)]));
        chunks.push_back(
            amounts_of(c, positions[static_cast<std::size_t>(c.layout.pp - 1 - stage)]));
      } else {
        for (std::int64_t v = 0; v < c.layout.vpp; ++v)
          chunks.push_back(
              amounts_of(c, positions[static_cast<std::size_t>(c.layout.position(stage, v))]));
      }
      check_stage(c, shape, stage, chunks, memory[static_cast<std::size_t>(stage)]);
    }
  }));
}

TEST_CASE("each recomputed module takes off what it names, and no more than it keeps") {
  REQUIRE(rc::check("modules", [] {
    Case c = random_case();
    c.layout.recompute = Recompute::selective;
    c.layout.recompute_modules = {};
    const MemoryTraits traits = memory_traits(c.stack);
    const auto of = [&](const LayerClass& layer) {
      return layer_activations(c.model, layer, c.job, c.layout, c.stack, traits);
    };
    for (const LayerClass& layer : c.model.classes) {
      c.layout.recompute_modules = {};
      const LayerActivations plain = of(layer);
      for (int i = 0; i < recompute_module_count; ++i) {
        const auto module = static_cast<RecomputeModule>(i);
        c.layout.recompute_modules = {module};
        const LayerActivations less = of(layer);
        RC_ASSERT(less.kept() <= plain.kept() * (1 + 1e-12) + 1e-9);
        RC_ASSERT(less.transient >= plain.transient * (1 - 1e-12));
        const bool experts = layer.ffn.kind == FfnKind::moe;
        using enum RecomputeModule;
        if (module == (experts ? moe : mlp)) RC_ASSERT(less.kept() < plain.kept());
        if (module == (experts ? mlp : moe)) RC_ASSERT(less.kept() == plain.kept());
        if (module == moe_act) RC_ASSERT((less.expert < plain.expert) == experts);
        if (module == layernorm) RC_ASSERT(less.attention < plain.attention);
      }
    }
  }));
}

TEST_CASE("more splitting and more recompute never need more") {
  REQUIRE(rc::check("monotone", [] {
    Case c = random_case();
    const PipelineShape shape{.schedule = c.layout.schedule,
                              .stages = c.layout.pp,
                              .chunks = c.layout.vpp,
                              .microbatches = c.layout.microbatches(c.job)};
    RC_PRE(!invalid_shape(shape));
    const auto before = training_memory(c.model, c.job, c.layout, c.stack);
    const auto each = [&](const Layout& layout, auto&& check) {
      const auto after = training_memory(c.model, c.job, layout, c.stack);
      for (std::size_t s = 0; s < after.size(); ++s) check(before[s], after[s]);
    };
    Layout changed = c.layout;
    changed.tp *= 2;
    each(changed, [](const StageMemory& a, const StageMemory& b) {
      for (C category : {C::parameters, C::gradients, C::attention_activations, C::ffn_activations,
                         C::expert_activations, C::norm_activations})
        RC_ASSERT(b[category].si() <= a[category].si() * (1 + 1e-12));
    });
    changed = c.layout;
    changed.zero_stage = std::min(c.layout.zero_stage + 1, 2);
    if (changed.zero_stage > c.layout.zero_stage)
      each(changed, [](const StageMemory& a, const StageMemory& b) {
        RC_ASSERT(b[C::optimizer] <= a[C::optimizer]);
        RC_ASSERT(b[C::gradients] <= a[C::gradients]);
      });
    changed = c.layout;
    changed.micro_batch *= 2;
    c.job.global_batch *= 2;
    each(changed, [](const StageMemory& a, const StageMemory& b) {
      RC_ASSERT(b.peak().si() >= a.peak().si() * (1 - 1e-12));
    });
  }));
}

}  // namespace orrery
