// SPDX-License-Identifier: Apache-2.0
// Holds networks that guess tokens to counting by hand, and curves of acceptance to their sums.
#include "workloads/inference/drafter.h"

#include <fmt/format.h>
#include <rapidcheck.h>
#include <catch2/catch.hpp>
#include <cmath>
#include <filesystem>
#include <map>
#include <numeric>

#include "sim/base/statistics.h"
#include "sim/base/text/csv.h"
#include "tests/base/error_text.h"
#include "workloads/inference/acceptance.h"
#include "workloads/inference/serving_operations.h"
#include "workloads/model/model_catalog.h"

namespace orrery {
namespace {

std::filesystem::path catalog() {
  return std::filesystem::path(ORRERY_SOURCE_DIR) / "workloads/catalog";
}

// Elements of weights that a pass reads, of all experts.
double weights_of(const Drafter& d, const EngineLayout& layout, bool first) {
  const Stack stack = load_stack("vllm", {}, catalog() / "stacks");
  const EngineLayout own = d.layout(layout);
  const ServingOperations operations(*d.network, own, stack);
  constexpr std::int64_t rows = 4096;
  double sum = 0;
  for (const Segment& s : {operations.layer(d.network->layer(0), rows),
                           operations.joined(d.joined, rows, first), operations.head(rows)})
    for (const Operation& o : s.operations)
      if (const Kernel* k = o.kernel(); k && is_product(k->work.kind))
        sum += static_cast<double>(k->work.n * k->work.k * k->work.groups);
  return sum;
}

TEST_CASE("a prediction module is the model's last layer, a product that joins and the head") {
  const Model model = load_model("glm-4.5", catalog() / "models");
  const Drafter d = mtp_drafter(model, {}, 2);
  REQUIRE(d.network);
  CHECK(d.network->layer_count() == 1);
  CHECK(d.network->layer(0) == model.layer(model.layer_count() - 1));
  const auto hidden = static_cast<double>(model.hidden);
  const LayerParameters p = layer_parameters(model, d.network->layer(0));
  const double products = static_cast<double>(p.total() - p.norms);
  const double head = hidden * static_cast<double>(model.vocab);
  CHECK(weights_of(d, {}, true) == Approx(products + 2 * hidden * hidden + head).epsilon(1e-4));
  CHECK(weights_of(d, {}, false) == weights_of(d, {}, true));
}

TEST_CASE("a prediction module stays in 16 bits where the checkpoint has 4") {
  const Model model = load_model("deepseek-r1", catalog() / "models");
  const EngineLayout fp4{.tp = 8, .pp = 1, .precision = PrecisionRecipe::nvfp4};
  const EngineLayout fp8{.tp = 8, .pp = 1, .precision = PrecisionRecipe::fp8_blockwise};
  CHECK(mtp_drafter(model, fp4, 1).layout(fp4).precision == PrecisionRecipe::bf16);
  CHECK(mtp_drafter(model, fp8, 1).layout(fp8).precision == PrecisionRecipe::fp8_blockwise);
}

TEST_CASE("EAGLE-3 for Llama 3.3 70B has 1.4e9 parameters in its products") {
  const Model model = load_model("llama3.3-70b", catalog() / "models");
  const Drafter d = eagle3_drafter(model, 3);
  const double h = 8192, keys = 2 * 8 * 128;
  const double layer = 2 * h * (h + keys) + h * h + 3 * h * 28672, head = h * 32000;
  CHECK(weights_of(d, {}, true) == Approx(layer + 3 * h * h + head));
  CHECK(weights_of(d, {}, false) == Approx(layer + head));
  CHECK(weights_of(d, {.tp = 8}, false) == Approx((layer + head) / 8));
  // Latent attention has no keys of its own to be copied.
  const Drafter latent = eagle3_drafter(load_model("kimi-k2", catalog() / "models"), 3);
  CHECK(latent.network->classes.front().mixer.kv_heads == 8);
  CHECK(latent.network->classes.front().ffn.kind == FfnKind::dense);
}

TEST_CASE("law: a curve of survival falls, and sums to what was measured") {
  CHECK(rc::check([] {
    const auto drafts = *rc::gen::inRange<std::int64_t>(1, 9);
    std::vector<double> tokens;
    double before = 1;
    for (std::int64_t k = 0; k < drafts; ++k) {
      // Noise of measured tables: now and then a longer draft gives less.
      before += *rc::gen::inRange(k == 0 ? 300 : -50, 1000) / 1000.0 / static_cast<double>(k + 1);
      tokens.push_back(std::max(1.0, before));
    }
    const std::vector<double> survival = survival_of(tokens, drafts);
    RC_ASSERT(static_cast<std::int64_t>(survival.size()) == drafts);
    for (std::size_t j = 1; j < survival.size(); ++j)
      RC_ASSERT(survival[j] <= survival[j - 1] + 1e-12);
    RC_ASSERT(survival.back() >= 0);
    const double sum = std::accumulate(survival.begin(), survival.end(), 1.0);
    RC_ASSERT(std::abs(sum - tokens.back()) < 1e-9);
  }));
}

TEST_CASE("measured acceptance is the model's own, else its family's") {
  const auto all = load_acceptance(catalog() / "acceptance.json");
  const auto of = [&](const char* model, DraftKind kind, std::int64_t drafts) {
    return measured_acceptance(all, load_model(model, catalog() / "models"), kind, drafts);
  };
  CHECK(of("deepseek-r1", DraftKind::mtp, 3)->tokens() == Approx(2.82));
  CHECK(of("deepseek-v3", DraftKind::mtp, 1)->tokens() == Approx(1.92));
  CHECK(of("deepseek-v3", DraftKind::mtp, 1)->from.find("deepseek-r1") != std::string::npos);
  CHECK(!of("deepseek-r1", DraftKind::mtp, 6));
  CHECK(!of("deepseek-r1", DraftKind::ngram, 2));
  for (const MeasuredAcceptance& one : all)
    for (std::size_t k = 1; k <= one.tokens.size(); ++k) {
      CAPTURE(one.model, k);
      const auto survival = survival_of(one.tokens, static_cast<std::int64_t>(k));
      CHECK(survival.front() <= 1);
      CHECK(survival.back() >= 0);
    }
}

TEST_CASE("a text that is asked for has an acceptance of its own") {
  const auto all = load_acceptance(catalog() / "acceptance.json");
  const Model model = load_model("deepseek-v3", catalog() / "models");
  const auto labels = acceptance_labels(all, model, DraftKind::mtp, 3);
  CHECK(labels == std::vector<std::string>{"random-1k-1k", "random-1k-8k", "random-8k-1k"});
  CHECK(acceptance_labels(all, model, DraftKind::mtp, 4).empty());
  const auto asked = measured_acceptance(all, model, DraftKind::mtp, 3, "random-1k-1k");
  REQUIRE(asked);
  CHECK(asked->tokens() == Approx(2.39));
  CHECK(!measured_acceptance(all, model, DraftKind::mtp, 3, "random"));
  // Not taken where none is asked for.
  CHECK(measured_acceptance(all, model, DraftKind::mtp, 3)->tokens() == Approx(2.82));
}

TEST_CASE("a text changes guesses as it does another model's, where that alone was measured") {
  const auto all = load_acceptance(catalog() / "acceptance.json");
  const Model glm = load_model("glm-5", catalog() / "models");
  const auto usual = measured_acceptance(all, glm, DraftKind::mtp, 3);
  const auto asked = measured_acceptance(all, glm, DraftKind::mtp, 3, "random-1k-1k");
  REQUIRE(asked);
  // Of DeepSeek-R1: 0.92, 0.66, 0.24 of answers with thinking, 0.79, 0.38, 0.22 to random tokens.
  CHECK(asked->survival[0] == Approx(0.84 * 0.79 / 0.92));
  CHECK(asked->survival[1] == Approx(0.66 * 0.38 / 0.66));
  CHECK(asked->tokens() < usual->tokens());
  CHECK(asked->from.find("deepseek-r1") != std::string::npos);
  CHECK(acceptance_labels(all, glm, DraftKind::mtp, 3).size() == 3);
  for (const std::string& label : acceptance_labels(all, glm, DraftKind::mtp, 3)) {
    const auto survival = measured_acceptance(all, glm, DraftKind::mtp, 3, label)->survival;
    for (std::size_t i = 0; i < survival.size(); ++i)
      CHECK(survival[i] <= (i == 0 ? 1 : survival[i - 1]));
  }
  // EAGLE-3 was measured of no such text; R1 itself keeps its own.
  const Model kimi = load_model("kimi-k2.5", catalog() / "models");
  CHECK(!measured_acceptance(all, kimi, DraftKind::eagle3, 3, "random-1k-1k"));
}

TEST_CASE("tokens a step of InferenceX' texts are the medians of its runs") {
  const auto all = load_acceptance(catalog() / "acceptance.json");
  const CsvTable runs = read_csv(std::filesystem::path(ORRERY_SOURCE_DIR) /
                                 "validation/measurements/acceptance/deepseek_r1.csv");
  std::map<std::string, std::map<std::int64_t, std::vector<double>>> measured;
  for (std::size_t i = 0; i < runs.rows.size(); ++i) {
    const CsvRow row(runs, i);
    const auto of = [&](std::string_view column) { return *row.number(column); };
    const std::string label = fmt::format("random-{}k-{}k", of("isl") / 1024, of("osl") / 1024);
    measured[label][std::llround(of("drafts"))].push_back(of("tokens_a_step"));
    // A chunk has the tokens of so many steps; in the mean an answer ends half a chunk early.
    const double chunk =
        1 / (1 / of("gap_over_token") - 0.5 / (0.9 * of("osl"))) / of("stream_interval");
    CHECK(of("tokens_a_step") == Approx(chunk).epsilon(0.002));
  }
  for (const MeasuredAcceptance& one : all)
    for (const auto& [drafts, tokens] : measured[one.label]) {
      CAPTURE(one.label, drafts);
      REQUIRE(drafts <= static_cast<std::int64_t>(one.tokens.size()));
      const double middle = median(tokens);
      CHECK(one.tokens[static_cast<std::size_t>(drafts - 1)] == Approx(middle).epsilon(0.004));
    }
}

TEST_CASE("chances of guessed tokens are read strictly") {
  const auto read = [](const char* text) { return parse_acceptance(text, 3, "--accept"); };
  CHECK(read("0.5") == std::vector<double>{0.5, 0.25, 0.125});
  CHECK(read("1:0.5") == std::vector<double>{1, 0.5, 0.25});
  CHECK(read("0") == std::vector<double>{0, 0, 0});
  for (const char* text :
       {"", "x", "1.5", "-0.1", "0.9:", ":0.9", "0.9;0.8", "nan", "0.1:0.1:0.1:0"})
    CHECK_THROWS_AS(read(text), Error);
}

}  // namespace
}  // namespace orrery
