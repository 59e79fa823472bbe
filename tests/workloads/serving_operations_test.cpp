// SPDX-License-Identifier: Apache-2.0
// Holds the operations of serving steps against counting by hand.
#include "workloads/inference/serving_operations.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <filesystem>
#include <utility>
#include <vector>

#include "workloads/model/model_catalog.h"

namespace orrery {
namespace {

std::filesystem::path catalog(const std::string& kind) {
  return std::filesystem::path(ORRERY_SOURCE_DIR) / "workloads/catalog" / kind;
}

// Weights that products of a step read, in elements.
double weights_read(const Segment& s) {
  double sum = 0;
  for (const Operation& o : s.operations)
    if (const Kernel* k = o.kernel(); k && is_product(k->work.kind))
      sum += static_cast<double>(k->work.n * k->work.k * k->work.groups);
  return sum;
}

double bytes_reduced(const Segment& s) {
  double sum = 0;
  for (const Operation& o : s.operations)
    if (const CollectiveOperation* c = o.collective();
        c && c->kind == CollectiveKind::all_reduce && c->group == GroupKind::tensor)
      sum += c->bytes.si();
  return sum;
}

double all_weights(const std::string& name, const EngineLayout& layout, std::int64_t rows) {
  const Model model = load_model(name, catalog("models"));
  const Stack stack = load_stack("vllm", {}, catalog("stacks"));
  const ServingOperations operations(model, layout, stack);
  double sum = weights_read(operations.head(rows));
  for (std::int64_t i = 0; i < model.layer_count(); ++i)
    sum += weights_read(operations.layer(model.layer(i), rows));
  return sum;
}

TEST_CASE("a decode step of a dense model reads every weight of its products once") {
  // Llama 3 8B: 8.03e9 parameters, of them an embedding of 128,256 x 4,096 and norms that no
  // product reads.
  const double parameters = 8030261248.0, embedding = 128256.0 * 4096, norms = 65.0 * 4096;
  CHECK(all_weights("llama3-8b", {}, 1) == Approx(parameters - embedding - norms));
  CHECK(all_weights("llama3-8b", {}, 64) == Approx(parameters - embedding - norms));
  CHECK(all_weights("llama3-8b", {.tp = 8}, 1) ==
        Approx((parameters - embedding - norms) / 8).epsilon(1e-9));
}

TEST_CASE("few rows read few experts, many read all of them") {
  const EngineLayout layout{.tp = 8, .etp = 8};
  const double one = all_weights("qwen3-235b-a22b", layout, 1);
  const double many = all_weights("qwen3-235b-a22b", layout, 4096);
  // 235.1e9 parameters, 22.1e9 of them reached by a token; the embedding is read by no product, the
  // router whole by every rank.
  CHECK(many * 8 == Approx(235.1e9 - 151936.0 * 4096).epsilon(0.01));
  const double routers = 7 * 94.0 * 4096 * 128;
  CHECK(one * 8 == Approx(22.1e9 - 151936.0 * 4096 + routers).epsilon(0.03));
}

TEST_CASE("tensor-parallel ranks add up each layer's two results, and the embedding's") {
  const Model model = load_model("llama3-8b", catalog("models"));
  const Stack stack = load_stack("vllm", {}, catalog("stacks"));
  const EngineLayout layout{.tp = 4};
  const ServingOperations operations(model, layout, stack);
  CHECK(bytes_reduced(operations.layer(model.layer(0), 7)) == 2 * 2.0 * 7 * 4096);
  CHECK(bytes_reduced(operations.embedding(7)) == 2.0 * 7 * 4096);
}

// Of the exchanges of an expert layer, in their order.
std::vector<CollectiveKind> exchanged(const ServingOperations& operations, const Model& model,
                                      std::int64_t rows) {
  std::vector<CollectiveKind> kinds;
  const Segment layer = operations.layer(model.layer(0), rows);
  for (const Operation& o : layer.operations)
    if (const CollectiveOperation* c = o.collective(); c && o.label == Label::expert_comm)
      kinds.push_back(c->kind);
  return kinds;
}

TEST_CASE("ranks that gather the rows of experts do so by all-reduces beyond SGLang's graphs") {
  const Model model = load_model("qwen3-235b-a22b", catalog("models"));
  const Stack stack = load_stack("sglang", {}, catalog("stacks"));
  EngineLayout layout{.attention_dp = 8, .ep = 8};
  using enum CollectiveKind;
  CHECK(exchanged({model, layout, stack}, model, 4096) == std::vector{all_to_all, all_to_all});
  layout.gathers_rows = true;
  CHECK(exchanged({model, layout, stack}, model, 64) == std::vector{all_gather, reduce_scatter});
  CHECK(exchanged({model, layout, stack}, model, 4096) == std::vector{all_reduce, all_reduce});
}

TEST_CASE("ranks of attention data parallelism exchange rows of experts alone") {
  const Model model = load_model("qwen3-235b-a22b", catalog("models"));
  const Stack stack = load_stack("vllm", {}, catalog("stacks"));
  const EngineLayout layout{.attention_dp = 8, .ep = 8};
  const ServingOperations operations(model, layout, stack);
  const Segment layer = operations.layer(model.layer(0), 16);
  CHECK(bytes_reduced(layer) == 0);
  int exchanges = 0;
  for (const Operation& o : layer.operations)
    exchanges += o.collective() != nullptr && o.label == Label::expert_comm;
  CHECK(exchanges == 2);
}

// What the exchange of an expert layer sends, its first half.
CollectiveOperation dispatch_of(const EngineLayout& layout, const char* stack_name,
                                std::int64_t rows) {
  const Model model = load_model("deepseek-v3", catalog("models"));
  Stack stack = load_stack(stack_name, {}, catalog("stacks"));
  stack.communication.expert_library = CollectiveLibrary::deepep;
  const ServingOperations operations(model, layout, stack);
  const Segment layer = operations.layer(model.layer(model.layer_count() - 1), rows);
  for (const Operation& o : layer.operations)
    if (o.collective() != nullptr && o.label == Label::expert_comm) return *o.collective();
  return {};
}

TEST_CASE("ranks that hold the same rows send a part of them each") {
  const CollectiveOperation alone =
      dispatch_of({.tp = 1, .attention_dp = 64, .ep = 64}, "sglang", 4096);
  const CollectiveOperation shared =
      dispatch_of({.tp = 8, .attention_dp = 8, .ep = 64}, "sglang", 4096);
  CHECK(alone.kind == CollectiveKind::all_to_all);
  CHECK(shared.kind == CollectiveKind::all_to_all);
  CHECK(shared.bytes.si() == alone.bytes.si() / 8);
  CHECK(shared.exchange.tokens == 512);
  // The halves of the all-reduce after attention stand for the scatter and the gather.
  const Model model = load_model("deepseek-v3", catalog("models"));
  Stack stack = load_stack("sglang", {}, catalog("stacks"));
  stack.communication.expert_library = CollectiveLibrary::deepep;
  const EngineLayout whole{.tp = 8, .attention_dp = 8, .ep = 64};
  const EngineLayout cut{.tp = 8, .attention_dp = 8, .ep = 8, .etp = 8};
  const ServingOperations sent(model, whole, stack), gathered(model, cut, stack);
  const auto& last = model.layer(model.layer_count() - 1);
  CHECK(bytes_reduced(gathered.layer(last, 64)) == 2 * bytes_reduced(sent.layer(last, 64)));
}

TEST_CASE("experts cut by width get the rows of all ranks, over all ranks") {
  for (const std::int64_t ep : {1, 2, 8, 16}) {
    const CollectiveOperation c =
        dispatch_of({.tp = 8, .attention_dp = 8, .ep = ep, .etp = 64 / ep}, "sglang", 512);
    CHECK(c.kind == CollectiveKind::all_gather);
    CHECK(c.group == GroupKind::expert_ranks);
    CHECK(c.bytes.si() == 2.0 * 8 * 512 * 7168);
  }
}

TEST_CASE("experts take the rows of all ranks, an exchange those of the largest") {
  const Model model = load_model("deepseek-v3", catalog("models"));
  Stack stack = load_stack("sglang", {}, catalog("stacks"));
  stack.communication.expert_library = CollectiveLibrary::deepep;
  const auto& last = model.layer(model.layer_count() - 1);
  // Rows of experts on a rank, by the operations of one of their products.
  const auto expert_rows = [](const Segment& s) {
    double most = 0;
    for (const Operation& o : s.operations)
      if (const Kernel* k = o.kernel(); k && k->work.kind == WorkKind::grouped_gemm)
        most = std::max(most, static_cast<double>(k->work.m * k->work.groups));
    return most;
  };
  const auto moved = [](const Segment& s) {
    double sum = 0;
    for (const Operation& o : s.operations)
      if (const CollectiveOperation* c = o.collective(); c && o.label == Label::expert_comm)
        sum += c->bytes.si();
    return sum;
  };
  const EngineLayout whole{.attention_dp = 64, .ep = 64};
  const EngineLayout cut{.attention_dp = 64, .ep = 16, .etp = 4};
  const std::int64_t rows = 8192;
  for (const EngineLayout& layout : {whole, cut}) {
    const ServingOperations operations(model, layout, stack);
    const Segment even = operations.layer(last, rows);
    const Segment lone = operations.layer(last, rows, {rows, rows});
    CHECK(even.operations.size() == lone.operations.size());
    CHECK(expert_rows(lone) < expert_rows(even) / 50);
    CHECK(expert_rows(lone) > expert_rows(even) / 64);
    CHECK(moved(lone) == (layout == whole ? moved(even) : moved(even) / 64));
    // What is shared is what the group decides: a layer of no other rows lacks it.
    const Segment own = operations.layer(last, rows, {}), shared = operations.shared(last, {1, 1});
    CHECK(expert_rows(own) == 0);
    CHECK(moved(own) == 0);
    CHECK(own.operations.size() + shared.operations.size() == even.operations.size());
  }
}

// Permute kernels of one expert layer of DeepSeek-V3 on one rank that holds all experts.
std::vector<Work> permutes_of(const char* stack_name, std::int64_t rows) {
  const Model model = load_model("deepseek-v3", catalog("models"));
  const Stack stack = load_stack(stack_name, {}, catalog("stacks"));
  const EngineLayout layout;
  const ServingOperations operations(model, layout, stack);
  std::vector<Work> found;
  for (const Operation& o : operations.layer(model.layer(model.layer_count() - 1), rows).operations)
    if (const Kernel* k = o.kernel(); k && k->work.kind == WorkKind::permute)
      found.push_back(k->work);
  return found;
}

std::int64_t empty_kernels(const Segment& s) {
  return std::count_if(s.operations.begin(), s.operations.end(), [](const Operation& o) {
    const Kernel* k = o.kernel();
    return k && k->work.kind == WorkKind::elementwise && k->work.bytes_read == 0;
  });
}

TEST_CASE("queries that have no latent are a product of their own, beside that of the latent") {
  const Model model = load_model("deepseek-v2-lite", catalog("models"));
  const Stack stack = load_stack("vllm", {}, catalog("stacks"));
  const EngineLayout layout{.tp = 2};
  const Segment s = ServingOperations(model, layout, stack).layer(model.layer(0), 8);
  std::vector<Work> products;
  for (const Operation& o : s.operations)
    if (const Kernel* k = o.kernel(); k && k->work.kind == WorkKind::gemm)
      products.push_back(k->work);
  REQUIRE(products.size() > 2);
  CHECK((products[0].n == 8 * 192 && products[0].k == 2048));   // of half of the heads
  CHECK((products[1].n == 512 + 64 && products[1].k == 2048));  // every rank has it all
}

TEST_CASE("a layer has the small kernels of its parts") {
  Stack stack = load_stack("vllm", {}, catalog("stacks"));
  stack.serving.kernels.small = {.attention = 3, .latent = 5, .shared = 7};
  const auto kernels = [&](const std::string& name, std::int64_t layer) {
    const Model model = load_model(name, catalog("models"));
    return empty_kernels(ServingOperations(model, {}, stack).layer(model.layer(layer), 8));
  };
  CHECK(kernels("llama3-8b", 0) == 3);
  CHECK(kernels("qwen3-235b-a22b", 0) == 3);  // its experts share none
  CHECK(kernels("deepseek-r1", 0) == 5);      // its first layers are dense
  CHECK(kernels("deepseek-r1", 60) == 5 + 7);
}

TEST_CASE("small graphs run shared experts in a second stream") {
  const Model model = load_model("deepseek-r1", catalog("models"));
  Stack stack = load_stack("vllm", {}, catalog("stacks"));
  stack.serving.kernels.second_stream_rows = 64;
  const auto layer = [&](const EngineLayout& layout, std::int64_t rows) {
    return ServingOperations(model, layout, stack).layer(model.layer(60), rows);
  };
  const EngineLayout split{.tp = 8, .etp = 8};
  const Segment beside = layer(split, 64), after = layer(split, 65);
  CHECK(after.second.operations.empty());
  CHECK(beside.operations.size() + beside.second.operations.size() == after.operations.size());
  // It starts with the router and is awaited before the sum over ranks.
  CHECK(beside.operations.at(beside.second.from).kernel()->work.n == 256);
  CHECK(beside.operations.at(beside.second.to).collective() != nullptr);

  const EngineLayout own{.attention_dp = 8, .ep = 8};
  stack.communication.expert_library = CollectiveLibrary::deepep;
  stack.serving.kernels.second_stream_sends = false;
  CHECK(layer(own, 8).second.operations.empty());
  stack.serving.kernels.second_stream_sends = true;
  CHECK(layer(own, 8).second.operations.size() == beside.second.operations.size());
}

TEST_CASE("tiles of experts' products are those of the step's rows") {
  const Model model = load_model("deepseek-v3", catalog("models"));
  Stack stack = load_stack("trtllm", {}, catalog("stacks"));
  const EngineLayout layout{.tp = 8, .ep = 8};
  const auto filled = [&](std::int64_t rows) {
    const ServingOperations operations(model, layout, stack);
    const Segment s = operations.layer(model.layer(model.layer_count() - 1), rows);
    for (const Operation& o : s.operations)
      if (const Kernel* k = o.kernel(); k && k->work.kind == WorkKind::grouped_gemm)
        return k->work.filled_m;
    return std::int64_t(-1);
  };
  stack.serving.kernels.grouped_tiles = {};
  CHECK(filled(128) == 0);
  stack.serving.kernels.grouped_tiles = {
      {.from = 0, .rows = 16}, {.from = 32, .rows = 64}, {.from = 65, .rows = 128}};
  CHECK(filled(16) == 16);
  CHECK(filled(64) == 64);
  CHECK(filled(128) == 128);
  // Loads of about 128 rows: some experts have more, and take a second tile.
  CHECK(filled(4096) > 128);
  CHECK(filled(4096) <= 2 * 128);
}

TEST_CASE("experts end with the kernel that adds up what 8 of them made of a row") {
  const std::int64_t rows = 4096;
  const std::vector<Work> engine = permutes_of("trtllm", rows);
  REQUIRE(engine.size() == 1);
  CHECK(engine[0].bytes_read == 2.0 * 8 * 7168 * rows);
  CHECK(engine[0].bytes_written == 2.0 * 7168 * rows);
  CHECK(permutes_of("pytorch-serve", rows).size() == 3);  // sorts rows and puts them in order, too
  CHECK(permutes_of("pytorch-serve", 1).empty());         // Triton's, fitted as a whole
}

}  // namespace
}  // namespace orrery
