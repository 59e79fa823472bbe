// SPDX-License-Identifier: Apache-2.0
// Tests figures that books and reports print about very large models and machines.
#include <catch2/catch.hpp>

#include "sim/outcome/simulate.h"
#include "workloads/model/model_catalog.h"
#include "workloads/parameters/optimizer.h"

namespace orrery {
namespace {

Model model_named(const char* name) {
  return load_model(name, data_root() / "workloads/catalog/models");
}

double parameters_of(const char* name) {
  return static_cast<double>(count_parameters(model_named(name)).total);
}

TEST_CASE("a dense 100T model in 16 bits fills 200 TB, 700 accelerators of 288 GB") {
  const double bytes = 2 * parameters_of("100t-dense");
  CHECK(bytes == Approx(200e12).epsilon(0.02));
  CHECK(bytes / 288e9 == Approx(700).epsilon(0.01));
}

TEST_CASE("10^29 FLOP at 1.4 exaFLOP/s take 2,300 years") {
  const Seconds time = Flop(1e29) / FlopPerSecond(1.4e18);
  CHECK(time.si() / (365.25 * 86400) == Approx(2263).epsilon(0.001));
  CHECK(time.si() / (365.25 * 86400) == Approx(3000).epsilon(0.3));  // as one book prints it
}

TEST_CASE("a GB200 NVL72 rack has 72 GPUs, 13.4 to 13.8 TB and 1.44 exaFLOP/s in sparse FP4") {
  const Cluster rack = load_cluster("gb200-nvl72", 72);
  CHECK(rack.fabric.scale_up.domain == 72);
  const ResolvedDevice gpu = rack.device.resolved();
  // Vendors' GB of HBM are GiB: 186 a GPU.
  const double memory = 72 * in_gibibytes(rack.device.memory_capacity.get()) / 1000;
  CHECK(memory > 13.3);
  CHECK(memory < 13.8);
  const double dense = 72 * gpu.tensor_rate[static_cast<std::size_t>(Format::fp4)].si();
  CHECK(2 * dense == Approx(1.44e18).epsilon(0.02));
}

TEST_CASE("Kimi K2 has a trillion parameters, 32 billion of them active") {
  const ParameterCount count = count_parameters(model_named("kimi-k2"));
  CHECK(static_cast<double>(count.total) == Approx(1.04e12).epsilon(0.02));
  CHECK(static_cast<double>(count.active) == Approx(32e9).epsilon(0.05));
}

TEST_CASE("Adam keeps two states a parameter, Adafactor next to none, a rotating update a part") {
  const Model model = model_named("llama3.1-405b");
  Layout layout;
  const Stack stack = load_stack("megatron-core", {.architecture = "hopper"},
                                 data_root() / "workloads/catalog/stacks");
  const auto state = [&](Optimizer optimizer) {
    layout.optimizer = optimizer;
    return optimizer_cost(layout, stack, model.hidden).state_bytes;
  };
  CHECK(state(Optimizer::adam_fp32) == 8);
  CHECK(state(Optimizer::adafactor) < 0.01);
  CHECK(state(Optimizer::rotating_adam) < state(Optimizer::adam_fp32));
  CHECK(state(Optimizer::sgd) <= 4);
}

// DeepSeek-V3's report: 2.664 million H800 hours for 14.8T tokens, 180,000 a trillion.
TEST_CASE("DeepSeek-V3 trains 14.8T tokens in about 2.7 million H800 hours") {
  Scenario s{.cluster = load_cluster("h800-multiplane", 2048), .model = model_named("deepseek-v3")};
  s.job.sequence = 4096;
  s.job.global_batch = 15360;
  s.layout.pp = 16;
  s.layout.ep = 64;
  s.layout.dp = 128;
  s.layout.schedule = Schedule::dual_pipe;
  s.layout.precision = PrecisionRecipe::fp8_blockwise;
  s.stack = catalogue_stack("hai-llm", s.cluster, s.model, s.job, s.layout.precision);
  s.job.mtp = s.stack.defaults.mtp;
  s.layout.optimizer = s.stack.defaults.optimizer;
  s.layout.set(s.stack.defaults.recompute);
  const Prediction p = simulate(s, {.with_assumptions = false});
  const double hours = 14.8e12 / p.tokens_per_second_per_gpu / 3600;
  INFO(hours);
  CHECK(hours > 2.664e6 * 0.8);
  CHECK(hours < 2.664e6 * 1.2);
}

}  // namespace
}  // namespace orrery
