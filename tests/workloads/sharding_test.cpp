// SPDX-License-Identifier: Apache-2.0
// Holds ZeRO-3's traffic against what each framework moves and copies, byte by byte.
#include "workloads/operations/sharding.h"

#include <catch2/catch.hpp>

#include "tests/workloads/small_model.h"
#include "workloads/operations/training.h"

namespace orrery {
namespace {

constexpr double hidden = 1024, width = 4096, words = 32000;

Model gpt(bool tied) { return test::small_model(tied, Activation::gelu); }

Layout shards(std::int64_t ranks) {
  Layout l;
  l.dp = ranks;
  l.zero_stage = 3;
  return l;
}

Job batch(std::int64_t sequences) {
  Job j;
  j.sequence = 2048;
  j.global_batch = sequences;
  return j;
}

Stack plain(ShardStorage storage, Format reduced) {
  Stack s;
  s.sharding.shard_storage = storage;
  s.sharding.gradient_format = reduced;
  for (Sourced<double>* v :
       {&s.kernels.elementwise_passes, &s.kernels.loss_bytes_per_logit, &s.kernels.quantise_passes,
        &s.kernels.permute_passes, &s.host.operations.layer_forward,
        &s.host.operations.layer_backward, &s.host.operations.moe_forward,
        &s.host.operations.moe_backward, &s.host.operations.head, &s.host.operations.collective,
        &s.communication.tensor_exposed, &s.communication.expert_exposed,
        &s.communication.context_exposed})
    v->value = 1;
  s.host.dispatch.value = s.host.moe_sync.value = s.host.softmax_fallback.value =
      s.host.debug.per_rank.value = Seconds(0);
  return s;
}

struct Traffic {
  double gathers = 0, reductions = 0;  // beside compute
  double visible = 0;                  // bytes of collectives that nothing hides
  double copies = 0;                   // bytes read and written
  double side_copies = 0;              // the same on the stream of the collectives
};

Traffic traffic(const Segment& s) {
  Traffic t;
  for (const Operation& o : s.operations) {
    if (o.label != Label::data_comm) continue;
    const CollectiveOperation* c = o.collective();
    if (const Kernel* k = o.kernel())
      (o.side_kernel ? t.side_copies : t.copies) +=
          o.count * (k->work.bytes_read + k->work.bytes_written);
    else if (!c->beside_compute)
      t.visible += o.count * c->bytes.si();
    else if (c->kind == CollectiveKind::all_gather)
      t.gathers += o.count * c->bytes.si();
    else
      t.reductions += o.count * c->bytes.si();
  }
  return t;
}

// Parameters of one of gpt()'s layers on one rank.
double layer_parameters_of(const Model& m) {
  return local_parameters(m, m.classes.front(), shards(8)).dense;
}

TEST_CASE("each framework copies what its shards need", "[sharding]") {
  const Model model = gpt(false);
  const double p = layer_parameters_of(model);
  struct Case {
    ShardStorage storage;
    Format reduced;
    double shard_copies, gather_copies, reduce_copies;  // bytes a parameter
  };
  // FSDP1 casts its own shard (4 + 2), joins gradients (2 + 2), casts (2 + 4) and divides them
  // (twice the reduced width). FSDP2 casts its own shard, copies it (2 + 2), copies out of the
  // gather (2 + 2) and casts into the reduction (2 + 4), each at a speed that was measured.
  const ShardCopies slow;
  const double in = slow.shard.get(), out = slow.gathered.get();
  const double joined = slow.reduced.get(), widened = slow.widened.get();
  CHECK(widened > joined);
  for (const Case& c : {Case{ShardStorage::in_place, Format::fp32, 0, 0, 0},
                        Case{ShardStorage::flat, Format::bf16, 6 * in, 0, 4 + 4},
                        Case{ShardStorage::flat, Format::fp32, 6 * in, 0, 4 + 6 + 8},
                        Case{ShardStorage::parts, Format::bf16, 10 * in, 4 * out, 4 * joined},
                        Case{ShardStorage::parts, Format::fp32, 10 * in, 4 * out, 6 * widened},
                        Case{ShardStorage::bucketed, Format::fp16, 0, 4, 4 + 4}}) {
    const auto program = lower_training(model, batch(8), shards(8), plain(c.storage, c.reduced));
    const Traffic forward = traffic(program.classes.front().forward);
    const Traffic backward = traffic(program.classes.front().backward);
    CHECK(forward.gathers == Approx(2 * p));
    CHECK(forward.copies == Approx(c.gather_copies * p));
    CHECK(forward.side_copies == Approx(c.shard_copies * p / 8));
    CHECK(backward.side_copies == Approx(c.shard_copies * p / 8));
    CHECK(backward.gathers == Approx(2 * p));
    CHECK(backward.reductions == Approx(bytes_per_element(c.reduced) * p));
    CHECK(backward.copies == Approx((c.gather_copies + c.reduce_copies) * p));
  }
}

TEST_CASE("a shard that is kept in 16 bits is copied and not cast", "[sharding]") {
  const Model model = gpt(false);
  Layout narrow = shards(8);
  narrow.optimizer = Optimizer::adam_bf16;
  const auto copied = [&](ShardStorage storage) {
    const auto program = lower_training(model, batch(8), narrow, plain(storage, Format::bf16));
    return traffic(program.classes.front().forward).side_copies;
  };
  const double p = layer_parameters_of(model);
  CHECK(copied(ShardStorage::flat) == 0);
  CHECK(copied(ShardStorage::parts) == Approx(4 * ShardCopies().shard.get() * p / 8));
  // LoRA's frozen parameters have no master.
  Job lora = batch(8);
  lora.task = Task::lora;
  lora.lora_rank = 8;
  const auto frozen =
      lower_training(model, lora, shards(8), plain(ShardStorage::flat, Format::bf16));
  CHECK(traffic(frozen.classes.front().forward).side_copies == 0);
}

TEST_CASE("what begins and ends a microbatch has nothing to hide under", "[sharding]") {
  for (const bool tied : {false, true}) {
    const Model model = gpt(tied);
    const double p = layer_parameters_of(model);
    const auto program =
        lower_training(model, batch(8), shards(8), plain(ShardStorage::flat, Format::fp32));
    CHECK(traffic(program.embedding.forward).visible == Approx(2 * (words * hidden + p)));
    CHECK(traffic(program.embedding.backward).visible == Approx(4 * (words * hidden + p)));
    // One table is gathered once.
    CHECK(traffic(program.head.forward).gathers == Approx(tied ? 0 : 2 * words * hidden));
    CHECK(traffic(program.head.backward).gathers == 0);
  }
}

TEST_CASE("parameters that stay whole are gathered once a step", "[sharding]") {
  const Model model = gpt(false);
  const double p = layer_parameters_of(model);
  Stack stack = plain(ShardStorage::parts, Format::fp32);
  stack.sharding.reduce_each_microbatch = false;
  const Layout layout = shards(8);
  CHECK(accumulates_whole(layout, stack, 4));
  CHECK_FALSE(accumulates_whole(layout, stack, 1));
  auto backward = [&] {
    return traffic(lower_training(model, batch(32), layout, stack).classes.front().backward);
  };
  CHECK(backward().gathers == Approx(2 * p));
  CHECK(backward().reductions == Approx(4 * p / 4));
  // Backward may free what it gathered although it does not reduce.
  auto forward = [&] {
    return traffic(lower_training(model, batch(32), layout, stack).classes.front().forward);
  };
  CHECK(forward().gathers == Approx(2 * p / 4));
  stack.sharding.reshard_after_backward = true;
  CHECK(accumulates_whole(layout, stack, 4));
  CHECK_FALSE(gathers_once(layout, stack, 4));
  CHECK(forward().gathers == Approx(2 * p));
  CHECK(backward().reductions == Approx(4 * p / 4));
  stack.sharding.reshard_after_backward = false;
  stack.sharding.reshard_after_forward = false;
  CHECK(backward().gathers == 0);
  // PyTorch's pipelines do so unasked.
  stack.sharding.reduce_each_microbatch = true;
  Layout stages = shards(4);
  stages.pp = 3;
  CHECK(accumulates_whole(stages, stack, 4));
  const auto program = lower_training(model, batch(16), stages, stack);
  CHECK(traffic(program.classes.front().backward).reductions == Approx(4 * p / 4));
  CHECK(traffic(program.classes.front().forward).gathers == Approx(2 * p / 4));
}

TEST_CASE("adapters leave little to reduce", "[sharding]") {
  const Model model = gpt(false);
  Job job = batch(8);
  job.task = Task::lora;
  job.lora_rank = 16;
  const auto program =
      lower_training(model, job, shards(8), plain(ShardStorage::parts, Format::bf16));
  const Traffic backward = traffic(program.classes.front().backward);
  CHECK(backward.reductions == Approx(2.0 * 16 * (8 * hidden + 2 * width)));
}

TEST_CASE("recomputation that stops early leaves out the last product", "[sharding]") {
  const Model model = gpt(false);
  Stack stack = plain(ShardStorage::flat, Format::fp32);
  const auto products = [&] {
    double flop = 0;
    const auto program = lower_training(model, batch(8), shards(8), stack);
    for (const Operation& o : program.classes.front().recompute.operations)
      if (const Kernel* k = o.kernel(); k && k->work.kind == WorkKind::gemm)
        flop += 2.0 * static_cast<double>(k->work.m * k->work.n * k->work.k);
    return flop;
  };
  const double all = products();
  stack.recompute.stops_early = true;
  CHECK(all - products() == Approx(2 * 2048 * hidden * width));
  CHECK(all == Approx(2 * 2048 * (4 * hidden * hidden + 2 * hidden * width)));
}

}  // namespace
}  // namespace orrery
