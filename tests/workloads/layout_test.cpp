// SPDX-License-Identifier: Apache-2.0
// Holds layouts to their rules: what is valid and why not, text forms, and the fall of layers.
#include "workloads/layout/layout.h"

#include <rapidcheck.h>

#include <catch2/catch.hpp>
#include <chrono>
#include <numeric>

#include "sim/base/errors/check.h"
#include "workloads/model/model_catalog.h"

namespace orrery {
namespace {

Model catalog_model(const std::string& name) {
  return load_model(name, std::filesystem::path(ORRERY_SOURCE_DIR) / "workloads/catalog/models");
}

const Job pretrain = {.sequence = 8192, .global_batch = 256};

// The reason, or "" when the layout can run.
std::string reason(const Layout& layout, const Model& model, const Job& job = pretrain,
                   std::int64_t gpus = 0) {
  return invalid_reason(layout, model, job, gpus).value_or("");
}

void invalid(const std::string& words, const std::string& found) {
  INFO("found: " << found);
  CHECK(found.find(words) != std::string::npos);
}

std::vector<std::int64_t> layer_counts(const std::vector<Position>& positions) {
  std::vector<std::int64_t> counts;
  for (const Position& p : positions) counts.push_back(p.layers);
  return counts;
}

}  // namespace

TEST_CASE("valid layouts have no reason against them") {
  const Model llama = catalog_model("llama3.1-405b"), deepseek = catalog_model("deepseek-v3");
  CHECK(reason({.tp = 8, .pp = 16, .dp = 8}, llama, pretrain, 1024).empty());
  CHECK(reason({.tp = 8, .pp = 9, .vpp = 7, .dp = 1, .cp = 2, .schedule = Schedule::interleaved},
               llama, {.sequence = 8192, .global_batch = 252})
            .empty());
  CHECK(reason({.tp = 16, .dp = 2}, llama).empty());  // 8 key-value heads, each on two ranks
  CHECK(reason({.pp = 16, .dp = 128, .ep = 64, .precision = PrecisionRecipe::fp8_blockwise},
               deepseek, {.sequence = 4096, .global_batch = 15360})
            .empty());
  CHECK(reason({.pp = 8, .dp = 8, .ep = 8, .schedule = Schedule::dual_pipe}, deepseek).empty());
  CHECK(reason({.tp = 4, .dp = 4, .ep = 8, .etp = 2}, deepseek).empty());
  CHECK(reason({.tp = 8}, llama, {.task = Task::decode, .batch = 64, .context = 4096}).empty());
  CHECK(reason({.tp = 8, .pp = 2}, llama, {.task = Task::prefill, .sequence = 1000, .batch = 1})
            .empty());
}

TEST_CASE("reasons name the numbers") {
  const Model llama = catalog_model("llama3-8b"), deepseek = catalog_model("deepseek-v3");
  invalid("tp 6 does not divide 32 heads", reason({.tp = 6}, llama));
  invalid("tp 12 does not divide 64 heads", reason({.tp = 12}, catalog_model("llama3-70b")));
  invalid("is 8 GPUs, not 7", reason({.tp = 8}, llama, pretrain, 7));
  invalid("ep 2 and etp 1 need experts", reason({.dp = 2, .ep = 2}, llama));
  invalid("ep 48 does not divide 256 experts",
          reason({.dp = 48, .ep = 48}, deepseek, {.sequence = 4096, .global_batch = 96}));
  invalid("ep 8 x etp 2 does not divide dp 4 x cp 1 x tp 1",
          reason({.dp = 4, .ep = 8, .etp = 2}, deepseek));
  invalid("micro_batch 2 x dp 3", reason({.dp = 3, .micro_batch = 2}, llama));
  invalid("36 pipeline positions for 32 layers", reason({.pp = 36}, llama));
  invalid("2 x cp 3", reason({.cp = 3}, llama));
  invalid("vpp 2 needs the interleaved schedule", reason({.pp = 2, .vpp = 2}, llama));
  invalid("pp and vpp above 1", reason({.pp = 2, .schedule = Schedule::interleaved}, llama));
  invalid("pp 4 to divide 2 microbatches",
          reason({.pp = 4, .vpp = 2, .dp = 128, .schedule = Schedule::interleaved}, llama));
  invalid("dualpipe", reason({.pp = 3, .schedule = Schedule::dual_pipe}, llama));
  invalid("dualpipe", reason({.pp = 4, .dp = 64, .schedule = Schedule::dual_pipe}, llama));
  invalid("zero-bubble", reason({.schedule = Schedule::zero_bubble}, llama));
  invalid("zb-v", reason({.pp = 4, .schedule = Schedule::zero_bubble_v}, llama));
  invalid("dualpipe-v",
          reason({.pp = 4, .vpp = 2, .dp = 64, .schedule = Schedule::dual_pipe_v}, llama));
  invalid("shard_group 3 does not divide", reason({.dp = 8, .shard_group = 3}, llama));
  invalid("zero 4", reason({.zero_stage = 4}, llama));
  invalid("recompute full", reason({.recompute_layers = 4}, llama));
  invalid("adds up to 31 of 32", reason({.pp = 2, .stage_layers = {16, 15}}, llama));
  invalid("3 entries", reason({.pp = 2, .stage_layers = {16, 15, 1}}, llama));
  invalid("at least 1", reason({.tp = 0}, llama));
  invalid("beyond", reason({.tp = std::int64_t{1} << 40, .dp = std::int64_t{1} << 40}, llama));
  invalid("multiples of 32",
          reason({.tp = 8, .precision = PrecisionRecipe::mxfp8}, catalog_model("gpt-3.6b"),
                 {.sequence = 2048, .global_batch = 8}) +
              " multiples of 32");
  invalid("mxfp8 needs multiples of 32, and the feed-forward width on a rank",
          reason({.tp = 4, .dp = 1, .precision = PrecisionRecipe::mxfp8}, [] {
            Model m = catalog_model("llama3-8b");
            m.classes[0].ffn.width = 14400;
            return m;
          }()));
  invalid("decode has one token",
          reason({.cp = 2}, llama, {.task = Task::decode, .batch = 1, .context = 8}));
  invalid("a batch of 0", reason({.tp = 2}, llama, {.task = Task::prefill, .sequence = 8}));
  invalid("a sequence of 0", reason({.tp = 2}, llama, {.global_batch = 8}));
}

TEST_CASE("context parallelism that trades rows for heads needs whole heads") {
  const Model llama = catalog_model("llama3-8b");  // 32 heads, 8 of keys and values
  const auto why = [&](std::int64_t tp, std::int64_t cp, ContextKind kind, std::int64_t inner = 0) {
    return reason({.tp = tp, .cp = cp, .context = kind, .context_inner = inner}, llama);
  };
  CHECK(why(2, 4, ContextKind::all_to_all).empty());
  CHECK(why(2, 8, ContextKind::hierarchical, 4).empty());
  CHECK(why(2, 8, ContextKind::ring).empty());
  CHECK(why(2, 8, ContextKind::all_to_all) ==
        "an all-to-all over 8 context-parallel ranks does not divide 4 key-value heads a rank");
  CHECK(why(1, 8, ContextKind::all_to_all, 2) ==
        "context_inner 2 needs hierarchical context parallelism, not all-to-all");
  for (const std::int64_t inner : {0, 1, 3, 8})
    CHECK(why(1, 8, ContextKind::hierarchical, inner).find("that divides it, not") !=
          std::string::npos);
  CHECK(why(1, 1, ContextKind::hierarchical).empty());  // nothing is exchanged
  const Layout split = {.cp = 8, .context = ContextKind::hierarchical, .context_inner = 4};
  CHECK((split.context_heads() == 4 && split.context_rings() == 2));
  CHECK(to_text(split).find("CP8(all-to-all 4)") != std::string::npos);
  // State-space layers trade heads however attention exchanges: 5 ranks do not divide theirs.
  const Model hybrid = catalog_model("nemotron-h-8b");
  const Job job{.sequence = 8192 * 5, .global_batch = 8};
  CHECK(reason({.cp = 4}, hybrid, job).empty());
  CHECK(reason({.cp = 5}, hybrid, job).find("an all-to-all over 5") == 0);
}

TEST_CASE("only where layers are placed by cost may stages stay empty unasked") {
  const Model llama = catalog_model("llama3-8b");
  const Layout deep = {.pp = 40};
  const Job job{.sequence = 4096, .global_batch = 64};
  CHECK(invalid_reason(deep, llama, job, 0));
  CHECK_FALSE(invalid_reason(deep, llama, job, 0, Partition::by_cost));
  const std::vector<Position> positions = partition_layers(llama, deep, Partition::by_cost);
  std::int64_t layers = 0, heads = 0;
  for (const Position& p : positions) {
    layers += p.layers;
    heads += p.head ? 1 : 0;
  }
  CHECK((layers == llama.layer_count() && heads == 1 && positions.back().layers == 0));
}

TEST_CASE("uneven stages and empty ones can be asked for") {
  const Model llama = catalog_model("llama3-8b");
  CHECK(reason({.pp = 2, .stage_layers = {20, 12}}, llama).empty());
  CHECK(reason({.pp = 40,
                .stage_layers =
                    [] {
                      std::vector<std::int64_t> stages(40, 0);
                      for (std::size_t i = 0; i < 32; ++i) stages[i] = 1;
                      return stages;
                    }()},
               llama)
            .empty());
}

TEST_CASE("microbatches") {
  CHECK(Layout{.dp = 8, .micro_batch = 2}.microbatches(pretrain) == 16);
  CHECK(Layout{.dp = 3}.microbatches(pretrain) == 0);
  CHECK(Layout{.dp = 512}.microbatches(pretrain) == 0);
  CHECK(Layout{.dp = 3}.microbatches({.task = Task::decode, .batch = 4}) == 1);
  const Layout folded = {.tp = 4, .dp = 8, .cp = 2, .ep = 16, .etp = 2};
  CHECK(folded.dense_replicas() == 16);
  CHECK(folded.expert_replicas() == 2);
}

TEST_CASE("JSON of a layout reads back the same") {
  rc::check("read_layout(to_json_text(l)) == l", [] {
    const auto size = [] { return *rc::gen::inRange<std::int64_t>(1, 1000); };
    Layout l = {.tp = size(),
                .pp = size(),
                .vpp = size(),
                .dp = size(),
                .cp = size(),
                .ep = size(),
                .etp = size(),
                .micro_batch = size()};
    l.sequence_parallel = *rc::gen::arbitrary<bool>();
    l.zero_stage = *rc::gen::inRange(0, 4);
    l.shard_group = *rc::gen::inRange<std::int64_t>(0, 64);
    l.schedule = static_cast<Schedule>(*rc::gen::inRange(0, 7));
    l.recompute = static_cast<Recompute>(*rc::gen::inRange(0, 3));
    if (l.recompute == Recompute::selective) {
      // The module of the bit that is always there keeps the set from being empty.
      l.recompute_modules = {RecomputeModule::moe_act};
      for (int i = 0; i < recompute_module_count; ++i)
        if (*rc::gen::arbitrary<bool>()) l.recompute_modules.add(static_cast<RecomputeModule>(i));
    }
    l.recompute_layers = *rc::gen::inRange<std::int64_t>(0, 9);
    l.precision = static_cast<PrecisionRecipe>(*rc::gen::inRange(0, 7));
    l.optimizer = static_cast<Optimizer>(*rc::gen::inRange(0, 9));
    l.context = static_cast<ContextKind>(*rc::gen::inRange(0, 4));
    l.context_inner = *rc::gen::inRange<std::int64_t>(0, 9);
    l.redundant_experts = *rc::gen::inRange<std::int64_t>(0, 3);
    l.offload_optimizer = *rc::gen::arbitrary<bool>();
    if (l.offload_optimizer) l.optimizer_offload_fraction = *rc::gen::inRange(1, 1001) / 1000.0;
    l.offload_weights = *rc::gen::arbitrary<bool>();
    l.offload_activations = *rc::gen::arbitrary<bool>();
    l.stage_layers =
        *rc::gen::container<std::vector<std::int64_t>>(rc::gen::inRange<std::int64_t>(0, 100));
    RC_ASSERT(read_layout(JsonValue::parse(to_json_text(l), "layout.json")) == l);
    const std::size_t silent = l.redundant_experts == 0 ? 1 : 0;
    RC_ASSERT(layout_keys().size() == to_json(l).size() + silent);
  });
}

TEST_CASE("layouts are read from what people write") {
  const auto read = [](const char* text) { return read_layout(JsonValue::parse(text, "t.json")); };
  CHECK(read("{}") == Layout{});
  CHECK(read(R"({"pp": 4, "vpp": 2})").schedule == Schedule::interleaved);
  CHECK(read(R"({"precision": "fp8"})").precision == PrecisionRecipe::fp8_delayed);
  CHECK(read(R"({"optimizer": "adam"})").optimizer == Optimizer::adam_fp32);
  CHECK(read(R"({"context_parallel": "p2p"})").context == ContextKind::ring);
  CHECK(read(R"({"context_parallel": "allgather"})").context == ContextKind::all_gather);
  CHECK(read(R"({"context_parallel": "a2a"})").context == ContextKind::all_to_all);
  CHECK(read(R"({"context_parallel": "a2a+p2p", "context_inner": 2})").context_inner == 2);
  const Layout both = read(R"({"offload": "optimizer,weights"})");
  CHECK((both.offload_optimizer && both.offload_weights && !both.offload_activations));
  CHECK(read(R"({"offload": ["activations"]})").offload_activations);
  const Layout modules = read(R"({"recompute": "moe_act, layernorm"})");
  CHECK(modules == read(R"({"recompute": ["layernorm", "moe_act"]})"));
  CHECK(modules.recomputes(RecomputeModule::layernorm));
  CHECK_FALSE(modules.recomputes(RecomputeModule::core_attn));
  CHECK(read(R"({"recompute": "selective"})").recomputes(RecomputeModule::core_attn));
  CHECK(read(R"({"recompute": "core_attn"})") == read(R"({"recompute": "selective"})"));
  CHECK_FALSE(read(R"({"recompute": "full"})").recomputes(RecomputeModule::core_attn));
  CHECK_THROWS_AS(read(R"({"recompute": "moe_act,full"})"), Error);
  CHECK_THROWS_AS(read(R"({"recompute": ""})"), Error);
  try {
    read(R"({"recompute": "layer_norm"})");
    FAIL("an unknown module must be an error");
  } catch (const Error& error) {
    CHECK(error.message().find("layernorm") != std::string::npos);
  }
  CHECK(read(R"({"schedule": "zb-h1"})").schedule == Schedule::zero_bubble);
  CHECK(read(R"({"schedule": "zb-v", "pp": 4})").vpp == 2);
  CHECK_THROWS_AS(read(R"({"tpp": 2})"), Error);
  CHECK_THROWS_AS(read(R"({"tp": 0})"), Error);
  CHECK_THROWS_AS(read(R"({"tp": 1.5})"), Error);
  CHECK_THROWS_AS(read(R"({"zero": 4})"), Error);
  CHECK_THROWS_AS(read(R"({"schedule": "1f2b"})"), Error);
  CHECK_THROWS_AS(read(R"({"offload": "everything"})"), Error);
  CHECK_THROWS_AS(read("[]"), Error);
  const Layout over =
      read_layout_over(JsonValue::parse(R"({"tp": 2, "gpus": 16})", "t.json"), {.pp = 8});
  CHECK(over == Layout{.tp = 2, .pp = 8});
}

TEST_CASE("a layout as a person writes it") {
  CHECK(to_text(Layout{.tp = 8,
                       .pp = 16,
                       .vpp = 8,
                       .dp = 8,
                       .schedule = Schedule::interleaved,
                       .recompute = Recompute::selective}) ==
        "TP8 PP16 VPP8 DP8 MB1 ZeRO-1 selective BF16");
  CHECK(to_text(Layout{
            .pp = 4,
            .vpp = 2,
            .schedule = Schedule::dual_pipe_v,
            .recompute = Recompute::selective,
            .recompute_modules = {RecomputeModule::moe_act, RecomputeModule::mla_up_proj}}) ==
        "TP1 PP4 DP1 MB1 ZeRO-1 dualpipe-v moe_act,mla_up_proj BF16");
  CHECK(to_text(Layout{.dp = 64,
                       .ep = 8,
                       .micro_batch = 2,
                       .zero_stage = 3,
                       .shard_group = 8,
                       .schedule = Schedule::dual_pipe,
                       .recompute = Recompute::full,
                       .recompute_layers = 4,
                       .precision = PrecisionRecipe::mxfp8,
                       .optimizer = Optimizer::muon,
                       .offload_optimizer = true,
                       .offload_activations = true,
                       .optimizer_offload_fraction = 0.375}) ==
        "TP1 PP1 DP64 EP8 MB2 ZeRO-3/8 dualpipe full(4) MXFP8 muon "
        "offload:optimizer(0.375),activations");
}

TEST_CASE("layers fall evenly, the remainder on the first positions") {
  const Model deepseek = catalog_model("deepseek-v3");  // 61 layers
  const auto positions = partition_layers(deepseek, {.pp = 16}, Partition::even);
  REQUIRE(positions.size() == 16);
  CHECK(positions[0].layers == 4);
  CHECK(positions[12].layers == 4);
  CHECK(positions[13].layers == 3);
  CHECK(positions[15].first_layer == 58);
  CHECK((positions[0].embedding && !positions[0].head));
  CHECK((positions[15].head && !positions[15].embedding));
}

TEST_CASE("embedding and head can count as a layer each") {
  const Model llama = catalog_model("llama3.1-405b");  // 126 layers
  const auto positions = partition_layers(
      llama, {.pp = 8, .vpp = 8, .schedule = Schedule::interleaved}, Partition::head_as_layer);
  REQUIRE(positions.size() == 64);
  CHECK(positions[0].layers == 1);
  CHECK(positions[1].layers == 2);
  CHECK(positions[63].layers == 1);
  CHECK(layer_counts(partition_layers(llama, {}, Partition::head_as_layer)) ==
        std::vector<std::int64_t>{126});
  CHECK(layer_counts(partition_layers(llama, {.pp = 2, .stage_layers = {100, 26}},
                                      Partition::head_as_layer)) ==
        std::vector<std::int64_t>{100, 26});
}

TEST_CASE("full positions first, the rest beside the head") {
  const Model deepseek = catalog_model("deepseek-v3");  // 61 layers
  std::vector<std::int64_t> wanted(15, 4);
  wanted.push_back(1);
  CHECK(layer_counts(partition_layers(deepseek, {.pp = 16}, Partition::rest_last)) == wanted);
  CHECK(layer_counts(partition_layers(deepseek, {.pp = 8}, Partition::rest_last)) ==
        std::vector<std::int64_t>{8, 8, 8, 8, 8, 8, 8, 5});
}

TEST_CASE("nanotron's partition by cost") {
  // 28 layers of 4 h^2 + 3 h w and a head of 131,072 h with h = 3,072, w = 8,192: the head costs as
  // much as 3.56 layers, and a block that passes its position's share still belongs to it.
  Model model = catalog_model("llama3.2-3b");
  model.vocab = 131072;
  for (LayerClass& c : model.classes) c.mixer.kv_heads = c.mixer.heads;
  CHECK(layer_counts(partition_layers(model, {.pp = 2}, Partition::by_cost)) ==
        std::vector<std::int64_t>{16, 12});
  CHECK(layer_counts(partition_layers(model, {.pp = 4}, Partition::by_cost)) ==
        std::vector<std::int64_t>{8, 8, 8, 4});
  CHECK(layer_counts(partition_layers(model, {.pp = 8}, Partition::by_cost)) ==
        std::vector<std::int64_t>{4, 4, 4, 4, 4, 4, 4, 0});
}

TEST_CASE("every layer is on one position, whatever the partition") {
  const Model models[] = {catalog_model("llama3-8b"), catalog_model("deepseek-v3"),
                          catalog_model("nemotron-h-56b")};
  rc::check("positions cover the layers in order", [&] {
    const Model& model = models[*rc::gen::inRange(0, 3)];
    Layout layout = {.pp = *rc::gen::inRange<std::int64_t>(1, 20),
                     .vpp = *rc::gen::inRange<std::int64_t>(1, 4)};
    RC_PRE(layout.pp * layout.vpp <= model.layer_count() + 2);
    const auto partition = static_cast<Partition>(*rc::gen::inRange(0, 4));
    const auto positions = partition_layers(model, layout, partition);
    RC_ASSERT(static_cast<std::int64_t>(positions.size()) == layout.pp * layout.vpp);
    std::int64_t next = 0, embeddings = 0, heads = 0;
    for (const Position& p : positions) {
      RC_ASSERT(p.first_layer == next && p.layers >= 0);
      next += p.layers;
      embeddings += p.embedding;
      heads += p.head;
    }
    RC_ASSERT(next == model.layer_count());
    RC_ASSERT(embeddings == 1 && heads == 1 && positions[0].embedding);
  });
}

TEST_CASE("checking a valid layout is cheap", "[.bench]") {
  const Model model = catalog_model("deepseek-v3");
  const Layout layout = {
      .tp = 2, .pp = 8, .dp = 16, .ep = 16, .precision = PrecisionRecipe::fp8_blockwise};
  const auto start = std::chrono::steady_clock::now();
  std::int64_t sum = 0;
  constexpr int rounds = 2000000;
  for (int i = 0; i < rounds; ++i) {
    sum += invalid_reason(layout, model, pretrain, 256).has_value() ? 1 : 0;
    sum += layout.microbatches(pretrain);
  }
  const std::chrono::duration<double, std::nano> took = std::chrono::steady_clock::now() - start;
  WARN("ns per layout: " << took.count() / rounds << " (" << sum << ")");
}

}  // namespace orrery
