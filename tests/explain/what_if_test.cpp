// SPDX-License-Identifier: Apache-2.0
// Tests edits of scenarios: what they change, and that better parts never slow a step.
#include "sim/explain/what_if.h"

#include <rapidcheck.h>

#include <catch2/catch.hpp>

#include "hw_models/kernel/kernel_time.h"
#include "hw_models/power.h"
#include "sim/engine/memory_fit.h"
#include "sim/engine/placement.h"
#include "sim/engine/step/step.h"
#include "tests/explain/whole_scenarios.h"

namespace orrery {
namespace {

TEST_CASE("kernel speedups are read from text") {
  const auto kernels = kernel_speedups_from("gemm=1.15,attention=1.5");
  CHECK(kernels == std::vector<KernelSpeedup>{{"gemm", 1.15}, {"attention", 1.5}});
  const auto refused = [](const char* text, const char* part) {
    INFO(text);
    try {
      kernel_speedups_from(text);
      FAIL("accepted");
    } catch (const Error& e) {
      CHECK(e.message().find(part) != std::string::npos);
    }
  };
  refused("gem=2", "gemm");
  refused("gemm", "a factor above 0");
  refused("gemm=fast", "a factor above 0");
  refused("gemm=0", "a factor above 0");
  refused("gemm=-1", "a factor above 0");
  refused("gemm=1.2x", "a factor above 0");
  refused("gemm=inf", "a factor above 0");
  refused("gemm=2,gemm=3", "twice");
  refused("", "nothing");
  refused("gemm=2,,attention=2", "a kind of kernel");
}

TEST_CASE("a kernel k times faster takes 1/k of its time, and others what they took") {
  Scenario s = whole_scenario({.layout = {.tp = 2, .dp = 4}});
  // The group's factor, but for the kind that is named itself.
  const WhatIf edit{.kernels = kernel_speedups_from("products=1.25,grouped-gemm=2,norm=3")};
  const Cluster faster = with(s.cluster, edit);
  const ResolvedDevice device = s.cluster.device.resolved();
  const auto factor = [](WorkKind kind) {
    return kind == WorkKind::gemm           ? 1.25
           : kind == WorkKind::grouped_gemm ? 2.0
           : kind == WorkKind::norm         ? 3.0
                                            : 1.0;
  };
  for (int k = 0; k < work_kind_count; ++k)
    for (int f = 0; f < format_count; ++f)
      for (int l = 0; l < library_count; ++l) {
        Kernel kernel{.library = static_cast<Library>(l)};
        kernel.work = {.kind = static_cast<WorkKind>(k), .input = static_cast<Format>(f)};
        kernel.work.m = kernel.work.n = kernel.work.k = 1024;
        kernel.work.batch = 2;
        kernel.work.heads = kernel.work.kv_heads = 8;
        kernel.work.q_length = kernel.work.kv_length = 1024;
        kernel.work.qk_dim = kernel.work.v_dim = 128;
        kernel.work.bytes_read = kernel.work.bytes_written = 1e7;
        const double before = kernel_time(kernel, device, s.cluster.calibration).time.si();
        const double after = kernel_time(kernel, device, faster.calibration).time.si();
        INFO(to_text(kernel.work.kind) << " " << f << " " << l);
        if (factor(kernel.work.kind) == 1)
          CHECK(after == before);
        else
          CHECK(after == Approx(before / factor(kernel.work.kind)).epsilon(1e-12));
      }
}

TEST_CASE("factors of one change nothing, to the bit") {
  for (const ScenarioWords& words : varied_scenarios()) {
    const Scenario s = whole_scenario(words);
    const StepResult before = step(step_context(s), s.model, s.job, s.layout, s.stack);
    WhatIf edit{.kernels = kernel_speedups_from("products=1,attention=1,norm=1")};
    edit.power_limit = s.cluster.device.power_limit.get();
    const Scenario same = with(s, edit);
    const StepResult after =
        step(step_context(same), same.model, same.job, same.layout, same.stack);
    INFO(words.cluster << " " << words.model);
    CHECK(after.step == before.step);
    CHECK(after.energy_per_gpu == before.energy_per_gpu);
    CHECK(after.throttle == before.throttle);
  }
}

// One better part.
WhatIf better(int part, double factor, const Scenario& s) {
  WhatIf edit;
  switch (part) {
    case 0:
      edit.kernels = {{"products", factor}};
      break;
    case 1:
      edit.kernels = {{"attention", factor}, {"memory-bound", factor}};
      break;
    case 2:
      edit.kernels = {{"products", factor}, {"attention", factor}};
      edit.kernel_energy = SpeedupEnergy::with_time;
      break;
    case 3:
      edit.tensor_rate = factor;
      break;
    case 4:
      edit.unit_rate = factor;
      break;
    case 5:
      edit.memory_bandwidth = factor;
      break;
    case 6:
      edit.scale_up_bandwidth = factor;
      break;
    case 7:
      edit.network_bandwidth = factor;
      break;
    case 8:
      edit.host_speed = factor;
      break;
    case 9:
      edit.power_limit = s.cluster.device.power_limit.get() * factor;
      break;
    default:
      edit.whole_graphs = true;
  }
  return edit;
}

TEST_CASE("law: a better part never slows a step") {
  std::vector<Scenario> scenarios;
  std::vector<double> times;
  for (const ScenarioWords& words : varied_scenarios()) {
    scenarios.push_back(whole_scenario(words));
    times.push_back(step_time(scenarios.back()).si());
  }
  rc::check("on any machine, for any layout", [&] {
    const auto i = *rc::gen::inRange<std::size_t>(0, scenarios.size());
    const int part = *rc::gen::inRange(0, 11);
    const double factor = 1 + *rc::gen::inRange(0, 3000) / 1000.0;
    const double after = step_time(with(scenarios[i], better(part, factor, scenarios[i]))).si();
    RC_LOG() << "scenario " << i << ", part " << part << " times " << factor << ": " << times[i]
             << " s to " << after << " s\n";
    RC_ASSERT(after <= times[i] * (1 + 1e-6));
  });
}

TEST_CASE("energy of tensor work follows the clock that a limit sustains") {
  CHECK(sustained_energy(1) == 1);
  CHECK(sustained_energy(0.8) < 1);
  CHECK(sustained_energy(0.8) > 0.8);  // so that less power is slower
  CHECK(sustained_energy(1.2) > 1);
  CHECK(sustained_energy(1.2) < 1.2);
  CHECK(sustained_energy(0.3) == sustained_energy(0.5));
}

TEST_CASE("a power cap slows tensor work by less than it saves") {
  const Scenario s = whole_scenario({.layout = {.tp = 8, .pp = 2, .dp = 4, .micro_batch = 2}});
  const double full = step_time(s).si();
  double before = full;
  for (const double watts : {650.0, 600.0, 500.0, 400.0, 300.0, 200.0}) {
    const double capped = step_time(with(s, {.power_limit = Watts(watts)})).si();
    INFO(watts << " W");
    CHECK(capped >= before);
    CHECK(capped < full * 700 / watts);
    before = capped;
  }
  CHECK(step_time(with(s, {.power_limit = Watts(400)})).si() > 1.02 * full);
  const auto energy = [&](double watts) {
    const Scenario x = with(s, {.power_limit = Watts(watts)});
    const StepResult r = step(step_context(x), x.model, x.job, x.layout, x.stack);
    return std::pair(r.energy_per_gpu.si(), to_seconds(r.step).si());
  };
  // No board draws more than its cap, and lower clocks cost less for the same work.
  CHECK(energy(400).first < energy(700).first);
  CHECK(energy(400).first <= 1.001 * 400 * energy(400).second);
  // Without a limit that binds nothing depends on it.
  CHECK(energy(3000).second == Approx(energy(5000).second));
  CHECK(energy(3000).first == Approx(energy(5000).first).epsilon(0.02));
  CHECK_THROWS_AS(with(s, {.power_limit = Watts(10)}), Error);
  CHECK_THROWS_AS(with(s, {.memory_bandwidth = 0}), Error);
  CHECK_THROWS_AS(with(s, {.host_speed = -1}), Error);
}

TEST_CASE("at the power limit a faster kernel gains about three quarters, a leaner one all") {
  // Large products alone: the step is theirs and at the limit of 700 W.
  const Scenario s = whole_scenario({.model = "llama3.1-405b",
                                     .layout = {.tp = 8, .pp = 8, .dp = 2},
                                     .sequence = 8192,
                                     .batch = 64});
  const double before = step_time(s).si();
  const WhatIf same_work{.kernels = {{"products", 1.15}}};
  WhatIf less_work = same_work;
  less_work.kernel_energy = SpeedupEnergy::with_time;
  const double sooner = before / step_time(with(s, same_work)).si() - 1;
  const double leaner = before / step_time(with(s, less_work)).si() - 1;
  CHECK(leaner > 0.08);
  CHECK(leaner < 0.15);
  CHECK(sooner > 0.65 * leaner);
  CHECK(sooner < 0.9 * leaner);
}

TEST_CASE("capacity and domains change what fits, not what a link carries") {
  const Scenario s = whole_scenario({.layout = {.tp = 16, .dp = 2}});
  const Scenario roomy = with(s, {.memory_capacity = 2});
  CHECK(step_time(roomy) == step_time(s));
  const auto capacity = [](const Scenario& x) {
    return memory_fit(x.model, x.job, x.layout, x.stack, x.cluster.device.resolved()).capacity;
  };
  CHECK(capacity(roomy).si() == Approx(2 * capacity(s).si()));
  const Scenario wide = with(s, {.scale_up_domain = 2});
  CHECK(place(s.layout, s.cluster.fabric).tensor.domains == 2);
  CHECK(place(wide.layout, wide.cluster.fabric).tensor.domains == 1);
  CHECK(step_time(wide) < step_time(s));
  CHECK(premises({}).empty());
  CHECK(premises({.memory_capacity = 2}).size() == 1);
  // 18 links of each GPU to chips of 72 ports: 8 GPUs fill two chips, 16 four, 5 not quite two.
  const auto chips = [](double gpus) {
    const Cluster narrow = with(load_cluster("gb200-nvl72", 72), {.scale_up_domain = gpus / 72});
    return narrow.fabric.scale_up.levels.at(0).switches.get();
  };
  CHECK(chips(72) == 18);
  CHECK(chips(8) == 2);
  CHECK(chips(16) == 4);
  CHECK(chips(5) == 2);
}

}  // namespace
}  // namespace orrery
