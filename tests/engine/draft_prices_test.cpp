// SPDX-License-Identifier: Apache-2.0
// Holds prices of steps with guessed tokens to their parts, to laws and to a published speed-up.
#include <rapidcheck.h>
#include <catch2/catch.hpp>
#include <filesystem>

#include "sim/engine/prices/engine_prices.h"
#include "sim/engine/scenario.h"
#include "workloads/inference/acceptance.h"
#include "workloads/model/model_catalog.h"

namespace orrery {
namespace {

std::filesystem::path catalog() {
  return std::filesystem::path(ORRERY_SOURCE_DIR) / "workloads/catalog";
}

// DeepSeek-R1 on a machine, with so many tokens guessed by its own module; 0: by nobody.
struct Engine {
  Cluster cluster;
  Model model;
  EngineLayout layout;
  Stack stack;
  Drafter drafter;
  std::unique_ptr<EnginePrices> prices;

  Engine(const std::string& machine, const EngineLayout& over, const std::string& program)
      : cluster(load_cluster(machine, over.gpus())),
        model(load_model("deepseek-r1", catalog() / "models")),
        layout(over) {
    const Job job{.task = Task::decode, .batch = 1, .context = 1};
    stack = catalogue_stack(program, cluster, model, job, layout.precision);
  }
  Engine& guessing(const Drafter& by) {
    drafter = by;
    prices = std::make_unique<EnginePrices>(cluster, model, layout, stack, 256, &drafter);
    return *this;
  }
};

std::unique_ptr<Engine> hopper(std::int64_t drafts) {
  const EngineLayout layout{.tp = 8, .ep = 8, .precision = PrecisionRecipe::fp8_blockwise};
  auto e = std::make_unique<Engine>("dgx-h200", layout, "trtllm");
  e->guessing(mtp_drafter(e->model, layout, drafts));
  return e;
}

StepShape decodes(std::int64_t sequences, std::int64_t context, std::int64_t drafts) {
  StepShape shape;
  shape.decodes = shape.sampled = sequences;
  shape.contexts = sequences * context;
  shape.drafts = sequences > 0 ? drafts : 0;
  return shape;
}

double seconds(const Engine& e, const StepShape& shape) {
  return to_seconds(e.prices->step(shape)).si();
}

}  // namespace

TEST_CASE("law: tables with guessed tokens agree with parts priced anew") {
  const auto engine = hopper(3);
  CHECK(rc::check([&] {
    const auto sequences = *rc::gen::inRange<std::int64_t>(0, 129);
    const auto context = *rc::gen::inRange<std::int64_t>(1, 32'768);
    const auto prompt = *rc::gen::inRange<std::int64_t>(0, 8'192);
    StepShape shape = decodes(sequences, context, 3);
    if (prompt > 0 || sequences == 0) {
      shape.chunks.push_back({.start = 0, .tokens = prompt + 1});
      shape.sampled += prompt % 2;  // the other half do not end their prompt
    }
    const double anew = engine->prices->parts(shape).total().si();
    RC_ASSERT(std::abs(seconds(*engine, shape) / anew - 1) < 0.12);  // tiles between nodes
  }));
}

TEST_CASE("law: nobody who guesses, and one who guesses nothing, take the same time") {
  const auto none = hopper(0);
  const EnginePrices plain(none->cluster, none->model, none->layout, none->stack, 256);
  CHECK(rc::check([&] {
    StepShape shape = decodes(*rc::gen::inRange<std::int64_t>(1, 257),
                              *rc::gen::inRange<std::int64_t>(1, 20'000), 0);
    if (*rc::gen::arbitrary<bool>()) shape.chunks.push_back({.start = 512, .tokens = 900});
    RC_ASSERT(plain.step(shape) == none->prices->step(shape));
    RC_ASSERT(plain.parts(shape).time == none->prices->parts(shape).time);
    RC_ASSERT(none->prices->parts(shape).drafting == Seconds(0));
  }));
}

TEST_CASE("law: each token more that is guessed takes longer, and less than a step alone") {
  std::vector<std::unique_ptr<Engine>> engines;
  for (std::int64_t k = 0; k <= 4; ++k) engines.push_back(hopper(k));
  CHECK(rc::check([&] {
    const auto sequences = *rc::gen::inRange<std::int64_t>(1, 65);
    const auto context = *rc::gen::inRange<std::int64_t>(64, 16'384);
    const auto time = [&](std::size_t k) {
      return seconds(*engines[k], decodes(sequences, context, static_cast<std::int64_t>(k)));
    };
    for (std::size_t k = 1; k < engines.size(); ++k) {
      RC_ASSERT(time(k) > time(k - 1));
      RC_ASSERT(time(k) - time(k - 1) < time(0));
    }
  }));
}

TEST_CASE("passes that guess are told apart, and none are where words are looked up") {
  const auto engine = hopper(2);
  const StepParts with = engine->prices->parts(decodes(8, 2000, 2));
  CHECK(with.drafting > Seconds(0));
  CHECK(with.drafting < 0.2 * with.total());
  // Verification alone: as many rows, and attention of three of each sequence.
  engine->guessing(ngram_drafter(2));
  const StepParts looked_up = engine->prices->parts(decodes(8, 2000, 2));
  CHECK(looked_up.drafting == Seconds(0));
  CHECK(looked_up.time[0] == with.time[0]);
  CHECK(with.total().si() > looked_up.total().si());
  // A guesser that is a model of its own pays its passes whole.
  engine->guessing(model_drafter(load_model("llama3.2-1b", catalog() / "models"), 2));
  CHECK(engine->prices->parts(decodes(8, 2000, 2)).drafting > Seconds(0));
}

TEST_CASE("law: a host that does not prepare guesses ahead shows the time of all its batches") {
  const EngineLayout layout{.tp = 8, .precision = PrecisionRecipe::fp8_blockwise};
  const auto engine = [&](const char* program) {
    auto e = std::make_unique<Engine>("dgx-h200", layout, program);
    e->guessing(mtp_drafter(e->model, layout, 2));
    return e;
  };
  const auto waits = engine("sglang@0.5.7"), ahead = engine("sglang@0.5.12");
  const ServingHost& host = waits->stack.serving.host;
  REQUIRE(!host.ahead(true));
  REQUIRE(host.ahead(false));
  REQUIRE(ahead->stack.serving.host.ahead(true));
  CHECK(rc::check([&] {
    const auto sequences = *rc::gen::inRange<std::int64_t>(1, 65);
    const auto shape = decodes(sequences, *rc::gen::inRange<std::int64_t>(64, 16'384), 2);
    const double each =
        host.step.get().si() + static_cast<double>(sequences) * host.sequence.get().si();
    const double shown = seconds(*waits, shape) - seconds(*ahead, shape);
    RC_ASSERT(std::abs(shown / (3 * each) - 1) < 1e-6);
  }));
}

TEST_CASE("guessing makes one request as much faster as was published") {
  // TensorRT-LLM tech blog 1: DeepSeek-R1 in NVFP4 on 8 B200, TP8 EP2, one request: tokens a second
  // against none guessed, with 1 to 5 drafts. Nothing here was fitted to it.
  const double published[] = {1.78, 2.25, 2.28, 2.21, 2.15};
  const EngineLayout layout{.tp = 8, .ep = 2, .etp = 4, .precision = PrecisionRecipe::nvfp4};
  Engine engine("dgx-b200", layout, "trtllm");
  const auto all = load_acceptance(catalog() / "acceptance.json");
  const double alone =
      seconds(engine.guessing(mtp_drafter(engine.model, layout, 0)), decodes(1, 2048, 0));
  for (std::int64_t k = 1; k <= 5; ++k) {
    const double tokens = measured_acceptance(all, engine.model, DraftKind::mtp, k)->tokens();
    const double time =
        seconds(engine.guessing(mtp_drafter(engine.model, layout, k)), decodes(1, 2048, k));
    CAPTURE(k);
    CHECK(alone / time * tokens == Approx(published[k - 1]).epsilon(0.05));
  }
}

}  // namespace orrery
