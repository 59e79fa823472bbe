// SPDX-License-Identifier: Apache-2.0
// Holds the tables of step prices against their parts priced anew, and laws of prices.
#include "sim/engine/prices/engine_prices.h"

#include <rapidcheck.h>
#include <catch2/catch.hpp>
#include <cmath>
#include <filesystem>

#include "sim/engine/prices/segments.h"
#include "sim/engine/scenario.h"
#include "workloads/model/model_catalog.h"

namespace orrery {
namespace {

struct Engine {
  Cluster cluster;
  Model model;
  EngineLayout layout;
  Stack stack;
  std::unique_ptr<EnginePrices> prices;
};

std::unique_ptr<Engine> engine(const std::string& model, const std::string& cluster,
                               const EngineLayout& layout, const std::string& stack) {
  const std::filesystem::path catalog =
      std::filesystem::path(ORRERY_SOURCE_DIR) / "workloads/catalog";
  auto e = std::make_unique<Engine>();
  e->cluster = load_cluster(cluster, layout.gpus());
  e->model = load_model(model, catalog / "models");
  e->layout = layout;
  const Job job{.task = Task::decode, .batch = 1, .context = 1};
  e->stack = catalogue_stack(stack, e->cluster, e->model, job, layout.precision);
  e->prices = std::make_unique<EnginePrices>(e->cluster, e->model, e->layout, e->stack, 1024);
  return e;
}

const EnginePrices& llama() {
  static const auto e = engine("llama3.1-70b", "dgx-h100", {.tp = 4}, "vllm");
  return *e->prices;
}

const EnginePrices& deepseek() {
  static const auto e =
      engine("deepseek-r1", "dgx-h200",
             {.attention_dp = 8, .ep = 8, .precision = PrecisionRecipe::fp8_blockwise}, "sglang");
  return *e->prices;
}

StepShape decodes(std::int64_t sequences, std::int64_t context) {
  StepShape shape;
  shape.decodes = sequences;
  shape.contexts = sequences * context;
  shape.sampled = sequences;
  return shape;
}

double seconds(const EnginePrices& prices, const StepShape& shape) {
  return to_seconds(prices.step(shape)).si();
}

}  // namespace

TEST_CASE("law: a step without prompts costs what its piece says") {
  CHECK(rc::check("a step is on its piece", [] {
    const auto sequences = *rc::gen::inRange<std::int64_t>(1, 513);
    const auto contexts = *rc::gen::inRange<std::int64_t>(sequences, sequences * 100'000);
    for (const EnginePrices* prices : {&llama(), &deepseek()}) {
      StepShape shape = decodes(sequences, 1);
      shape.contexts = contexts;
      const DecodePiece piece = prices->decode(sequences, contexts);
      RC_ASSERT(piece.first <= contexts && contexts <= piece.last);
      RC_ASSERT(prices->step(shape) == piece.at_first + piece.per_token * (contexts - piece.first));
    }
  }));
}

TEST_CASE("law: tables agree with parts priced anew") {
  CHECK(rc::check("tables agree", [] {
    const auto sequences = *rc::gen::inRange<std::int64_t>(1, 257);
    const auto context = *rc::gen::inRange<std::int64_t>(1, 32'768);
    const auto prompt = *rc::gen::inRange<std::int64_t>(0, 8'192);
    for (const EnginePrices* prices : {&llama(), &deepseek()}) {
      StepShape shape = decodes(sequences, context);
      if (prompt > 0) {
        shape.chunks.push_back({.start = 0, .tokens = prompt});
        shape.sampled += 1;
      }
      const double anew = prices->parts(shape).total().si();
      RC_ASSERT(std::abs(seconds(*prices, shape) / anew - 1) < 0.12);  // tiles between nodes
    }
  }));
}

TEST_CASE("law: more of anything never takes less") {
  CHECK(rc::check("prices are monotone", [] {
    const auto sequences = *rc::gen::inRange<std::int64_t>(1, 400);
    const auto context = *rc::gen::inRange<std::int64_t>(1, 32'768);
    const auto prompt = *rc::gen::inRange<std::int64_t>(1, 8'000);
    for (const EnginePrices* prices : {&llama(), &deepseek()}) {
      const double slack = 1.02;  // tiles and waves of kernels are not monotone to the last percent
      const StepShape base = decodes(sequences, context);
      RC_ASSERT(seconds(*prices, decodes(sequences, context + 64)) * slack >=
                seconds(*prices, base));
      RC_ASSERT(seconds(*prices, decodes(sequences + 8, context)) * slack >=
                seconds(*prices, base));
      StepShape mixed = base, longer = base;
      mixed.chunks.push_back({.start = 0, .tokens = prompt});
      longer.chunks.push_back({.start = 0, .tokens = prompt + 64});
      RC_ASSERT(seconds(*prices, mixed) * slack >= seconds(*prices, base));
      RC_ASSERT(seconds(*prices, longer) * slack >= seconds(*prices, mixed));
    }
  }));
}

TEST_CASE("engines have the small kernels of their release and GPU") {
  const auto small = [](const std::string& stack, const std::string& cluster) {
    const EngineLayout layout{.tp = 8, .precision = PrecisionRecipe::fp8_blockwise};
    return engine("deepseek-r1", cluster, layout, stack)->stack.serving.kernels.small;
  };
  CHECK(small("trtllm", "dgx-h200").latent == 4);  // copies of batched products' operands
  CHECK(small("trtllm", "dgx-b200").latent == 2);
  CHECK(small("vllm@0.12", "dgx-h200").shared == 5);
  CHECK(small("vllm", "dgx-h200").shared == 1);
}

TEST_CASE("what a compiler is shown of a step it launches itself") {
  const auto e = engine("llama3.1-8b", "dgx-h100", {.tp = 8}, "vllm@0.12");
  // Of a layer: four products, two norms, rotary, SwiGLU and a small kernel; not attention and the
  // two all-reduces.
  const Launches all = Segments(e->cluster, e->model, e->layout, e->stack).launches(true);
  CHECK(all.shown == 32 * 9);
  CHECK(all.operations >= 32 * 12);
  StepShape shape = decodes(8, 1024);
  shape.chunks.push_back({.start = 0, .tokens = 64});
  Stack stack = e->stack;
  stack.serving.mixed_graph_rows = 0;
  const auto price = [&] {
    return seconds(EnginePrices(e->cluster, e->model, e->layout, stack, 16), shape);
  };
  const double compiled = price();
  const ServingHost& host = e->stack.serving.host;
  stack.serving.host.compiled_launch = unstated(Seconds(0));
  const double less = e->cluster.host.launch_time.get() * all.shown *
                      (host.eager_launch.get() - host.compiled_launch.get()).si();
  CHECK(price() - compiled == Approx(less).epsilon(0.02));  // the device has next to nothing to do
}

TEST_CASE("stacks launch what their models' code has") {
  const auto launched = [](const std::string& model, const std::string& stack,
                           bool ServingKernels::*flag) {
    const bool bf16 = model != "qwen3-235b-a22b";
    const EngineLayout layout{
        .tp = 4, .precision = bf16 ? PrecisionRecipe::bf16 : PrecisionRecipe::fp8_blockwise};
    const auto e = engine(model, "dgx-h100", layout, stack);
    Stack without = e->stack;
    CHECK(without.serving.kernels.*flag);
    without.serving.kernels.*flag = false;
    const auto operations = [&](const Stack& s) {
      return Segments(e->cluster, e->model, e->layout, s).launches(true).operations;
    };
    return operations(e->stack) - operations(without);
  };
  CHECK(launched("bloom-176b", "vllm@0.2", &ServingKernels::adds_apart) == 70 * 4);
  CHECK(launched("llama2-70b", "vllm@0.2", &ServingKernels::adds_apart) == 0);
  CHECK(launched("qwen3-32b", "trtllm", &ServingKernels::head_norms_unfused) == 64 * 2);
  CHECK(launched("qwen3-235b-a22b", "trtllm", &ServingKernels::head_norms_unfused) == 0);
  CHECK(launched("llama3.1-8b", "trtllm", &ServingKernels::head_norms_unfused) == 0);
  CHECK(launched("qwen3-32b", "trtllm", &ServingKernels::fused_qk_norm) == -64);
  CHECK(launched("qwen3-235b-a22b", "trtllm", &ServingKernels::experts_at_once) == -94 * 3);
}

TEST_CASE("a long prompt's launches have the indexer's, also where short ones pass it by") {
  const auto e =
      engine("glm-5", "dgx-h200", {.tp = 8, .precision = PrecisionRecipe::fp8_blockwise}, "sglang");
  CHECK(e->stack.serving.kernels.short_prompts_plain);
  const auto launched = [&](bool plain, bool indexed) {
    Stack stack = e->stack;
    stack.serving.kernels.short_prompts_plain = plain;
    return Segments(e->cluster, e->model, e->layout, stack).launches(indexed).operations;
  };
  CHECK(launched(true, true) == launched(false, true));
  // Scores, their softmax and the choice, the indexer's products and streams.
  CHECK(launched(true, true) >= launched(true, false) + 78 * 6);
}

TEST_CASE("graphs of prompts leave attention over latents to the host where a stack says so") {
  const auto e = engine("deepseek-r1", "dgx-b200",
                        {.tp = 8, .precision = PrecisionRecipe::fp8_blockwise}, "trtllm");
  CHECK(e->stack.serving.kernels.latents_outside_graphs);
  StepShape prompt;
  prompt.chunks.push_back({.start = 0, .tokens = 64});
  const auto launching = [&](std::int64_t graph_rows, bool outside) {
    Stack stack = e->stack;
    stack.serving.mixed_graph_rows = graph_rows;
    stack.serving.kernels.latents_outside_graphs = outside;
    const EnginePrices prices(e->cluster, e->model, e->layout, stack, 16);
    const Ticks step = prices.step(prompt);
    return std::pair{prices.launching(prompt, step), step};
  };
  const auto [eager, slowest] = launching(0, true);
  const auto [left_out, middle] = launching(64, true);
  const auto [none, fastest] = launching(64, false);
  CHECK(none == Ticks{});
  CHECK(fastest < middle);
  CHECK(middle < slowest);
  // Of a layer: two products, norms, rotary, two absorbed products and small kernels; for a prompt
  // its keys' product and attention.
  const double latent = Segments(e->cluster, e->model, e->layout, e->stack).latent_launches();
  CHECK(latent >= 61 * 8);
  CHECK(latent <= 61 * 11);
  CHECK(left_out < eager);
}

TEST_CASE("TensorRT-LLM before 1.3 converts rows of FP8 blocks one by one on Blackwell") {
  const auto priced = [](const char* release) {
    return engine("deepseek-r1", "dgx-b200",
                  {.tp = 8, .ep = 8, .precision = PrecisionRecipe::fp8_blockwise}, release);
  };
  const auto first = priced("trtllm@1.1"), second = priced("trtllm@1.2"), third = priced("trtllm");
  CHECK(first->stack.kernels.gemm == Library::trtllm_rows);
  CHECK(first->stack.kernels.grouped_gemm == Library::trtllm_rows);
  CHECK(second->stack.kernels.gemm == Library::trtllm_rows);
  CHECK(second->stack.kernels.grouped_gemm == Library::flashinfer);
  CHECK(third->stack.kernels.gemm == Library::trtllm_blocks);
  StepShape prompt;
  prompt.chunks.push_back({.start = 0, .tokens = 8192});
  const auto step = [&](const Engine& e) { return to_seconds(e.prices->step(prompt)).si(); };
  // Five products of a layer with 20 to 41 ns a row, and 27 ns a token in lists of experts.
  CHECK(step(*second) - step(*third) == Approx(61 * 8192 * 150e-9).epsilon(0.35));
  CHECK(step(*first) > step(*third));
}

TEST_CASE("law: a kernel starts the gap of its launch after the one before it") {
  const auto e = engine("llama3.1-8b", "dgx-h200", {}, "vllm");
  const Segments plain(e->cluster, e->model, e->layout, e->stack);
  const Calibration& calibration = e->cluster.calibration;
  const auto gap = [&](bool in_graph) { return calibration.kernel_gap(in_graph).si(); };
  CHECK(rc::check("gaps add up", [&] {
    const auto rows = *rc::gen::inRange<std::int64_t>(1, 65);  // no more power than the board has
    const auto more = *rc::gen::inRange<std::int64_t>(1, 20);
    Stack stack = e->stack;
    stack.serving.kernels.small.attention += more;
    const Segments longer(e->cluster, e->model, e->layout, stack);
    const auto added = [&](bool in_graph) {
      return seconds_of(longer.rows(rows, in_graph)) - seconds_of(plain.rows(rows, in_graph));
    };
    const auto kernels = static_cast<double>(more * e->model.layer_count());
    RC_ASSERT(std::abs(added(false) - added(true) - kernels * (gap(false) - gap(true))) < 1e-9);
    RC_ASSERT(added(true) > kernels * gap(true));
  }));
}

TEST_CASE("what a stack has between steps is added to each that samples, and to no other") {
  const auto e = engine("llama3.1-8b", "dgx-h200", {}, "vllm");
  CHECK(e->stack.serving.host.between_steps.get().si() == Approx(100e-6));
  CHECK(
      engine("llama3.1-8b", "dgx-h200", {}, "vllm@0.12")->stack.serving.host.between_steps.get() ==
      Seconds(0));
  Stack longer = e->stack;
  longer.serving.host.between_steps.value = Seconds(350e-6);
  // Few clients of a small model may wait for the host.
  longer.serving.host.step = e->stack.serving.host.step = unstated(Seconds(0));
  const EnginePrices usual(e->cluster, e->model, e->layout, e->stack, 64);
  const EnginePrices more(e->cluster, e->model, e->layout, longer, 64);
  const auto added = [&](const StepShape& shape) {
    return seconds(more, shape) - seconds(usual, shape);
  };
  StepShape mixed = decodes(8, 1000), part;
  mixed.chunks.push_back({.start = 0, .tokens = 4000});
  part.chunks = mixed.chunks;  // of a prompt that goes on
  CHECK(added(decodes(1, 1000)) == Approx(250e-6).epsilon(0.001));
  CHECK(added(decodes(64, 5000)) == Approx(250e-6).epsilon(0.001));
  CHECK(added(mixed) == Approx(250e-6).epsilon(0.02));  // launches may be late as well
  CHECK(added(part) == 0);
}

TEST_CASE("law: a second stream takes no more than one, and no less than none") {
  const auto e = engine("deepseek-r1", "dgx-h200",
                        {.tp = 8, .precision = PrecisionRecipe::fp8_blockwise}, "trtllm");
  Stack one = e->stack;
  one.serving.kernels.second_stream_rows = 0;
  Model unshared = e->model;
  for (LayerClass& layer : unshared.classes) layer.ffn.shared_width = 0;
  const Segments two(e->cluster, e->model, e->layout, e->stack);
  const Segments in_turn(e->cluster, e->model, e->layout, one);
  const Segments without(e->cluster, unshared, e->layout, e->stack);
  CHECK(rc::check("between none and in turn", [&] {
    const auto rows = *rc::gen::inRange<std::int64_t>(1, 2048);
    const double both = seconds_of(two.rows(rows, true));
    RC_ASSERT(both < (1 + 1e-9) * seconds_of(in_turn.rows(rows, true)));
    RC_ASSERT(both > seconds_of(without.rows(rows, true)));
    const double eager = seconds_of(in_turn.rows(rows, false));
    RC_ASSERT(std::abs(seconds_of(two.rows(rows, false)) - eager) < 1e-9 * eager);
  }));
}

TEST_CASE("a slower host launches as much slower, and kernels run as before") {
  const auto usual = engine("llama3.1-8b", "dgx-h200", {}, "sglang");
  const auto slow = engine("llama3.1-8b", "dgx-h200", {}, "sglang");
  REQUIRE(slow->cluster.host.launch_time.get() == 1);
  slow->cluster.host.launch_time.value = 3;
  slow->prices =
      std::make_unique<EnginePrices>(slow->cluster, slow->model, slow->layout, slow->stack, 1024);
  CHECK(to_seconds(slow->prices->launching()).si() ==
        Approx(3 * to_seconds(usual->prices->launching()).si()));
  // A long prompt hides the launches, a short one does not.
  StepShape prompt;
  prompt.chunks.push_back({0, 32'768});
  CHECK(seconds(*slow->prices, prompt) < 1.2 * seconds(*usual->prices, prompt));
  prompt.chunks.front().tokens = 64;
  slow->stack.serving.mixed_graph_rows = usual->stack.serving.mixed_graph_rows = 0;
  CHECK(seconds(*slow->prices, prompt) > 2 * seconds(*usual->prices, prompt));
  CHECK(load_host("gb200-tray").launch_time.get() > 1);
}

TEST_CASE("what a host launches of a step with prompts is less in graphs and without a choice") {
  const auto e =
      engine("glm-5", "dgx-h200", {.tp = 8, .precision = PrecisionRecipe::fp8_blockwise}, "sglang");
  const auto launching = [&](std::int64_t start, std::int64_t tokens) {
    StepShape prompt;
    prompt.chunks.push_back({start, tokens});
    return e->prices->launching(prompt, e->prices->step(prompt));
  };
  e->stack.serving.mixed_graph_rows = 0;
  // The indexer of GLM-5 chooses 2,048 keys: of no more it is not asked.
  CHECK(launching(0, 2048) < launching(0, 2049));
  CHECK(launching(0, 64) == launching(0, 2048));
  CHECK(launching(2048, 64) == e->prices->launching());
  CHECK(to_seconds(launching(0, 2048)) > 0.6 * to_seconds(e->prices->launching()));
  e->stack.serving.mixed_graph_rows = 1024;
  CHECK(launching(0, 1024) == Ticks{});
  CHECK(launching(0, 1025) > Ticks{});
  CHECK(e->prices->launching(decodes(8, 1024), e->prices->step(decodes(8, 1024))) == Ticks{});
}

TEST_CASE("a decode step of a dense model reads its weights, and not much more") {
  // 70.6e9 parameters in BF16 over four H100 of 3.35 TB/s: 10.5 ms at the peak.
  const double floor = 2 * 70.6e9 / 4 / 3.35e12;
  const double one = seconds(llama(), decodes(1, 1024));
  CHECK(one > floor);
  CHECK(one < 1.6 * floor);
}

TEST_CASE("few sequences touch few experts") {
  const double one = seconds(deepseek(), decodes(1, 1024));
  const double many = seconds(deepseek(), decodes(64, 1024));
  CHECK(many > 1.5 * one);
  CHECK(many < 8 * one);
}

}  // namespace orrery
