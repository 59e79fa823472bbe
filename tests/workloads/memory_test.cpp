// SPDX-License-Identifier: Apache-2.0
// Holds the memory model against published formulas, hand counts and the laws of a replayed
// schedule.
#include "workloads/memory/memory.h"

#include <catch2/catch.hpp>

#include <algorithm>

#include "workloads/memory/activation_memory.h"
#include "workloads/parameters/state_memory.h"

namespace orrery {
namespace {

using C = MemoryCategory;

// Transformer layers of 2021: learned positions, layer norms with biases, GELU of four times
// hidden.
Model gpt(std::int64_t hidden, std::int64_t layers, std::int64_t heads, std::int64_t vocab) {
  Model m;
  m.name = "gpt";
  m.hidden = hidden;
  m.vocab = vocab;
  m.norm = NormKind::layer_norm;
  m.position = PositionKind::learned;
  m.positions = 2048;
  m.tied_embeddings = true;
  LayerClass layer;
  layer.mixer.heads = layer.mixer.kv_heads = heads;
  layer.mixer.qk_dim = layer.mixer.v_dim = hidden / heads;
  layer.mixer.qkv_bias = layer.mixer.out_bias = true;
  layer.ffn.activation = Activation::gelu;
  layer.ffn.width = 4 * hidden;
  layer.ffn.bias = true;
  m.classes = {layer};
  m.layers.assign(static_cast<std::size_t>(layers), 0);
  return m;
}

Model llama(std::int64_t hidden, std::int64_t layers, std::int64_t heads, std::int64_t kv_heads,
            std::int64_t width, std::int64_t vocab) {
  Model m = gpt(hidden, layers, heads, vocab);
  m.norm = NormKind::rms_norm;
  m.position = PositionKind::rotary;
  m.positions = 0;
  m.tied_embeddings = false;
  LayerClass& layer = m.classes.front();
  layer.mixer.kv_heads = kv_heads;
  layer.mixer.qkv_bias = layer.mixer.out_bias = layer.ffn.bias = false;
  layer.ffn.activation = Activation::swiglu;
  layer.ffn.width = width;
  return m;
}

Model llama_8b() { return llama(4096, 32, 32, 8, 14336, 128256); }

Stack megatron() {
  Stack s;
  s.memory.sequence_buffers.value = 1;
  s.name = "megatron-core";
  s.kernels.fused_gradient_accumulation = true;
  return s;
}

Stack megatron_2022() {
  Stack s;
  s.memory.sequence_buffers.value = 1;
  s.name = "megatron-core";
  s.kernels.attention = Library::unfused_attention;
  return s;
}

Job pretrain(std::int64_t sequence, std::int64_t global_batch) {
  Job j;
  j.sequence = sequence;
  j.global_batch = global_batch;
  return j;
}

LayerActivations activations(const Model& m, const Job& job, const Layout& layout,
                             const Stack& stack) {
  return layer_activations(m, m.classes.front(), job, layout, stack, memory_traits(stack));
}

Bytes worst_peak(const std::vector<StageMemory>& stages) {
  Bytes worst;
  for (const StageMemory& m : stages) worst = std::max(worst, m.peak());
  return worst;
}

}  // namespace

TEST_CASE("kept activations of a layer are Korthikanti's table 2") {
  const Model m = gpt(6144, 48, 64, 51200);
  const Job job = pretrain(2048, 4);
  const double s = 2048, b = 4, h = 6144, a = 64;
  const double t = 8;
  Layout layout;
  layout.micro_batch = 4;
  CHECK(activations(m, job, layout, megatron_2022()).kept() ==
        Approx(s * b * h * (34 + 5 * a * s / h)));
  layout.tp = 8;
  layout.sequence_parallel = false;
  CHECK(activations(m, job, layout, megatron_2022()).kept() ==
        Approx(s * b * h * (10 + 24 / t + 5 * a * s / (h * t))));
  layout.sequence_parallel = true;
  CHECK(activations(m, job, layout, megatron_2022()).kept() ==
        Approx(s * b * h / t * (34 + 5 * a * s / h)));
  layout.recompute = Recompute::selective;
  CHECK(activations(m, job, layout, megatron_2022()).kept() == Approx(s * b * h / t * 34));
  CHECK(activations(m, job, layout, megatron_2022()).checkpoint == Approx(s * b * h / t * 2));
}

TEST_CASE("GPT-3 175B on 8 x 8 x 1 holds 18 bytes a parameter and a second embedding") {
  const Model m = gpt(12288, 96, 96, 51200);
  const Job job = pretrain(2048, 64);
  Layout layout;
  layout.tp = layout.pp = 8;
  const auto stages = training_memory(m, job, layout, megatron());
  REQUIRE(stages.size() == 8);
  // 12 layers of 12 h^2 products over tp; biases and norms stay under a tenth of a percent.
  const double products = 12.0 * 12 * 12288.0 * 12288.0 / 8;
  const double table = 51200.0 * 12288 / 8;
  for (std::size_t s : {std::size_t{1}, std::size_t{6}}) {
    CHECK(stages[s][C::parameters].si() == Approx(2 * products).epsilon(1e-3));
    CHECK(stages[s][C::gradients].si() == Approx(4 * products).epsilon(1e-3));
    CHECK(stages[s][C::optimizer].si() == Approx(12 * products).epsilon(1e-3));
  }
  const double first = products + table + 2048.0 * 12288;
  CHECK(stages[0][C::optimizer].si() == Approx(12 * first).epsilon(1e-3));
  CHECK(stages[7][C::optimizer].si() == Approx(12 * (products + table)).epsilon(1e-3));
  // 1F1B: the first stage holds eight microbatches, the last one; only the last has logits.
  CHECK(stages[0].in_flight == 8);
  CHECK(stages[0][C::ffn_activations].si() == Approx(8 * stages[7][C::ffn_activations].si()));
  CHECK(stages[0][C::logits].si() == 0);
  CHECK(stages[7][C::logits].si() >= 6.0 * 2048 * 51200 / 8);
}

TEST_CASE("ZeRO divides what each of its stages shards") {
  const Model m = llama_8b();
  const double p = 8030261248.0;
  const Job job = pretrain(4096, 128);
  Layout layout;
  layout.dp = 8;
  Stack stack = megatron();
  stack.kernels.fused_gradient_accumulation = false;
  const auto state = [&](int zero) {
    layout.zero_stage = zero;
    const auto stages = training_memory(m, job, layout, stack);
    return std::array{stages[0][C::parameters].si() / p, stages[0][C::gradients].si() / p,
                      stages[0][C::optimizer].si() / p};
  };
  CHECK(state(0) == std::array{2.0, 4.0, 12.0});
  CHECK(state(1) == std::array{2.0, 4.0, 1.5});
  CHECK(state(2) == std::array{2.0, 0.5, 1.5});
  CHECK(state(3) == std::array{0.5, 0.5, 1.0});  // FSDP: the sharded fp32 master is the parameter
  layout.shard_group = 4;
  CHECK(state(3) == std::array{1.0, 1.0, 2.0});
}

TEST_CASE("nanotron keeps 20 bytes a parameter under DDP and 18 alone") {
  Stack stack;
  stack.name = "nanotron";
  stack.memory.gradient_bucket_copies = true;
  stack.memory.sequence_buffers.value = 2;
  stack.kernels.memory_bound = Library::eager;
  const Model m = llama_8b();
  const double p = 8030261248.0, workspace = 64.0 * 1024 * 1024;
  Layout layout;
  layout.zero_stage = 0;
  const auto bytes_of = [&] {
    return training_memory(m, pretrain(4096, 64), layout, stack)[0].static_bytes().si();
  };
  CHECK(bytes_of() == Approx(18 * p + workspace));
  layout.dp = 4;
  CHECK(bytes_of() == Approx(20 * p + workspace));
  layout.zero_stage = 1;  // 2 + 4 + 2, gathers of 2 whole and 2 sharded, 12 sharded
  CHECK(bytes_of() == Approx((10 + 14.0 / 4) * p + workspace));
}

TEST_CASE("experts are split over ep and etp and sharded over their own replicas") {
  Model m = llama(2048, 4, 16, 16, 1408, 32000);
  m.classes[0].ffn.kind = FfnKind::moe;
  m.classes[0].ffn.experts = 64;
  m.classes[0].ffn.topk = 6;
  const double experts = 4 * 64 * 3.0 * 2048 * 1408;
  Layout layout;
  layout.dp = 8;
  layout.zero_stage = 0;
  const auto optimizer = [&] {
    return training_memory(m, pretrain(4096, 8), layout, megatron())[0][C::optimizer].si();
  };
  const double whole = optimizer();
  layout.ep = 8;
  CHECK(whole - optimizer() == Approx(12 * experts * 7 / 8));
  layout.zero_stage = 1;  // no replicas of experts are left to shard over
  CHECK(optimizer() >= 12 * experts / 8);
  layout.ep = 4;
  CHECK(optimizer() >= 12 * experts / 8);
  CHECK(optimizer() < 12 * experts / 7);
}

TEST_CASE("LoRA freezes weights, offload moves bytes to the host") {
  const Model m = llama_8b();
  Job job = pretrain(4096, 32);
  Layout layout;
  layout.zero_stage = 0;
  const auto full = training_memory(m, job, layout, megatron())[0];
  job.task = Task::lora;
  const auto lora = training_memory(m, job, layout, megatron())[0];
  CHECK(lora[C::optimizer].si() < 0.01 * full[C::optimizer].si());
  CHECK(lora[C::gradients].si() < 0.01 * full[C::gradients].si());
  CHECK(lora[C::parameters] > full[C::parameters]);
  job.task = Task::pretrain;
  layout.offload_optimizer = true;
  const auto offloaded = training_memory(m, job, layout, megatron())[0];
  CHECK(offloaded[C::optimizer].si() == 0);
  CHECK(offloaded.offloaded.si() == Approx(full[C::optimizer].si()));
  layout.optimizer_offload_fraction = 0.25;
  const auto part = training_memory(m, job, layout, megatron())[0];
  CHECK(part[C::optimizer].si() == Approx(0.75 * full[C::optimizer].si()));
  CHECK(part.offloaded.si() == Approx(0.25 * full[C::optimizer].si()));
  layout.optimizer_offload_fraction = 1;
  layout.offload_weights = layout.offload_activations = true;
  const auto all = training_memory(m, job, layout, megatron())[0];
  CHECK(all[C::parameters].si() < 0.2 * full[C::parameters].si());
  CHECK(all.peak() < offloaded.peak());
  CHECK(all.offloaded > offloaded.offloaded);
}

TEST_CASE("precision, recompute, dual pipe and MTP change what they should") {
  Model m = llama_8b();
  Job job = pretrain(4096, 32);
  Layout layout;
  const auto plain = training_memory(m, job, layout, megatron())[0];
  layout.precision = PrecisionRecipe::fp8_current;
  const auto fp8 = training_memory(m, job, layout, megatron())[0];
  CHECK(fp8[C::ffn_activations] < plain[C::ffn_activations]);
  CHECK(fp8[C::workspace] > plain[C::workspace]);  // weights and their transposes
  layout.precision = PrecisionRecipe::bf16;
  layout.recompute = Recompute::full;
  const auto full = training_memory(m, job, layout, megatron())[0];
  CHECK(full[C::checkpoints].si() == Approx(32 * 2.0 * 4096 * 4096));
  CHECK(full[C::ffn_activations].si() == Approx(plain[C::ffn_activations].si() / 32));
  layout.recompute_layers = 8;
  const auto some = training_memory(m, job, layout, megatron())[0];
  CHECK(some[C::checkpoints].si() == Approx(8 * 2.0 * 4096 * 4096));
  CHECK(some.peak() > full.peak());
  CHECK(some.peak() < plain.peak());

  Layout pipe;
  pipe.pp = 4;
  const auto one = training_memory(m, job, pipe, megatron());
  pipe.schedule = Schedule::dual_pipe;
  const auto dual = training_memory(m, job, pipe, megatron());
  CHECK(dual[1][C::parameters].si() ==
        Approx(one[1][C::parameters].si() + one[2][C::parameters].si()));
  m.mtp_layers = 1;
  job.mtp = true;
  CHECK(training_memory(m, job, Layout{}, megatron())[0].peak() > plain.peak());
}

TEST_CASE("PyTorch's pipelines have a receive buffer for every microbatch") {
  const Model m = llama_8b();
  Layout layout;
  layout.pp = 2;
  Stack stack = megatron();
  stack.memory.keeps_pipeline_outputs = true;
  const auto few = training_memory(m, pretrain(4096, 4), layout, stack)[0];
  const auto many = training_memory(m, pretrain(4096, 12), layout, stack)[0];
  // Hidden states of 4096 tokens in 16 bits.
  CHECK((many[C::communication] - few[C::communication]).si() == Approx(8 * 2.0 * 4096 * 4096));
  stack.memory.keeps_pipeline_outputs = false;
  CHECK(training_memory(m, pretrain(4096, 4), layout, stack)[0][C::communication] ==
        training_memory(m, pretrain(4096, 12), layout, stack)[0][C::communication]);
}

TEST_CASE("DeepSpeed gathers weights one at a time, FSDP layers; frozen weights lie in 8 bits") {
  const Model m = llama_8b();
  const Job job = pretrain(4096, 32);
  Layout layout;
  layout.dp = 8;
  layout.zero_stage = 3;
  Stack stack = megatron();
  stack.sharding.shard_storage = ShardStorage::parts;
  const auto units = training_memory(m, job, layout, stack)[0];
  stack.sharding.shard_storage = ShardStorage::bucketed;
  CHECK(training_memory(m, job, layout, stack)[0][C::communication] < units[C::communication]);
  stack.sharding.shard_storage = ShardStorage::parts;
  stack.sharding.reshard_after_forward = false;
  const auto kept = training_memory(m, job, layout, stack)[0];
  CHECK(kept[C::communication] > units[C::communication]);
  Job lora = job;
  lora.task = Task::lora;
  Layout whole;
  const auto frozen = training_memory(m, lora, whole, megatron())[0];
  whole.precision = PrecisionRecipe::fp8_current;
  const auto low = training_memory(m, lora, whole, megatron())[0];
  CHECK(low[C::parameters] < frozen[C::parameters] * 0.6);
  CHECK(low.static_bytes() < frozen.static_bytes());
}

TEST_CASE("keys and values follow the attention kind") {
  Job job;
  job.task = Task::decode;
  job.batch = 16;
  job.context = 4095;
  Layout layout;
  layout.tp = 8;
  const Model m = llama(8192, 80, 64, 8, 28672, 128256);
  const auto memory = inference_memory(m, job, layout, megatron())[0];
  // Two of 8 heads of 128 in bf16 over 80 layers: 327,680 B a token, an eighth on each rank.
  CHECK(memory[C::kv_cache].si() == Approx(16 * 4096 * 327680.0 / 8));
  CHECK(memory[C::parameters].si() == Approx(2 * 70553706496.0 / 8).epsilon(1e-3));
  Model latent = m;
  latent.classes[0].mixer.kind = MixerKind::mla;
  latent.classes[0].mixer.kv_lora = 512;
  latent.classes[0].mixer.rope_dim = 64;
  CHECK(inference_memory(latent, job, layout, megatron())[0][C::kv_cache].si() ==
        Approx(16 * 4096 * 576.0 * 2 * 80));
  Model window = m;
  window.classes[0].mixer.window = 1024;
  CHECK(inference_memory(window, job, layout, megatron())[0][C::kv_cache].si() ==
        Approx(16 * 1024 * 327680.0 / 8));
  layout.tp = 16;  // heads are replicated beyond their number
  CHECK(inference_memory(m, job, layout, megatron())[0][C::kv_cache] == memory[C::kv_cache]);
}

TEST_CASE("the peak covers both the passes and the update") {
  const auto stages = training_memory(llama_8b(), pretrain(4096, 8), Layout{}, megatron());
  CHECK(stages[0].peak() >= stages[0].static_bytes());
  CHECK(worst_peak(stages) == stages[0].peak());
  for (int c = 0; c < memory_category_count; ++c) CHECK_FALSE(to_text(static_cast<C>(c)).empty());
}

}  // namespace orrery
