// SPDX-License-Identifier: Apache-2.0
// Holds the experts that rows reach against routing drawn at random, and against published counts.
#include "workloads/layout/expert_reach.h"

#include <rapidcheck.h>
#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <filesystem>
#include <numeric>
#include <random>
#include <set>
#include <utility>
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

// Mean over draws of the experts with a row, of the rank with most of them.
double experts_drawn(std::int64_t tokens, const Ffn& ffn, std::int64_t ranks,
                     std::mt19937& random) {
  constexpr int draws = 400;
  const auto local = static_cast<std::size_t>(ffn.experts / ranks);
  std::vector<std::size_t> all(static_cast<std::size_t>(ffn.experts));
  std::iota(all.begin(), all.end(), 0U);
  double sum = 0;
  for (int draw = 0; draw < draws; ++draw) {
    std::vector<std::set<std::size_t>> seen(static_cast<std::size_t>(ranks));
    for (std::int64_t t = 0; t < tokens; ++t)
      for (std::int64_t k = 0; k < ffn.topk; ++k) {
        std::uniform_int_distribution<std::size_t> other(static_cast<std::size_t>(k),
                                                         all.size() - 1);
        std::swap(all[static_cast<std::size_t>(k)], all[other(random)]);
        const std::size_t expert = all[static_cast<std::size_t>(k)];
        seen[expert / local].insert(expert);
      }
    std::size_t most = 0;
    for (const auto& experts : seen) most = std::max(most, experts.size());
    sum += static_cast<double>(most);
  }
  return sum / draws;
}

struct Drawn {
  double rows = 0, experts = 0;  // of the busiest rank over the mean; of the rank that most reach
};

// Experts whose popularity is log-normal, dealt to ranks, and rows that choose among all: the mean
// of `draws`.
Drawn drawn_reach(std::int64_t ranks, std::int64_t held, double skew, int rows, int draws) {
  std::mt19937 random(7);
  std::normal_distribution<double> normal(0, 1);
  Drawn sum;
  for (int draw = 0; draw < draws; ++draw) {
    std::vector<double> chosen;
    for (std::int64_t e = 0; e < ranks * held; ++e)
      chosen.push_back(std::exp(skew * normal(random)));
    std::discrete_distribution<std::int64_t> expert(chosen.begin(), chosen.end());
    std::vector<std::int64_t> counts(chosen.size(), 0);
    for (int row = 0; row < rows; ++row) ++counts[static_cast<std::size_t>(expert(random))];
    std::int64_t busiest = 0, reached = 0;
    for (auto at = counts.begin(); at != counts.end(); at += held) {
      busiest = std::max(busiest, std::accumulate(at, at + held, std::int64_t{0}));
      reached = std::max<std::int64_t>(
          reached, std::count_if(at, at + held, [](std::int64_t n) { return n > 0; }));
    }
    sum.rows += static_cast<double>(busiest * ranks) / rows / draws;
    sum.experts += static_cast<double>(reached) / draws;
  }
  return sum;
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

TEST_CASE("experts that rows reach: one token its own, many tokens all") {
  const ExpertReach one = reached_experts({.tokens = 1, .topk = 8, .ranks = 1, .held = 128});
  CHECK(one.experts == 8);
  CHECK(one.rows == 8);
  const ExpertReach many = reached_experts({.tokens = 4096, .topk = 8, .ranks = 8, .held = 16});
  CHECK(many.experts == 16);
  CHECK(many.rows > 4096);  // the busiest of eight ranks has more than the mean
  CHECK(many.rows < 1.05 * 4096);
}

TEST_CASE("law: ranks of unlike experts have as many rows, and experts with any, as drawn ones") {
  const auto [ranks, held] = GENERATE(
      std::pair<std::int64_t, std::int64_t>{1, 256}, std::pair<std::int64_t, std::int64_t>{4, 64},
      std::pair<std::int64_t, std::int64_t>{8, 32}, std::pair<std::int64_t, std::int64_t>{32, 8});
  const double skew = GENERATE(0.0, 0.5, 0.98);
  const int rows = GENERATE(128, 1024, 8192);
  const ExpertRouting routing{
      .tokens = rows / 8.0, .topk = 8, .ranks = ranks, .held = held, .skew = skew};
  const Drawn drawn = drawn_reach(ranks, held, skew, rows, 200);
  const ExpertReach reach = reached_experts(routing);
  INFO(ranks << " ranks of " << held << ", skew " << skew << ", " << rows << " rows");
  CHECK(reach.mean == Approx(static_cast<double>(rows) / static_cast<double>(ranks)));
  CHECK(reach.rows / reach.mean == Approx(drawn.rows).epsilon(0.07));
  CHECK(static_cast<double>(reach.experts) == Approx(drawn.experts).epsilon(0.05).margin(0.6));
}

TEST_CASE("experts of DeepSeek-R1: ranks as TensorRT-LLM counted them, evened out and not") {
  // 32 ranks of 8 experts, 4,096 tokens: 2.564 times the mean on the busiest, 1.109 with 32 copies
  // and 1.115 where 36 ranks have these (tech blog 4, table 1). The skew is that of single experts.
  const Stack stack = load_stack("trtllm", {}, catalog("stacks"));
  ExpertRouting routing{.tokens = 4096,
                        .topk = 8,
                        .ranks = 32,
                        .held = 8,
                        .skew = stack.serving.kernels.expert_skew.get()};
  const auto busiest = [](const ExpertRouting& r) {
    const ExpertReach reach = reached_experts(r);
    return reach.rows / reach.mean;
  };
  CHECK(busiest(routing) == Approx(2.564).epsilon(0.15));
  routing.copies = 0;
  const double placed = busiest(routing);
  routing.copies = 32;
  routing.held = 9;
  CHECK(busiest(routing) == Approx(1.109).epsilon(0.03));
  CHECK(placed > busiest(routing));  // a rank is no less busy than its busiest expert
  routing.ranks = 36;
  routing.held = 8;
  CHECK(busiest(routing) == Approx(1.115).epsilon(0.03));
  // Where each rank has 32 experts, no expert is as busy as a rank.
  routing = {.tokens = 4096, .topk = 8, .ranks = 8, .held = 32, .skew = routing.skew, .copies = 0};
  CHECK(busiest(routing) < 1.1);
}

TEST_CASE("law: more tokens bring no rank fewer rows, nor fewer experts that any reaches") {
  CHECK(rc::check("reach is monotone", [] {
    ExpertRouting r{.tokens = static_cast<double>(*rc::gen::inRange(1, 20'000)),
                    .topk = *rc::gen::inRange(1, 9),
                    .ranks = std::int64_t{1} << *rc::gen::inRange(0, 7),
                    .held = *rc::gen::inRange(8, 65),
                    .skew = 0.01 * *rc::gen::inRange(0, 150)};
    if (*rc::gen::arbitrary<bool>()) r.copies = *rc::gen::inRange<std::int64_t>(0, r.held);
    const ExpertReach some = reached_experts(r);
    RC_ASSERT(some.rows >= some.mean * 0.999999 || some.rows >= r.tokens * 0.999999);
    RC_ASSERT(some.experts <= r.held);
    RC_ASSERT(most_sent(some, r, true) <= most_sent(some, r, false) + 1e-9);
    r.tokens += *rc::gen::inRange(1, 20'000);
    const ExpertReach more = reached_experts(r);
    RC_ASSERT(more.rows >= some.rows);
    RC_ASSERT(more.experts >= some.experts);
  }));
}

}  // namespace orrery
