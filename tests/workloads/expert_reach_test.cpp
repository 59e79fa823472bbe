// SPDX-License-Identifier: Apache-2.0
// Holds the experts that a decode step reads against routing drawn at random.
#include <algorithm>
#include <catch2/catch.hpp>
#include <filesystem>
#include <numeric>
#include <random>
#include <set>
#include <vector>

#include "workloads/model/model_catalog.h"
#include "workloads/operations/inference.h"
#include "workloads/operations/layer_operations.h"
#include "workloads/parameters/state_memory.h"
#include "workloads/stack/stack.h"

namespace orrery {
namespace {

std::filesystem::path catalog(const std::string& kind) {
  return std::filesystem::path(ORRERY_SOURCE_DIR) / "workloads/catalog" / kind;
}

// Experts that the products of one decode step read on a rank.
std::int64_t experts_read(const Model& model, const Job& job, const Layout& layout) {
  const Stack stack = load_stack("serving-kernels", {.moe = true}, catalog("stacks"));
  const StepProgram program = lower_inference(model, job, layout, stack);
  std::int64_t most = 0;
  for (const LayerProgram& layer : program.classes)
    for (const Operation& o : layer.forward.operations)
      if (const Kernel* k = o.kernel(); k && k->work.kind == WorkKind::grouped_gemm)
        most = std::max(most, k->work.groups);
  return most;
}

// Mean over draws of the experts with a row on the rank that most rows reach.
double experts_drawn(std::int64_t tokens, const Ffn& ffn, std::int64_t ranks,
                     std::mt19937& random) {
  constexpr int draws = 400;
  const auto local = static_cast<std::size_t>(ffn.experts / ranks);
  std::vector<std::size_t> all(static_cast<std::size_t>(ffn.experts));
  std::iota(all.begin(), all.end(), 0U);
  double sum = 0;
  for (int draw = 0; draw < draws; ++draw) {
    std::vector<int> rows(static_cast<std::size_t>(ranks));
    std::vector<std::set<std::size_t>> seen(static_cast<std::size_t>(ranks));
    for (std::int64_t t = 0; t < tokens; ++t)
      for (std::int64_t k = 0; k < ffn.topk; ++k) {
        std::uniform_int_distribution<std::size_t> other(static_cast<std::size_t>(k),
                                                         all.size() - 1);
        std::swap(all[static_cast<std::size_t>(k)], all[other(random)]);
        const std::size_t expert = all[static_cast<std::size_t>(k)];
        ++rows[expert / local];
        seen[expert / local].insert(expert);
      }
    const auto most = std::max_element(rows.begin(), rows.end()) - rows.begin();
    sum += static_cast<double>(seen[static_cast<std::size_t>(most)].size());
  }
  return sum / draws;
}

}  // namespace

TEST_CASE("a decode step reads the experts that some row reaches, and no others") {
  std::mt19937 random(7);
  for (const char* name : {"deepseek-v3", "qwen3-235b-a22b", "mixtral-8x7b"}) {
    const Model model = load_model(name, catalog("models"));
    const Ffn& ffn = model.classes[model.layers.back()].ffn;
    REQUIRE(ffn.kind == FfnKind::moe);
    for (const std::int64_t ranks : {1, 4, 8}) {
      std::int64_t before = 0;
      for (const std::int64_t tokens : {1, 4, 16, 64, 4096}) {
        Job job = {.task = Task::decode, .batch = tokens, .context = 1024};
        const Layout layout = {.tp = ranks, .ep = ranks};
        const std::int64_t read = experts_read(model, job, layout);
        const double drawn = experts_drawn(std::min<std::int64_t>(tokens, 256), ffn, ranks, random);
        INFO(name << ", " << ranks << " ranks, " << tokens << " tokens: " << drawn << " drawn");
        CHECK(std::abs(static_cast<double>(read) - drawn) <= std::max(0.6, 0.1 * drawn));
        CHECK(read >= before);
        before = read;
      }
      CHECK(before == ffn.experts / ranks);
    }
  }
}

TEST_CASE("copies of experts are held and read as experts are") {
  const Model model = load_model("deepseek-v3", catalog("models"));
  const LayerClass& layer = model.classes[model.layers.back()];
  const Layout plain = {.dp = 64, .ep = 64};
  const Layout copied = {.dp = 72, .ep = 72, .redundant_experts = 32};
  CHECK(local_experts(layer.ffn, plain) == 4);
  CHECK(local_experts(layer.ffn, copied) == 4);
  const Job many = {.task = Task::decode, .batch = 4096, .context = 1024};
  CHECK(experts_read(model, many, plain) == 4);
  CHECK(experts_read(model, many, copied) == 4);
  // 288 of 256 experts' weights over 72 ranks are 256 over 64.
  CHECK(local_parameters(model, layer, copied).expert ==
        Approx(local_parameters(model, layer, plain).expert));
  CHECK(local_parameters(model, layer, copied).one_expert ==
        Approx(local_parameters(model, layer, plain).one_expert));
  CHECK(invalid_reason(copied, model, many, 72) == std::nullopt);
  CHECK(invalid_reason({.dp = 72, .ep = 72}, model, many, 72).has_value());
}

}  // namespace orrery
