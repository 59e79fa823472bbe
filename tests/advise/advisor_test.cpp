// Tests the advisor: the simulator's optimum, the same on any number of threads, with its reasons.
#include "sim/advise/advisor.h"

#include <fmt/format.h>

#include <catch2/catch.hpp>

#include "sim/base/interrupt.h"
#include "tests/advise/small_question.h"

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
  for (const Rejection& r : a.rejections)
    text += fmt::format("{} {} {}\n", r.family, r.layouts, r.reason);
  text += fmt::format("{} {} {}", a.considered, a.invalid, a.rejected_for_memory);
  if (with_counts) text += fmt::format(" {} {}", a.simulated, a.pruned);
  return text;
}

// Simulates the whole grid, one layout after the other.
std::vector<Candidate> exhaustive(const Question& question, const Stack& stack) {
  SearchSpace space(question.model, question.job, question.cluster.gpus,
                    question.cluster.fabric.scale_up.domain, question.limits, stack);
  const StepContext context = step_context(question.cluster);
  std::vector<Candidate> all;
  while (auto layout = space.next()) {
    const MemoryVerdict memory =
        memory_fit(question.model, question.job, *layout, stack, context.device);
    if (!memory.fits) continue;
    Candidate c;
    c.layout = *layout;
    c.step_time = to_seconds(step(context, question.model, question.job, *layout, stack).step);
    c.peak_memory = memory.peak;
    all.push_back(c);
  }
  return all;
}

TEST_CASE("law 6: the same advice on one thread and on four, to the bit") {
  // On the hashed fabric the layouts share what they learn about loaded links.
  for (const char* cluster : {"dgx-h100", "h100-roce"}) {
    INFO(cluster);
    const std::int64_t gpus = std::string(cluster) == "dgx-h100" ? 16 : 64;
    Question question = small_question(small_expert_model(), gpus);
    question.cluster = load_cluster(cluster, gpus);
    AdviseOptions options;
    options.pareto = true;
    options.threads = 1;
    const std::string one = fingerprint(advise(question, options));
    options.threads = 4;
    CHECK(fingerprint(advise(question, options)) == one);
    CHECK(fingerprint(advise(question, options)) == one);
  }
}

TEST_CASE("pruning changes no answer") {
  const Question question = small_question(small_dense_model(), 32);
  AdviseOptions options;
  options.top = 5;
  for (const bool pareto : {false, true}) {
    options.pareto = pareto;
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
  const Question question = small_question(small_dense_model(), 16);
  AdviseOptions options;
  options.top = 20;
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
}

TEST_CASE("the front holds exactly what nothing beats in speed and in memory") {
  const Question question = small_question(small_dense_model(), 16);
  AdviseOptions options;
  options.pareto = true;
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
  for (const Rejection& r : advice.rejections) sum += r.layouts;
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
  const Question question = small_question(small_dense_model(), 16);
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
  CHECK(advice.simulated < advice.considered - advice.rejected_for_memory);
}

TEST_CASE("each objective ranks by its own measure") {
  Question question = small_question(small_dense_model(), 16);
  question.objective = Objective::energy;
  AdviseOptions options;
  options.top = 50;
  const Advice energy = advise(question, options);
  CHECK(energy.pruned == 0);
  for (std::size_t i = 1; i < energy.best.size(); ++i)
    CHECK(energy.best[i].energy_per_step >= energy.best[i - 1].energy_per_step);
  question.objective = Objective::cost;
  const Advice cost = advise(question, options);
  question.objective = Objective::time;
  CHECK(fingerprint(cost.best) == fingerprint(advise(question, options).best));
}

}  // namespace
}  // namespace orrery
