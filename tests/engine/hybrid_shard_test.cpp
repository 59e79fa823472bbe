// SPDX-License-Identifier: Apache-2.0
// Holds what hybrid sharding moves and updates against its groups, in every ZeRO stage.
#include <catch2/catch.hpp>

#include "sim/engine/step/pipeline.h"
#include "sim/engine/step/step.h"
#include "tests/engine/step_case.h"
#include "workloads/parameters/weight_split.h"

namespace orrery {
namespace {

using test::Case;
using test::make_case;

// Bytes of one kind of collective over groups of this size, in all.
double moved(const StepResult& r, CollectiveKind kind, std::int64_t size) {
  double bytes = 0;
  for (const NetworkUse& use : r.network)
    if (use.label == Label::data_comm && use.collective.kind == kind &&
        use.collective.group.size == size)
      bytes += use.count * use.collective.bytes.si();
  return bytes;
}

StepResult flow_step(const Case& c, const Layout& layout) {
  StepContext context = step_context(c.cluster);
  context.network = NetworkMode::flow;
  return step(context, c.model, c.job, layout, c.stack);
}

}  // namespace

TEST_CASE("hybrid shards are reduced and gathered in their group, each once over the copies") {
  Case c = make_case("llama3-8b", "dgx-h100", 32, "megatron-core");
  c.job.global_batch = 32;
  c.stack.communication.data_overlap_window.value = 0;
  const auto parameters = static_cast<double>(count_parameters(c.model).total);
  const double reduced = parameters * bytes_per_element(c.stack.sharding.gradient_format);
  const double gathered = parameters * bytes_per_element(c.stack.sharding.parameter_gather_format);
  for (const int zero : {1, 2}) {
    const StepResult r = flow_step(c, {.dp = 32, .zero_stage = zero, .shard_group = 8});
    CHECK(moved(r, CollectiveKind::reduce_scatter, 8) == Approx(reduced).epsilon(0.001));
    CHECK(moved(r, CollectiveKind::all_reduce, 4) == Approx(reduced / 8).epsilon(0.001));
    CHECK(moved(r, CollectiveKind::all_gather, 8) == Approx(gathered).epsilon(0.001));
    CHECK(moved(r, CollectiveKind::reduce_scatter, 32) == 0);
    CHECK(moved(r, CollectiveKind::all_gather, 32) == 0);
  }
  const StepResult whole = flow_step(c, {.dp = 32, .zero_stage = 1});
  CHECK(moved(whole, CollectiveKind::reduce_scatter, 32) == Approx(reduced).epsilon(0.001));
  CHECK(moved(whole, CollectiveKind::all_reduce, 4) == 0);
}

TEST_CASE("experts are sharded over the replicas in their shard group, in every ZeRO stage") {
  Case c = make_case("mixtral-8x7b", "dgx-h100", 64, "megatron-core");
  c.job.global_batch = 64;
  c.stack.sharding.bucket.value = Bytes(4e9);
  c.stack.sharding.bucket_per_rank.value = Bytes(0);
  for (const int zero : {1, 3}) {
    // Two copies: experts have 16 replicas, 8 of them in each.
    const Layout layout = {.dp = 64, .ep = 4, .zero_stage = zero, .shard_group = 32};
    REQUIRE(shard_ways(layout).expert == 8);
    const StepResult r = flow_step(c, layout);
    const double inside = moved(r, CollectiveKind::reduce_scatter, 8);
    const double dense = moved(r, CollectiveKind::reduce_scatter, 32);
    CHECK(inside > 0);
    CHECK(dense > 0);
    CHECK(moved(r, CollectiveKind::reduce_scatter, 16) == 0);
    CHECK(moved(r, CollectiveKind::all_reduce, 2) ==
          Approx(inside / 8 + dense / 32).epsilon(0.001));
    CHECK(moved(r, CollectiveKind::all_gather, 8) > 0);
  }
}

TEST_CASE("law: a group of all replicas is no group, and a rank updates what it keeps") {
  Case c = make_case("mixtral-8x7b", "dgx-h100", 64, "megatron-core");
  c.stack.kernels.update.gradient_touches.value = 0;  // of whole gradients
  const StepContext context = step_context(c.cluster);
  const auto run = [&](int zero, std::int64_t group) {
    const Layout l = {.dp = 64, .ep = 8, .zero_stage = zero, .shard_group = group};
    return step(context, c.model, c.job, l, c.stack);
  };
  for (const int zero : {1, 2, 3}) {
    CHECK(run(zero, 64).step == run(zero, 0).step);
    const auto update = [&](std::int64_t group) {
      return static_cast<double>(run(zero, group).stages[0][Label::optimizer].ps);
    };
    CHECK(update(16) == Approx(4 * update(64)).epsilon(0.05));
    CHECK(update(8) == Approx(8 * update(64)).epsilon(0.05));
  }
}

TEST_CASE("the copy of a tied table is reduced whole where the stack does not split it") {
  Case c = make_case("llama3-8b", "dgx-h100", 32, "megatron-core");
  c.model.tied_embeddings = true;
  const Layout layout = {.tp = 4, .pp = 2, .dp = 4};
  const auto table = [&](bool splits) {
    c.stack.sharding.splits_vocabulary = splits;
    return moved(flow_step(c, layout), CollectiveKind::all_reduce, 2);
  };
  const double split = table(true);
  CHECK(split > 0);
  CHECK(table(false) == Approx(4 * split).epsilon(0.01));  // filled up to other multiples
}

TEST_CASE("a message of the pipeline is checked as every other call") {
  Case c = make_case("llama3-8b", "dgx-h100", 16, "megatron-core");
  const StepContext context = step_context(c.cluster);
  const Layout layout = {.tp = 8, .pp = 2, .dp = 1};
  const auto sent = [&](double near, double far) {
    c.stack.host.debug.per_rank.value = Seconds(near);
    c.stack.host.debug.per_remote_rank.value = Seconds(far);
    c.stack.host.debug.slow_hosts.value = 0;
    const StepPipeline p = step_pipeline(context, c.model, c.job, layout, c.stack);
    return static_cast<double>(p.costs.chunk[0].send_forward.ps);
  };
  const double plain = sent(0, 0);
  // Two ranks, one of them on another host.
  CHECK(sent(1e-3, 0) - plain == Approx(2e9));
  CHECK(sent(1e-3, 5e-4) - plain == Approx(2.5e9));
}

TEST_CASE("an optimizer's products take what equal products of a layer take") {
  Case c = make_case("llama3-8b", "dgx-h100", 8, "megatron-core");
  const StepContext context = step_context(c.cluster);
  const auto update = [&](Optimizer optimizer, PrecisionRecipe precision) {
    const Layout l = {.dp = 8, .precision = precision, .optimizer = optimizer};
    return 1e-12 * static_cast<double>(
                       step(context, c.model, c.job, l, c.stack).stages[0][Label::optimizer].ps);
  };
  const double own = static_cast<double>(count_parameters(c.model).total) / 8;
  const double flop = own * 30 * static_cast<double>(c.model.hidden);
  const double peak = context.device.tensor_rate[static_cast<std::size_t>(Format::bf16)].si();
  const double products = update(Optimizer::muon, PrecisionRecipe::bf16) -
                          update(Optimizer::adam_bf16_moments, PrecisionRecipe::bf16);
  CHECK(products > flop / peak / 0.95);
  CHECK(products < flop / peak / 0.5);
  // A device without bf16 runs them in the format that the recipe leaves plain.
  StepContext old = context;
  old.device.tensor_rate[static_cast<std::size_t>(Format::bf16)] = FlopPerSecond(0);
  const Layout half = {.dp = 8, .precision = PrecisionRecipe::fp16, .optimizer = Optimizer::muon};
  const StepResult r = step(old, c.model, c.job, half, c.stack);
  CHECK(to_seconds(r.stages[0][Label::optimizer]).si() ==
        Approx(update(Optimizer::muon, PrecisionRecipe::fp16)));
}

}  // namespace orrery
