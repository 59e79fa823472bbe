// SPDX-License-Identifier: Apache-2.0
// Tests the advisor: the simulator's optimum, the same on any number of threads, with its reasons.
#include "sim/advise/advisor.h"

#include <fmt/format.h>

#include <catch2/catch.hpp>

#include "hw_models/price/economics.h"
#include "sim/base/errors/interrupt.h"
#include "sim/base/random.h"
#include "sim/engine/step/step.h"
#include "sim/outcome/host_power.h"
#include "tests/advise/small_question.h"
#include "tests/base/fresh_seed.h"

namespace orrery {
namespace {

std::string fingerprint(const std::vector<Candidate>& candidates) {
  std::string text;
  for (const Candidate& c : candidates)
    text += fmt::format("{} {:a} {:a} {:a} {:a}\n", to_json_text(c.layout), c.step_time.si(),
                        c.energy_per_step.si(), c.peak_memory.si(), c.tokens_per_second_per_gpu);
  return text;
}

// Everything that an advice says, to the last bit.
std::string fingerprint(const Advice& a, bool with_counts = true) {
  std::string text = fingerprint(a.best) + "front\n" + fingerprint(a.pareto);
  text += fmt::format("{:a} {}\n", a.winner.step_time.si(), a.why);
  for (const std::string& d : a.differences) text += d + "\n";
  text += fmt::format("{} {}", a.considered, a.invalid);
  if (!with_counts) return text;
  for (const Rejection& r : a.rejections)
    text += fmt::format("{} {} {}\n", r.family, r.layouts, r.reason);
  return text + fmt::format(" {} {} {}", a.rejected_for_memory, a.simulated, a.pruned);
}

// A question whose grid is small enough to run all of it, with a stack of its own that offers less.
Question narrow_question(const Model& model, std::int64_t gpus) {
  Question q = small_question(model, gpus);
  q.limits.offload = Offload{};
  q.limits.bucket = Bytes(0);
  q.limits.sequence_parallel = true;
  q.limits.rank_order = RankOrder();
  return q;
}

// Simulates the whole grid, one layout after the other.
std::vector<Candidate> exhaustive(const Question& question, const Stack& stack,
                                  double memory_reserve = 0) {
  const StepContext context = step_context(question.cluster);
  ResolvedDevice device = context.device;
  device.memory_capacity *= 1 - memory_reserve;
  std::vector<Candidate> all;
  for (const Layout& layout :
       layouts_of(SearchSpace(subject_of(question, stack), question.limits))) {
    const MemoryVerdict memory = memory_fit(question.model, question.job, layout, stack, device);
    if (!memory.fits) continue;
    const StepResult run = step(context, question.model, question.job, layout, stack);
    all.push_back({.layout = layout,
                   .step_time = to_seconds(run.step),
                   .energy_per_step = run.energy_per_gpu * static_cast<double>(layout.gpus()),
                   .peak_memory = memory.peak});
  }
  return all;
}

bool same_shape(const Candidate& a, const Candidate& b) {
  return shape_of(a.layout) == shape_of(b.layout);
}

TEST_CASE("law 6: the same advice on one thread and on four, to the bit") {
  // On the hashed fabric the layouts share what they learn about loaded links.
  for (const char* cluster : {"dgx-h100", "h100-roce"}) {
    INFO(cluster);
    const std::int64_t gpus = std::string(cluster) == "dgx-h100" ? 16 : 64;
    Question question = narrow_question(small_expert_model(), gpus);
    question.cluster = load_cluster(cluster, gpus);
    AdviseOptions options;
    options.pareto = Front::Axis::memory;
    options.threads = 1;
    const std::string one = fingerprint(advise(question, options));
    options.threads = 4;
    CHECK(fingerprint(advise(question, options)) == one);
    CHECK(fingerprint(advise(question, options)) == one);
  }
}

TEST_CASE("pruning changes no answer") {
  const Question question = narrow_question(small_dense_model(), 32);
  AdviseOptions options;
  options.top = 5;
  for (const bool pareto : {false, true}) {
    if (pareto) options.pareto = Front::Axis::memory;
    options.prune = true;
    const Advice pruned = advise(question, options);
    options.prune = false;
    const Advice whole = advise(question, options);
    CHECK(whole.pruned == 0);
    CHECK(fingerprint(pruned, false) == fingerprint(whole, false));
    CHECK(pruned.considered == pruned.rejected_for_memory + pruned.pruned + pruned.simulated);
    CHECK(whole.considered == whole.rejected_for_memory + whole.simulated);
  }
}

TEST_CASE("the best layouts are those of exhaustive simulation, ties in grid order") {
  const Question question = narrow_question(small_dense_model(), 16);
  AdviseOptions options;
  options.top = 20;
  options.variants = true;
  const Advice advice = advise(question, options);
  std::vector<Candidate> all = exhaustive(question, advice.stack);
  std::stable_sort(all.begin(), all.end(), [](const Candidate& a, const Candidate& b) {
    return a.step_time < b.step_time;
  });
  REQUIRE(advice.best.size() == 20);
  for (std::size_t i = 0; i < advice.best.size(); ++i) {
    CHECK(advice.best[i].layout == all[i].layout);
    CHECK(advice.best[i].step_time == all[i].step_time);
  }
  CHECK(advice.winner.step_time == advice.best.front().step_time);
  CHECK_FALSE(advice.winner.stages.empty());
  CHECK(advice.differences.size() == 19);
  CHECK(advice.why.find('%') != std::string::npos);

  // Without variants: the best of every shape.
  options.variants = false;
  const Advice shapes = advise(question, options);
  std::vector<Candidate> best;
  for (const Candidate& c : all)
    if (std::none_of(best.begin(), best.end(),
                     [&](const Candidate& b) { return same_shape(b, c); }))
      best.push_back(c);
  REQUIRE(shapes.best.size() == std::min<std::size_t>(20, best.size()));
  for (std::size_t i = 0; i < shapes.best.size(); ++i)
    CHECK(shapes.best[i].layout == best[i].layout);
}

// Models, machines and limits drawn at random, over all dimensions of the grid.
Question random_question(RandomStream& random) {
  const bool experts = random.below(2) == 0;
  Model model = experts ? small_expert_model() : small_dense_model();
  model.layers.assign(4 + random.below(9), 0);
  model.hidden = INT64_C(1024) << random.below(4);
  model.classes.front().ffn.width = model.hidden * (experts ? 1 : 3);
  const std::int64_t gpus = INT64_C(4) << random.below(4);
  Question q = small_question(model, gpus);
  const char* clusters[] = {"dgx-h100", "dgx-a100", "gb200-nvl72", "h100-roce"};
  q.cluster = load_cluster(clusters[random.below(4)], gpus);
  q.job = small_job(random.below(3) == 0 ? 16384 : 4096, INT64_C(8) << random.below(4));
  SearchLimits& l = q.limits;
  // Most dimensions are fixed, so that all that is left can be run.
  if (random.below(4) > 0) l.offload = Offload{.optimizer = random.below(2) == 0};
  if (random.below(4) > 0) l.bucket = Bytes(0);
  if (random.below(3) > 0) l.sequence_parallel = random.below(2) == 0;
  if (random.below(3) > 0) l.micro_batch = INT64_C(1) << random.below(3);
  if (random.below(3) > 0) l.recompute = RecomputeChoice{static_cast<Recompute>(random.below(3))};
  if (random.below(3) > 0) l.rank_order = RankOrder();
  if (random.below(2) > 0) l.zero_stage = static_cast<int>(random.below(4));
  if (random.below(2) > 0) l.tp = INT64_C(1) << random.below(3);
  if (random.below(2) > 0) l.pp = INT64_C(1) << random.below(3);
  if (experts && random.below(2) > 0) l.ep = INT64_C(1) << random.below(4);
  q.objective = static_cast<Objective>(random.below(3));
  return q;
}

// check(question, stack, space) of so many random questions with a layout and `most` at most.
template <class Check>
void on_random_spaces(RandomStream& random, int count, std::int64_t most, const Check& check) {
  const char* stacks[] = {"megatron-core", "nemo", "pytorch-fsdp2", "hai-llm"};
  for (int draw = 0, compared = 0; compared < count; ++draw) {
    REQUIRE(draw < 5000);
    Question q = random_question(random);
    q.stack_name = stacks[random.below(4)];
    const Stack stack =
        catalogue_stack(q.stack_name, q.cluster, q.model, q.job, PrecisionRecipe::bf16);
    const SearchSpace space(subject_of(q, stack), q.limits);
    if (space.leaves() == 0 || space.leaves() > most) continue;
    ++compared;
    INFO("draw " << draw << ", " << q.stack_name << " on " << q.cluster.name);
    check(q, stack, space);
  }
}

TEST_CASE("bounded search finds what exhaustive search finds, on hundreds of random spaces") {
  RandomStream random(fresh(2026), 6);
  on_random_spaces(
      random, 300, 1500, [&](const Question& q, const Stack& stack, const SearchSpace& space) {
        AdviseOptions options;
        options.top = 1 + static_cast<int>(random.below(5));
        options.variants = random.below(2) == 0;
        options.memory_reserve = random.below(2) == 0 ? 0 : 0.8;
        const Advice advice = advise(q, options);
        CHECK(advice.considered == space.leaves());
        CHECK(advice.considered == advice.rejected_for_memory + advice.pruned + advice.simulated);
        std::vector<Candidate> all = exhaustive(q, stack, options.memory_reserve);
        const auto score = [&](const Candidate& c) { return measure(q, c); };
        std::stable_sort(all.begin(), all.end(), [&](const Candidate& a, const Candidate& b) {
          return score(a) < score(b);
        });
        std::vector<Candidate> best;
        for (const Candidate& c : all)
          if (options.variants || std::none_of(best.begin(), best.end(), [&](const Candidate& b) {
                return same_shape(b, c);
              }))
            best.push_back(c);
        best.resize(std::min(best.size(), static_cast<std::size_t>(options.top)));
        REQUIRE(advice.best.size() == best.size());
        for (std::size_t i = 0; i < best.size(); ++i)
          CHECK(to_text(advice.best[i].layout) == to_text(best[i].layout));
      });
}

// The share of accelerator and host that the most frugal layout of the grid takes.
double least_share(const Question& q, const Stack& stack, const SearchSpace& space) {
  const ResolvedDevice device = step_context(q.cluster).device;
  double least = infinite;
  for (const Layout& layout : layouts_of(space)) {
    const MemoryVerdict memory = memory_fit(q.model, q.job, layout, stack, device);
    double share = memory.needed / device.memory_capacity;
    if (device.host_memory > Bytes(0)) share = std::max(share, memory.host / device.host_memory);
    least = std::min(least, share);
  }
  return least;
}

TEST_CASE("law: something fits exactly where the search finds a layout, to the last byte") {
  RandomStream random(fresh(2027), 6);
  on_random_spaces(random, 150, 5000,
                   [](const Question& q, const Stack& stack, const SearchSpace& space) {
                     const double share = least_share(q, stack, space);
                     for (const bool enough : {true, false}) {
                       AdviseOptions options{.top = 1, .brief = true};
                       options.memory_reserve = 1 - share * (enough ? 1 + 1e-9 : 1 - 1e-9);
                       CHECK(any_fit(q, options) == enough);
                       CHECK(advise(q, options).best.empty() != enough);
                     }
                   });
}

TEST_CASE("the front holds exactly what nothing beats in speed and in memory") {
  const Question question = narrow_question(small_dense_model(), 16);
  AdviseOptions options;
  options.pareto = Front::Axis::memory;
  const Advice advice = advise(question, options);
  const std::vector<Candidate> all = exhaustive(question, advice.stack);
  const auto beats = [](const Candidate& a, const Candidate& b) {
    return a.step_time <= b.step_time && a.peak_memory <= b.peak_memory &&
           (a.step_time < b.step_time || a.peak_memory < b.peak_memory);
  };
  REQUIRE_FALSE(advice.pareto.empty());
  CHECK(advice.pareto.front().step_time == advice.best.front().step_time);
  for (std::size_t i = 1; i < advice.pareto.size(); ++i) {
    CHECK(advice.pareto[i].step_time > advice.pareto[i - 1].step_time);
    CHECK(advice.pareto[i].peak_memory < advice.pareto[i - 1].peak_memory);
  }
  for (const Candidate& c : all) {
    const bool beaten =
        std::any_of(all.begin(), all.end(), [&](const Candidate& a) { return beats(a, c); });
    const bool there =
        std::any_of(advice.pareto.begin(), advice.pareto.end(), [&](const Candidate& a) {
          return a.step_time == c.step_time && a.peak_memory == c.peak_memory;
        });
    CHECK(there == !beaten);
  }
}

TEST_CASE("when nothing fits the advice says by how little") {
  Question question = small_question(small_dense_model(), 8);
  question.model.hidden = 65536;
  question.model.classes.front().ffn.width = 262144;
  const Advice advice = advise(question, {});
  CHECK(advice.best.empty());
  CHECK(advice.winner.stages.empty());
  CHECK(advice.considered == advice.rejected_for_memory);
  REQUIRE_FALSE(advice.rejections.empty());
  CHECK_FALSE(advice.rejections.front().reason.empty());
  CHECK(advice.why.find("fits") != std::string::npos);
  std::int64_t sum = 0;
  for (const Rejection& r : advice.rejections) {
    CHECK_FALSE(r.fits);
    sum += r.layouts;
  }
  CHECK(sum == advice.rejected_for_memory);
}

TEST_CASE("limits that nothing meets end in a reason, not in an error") {
  Question question = small_question(small_dense_model(), 8);
  question.limits.tp = 6;
  const Advice advice = advise(question, {});
  CHECK(advice.considered == 0);
  CHECK(advice.why.find("6") != std::string::npos);
}

TEST_CASE("interrupted, the advice is the best so far") {
  const Question question = narrow_question(small_dense_model(), 16);
  AdviseOptions options;
  options.prune = false;
  bool stop = false;
  options.progress = [&stop](double share, std::int64_t simulated) {
    CHECK(share >= 0);
    CHECK(share <= 1);
    if (simulated > 0 && !stop) {
      stop = true;
      set_interrupted(true);
    }
  };
  const Advice advice = advise(question, options);
  set_interrupted(false);
  CHECK(advice.stopped_early);
  CHECK_FALSE(advice.best.empty());
  CHECK(advice.left > 0);
  CHECK(advice.considered ==
        advice.rejected_for_memory + advice.pruned + advice.simulated + advice.left);
  CHECK(advice.gap >= 0);
  CHECK(advice.gap < 1);
}

TEST_CASE("hosts draw by their cluster's load, and nothing is made up where it is not known") {
  Cluster cluster = load_cluster("dgx-h100", 16);
  const Watts rated = cluster.host.power.get() * (1.0 / 8);
  CHECK(host_power_known(cluster));
  CHECK(host_power_per_accelerator(cluster).si() ==
        Approx(rated.si() * load_economics("standard").host_load.get()));
  cluster.host_load.value = 0.8;
  CHECK(host_power_per_accelerator(cluster).si() == Approx(0.8 * rated.si()));
  Cluster unloaded = cluster;
  unloaded.host_load.value.reset();
  CHECK_FALSE(host_power_known(unloaded));
  CHECK(host_power_per_accelerator(unloaded) == Watts(0));
  cluster.host.power.value.reset();
  CHECK_FALSE(host_power_known(cluster));
  CHECK(host_power_per_accelerator(cluster) == Watts(0));
}

TEST_CASE("each objective ranks by its own measure") {
  Question question = narrow_question(small_dense_model(), 16);
  question.objective = Objective::energy;
  AdviseOptions options;
  options.top = 50;
  const Advice energy = advise(question, options);
  const Watts hosts = host_power_per_accelerator(question.cluster) * 16.0;
  CHECK(hosts.si() > 0);
  const auto joules = [&](const Candidate& c) { return c.energy_per_step + hosts * c.step_time; };
  for (std::size_t i = 1; i < energy.best.size(); ++i)
    CHECK(joules(energy.best[i]) >= joules(energy.best[i - 1]));
  CHECK(measure(question, energy.best[0]) == Approx(joules(energy.best[0]).si()));
  question.objective = Objective::cost;
  const Advice cost = advise(question, options);
  question.objective = Objective::time;
  CHECK(fingerprint(cost.best) == fingerprint(advise(question, options).best));
}

}  // namespace
}  // namespace orrery
