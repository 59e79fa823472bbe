// SPDX-License-Identifier: Apache-2.0
// Holds Megatron of 2021 to 2023: launches that block, softmax that falls back, gradients that
// DeepSpeed adds up and sends back whole.
#include <catch2/catch.hpp>
#include <filesystem>

#include "workloads/model/model_catalog.h"
#include "workloads/operations/layer_operations.h"
#include "workloads/operations/training.h"
#include "workloads/stack/stack.h"

namespace orrery {
namespace {

std::filesystem::path catalog(const std::string& kind) {
  return std::filesystem::path(ORRERY_SOURCE_DIR) / "workloads/catalog" / kind;
}

struct Case {
  PrecisionRecipe precision = PrecisionRecipe::bf16;
  Model model = load_model("bloom-176b", catalog("models"));
  Job job = {.sequence = 2048, .global_batch = 2048};
  Layout layout = {.tp = 4,
                   .pp = 12,
                   .dp = 8,
                   .micro_batch = 2,
                   .sequence_parallel = false,
                   .precision = precision};
  Stack stack = load_stack("megatron-deepspeed@2023.01",
                           {.architecture = "ampere", .precision = precision}, catalog("stacks"));

  LayerProgram layer() const {
    return LayerOperations(model, job, layout, stack).layer(model.classes.back());
  }
};

double waits(const Segment& s) {
  double sum = 0;
  for (const Operation& o : s.operations)
    if (const HostWait* wait = o.host_wait()) sum += o.count * wait->time.si();
  return sum;
}

double bytes_of(const Segment& s, WorkKind kind, Library library) {
  double sum = 0;
  for (const Operation& o : s.operations)
    if (const Kernel* k = o.kernel(); k && k->work.kind == kind && k->library == library)
      sum += o.count * (k->work.bytes_read + k->work.bytes_written);
  return sum;
}

}  // namespace

TEST_CASE("where launches block, the host's time of a pass adds to the device's") {
  Case c;
  const LayerProgram ahead = c.layer();
  const double sync = c.stack.host.layer_sync.get().si();
  CHECK(waits(ahead.forward) + waits(ahead.backward) == Approx(sync));
  c.stack.host.blocking_launches = true;
  const LayerProgram blocking = c.layer();
  CHECK(waits(blocking.forward) == Approx(sync / 2 + ahead.forward.host_time.si()));
  CHECK(waits(blocking.backward) == Approx(sync / 2 + ahead.backward.host_time.si()));
  CHECK(waits(blocking.recompute) == waits(blocking.forward));
}

TEST_CASE("the stack of BLOOM's runs blocks, Megatron-DeepSpeed elsewhere does not") {
  const Case c;
  CHECK_FALSE(c.stack.host.blocking_launches);
  const Stack bloom =
      load_stack("megatron-deepspeed-blocking",
                 {.architecture = "ampere", .precision = PrecisionRecipe::bf16}, catalog("stacks"));
  CHECK(bloom.host.blocking_launches);
  CHECK(bloom.kernels.accumulate_passes.get() == c.stack.kernels.accumulate_passes.get());
}

TEST_CASE("each tensor-parallel collective waits for its ranks, more with every doubling of them") {
  Case c;
  c.stack.host.rank_wait.value = Seconds(1e-4);
  const auto waited = [&](std::int64_t tp) {
    c.layout.tp = tp;
    const LayerProgram p = c.layer();
    double sum = 0;
    int collectives = 0;
    for (const Segment* s : {&p.forward, &p.backward, &p.recompute})
      for (const Operation& o : s->operations)
        if (const CollectiveOperation* own = o.collective()) {
          sum += own->rank_wait.si();
          ++collectives;
        }
    CHECK(collectives == (tp > 1 ? 6 : 0));
    return sum;
  };
  CHECK(waited(1) == 0);
  CHECK(waited(2) == Approx(6e-4));
  CHECK(waited(8) == Approx(18e-4));
}

TEST_CASE("a softmax that its fused kernel refuses passes over the scores in fp32") {
  Case c;
  const double scores = 2.0 * 28 * 2048 * 2048;  // 112 heads over four ranks, two sequences
  CHECK(bytes_of(c.layer().forward, WorkKind::softmax, c.stack.kernels.stream_library()) == 0);
  c.layout.micro_batch = 1;  // 28 heads: still a multiple of four
  CHECK(bytes_of(c.layer().forward, WorkKind::softmax, c.stack.kernels.stream_library()) == 0);
  c.model.classes.back().mixer.heads = 104;  // 26 heads
  const LayerProgram odd = c.layer();
  const double bytes = bytes_of(odd.forward, WorkKind::softmax, c.stack.kernels.stream_library());
  CHECK(bytes == Approx(34 * scores / 2 * 26 / 28));
  CHECK(bytes_of(odd.backward, WorkKind::softmax, c.stack.kernels.stream_library()) == bytes);
  CHECK(odd.forward.host_time.si() > Case().layer().forward.host_time.si());
  // A third of the host's time to each of forward, recompute and backward, as the value counts it.
  const double fallback = c.stack.host.softmax_fallback.get().si();
  c.stack.host.softmax_fallback.value = Seconds(2 * fallback);
  const LayerProgram twice = c.layer();
  const auto more = [](const Segment& a, const Segment& b) {
    return a.host_time.si() - b.host_time.si();
  };
  CHECK(more(twice.forward, odd.forward) == Approx(fallback / 3));
  CHECK(more(twice.recompute, odd.recompute) == Approx(fallback / 3));
  CHECK(more(twice.backward, odd.backward) == Approx(fallback / 3));
  c.stack.host.softmax_fallback.value = Seconds(0);  // stacks without that kernel
  CHECK(bytes_of(c.layer().forward, WorkKind::softmax, c.stack.kernels.stream_library()) == 0);
}

TEST_CASE("DeepSpeed's bf16 optimizer moves 26 bytes a parameter and microbatch") {
  const Case c;
  const double h = 14336, microbatches = 128;
  const double parameters = 12 * h * h / 4;
  const double share = (microbatches - 1) / microbatches;
  const double added = bytes_of(c.layer().weight_gradient, WorkKind::elementwise, Library::fused);
  CHECK(added == Approx(26 * parameters * share));
  // In fp16 gradients are added in the format that they come in.
  const Case half{.precision = PrecisionRecipe::fp16};
  CHECK(bytes_of(half.layer().weight_gradient, WorkKind::elementwise, Library::fused) ==
        Approx(6 * parameters * share));
}

TEST_CASE("gradients return whole over the pipeline in bf16, split in fp16") {
  const Case c;
  const StepProgram p = lower_training(c.model, c.job, c.layout, c.stack);
  CHECK(p.send_bytes == Bytes(2.0 * 4096 * 14336 / 4));
  CHECK(p.gradient_send_bytes == 4 * p.send_bytes);
  const Case half{.precision = PrecisionRecipe::fp16};
  const StepProgram split = lower_training(half.model, half.job, half.layout, half.stack);
  CHECK(split.gradient_send_bytes == split.send_bytes);
}

}  // namespace orrery
