// SPDX-License-Identifier: Apache-2.0
// Tests what is made of a judge's lines: right or wrong, speed, reward, words to act on, and jobs
// with a kernel replaced.
#include <rapidcheck.h>

#include <catch2/catch.hpp>

#include "hw_models/catalog.h"
#include "hw_models/kernel/kernel_time.h"
#include "sim/calibrate/kernel/judgement.h"
#include "sim/calibrate/kernel/replace.h"

namespace orrery {
namespace {

const BuiltKernel built{.compiled = true, .resources = {.registers = 128, .kernels = 1}};

KernelCase a_case(Sizes shape, const std::string& data, bool ok) {
  return {.shape = std::move(shape),
          .data = data,
          .failure = ok ? "" : "row 1 is wrong",
          .worst = ok ? 0.5 : 9.0,
          .ok = ok};
}

// A trial of a norm whose only timed shape took so long.
KernelTrial trial_of(double seconds, std::vector<KernelCase> cases) {
  KernelTrial trial;
  trial.cases = std::move(cases);
  trial.timed = {{.shape = {8192, 4096},
                  .worst = 0.9,
                  .cold = {seconds, seconds * 0.99, seconds * 1.02, seconds * 1.01},
                  .warm = {seconds},
                  .launches = 9,
                  .ok = true}};
  return trial;
}

std::vector<PresentTimes> present_of(double seconds) {
  return {{.name = "slow", .timed = trial_of(2 * seconds, {}).timed},
          {.name = "today", .timed = trial_of(seconds, {}).timed}};
}

const KernelMachine& machine() {
  static const Device device = load_device("h100-sxm");
  static const KernelMachine known{device.resolved(), load_calibration(device)};
  return known;
}

KernelJudgement judged(const KernelTrial& trial, double today = 80e-6) {
  return judge_kernel(load_kernel_spec("rms-norm"), "my.cu", built, trial, present_of(today),
                      &machine());
}

TEST_CASE("a right kernel is held against the fastest of today and the device's peaks") {
  const KernelJudgement k = judged(trial_of(50e-6, {a_case({8, 8}, "random", true)}));
  CHECK(k.correct);
  REQUIRE(k.shapes.size() == 1);
  CHECK(k.shapes[0].present_name == "today");
  REQUIRE(k.speed);
  CHECK(k.speed->middle == Approx(1.6).epsilon(0.02));
  CHECK(k.speed->low < k.speed->middle);
  CHECK(k.speed->middle < k.speed->high);
  CHECK(*k.of_roofline == Approx((4.0 * 8192 * 4096 + 8192) /
                                 machine().device.memory_bandwidth.si() / k.shapes[0].cold));
  CHECK(k.reward == Approx(1.6 / 2.6).epsilon(0.02));
  CHECK(k.feedback.find("128 registers") != std::string::npos);
  CHECK(k.feedback.find("lets 16 of 64 warps") != std::string::npos);
  CHECK(k.feedback.find("today takes 80") != std::string::npos);
}

TEST_CASE("without a kernel of today the calibration says what it takes") {
  const KernelJudgement k =
      judge_kernel(load_kernel_spec("rms-norm"), "my.cu", built,
                   trial_of(50e-6, {a_case({8, 8}, "random", true)}), {}, &machine());
  REQUIRE(k.shapes[0].present);
  CHECK(*k.shapes[0].present == *k.shapes[0].calibrated);
  CHECK(k.speed);
}

TEST_CASE("what is faster than the device can be is wrong") {
  const KernelJudgement k = judged(trial_of(20e-6, {a_case({8, 8}, "random", true)}));
  CHECK_FALSE(k.correct);
  CHECK(k.reward == 0);
  CHECK_FALSE(k.speed);
  CHECK(k.feedback.find("less than the device can take") != std::string::npos);
}

TEST_CASE("one wrong case, or an end before the last, is wrong and earns nothing") {
  for (const bool timed : {false, true}) {
    KernelTrial trial = trial_of(50e-6, {a_case({8, 8}, "random", timed)});
    if (timed) trial.timed[0].ok = false;
    const KernelJudgement k = judged(trial);
    CHECK_FALSE(k.correct);
    CHECK(k.reward == 0);
  }
  KernelTrial ended = trial_of(50e-6, {a_case({8, 8}, "random", true)});
  ended.failure = "the worker was ended by signal 9";
  CHECK(judged(ended).reward == 0);
  KernelTrial untimed = trial_of(50e-6, {a_case({8, 8}, "random", true)});
  untimed.timed.clear();
  CHECK(judged(untimed).reward == 0);
}

TEST_CASE("feedback says where to look") {
  const auto feedback = [](std::vector<KernelCase> cases) {
    return judged(trial_of(50e-6, std::move(cases))).feedback;
  };
  CHECK(feedback({a_case({8, 8}, "random", true), a_case({8, 9}, "random", false)})
            .find("no multiple of 8 fail: look at the tails") != std::string::npos);
  CHECK(feedback({a_case({8, 8}, "random", true), a_case({8, 8}, "outlier", false)})
            .find("Random data are right, outlier data fail") != std::string::npos);
  CHECK(feedback({a_case({8, 8}, "random", false), a_case({8, 8}, "equal", true),
                  a_case({8, 16}, "random", true)})
            .find("1 of 3 cases fail. The first: rows 8, width 8 with random data") !=
        std::string::npos);
  BuiltKernel failed;
  failed.complaint = "my.cu(3): error: expected a \";\"";
  CHECK(judge_kernel(load_kernel_spec("rms-norm"), "my.cu", failed, {}, {}, nullptr)
            .feedback.find("It does not compile: my.cu(3)") == 0);
}

TEST_CASE("law: a reward rises with speed, lies within 0 and 1, and wrong results earn nothing",
          "[law]") {
  CHECK(rc::check("monotone", [] {
    const auto speed = [] { return std::exp((*rc::gen::inRange(-8000, 8000)) * 1e-3); };
    const double a = speed(), b = speed();
    const double of_a = kernel_reward(true, a), of_b = kernel_reward(true, b);
    RC_ASSERT((a < b) == (of_a < of_b));
    RC_ASSERT(of_a > 0);
    RC_ASSERT(of_a < 1);
    RC_ASSERT(kernel_reward(false, a) == 0);
  }));
  CHECK(kernel_reward(true, 1) == 0.5);
}

TEST_CASE("lines of the judge are read, and a last one that is missing is noticed") {
  const std::string lines =
      "{\"event\":\"device\",\"name\":\"host\"}\n"
      "{\"event\":\"sandbox\",\"said\":\"sandbox network 1 files 0 capabilities 1 calls 1\"}\n"
      "{\"event\":\"case\",\"shape\":[3,4],\"data\":\"wide\",\"ok\":true,\"worst\":0.5,"
      "\"failure\":\"\"}\n"
      "{\"event\":\"timed\",\"shape\":[3,4],\"data\":\"random\",\"ok\":true,\"worst\":0.6,"
      "\"failure\":\"\",\"cold\":[1e-5,2e-5],\"warm\":[],\"launches\":3,\"round_trip\":1e-5,"
      "\"mhz\":1980}\n";
  const KernelTrial whole = read_trial(lines + "{\"event\":\"end\"}\n");
  CHECK(whole.right());
  CHECK(whole.worst() == 0.6);
  CHECK(whole.cases.at(0).data == "wide");
  CHECK(whole.timed.at(0).cold.size() == 2);
  REQUIRE(whole.sandbox);
  CHECK(whole.sandbox->network);
  CHECK_FALSE(whole.sandbox->files);
  CHECK_FALSE(read_trial(lines).right());
  CHECK(read_trial("{\"event\":\"no-device\"}\n").no_device);
  CHECK(read_trial("{\"event\":\"failed\",\"failure\":\"no torch for python3\"}\n").no_device);
}

TEST_CASE("ptxas' words become registers, memory and warps") {
  const KernelResources r = resources_of(
      "ptxas info    : Compiling entry function 'a' for 'sm_90'\n"
      "    0 bytes stack frame, 40 bytes spill stores, 44 bytes spill loads\n"
      "ptxas info    : Used 168 registers, used 1 barriers, 2048 bytes smem\n"
      "ptxas info    : Used 32 registers, used 1 barriers\n");
  CHECK(r.registers == 168);
  CHECK(r.spilled_bytes == 40);
  CHECK(r.shared_bytes == 2048);
  CHECK(r.kernels == 2);
  CHECK(r.warps() == 12);
  CHECK(KernelResources{.registers = 32}.warps() == 64);
  CHECK(KernelResources{.registers = 255}.warps() == 8);
}

TEST_CASE("a kernel that is replaced changes its own kind, in its own roles") {
  const Device device = load_device("h100-sxm");
  const ResolvedDevice resolved = device.resolved();
  const Calibration before = load_calibration(device);
  const auto time = [&](const Calibration& c, Work work, Library library) {
    return kernel_time({.work = work, .library = library}, resolved, c).time.si();
  };
  const Work norm = work_of(load_kernel_spec("rms-norm"), {8192, 4096});
  Work product = work_of(load_kernel_spec("product"), {4096, 4096, 4096});
  Work router = norm;
  router.kind = WorkKind::router;
  for (const double factor : {0.5, 1.0, 2.0}) {
    Calibration norms = before, products = before;
    replace_kernel(norms, WorkKind::norm, {}, factor);
    CHECK(time(norms, norm, Library::fused) ==
          Approx(factor * time(before, norm, Library::fused)).epsilon(1e-9));
    for (int kind = 0; kind < work_kind_count; ++kind) {
      Work other = router;
      other.kind = static_cast<WorkKind>(kind);
      if (other.kind == WorkKind::norm || is_product(other.kind) || is_attention(other.kind))
        continue;
      INFO(to_text(other.kind));
      CHECK(time(norms, other, Library::fused) == time(before, other, Library::fused));
    }
    replace_kernel(products, WorkKind::gemm, {GemmRole::forward}, factor);
    product.role = GemmRole::weight_gradient;
    CHECK(time(products, product, Library::cublas) == time(before, product, Library::cublas));
    product.role = GemmRole::forward;
    const double now = time(products, product, Library::cublas),
                 then = time(before, product, Library::cublas);
    CHECK((factor < 1 ? now < 0.6 * then : factor > 1 ? now > 1.8 * then : now == then));
  }
}

}  // namespace
}  // namespace orrery
