// SPDX-License-Identifier: Apache-2.0
// Tests what checkpoints cost the steps beside them, and at which intervals they are taken.
#include <catch2/catch.hpp>

#include <algorithm>
#include <cmath>

#include "sim/engine/step/step.h"
#include "sim/outcome/months/checkpoint_traffic.h"
#include "sim/outcome/months/job.h"
#include "sim/outcome/months/levels.h"
#include "sim/outcome/months/save_interval.h"
#include "tests/base/fresh_seed.h"
#include "tests/outcome/goodput_case.h"
#include "workloads/model/model_catalog.h"

namespace orrery {
namespace {

// Of one tier, without recoveries: lives and saves played one by one, steps slower while a write
// goes on. Share of the time that is kept.
double played(const CheckpointTier& tier, double rate, int failures, RandomStream& random) {
  const double interval = tier.interval.si(), stall = tier.stall.si(), write = tier.write.si();
  double time = 0, kept = 0;
  for (int i = 0; i < failures; ++i) {
    const double life = random.exponential(1 / rate);
    double now = 0, progress = 0, committed = 0, written = -1;  // when the last write ends
    while (true) {
      const double slow = std::max(written - now, 0.0);
      const double in_slow = slow * (1 - tier.slowed);
      const double run =
          in_slow >= interval ? interval / (1 - tier.slowed) : slow + interval - in_slow;
      if (written >= 0 && written <= std::min(now + run, life)) committed = progress;
      now += run + stall;
      if (now > life) break;
      progress += interval;
      written = now + write;
    }
    time += life;
    kept += committed;
  }
  return kept / time;
}

GoodputCase two_tiers(RandomStream& random) {
  const auto between = [&](double low, double high) {
    return low * std::pow(high / low, random.uniform());
  };
  // One after the other: compilers evaluate arguments in orders of their own.
  const double between_failures = between(3600, 1e5), stall = between(0.1, 30);
  GoodputCase input = plain_case(between_failures, stall, between(10, 600));
  input.failures[0].blast = BlastRadius::site;
  input.tiers[0].write = seconds(between(10, 300));
  input.tiers[0].slowed = 0.3 * random.uniform();
  input.tiers[0].least_interval = seconds(between(10, 600));
  FailureClass often = input.failures[0];
  often.name = "software";
  often.blast = BlastRadius::process;
  often.rate = exactly(Hertz(1 / between(600, 1e4)));
  input.failures.push_back(often);
  input.tiers.insert(input.tiers.begin(), {.name = "host memory",
                                           .stall = seconds(between(0.05, 5)),
                                           .survives = BlastRadius::process});
  input.step = seconds(between(0.3, 60));
  return input;
}

Scenario scenario_on(const std::string& cluster, std::int64_t gpus, std::int64_t tp) {
  Scenario s{.cluster = load_cluster(cluster, gpus),
             .model = load_model("llama3-8b", data_root() / "workloads/catalog/models"),
             .job = {},
             .layout = {},
             .stack = {}};
  s.job.sequence = 8192;
  s.job.global_batch = 2 * gpus / tp;
  s.layout.tp = tp;
  s.layout.dp = gpus / tp;
  s.stack = catalogue_stack("megatron-core", s.cluster, s.model, s.job, PrecisionRecipe::bf16);
  return s;
}

Seconds step_of(const Scenario& s) {
  return to_seconds(step(step_context(s.cluster), s.model, s.job, s.layout, s.stack).step);
}

}  // namespace

TEST_CASE("goodput: writes that slow the steps cost what playing them out costs") {
  RandomStream random(fresh(11), 1);
  for (int i = 0; i < 12; ++i) {
    GoodputCase input = plain_case(600 * std::pow(10.0, random.uniform()), 5, 0);
    CheckpointTier& tier = input.tiers[0];
    tier.interval = seconds(100 + 400 * random.uniform());
    tier.write = tier.interval * random.uniform();
    tier.slowed = 0.6 * random.uniform();
    const double rate = input.failures[0].rate.value.si();
    INFO(i << ": slowed by " << tier.slowed);
    CHECK(goodput(input).effective == Approx(played(tier, rate, 40000, random)).margin(0.006));
    const double disturbed = goodput(input).effective;
    CHECK(share_of(goodput(input).shares, TimeShare::checkpoint_traffic) > 0);
    tier.slowed = 0;
    CHECK(goodput(input).effective > disturbed);
    CHECK(share_of(goodput(input).shares, TimeShare::checkpoint_traffic) == 0);
  }
}

TEST_CASE("goodput: what writes cost the steps makes the best interval longer") {
  GoodputCase input = plain_case(7200, 1, 300);
  input.tiers[0].write = seconds(120);
  double before = 0;
  for (const double slowed : {0.0, 0.05, 0.1, 0.2, 0.4}) {
    input.tiers[0].slowed = slowed;
    const double now = goodput(input).tiers[0].interval.si();
    CHECK(now > before);
    before = now;
  }
}

TEST_CASE("goodput: intervals are round numbers of steps, and no other pair loses less") {
  RandomStream random(fresh(11), 2);
  for (int i = 0; i < 60; ++i) {
    GoodputCase input = two_tiers(random);
    const double exact = goodput(input).effective;
    input.whole_steps = true;
    const Goodput chosen = goodput(input);
    INFO("case " << i);
    for (const TierUse& tier : chosen.tiers) {
      const double steps = tier.interval / input.step;
      const double leading = steps / std::pow(10.0, std::floor(std::log10(steps) + 1e-9));
      CHECK(std::abs(steps - std::round(steps)) < 1e-6 * steps);
      CHECK((std::abs(leading - 1) < 1e-6 || std::abs(leading - 2) < 1e-6 ||
             std::abs(leading - 2.5) < 1e-6 || std::abs(leading - 5) < 1e-6));
    }
    CHECK(chosen.tiers[1].interval.si() >= input.tiers[1].least_interval.si() * (1 - 1e-9));
    // Intervals count what steps take undisturbed, and a write slows them: it fits into this much.
    const Seconds written = input.tiers[1].write * (1 - input.tiers[1].slowed);
    CHECK(chosen.tiers[1].interval.si() >= written.si() * (1 - 1e-9));
    CHECK(chosen.effective <= exact * (1 + 1e-4));
    // All pairs of the whole series, given as intervals.
    double best = 0;
    const double last = 1e6 / input.step.si();
    for (double inner = 1; inner < last; inner = round_steps(1, inner + 1, inner + 1).front())
      for (double outer = 1; outer < last; outer = round_steps(1, outer + 1, outer + 1).front()) {
        const Seconds wide = input.step * outer;
        if (wide < written || wide < input.tiers[1].least_interval) continue;
        GoodputCase given = input;
        given.tiers[0].interval = input.step * inner;
        given.tiers[1].interval = wide;
        best = std::max(best, goodput(given).effective);
      }
    CHECK(chosen.effective == Approx(best).epsilon(1e-9));
  }
}

TEST_CASE("goodput: a given interval becomes whole steps, no shorter than a write") {
  GoodputCase input = plain_case(7200, 1, 300);
  input.whole_steps = true;
  input.step = seconds(7);
  input.tiers[0].interval = seconds(100);
  CHECK(goodput(input).tiers[0].interval.si() == Approx(98));
  input.tiers[0].write = seconds(99);
  CHECK(goodput(input).tiers[0].interval.si() == Approx(105));
  CHECK(round_steps(7, 0, 100) == std::vector<double>{35, 70, 140, 175});
  CHECK(round_steps(7, 150, 100) == std::vector<double>{175});
  CHECK(round_steps(7, 1e6, 100).size() == 1);
}

TEST_CASE("a checkpoint takes bandwidth from training where both share a path") {
  const Scenario wide = scenario_on("dgx-h100", 64, 1);
  const Seconds step = step_of(wide);
  CHECK(slowed_by(wide, step, {}) == 0);
  double before = 0;
  for (const double gigabytes : {5.0, 10.0, 20.0, 25.0}) {
    const double now = slowed_by(wide, step, {.network = BytesPerSecond(gigabytes * 1e9)});
    CHECK(now > before);
    CHECK(now <= 0.5);
    before = now;
  }
  // At most half of a link: a larger flow changes nothing more.
  CHECK(slowed_by(wide, step, {.network = BytesPerSecond(1e12)}) == Approx(before));
  // Inside one domain nothing of training leaves by the NICs; without offload it leaves the host's
  // memory alone.
  const Scenario inside = scenario_on("dgx-h100", 8, 8);
  CHECK(slowed_by(inside, step_of(inside), {.network = BytesPerSecond(20e9)}) == 0);
  CHECK(slowed_by(wide, step, {.memory = BytesPerSecond(20e9)}) == 0);
}

TEST_CASE("a huge job saves no more often than an operator would") {
  const Cluster cluster = load_cluster("h100-roce", 100000);
  GoodputJob job{.step = seconds(11),
                 .tokens_per_step = 1e8,
                 .tokens = 1e14,
                 .checkpoint = Bytes(125.0 * 1099511627776.0),
                 .replicas = 64};
  const GoodputCase months = goodput_case(cluster, load_reliability("h100-100k"), job);
  const Goodput result = goodput(months);
  CHECK(result.tiers.back().interval >= seconds(300));
  CHECK(months.tiers.back().flow.network > BytesPerSecond{});
  const auto notes = goodput_notes(months, result);
  const double steps = result.tiers.back().interval.si() / 11;
  CHECK(steps == Approx(std::round(steps)));
  CHECK(std::any_of(notes.begin(), notes.end(), [](const std::string& note) {
    return note.find(" steps (") != std::string::npos;
  }));
}

}  // namespace orrery
