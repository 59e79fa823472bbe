// SPDX-License-Identifier: Apache-2.0
// Tests the search space: the documented grid exactly, each layout once, always in the same order.
#include "sim/advise/space/search_space.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <set>

#include "sim/engine/placement.h"
#include "tests/advise/small_question.h"

namespace orrery {
namespace {

std::vector<Layout> search(const Question& question, const Stack& stack) {
  return layouts_of(SearchSpace(subject_of(question, stack), question.limits));
}

std::vector<std::string> texts_of(const std::vector<Layout>& layouts) {
  std::vector<std::string> texts;
  for (const Layout& l : layouts) texts.push_back(to_json_text(l));
  return texts;
}

// Which schedules, chunks, sharding and exchange the documentation allows, point by point.
bool in_grid(const Layout& l, const Model& model, const Job& job) {
  const std::int64_t fullest = (model.layer_count() + l.pp - 1) / l.pp;
  const bool experts = model.has_experts();
  if (l.pp == 1 && (l.schedule != Schedule::one_f_one_b || l.vpp != 1)) return false;
  if (loops_over_chunks(l.schedule)) {
    if (l.vpp < 2 || l.vpp > 16 || fullest % l.vpp != 0) return false;
  } else if (is_v_shaped(l.schedule)) {
    if (l.vpp != 2 || fullest < 2) return false;
  } else if (l.vpp != 1) {
    return false;
  }
  if ((l.schedule == Schedule::dual_pipe || l.schedule == Schedule::dual_pipe_v) && !experts)
    return false;
  if (l.zero_stage == 3 && (l.pp > 1 || l.dp * l.cp == 1)) return false;
  if (l.shard_group > 0) {
    if (l.zero_stage != 3 || l.shard_group * l.tp > 8 || l.shard_group >= l.dp * l.cp) return false;
    for (std::int64_t larger = l.shard_group + 1; larger * l.tp <= 8; ++larger)
      if (l.dp * l.cp % larger == 0) return false;
    if (l.shard_group == 1) return false;
  }
  if (l.cp > 1 && (job.sequence % (2 * l.cp) != 0 || job.sequence / l.cp < 128)) return false;
  if (l.cp == 1 && l.context != ContextKind::ring) return false;
  if (l.context == ContextKind::hierarchical) {
    // The most neighbours that divide cp and lie in a domain of 8.
    if (l.context_inner * l.tp > 8) return false;
    for (std::int64_t larger = l.context_inner + 1; larger * l.tp <= 8; ++larger)
      if (l.cp % larger == 0) return false;
  } else if (l.context_inner > 0) {
    return false;
  }
  if (!experts) return l.ep == 1 && l.etp == 1;
  if (l.etp != 1 && l.etp != l.tp) return false;
  return model.max_experts() % l.ep == 0 && l.dp * l.cp * l.tp % (l.ep * l.etp) == 0;
}

// Every combination of every dimension, filtered by the documentation and by validity.
std::set<std::string> brute_force(const Model& model, const Job& job, std::int64_t gpus) {
  std::set<std::string> found;
  const std::vector<std::int64_t> powers = {1, 2, 4, 8, 16};
  Layout l;
  for (l.tp = 1; l.tp <= 8; ++l.tp)
    for (std::int64_t cp : powers)
      for (l.pp = 1; l.pp <= model.layer_count(); ++l.pp) {
        if (gpus % (l.tp * cp * l.pp) != 0) continue;
        l.cp = cp;
        l.dp = gpus / (l.tp * l.cp * l.pp);
        l.sequence_parallel = l.tp > 1;
        for (l.ep = 1; l.ep <= 8; ++l.ep)
          for (l.etp = 1; l.etp <= 8; ++l.etp)
            for (std::size_t s = 0; s < schedule_traits.size(); ++s)
              for (l.vpp = 1; l.vpp <= 16; ++l.vpp)
                for (std::int64_t micro_batch = 1; micro_batch <= 16; ++micro_batch)
                  for (int zero : {1, 3})
                    for (l.shard_group = 0; l.shard_group <= (zero == 3 ? 8 : 0); ++l.shard_group)
                      for (int recompute = 0; recompute < 3; ++recompute)
                        for (int context = 0; context < 4 + 3; ++context) {
                          l.schedule = static_cast<Schedule>(s);
                          if (l.schedule == Schedule::gpipe) continue;
                          l.micro_batch = micro_batch;
                          l.zero_stage = zero;
                          l.recompute = static_cast<Recompute>(recompute);
                          // Hierarchical with 2, 4 and 8 neighbours.
                          l.context = static_cast<ContextKind>(std::min(context, 3));
                          l.context_inner = context < 4 ? 0 : std::int64_t{1} << (context - 3);
                          if (in_grid(l, model, job) && !invalid_reason(l, model, job, gpus))
                            found.insert(to_json_text(l));
                        }
      }
  return found;
}

void check_equals_brute_force(const Model& model, const Job& job, std::int64_t gpus) {
  Question question = small_question(model, gpus);
  question.job = job;
  question.limits.sequence_parallel = true;
  question.limits.per_domain = 0;
  const std::vector<std::string> layouts = texts_of(search(question, plain_stack(model)));
  const std::set<std::string> distinct(layouts.begin(), layouts.end());
  CHECK(layouts.size() == distinct.size());
  CHECK_FALSE(layouts.empty());
  CHECK(distinct == brute_force(model, job, gpus));
}

TEST_CASE("the space is the documented grid, each valid layout once") {
  SECTION("dense, short sequences") {
    check_equals_brute_force(small_dense_model(), small_job(), 16);
  }
  SECTION("dense, context parallel") {
    check_equals_brute_force(small_dense_model(), small_job(16384), 8);
  }
  SECTION("experts") { check_equals_brute_force(small_expert_model(), small_job(), 8); }
  SECTION("a count with odd divisors") {
    check_equals_brute_force(small_dense_model(), small_job(4096, 48), 24);
  }
}

// At full width the grid is too large to be spelled out: its lists are looked at one by one.
TEST_CASE("every layout of the full grid is valid, has a place and stands there once") {
  for (const bool experts : {false, true}) {
    const Model model = experts ? small_expert_model() : small_dense_model();
    Question question = small_question(model, 16);
    question.limits.tp = 2;
    Stack stack = small_stack(model);
    stack.choices = {};
    stack.choices.recompute_modules = {RecomputeModule::layernorm, RecomputeModule::moe_act};
    const SearchSpace space(subject_of(question, stack), question.limits);
    std::int64_t counted = 0;
    for (const Family& family : space.families()) {
      GridPoint point, before;
      std::int64_t of_family = 0;
      do {
        if (of_family++ > 0) CHECK(before < point);
        before = point;
        if (of_family % 37 != 1) continue;  // the lists repeat
        const Layout layout = family.layout(point);
        INFO(to_text(layout));
        CHECK_FALSE(invalid_reason(layout, model, question.job, 16));
        CHECK_FALSE(unplaceable_reason(layout, question.cluster.fabric));
      } while (advance(family, point));
      CHECK(point == GridPoint{});
      CHECK(of_family == family.leaves());
      counted += of_family;
    }
    CHECK(counted == space.leaves());
    CHECK(counted > 100000);
  }
}

const Family& family_of(const SearchSpace& space, std::int64_t tp, std::int64_t pp) {
  for (const Family& f : space.families())
    if (f.base.tp == tp && f.base.pp == pp) return f;
  FAIL("no such family");
  return space.families().front();
}

TEST_CASE("the lists of a family are those of the documentation") {
  Question question = small_question(small_dense_model(), 64);
  Stack stack = small_stack(question.model);
  stack.choices = {};
  const SearchSpace space(subject_of(question, stack), {});
  const Family& f = family_of(space, 4, 4);  // dp 4 over eight hosts, 16 layers on 4 stages
  CHECK(f.sequence_parallel == std::vector<bool>{true, false});
  CHECK(f.offloads.size() == 8);
  CHECK(f.offloads.front() == Offload{});
  CHECK(f.shards.size() == 2);  // graphs of parts of a layer hold no sharded gradients
  CHECK(f.shards[0].zero_stages == std::vector<int>{0, 1});
  CHECK(f.shards[1].zero_stages == std::vector<int>{2});
  CHECK(f.shards[0].buckets.size() == 9);
  CHECK(f.shards[0].ranks.size() == 2);  // replicas inside, or stages inside
  // None, two modules in every way (norms are parts of linear layers here), full and three parts of
  // the four layers.
  CHECK(f.recomputes.size() == 1 + 3 + 1 + 3);
  const auto& pipelines = f.micro_batches.front().pipelines;
  // 1f1b, zb-h1, interleaved by 2 and 4, zb-v; 16 layers over 4, 8 and 16 positions come out even,
  // with 4 layers fewer on the ends only over 4 and 8 (by 3 at most on each).
  // By 3 chunks they never do: one layer each, the four that are left over on inner positions.
  const auto spread = std::find_if(pipelines.begin(), pipelines.end(), [](const auto& p) {
    return p.vpp == 3 && !p.stage_layers.empty();
  });
  REQUIRE(spread != pipelines.end());
  CHECK(spread->stage_layers == std::vector<std::int64_t>{1, 1, 2, 1, 2, 1, 1, 2, 1, 2, 1, 1});
  int uneven = 0;
  for (const PipelineOption& p : pipelines)
    if (!p.stage_layers.empty()) {
      ++uneven;
      std::int64_t sum = 0;
      for (const std::int64_t n : p.stage_layers) sum += n;
      CHECK(sum == 16);
      CHECK(p.stage_layers.front() <= p.stage_layers[1]);
    }
  CHECK(uneven > 0);
  const Family& one = family_of(space, 8, 1);
  CHECK(one.shards.size() == 3);  // dp 8: ZeRO 0 and 1; 2; ZeRO-3 over all, as TP fills a domain
  CHECK(family_of(space, 2, 1).shards.size() == 4);  // and inside a domain
  CHECK(one.micro_batches.front().pipelines.size() == 1);
}

TEST_CASE("a stack's choices narrow the grid") {
  const Model model = small_dense_model();
  Question question = small_question(model, 64);
  Stack stack = plain_stack(model);
  stack.choices.schedules = {Schedule::one_f_one_b, Schedule::interleaved};
  stack.choices.zero_stages = {1};
  for (const Layout& l : search(question, stack)) {
    CHECK(l.zero_stage == 1);
    CHECK((l.schedule == Schedule::one_f_one_b || l.schedule == Schedule::interleaved));
    CHECK_FALSE(l.offload_weights);
    CHECK(l.rank_order.is_default());
    CHECK(l.bucket == Bytes(0));
  }
  question.limits.schedule = Schedule::zero_bubble;  // unless one is asked for
  const std::vector<Layout> asked = search(question, stack);
  REQUIRE_FALSE(asked.empty());
  bool piped = false;
  for (const Layout& l : asked)
    if (l.pp > 1) piped = l.schedule == Schedule::zero_bubble;
  CHECK(piped);
}

TEST_CASE("limits give exactly the layouts of the grid that have the fixed values") {
  const Model model = small_expert_model();
  const Stack stack = plain_stack(model);
  Question question = small_question(model, 16);
  std::vector<Layout> expected;
  for (const Layout& l : search(question, stack))
    if (l.tp == 2 && l.pp == 4 && l.micro_batch == 1 && l.recompute == Recompute::selective)
      expected.push_back(l);
  question.limits.tp = 2;
  question.limits.pp = 4;
  question.limits.micro_batch = 1;
  question.limits.recompute = RecomputeChoice{.recompute = Recompute::selective};
  CHECK_FALSE(expected.empty());
  CHECK(search(question, stack) == expected);
}

TEST_CASE("each limit holds for every layout") {
  const Model model = small_dense_model();
  const Stack stack = small_stack(model);
  Question question = small_question(model, 16);
  SearchLimits& limits = question.limits;
  limits.schedule = Schedule::interleaved;
  limits.vpp = 2;
  limits.zero_stage = 1;
  limits.offload = Offload{.optimizer = true};
  limits.bucket = Bytes(5e7);
  limits.rank_order = RankOrder({Parallel::tp, Parallel::pp, Parallel::dp, Parallel::cp});
  limits.stage_layers = std::vector<std::int64_t>{3, 4, 4, 5};
  question.precisions = {PrecisionRecipe::fp8_delayed};
  question.optimizers = {Optimizer::adam_bf16};
  const std::vector<Layout> layouts = search(question, stack);
  INFO(SearchSpace(subject_of(question, stack), limits).invalid_example());
  CHECK_FALSE(layouts.empty());
  for (const Layout& l : layouts) {
    CHECK(l.schedule == Schedule::interleaved);
    CHECK(l.vpp == 2);
    CHECK(l.pp == 2);
    CHECK(l.zero_stage == 1);
    CHECK(l.precision == PrecisionRecipe::fp8_delayed);
    CHECK(l.optimizer == Optimizer::adam_bf16);
    CHECK(l.offload_optimizer);
    CHECK_FALSE(l.offload_weights);
    CHECK(l.bucket == Bytes(5e7));
    CHECK(to_text(l.rank_order) == "tp-pp-dp-cp");
    CHECK(l.stage_layers == *limits.stage_layers);
  }
}

// What a limit implies it also asks for: no layout without it is left.
TEST_CASE("a limit of one choice alone leaves the layouts that have it") {
  const Model model = small_dense_model();
  Stack stack = small_stack(model);
  stack.choices = {};
  stack.choices.recompute_modules = {RecomputeModule::core_attn};
  Question question = small_question(model, 16);
  question.limits.micro_batch = 1;
  question.limits.offload = Offload{};
  question.limits.bucket = Bytes(0);
  const auto found = [&] {
    const std::vector<Layout> layouts = search(question, stack);
    CHECK_FALSE(layouts.empty());
    return layouts;
  };
  SECTION("a group of ranks that shard") {
    question.limits.tp = 1;
    question.limits.recompute = RecomputeChoice{};
    question.limits.shard_group = 8;
    std::set<int> stages;
    for (const Layout& l : found()) {
      CHECK(l.shard_group == 8);
      stages.insert(l.zero_stage);
    }
    CHECK(stages == std::set<int>{1, 2, 3});
  }
  SECTION("layers that are run again") {
    question.limits.recompute_layers = 4;
    for (const Layout& l : found()) {
      CHECK(l.recompute == Recompute::full);
      CHECK(l.recompute_layers == 4);
    }
    question.limits.recomputes = {{.recompute = Recompute::none}};  // a sweep's own list
    for (const Layout& l : found()) CHECK(l.recompute_layers == 4);
  }
  SECTION("ranks that trade rows for heads") {
    question.job = small_job(32768);
    question.limits.recompute = RecomputeChoice{};
    question.limits.context_inner = 2;
    for (const Layout& l : found()) {
      CHECK(l.cp > 2);
      CHECK(l.context == ContextKind::hierarchical);
      CHECK(l.context_inner == 2);
    }
  }
  SECTION("no group, no part of the layers") {
    question.limits.shard_group = 0;
    question.limits.recompute_layers = 0;
    bool kept = false;
    for (const Layout& l : found()) {
      CHECK(l.shard_group == 0);
      CHECK(l.recompute_layers == 0);
      kept = kept || (l.zero_stage == 3 && l.recompute == Recompute::selective);
    }
    CHECK(kept);
  }
}

TEST_CASE("limits that contradict each other leave nothing, and say why") {
  const Model model = small_dense_model();
  Stack stack = small_stack(model);
  Question question = small_question(model, 16);
  SearchLimits& limits = question.limits;
  const auto reason = [&] {
    const SearchSpace space(subject_of(question, stack), limits);
    CHECK(space.families().empty());
    CHECK(space.invalid() > 0);
    return space.invalid_example();
  };
  SECTION("layers of a choice that does not count them") {
    limits.recompute = RecomputeChoice{.recompute = Recompute::selective};
    limits.recompute_layers = 4;
    CHECK(reason() == "recompute_layers 4 needs recompute full, not selective");
  }
  SECTION("ranks of an exchange that has none") {
    question.job = small_job(32768);
    limits.cp = 4;
    limits.context = ContextKind::ring;
    limits.context_inner = 2;
    CHECK(reason() == "context_inner 2 needs hierarchical context parallelism, not ring");
  }
  SECTION("an exchange among the ranks of sequences that are not split") {
    limits.cp = 1;
    limits.context_inner = 2;
    CHECK(reason() == "context_inner 2 needs cp above 1");
  }
  SECTION("groups where nothing is sharded") {
    limits.shard_group = 4;
    limits.zero_stage = 0;
    CHECK(reason().find("shard_group 4 needs a ZeRO stage of 1 to 3") == 0);
    limits.zero_stage = std::nullopt;
    stack.choices.zero_stages = {0};
    CHECK(reason().find("and megatron-core has none") != std::string::npos);
  }
  SECTION("groups that do not divide the ranks") {
    limits.shard_group = 7;
    limits.tp = 2;
    CHECK(reason() == "shard_group 7 does not divide dp 8 x cp 1");
  }
}

TEST_CASE("limits that no layout meets leave an empty space with a reason") {
  const Model model = small_dense_model();
  const Stack stack = small_stack(model);
  Question question = small_question(model, 16);
  question.limits.tp = 6;
  const SearchSpace space(subject_of(question, stack), question.limits);
  CHECK(space.families().empty());
  CHECK(space.invalid() > 0);
  CHECK(space.invalid_example().find("6") != std::string::npos);
}

TEST_CASE("only one spelling of layouts that mean the same") {
  const Model model = small_expert_model();
  for (const Layout& l : search(small_question(model, 16), plain_stack(model))) {
    if (l.tp == 1) CHECK_FALSE(l.sequence_parallel);
    if (!loops_over_chunks(l.schedule)) CHECK(l.vpp == (is_v_shaped(l.schedule) ? 2 : 1));
    if (l.dp * l.cp == 1) CHECK(l.zero_stage == 1);
    CHECK(l.gpus() == 16);
  }
}

Stack catalogue_stack(const std::string& name, const Model& model) {
  return load_stack(name, {.architecture = "hopper", .moe = model.has_experts()},
                    data_root() / "workloads/catalog/stacks");
}

TEST_CASE("weights lie in host memory where the program can put them") {
  const Model model = small_dense_model();
  Question question = small_question(model, 8);
  question.limits.tp = 2;
  question.limits.recompute = RecomputeChoice{};
  Stack stack = catalogue_stack("deepspeed-zero", model);
  const std::vector<Layout> sharded = search(question, stack);
  stack.choices.offload_whole_weights = true;
  std::vector<std::string> expected;
  bool whole = false;
  for (const Layout& l : search(question, stack)) {
    whole = whole || (l.offload_weights && l.zero_stage < 3);
    if (!l.offload_weights || l.zero_stage == 3) expected.push_back(to_json_text(l));
  }
  CHECK(whole);
  std::vector<std::string> found = texts_of(sharded);
  CHECK(std::any_of(sharded.begin(), sharded.end(),
                    [](const Layout& l) { return l.offload_weights; }));
  std::sort(found.begin(), found.end());
  std::sort(expected.begin(), expected.end());
  CHECK(found == expected);
  std::int64_t moved = 0;
  for (const Layout& l : search(question, catalogue_stack("pytorch-fsdp2", model))) {
    CHECK(l.offload_weights == l.offload_optimizer);
    if (l.offload_weights) CHECK(l.zero_stage == 3);
    moved += l.offload_weights;
  }
  CHECK(moved > 0);
}

TEST_CASE("full recompute may run any number of a stage's layers again") {
  const Model model = small_dense_model();
  Question question = small_question(model, 8);
  question.limits.tp = 2;
  for (const std::int64_t pp : {1, 2}) {
    question.limits.pp = pp;
    std::set<std::int64_t> numbers, expected;
    for (const Layout& l : search(question, catalogue_stack("megatron-core", model)))
      if (l.recompute == Recompute::full) numbers.insert(l.recompute_layers);
    for (std::int64_t n = 0; n < model.layer_count() / pp; ++n) expected.insert(n);  // 0: all
    CHECK(numbers == expected);
  }
}

TEST_CASE("Megatron-Core offloads any eighth of the optimizer, DeepSpeed all of it") {
  const Model model = small_dense_model();
  Question question = small_question(model, 8);
  question.limits.recompute = RecomputeChoice{};
  const auto fractions = [&](const char* name) {
    std::set<double> all;
    for (const Layout& l : search(question, catalogue_stack(name, model)))
      if (l.offload_optimizer) all.insert(l.optimizer_offload_fraction);
    return all;
  };
  CHECK(fractions("megatron-core") ==
        std::set<double>{0.125, 0.25, 0.375, 0.5, 0.625, 0.75, 0.875, 1});
  CHECK(fractions("deepspeed-zero") == std::set<double>{1});
  question.limits.offload = Offload{.optimizer = true, .fraction = 0.3};  // one asked for
  CHECK(fractions("megatron-core") == std::set<double>{0.3});
}

TEST_CASE("DeepSpeed's pipelines shard optimizer states at most") {
  const Model model = small_dense_model();
  Question question = small_question(model, 8);
  question.limits.recompute = RecomputeChoice{};
  const Stack stack = catalogue_stack("deepspeed-zero", model);
  int most = 0, piped = -1;
  for (const Layout& l : search(question, stack))
    (l.pp > 1 ? piped : most) = std::max(l.pp > 1 ? piped : most, l.zero_stage);
  CHECK(most == 3);
  CHECK(piped == 1);
}

TEST_CASE("norms run again where they are modules of their own") {
  const auto offered = [](const Model& model, const std::string& stack) {
    Question question = small_question(model, 8);
    question.limits.tp = 2;
    for (const Layout& l : search(question, catalogue_stack(stack, model)))
      if (l.recomputes(RecomputeModule::layernorm)) return true;
    return false;
  };
  CHECK_FALSE(offered(small_dense_model(), "megatron-core@0.15"));
  CHECK(offered(small_expert_model(), "megatron-core@0.15"));
}

TEST_CASE("who asks for ZeRO-3 gets shards where any layout has them") {
  const Model model = small_dense_model();
  const Stack stack = plain_stack(model);
  Question question = small_question(model, 16);
  question.limits.zero_stage = 3;
  const std::vector<Layout> layouts = search(question, stack);
  CHECK_FALSE(layouts.empty());
  for (const Layout& l : layouts) CHECK(l.dense_replicas() > 1);
  question.limits.tp = 8;
  question.limits.pp = 2;
  CHECK_FALSE(search(question, stack).empty());
}

}  // namespace
}  // namespace orrery
