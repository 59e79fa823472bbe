// SPDX-License-Identifier: Apache-2.0
// Holds formats of served weights and caches, and mixers that engines alone run, to counting.
#include <catch2/catch.hpp>
#include <filesystem>

#include "sim/base/errors/check.h"
#include "workloads/inference/serving_operations.h"
#include "workloads/layout/checkpoint.h"
#include "workloads/memory/memory.h"
#include "workloads/model/model_catalog.h"

namespace orrery {
namespace {

std::filesystem::path catalog(const std::string& kind) {
  return std::filesystem::path(ORRERY_SOURCE_DIR) / "workloads/catalog" / kind;
}
Model model_of(const std::string& name) { return load_model(name, catalog("models")); }
Stack engine() { return load_stack("vllm", {}, catalog("stacks")); }

double weights_of(const std::string& name, PrecisionRecipe precision) {
  const Layout layout = EngineLayout{.precision = precision}.layout();
  const Job job{.task = Task::decode, .batch = 1, .context = 0};
  return inference_memory(model_of(name), job, layout, engine())
      .front()[MemoryCategory::parameters]
      .si();
}

// Keys, values and states of a sequence of so many tokens.
double kept(const std::string& name, std::int64_t tokens, Format format) {
  Stack stack = engine();
  stack.kernels.attention_format = format;
  const Job job{.task = Task::decode, .batch = 1, .context = tokens - 1};
  return inference_memory(model_of(name), job, EngineLayout{}.layout(), stack)
      .front()[MemoryCategory::kv_cache]
      .si();
}

// Bytes of the second operands of products, as they lie in memory.
double bytes_read(const Segment& s) {
  double sum = 0;
  for (const Operation& o : s.operations)
    if (const Kernel* k = o.kernel(); k && is_product(k->work.kind))
      sum += static_cast<double>(k->work.n * k->work.k * k->work.groups) * stored_bytes(k->work);
  return sum;
}

double keys_attended(const Segment& s) {
  for (const Operation& o : s.operations)
    if (const Kernel* k = o.kernel(); k && k->work.kind == WorkKind::attention_decode)
      return static_cast<double>(k->work.kv_length);
  return 0;
}

Segment decode(const Model& model, std::size_t layer, std::int64_t history) {
  const EngineLayout layout;
  const Stack stack = engine();
  return ServingOperations(model, layout, stack).decode(model.classes[layer].mixer, 4, 1, history);
}

}  // namespace

TEST_CASE("checkpoints have the size that is published of them") {
  // Model card of gpt-oss, table 1: 60.8 GiB and 12.8 GiB.
  const double gib = 1024.0 * 1024 * 1024;
  CHECK(weights_of("gpt-oss-120b", PrecisionRecipe::mxfp4) == Approx(60.8 * gib).epsilon(0.01));
  CHECK(weights_of("gpt-oss-20b", PrecisionRecipe::mxfp4) == Approx(12.8 * gib).epsilon(0.01));
  // Kimi K2 Thinking: 594 GB on its repository of weights.
  CHECK(weights_of("kimi-k2-thinking", PrecisionRecipe::int4) == Approx(594e9).epsilon(0.01));
}

TEST_CASE("every checkpoint of the catalogue names precisions that exist") {
  for (const std::string& name : model_names(catalog("models"))) {
    INFO(name);
    const Model model = model_of(name);
    for (const Checkpoint& checkpoint : model.checkpoints) {
      const PrecisionRecipe recipe =
          precision_from(JsonValue::from(SortedJson(checkpoint.precision), name));
      CHECK_FALSE(checkpoint.other.empty());
      for (const Checkpoint::Part& other : checkpoint.other)
        CHECK(part_precision(model, recipe, other.part) != recipe);
      CHECK(part_precision(model, PrecisionRecipe::bf16, ModelPart::attention) ==
            PrecisionRecipe::bf16);
    }
  }
}

TEST_CASE("products read weights as the checkpoint stores them") {
  const Model model = model_of("gpt-oss-120b");
  const Stack stack = engine();
  const LayerClass& layer = model.classes.front();
  const std::int64_t rows = 4096;  // all experts are reached
  const double experts = static_cast<double>(layer.ffn.experts * 3 * 2880) * 2880;
  const EngineLayout plain, packed{.precision = PrecisionRecipe::mxfp4};
  const double in_16 = bytes_read(ServingOperations(model, plain, stack).layer(layer, rows));
  const double in_4 = bytes_read(ServingOperations(model, packed, stack).layer(layer, rows));
  CHECK(in_16 - in_4 == Approx(experts * (2 - 4.25 / 8)).epsilon(1e-9));
}

TEST_CASE("8-bit rows meet MXFP4 weights where the stack says so") {
  const Model model = model_of("gpt-oss-120b");
  Stack stack = engine();
  const EngineLayout layout{.precision = PrecisionRecipe::mxfp4};
  for (const Format format : {Format::bf16, Format::fp8}) {
    stack.serving.kernels.mxfp4_operands = format;
    const Segment s = ServingOperations(model, layout, stack).layer(model.classes.front(), 64);
    for (const Operation& o : s.operations)
      if (const Kernel* k = o.kernel(); k && k->work.kind == WorkKind::grouped_gemm) {
        CHECK(k->work.input == format);
        CHECK(k->library == Library::packed_mxfp4);
      }
  }
}

TEST_CASE("caches of 8 and 4 bits are a half and 9 parts in 32 of those of 16") {
  const double in_16 = kept("llama3-8b", 1000, Format::bf16);
  CHECK(in_16 == 1000.0 * 32 * 2 * 8 * 128 * 2);
  CHECK(kept("llama3-8b", 1000, Format::fp8) == in_16 / 2);
  CHECK(kept("llama3-8b", 1000, Format::fp4) == in_16 * 9 / 32);
}

TEST_CASE("an indexer keeps 132 bytes a token and bounds the keys of a decode") {
  CHECK(kept("glm-5", 1000, Format::bf16) == 1000.0 * 78 * (576 * 2 + 132));
  CHECK(kept("deepseek-v3.2", 1000, Format::fp8) == 1000.0 * 61 * (576 + 132));
  const Model model = model_of("glm-5");
  CHECK(keys_attended(decode(model, 1, 1000)) == 1000);
  CHECK(keys_attended(decode(model, 1, 2048)) == 2048);
  CHECK(keys_attended(decode(model, 1, 100000)) == 2048);
}

TEST_CASE("prompts over chosen keys take as long whatever is chosen, short ones as without") {
  const Model model = model_of("glm-5");
  const EngineLayout layout{.tp = 8, .cache = Format::fp8};
  StackContext hopper, blackwell;
  hopper.architecture = "hopper";
  blackwell.architecture = "blackwell";
  for (StackContext* context : {&hopper, &blackwell}) {
    context->named = true;
    context->family = "glm-5";
  }
  const auto attention = [&](const char* stack, const StackContext& context, std::int64_t start,
                             std::int64_t tokens) {
    const Stack s = load_stack(stack, context, catalog("stacks"));
    const Segment prompt =
        ServingOperations(model, layout, s).prefill(model.classes[0].mixer, start, tokens);
    return *prompt.operations.back().kernel();
  };
  for (const std::int64_t start : {0, 1000, 50000}) {
    CAPTURE(start);
    const Kernel k = attention("vllm", hopper, start, 1024);
    CHECK(k.library == Library::flashmla);
    CHECK(k.work.input == Format::fp8);
    CHECK(k.work.window == 2048);
    CHECK(k.work.kv_length - k.work.q_length >= 2048);  // each query sees as many
    CHECK(k.work.heads == 64);
  }
  // SGLang, up to 2,048 tokens: by keys and values of each head.
  CHECK(attention("sglang", hopper, 1024, 1024).work.heads == 8);
  CHECK(attention("sglang", hopper, 1024, 1024).work.qk_dim == 256);
  CHECK(attention("sglang", hopper, 1025, 1024).work.heads == 64);
  // GLM-5 not on Blackwell, whose kernels see the keys that there are.
  const Kernel few = attention("sglang", blackwell, 0, 1024);
  CHECK(few.work.heads == 64);
  CHECK(few.work.kv_length == 1024);
}

TEST_CASE("gated delta nets keep states, whatever the length") {
  // Qwen3.5 397B: 45 layers with 64 states of 128 x 128 in fp32 and a convolution of 4 tokens over
  // 12,288 channels; 15 layers with 2 key-value heads of 256.
  const double states = 45.0 * (4 * 64 * 128 * 128 + 2 * 12288 * 4), token = 15.0 * 2 * 2 * 256 * 2;
  CHECK(kept("qwen3.5-397b-a17b", 1, Format::bf16) == states + token);
  CHECK(kept("qwen3.5-397b-a17b", 5000, Format::bf16) == states + 5000 * token);
  const Model model = model_of("qwen3.5-397b-a17b");
  const Segment one = decode(model, 0, 10), other = decode(model, 0, 100000);
  REQUIRE(one.operations.size() == 1);
  CHECK(one.operations.front().kernel()->work.bytes_read ==
        other.operations.front().kernel()->work.bytes_read);
}

TEST_CASE("compressed keys stand for several tokens, beside a window") {
  const Model model = model_of("deepseek-v4-flash");
  // Two layers of windows alone, 21 of a key for 4 tokens with an indexer, 20 of one for 128.
  const double key = 512 * 2, window = 43 * 128 * key;
  CHECK(kept("deepseek-v4-flash", 12800, Format::bf16) ==
        window + 21 * 3200 * (key + 132) + 20 * 100 * key);
  CHECK(keys_attended(decode(model, 0, 100000)) == 128);
  CHECK(keys_attended(decode(model, 1, 100000)) == 512 + 128);
  CHECK(keys_attended(decode(model, 2, 100000)) == 100000 / 128 + 128);
}

TEST_CASE("what engines alone run is refused by training with its reason") {
  const Job job{.task = Task::pretrain, .sequence = 4096, .global_batch = 8};
  const auto reason = [&](const std::string& name) {
    return invalid_reason(Layout{}, model_of(name), job, 1).value_or("");
  };
  CHECK(reason("glm-5").find("sparse attention") != std::string::npos);
  CHECK(reason("qwen3.5-27b").find("gated delta nets") != std::string::npos);
  CHECK(reason("deepseek-v4-flash").find("orrery serve") != std::string::npos);
  CHECK(reason("minimax-m2.5").find("orrery serve") == std::string::npos);
}

TEST_CASE("checkpoints are read strictly") {
  const std::string model = R"({"name": "small", "hidden": 64, "vocab": 100, "norm": "rms-norm",
    "position": "rotary", "tied_embeddings": true, "checkpoints": {"nvfp4": {"PART": "bf16"}},
    "layers": [{"count": 2, "mixer": {"kind": "attention", "heads": 4, "kv_heads": 2, "qk_dim": 16},
    "ffn": {"kind": "dense", "activation": "swiglu", "width": 128}}]})";
  const auto with = [&](const std::string& part) {
    std::string text = model;
    return text.replace(text.find("PART"), 4, part);
  };
  CHECK(read_model(JsonValue::parse(with("attention"), "test")).checkpoints.size() == 1);
  CHECK_THROWS_WITH(read_model(JsonValue::parse(with("atention"), "test")),
                    Catch::Contains("attention-output") && Catch::Contains("atention"));
}

}  // namespace orrery
