// SPDX-License-Identifier: Apache-2.0
// Tests that a stack's values come back from samples that a PyTorch with those costs would give.
#include "sim/calibrate/fit/software_fit.h"

#include <catch2/catch.hpp>
#include <cstdio>
#include <filesystem>
#include <fstream>

#include "hw_models/catalog.h"
#include "hw_models/kernel/kernel_time.h"
#include "sim/base/random.h"
#include "workloads/operations/layer_operations.h"
#include "workloads/stack/values.h"

using namespace orrery;

namespace {

std::filesystem::path stack_folder() { return data_root() / "workloads/catalog/stacks"; }

const StackContext context{.architecture = "hopper"};

struct Machine {
  Device device = load_device("h200-sxm");
  ResolvedDevice resolved = device.resolved();
  Calibration calibration = load_calibration(device);
};

struct LayerSizes {
  std::int64_t hidden, heads, kv_heads, ffn, sequences, length;
  std::int64_t experts = 0, topk = 0;
};

Sample software(const std::string& variant, double value) {
  Sample s{.kind = "software", .variant = variant};
  s.numbers["value"] = value;
  s.numbers["low"] = value * 0.95;
  s.numbers["high"] = value * 1.1;
  return s;
}

LayerProgram program_of(const LayerSizes& l, const Stack& stack) {
  Model model{.hidden = l.hidden, .vocab = l.hidden};
  append_layer(model, {.mixer = {.heads = l.heads, .kv_heads = l.kv_heads},
                       .ffn = {.kind = l.experts > 0 ? FfnKind::moe : FfnKind::dense,
                               .width = l.ffn,
                               .experts = l.experts,
                               .topk = l.topk}});
  const Job job{.sequence = l.length, .global_batch = l.sequences};
  const Layout layout{.micro_batch = l.sequences, .sequence_parallel = false, .zero_stage = 0};
  return LayerOperations(model, job, layout, stack).layer(model.classes[0]);
}

// Seconds of the memory-bound kernels of these segments.
double streamed_seconds(const Machine& machine, const Segment& forward, const Segment& backward) {
  double sum = 0;
  for (const Segment* segment : {&forward, &backward})
    for (const Operation& o : segment->operations)
      if (const Kernel* k = o.kernel();
          k && !is_product(k->work.kind) && !is_attention(k->work.kind))
        sum += o.count * kernel_time(*k, machine.resolved, machine.calibration).time.si();
  return sum;
}

double kernels_of(const Segment& segment) {
  double sum = 0;
  for (const Operation& o : segment.operations) sum += o.count;
  return sum;
}

void put(Sample& s, const LayerSizes& l) {
  const auto number = [&](const char* key, std::int64_t value) {
    s.numbers[key] = static_cast<double>(value);
  };
  number("hidden", l.hidden);
  number("heads", l.heads);
  number("kv_heads", l.kv_heads);
  number("head", 128);
  number("ffn", l.ffn);
  number("tokens", l.sequences * l.length);
  number("length", l.length);
  if (l.experts > 0) {
    number("experts", l.experts);
    number("topk", l.topk);
  }
}

void add_layer(MeasuredLog& log, const LayerSizes& l, const Stack& stack, const Machine& machine) {
  const LayerProgram p = program_of(l, stack);
  const double seconds = streamed_seconds(machine, p.forward, p.backward);
  const std::string phase = l.experts > 0 ? "expert-layer" : "layer";
  const auto add = [&](const std::string& variant, double value, double kernels) {
    Sample s = software(phase + variant, value);
    put(s, l);
    s.numbers["kernels"] = kernels;
    log.samples.push_back(s);
  };
  add("-forward-fused-time", seconds * 1e6 * 0.25, 5);
  add("-forward-eager-time", seconds * 1e6 * 0.1, 7);
  add("-backward-fused-time", seconds * 1e6 * 0.5, 8);
  add("-backward-eager-time", seconds * 1e6 * 0.15, 9);
  // Attention of three kernels, of which the layer lists one.
  add("-forward-attention-time", 100, 1);
  add("-backward-attention-time", 300, 3);
  add("-forward-kernels", kernels_of(p.forward), 1);
  add("-backward-kernels", kernels_of(p.backward) + 2, 1);
}

void add_head(MeasuredLog& log, std::int64_t tokens, std::int64_t hidden, std::int64_t vocab,
              const Stack& stack, const Machine& machine) {
  const Model model{.hidden = hidden, .vocab = vocab};
  const Job job{.sequence = tokens, .global_batch = 1};
  const Layout layout{.sequence_parallel = false, .zero_stage = 0};
  const LayerProgram p = LayerOperations(model, job, layout, stack).head();
  const double seconds = streamed_seconds(machine, p.forward, p.backward);
  for (const char* direction : {"forward", "backward"}) {
    Sample s = software(std::string("head-") + direction + "-eager-time",
                        seconds * 1e6 * (direction[0] == 'f' ? 0.4 : 0.6));
    s.numbers["tokens"] = static_cast<double>(tokens);
    s.numbers["hidden"] = static_cast<double>(hidden);
    s.numbers["vocab"] = static_cast<double>(vocab);
    log.samples.push_back(s);
  }
}

void add_update(MeasuredLog& log, double parameters, const Stack& stack, const Machine& machine) {
  Sample s{.kind = "optimizer", .variant = "adamw-bf16", .library = "fused", .is_work = true};
  s.part = "framework";
  s.kernel.work = {
      .kind = WorkKind::optimizer, .bytes_read = 8 * parameters, .bytes_written = 6 * parameters};
  Kernel update = s.kernel;
  update.library = stack.kernels.update_library();
  update.work.input = update.work.output = Format::fp32;
  update.work.bytes_read = update.work.bytes_written =
      7 * parameters * stack.kernels.update.passes_16_bit.get();
  s.time = kernel_time(update, machine.resolved, machine.calibration).time;
  log.samples.push_back(s);
}

// A product that loses to an all-reduce beside it what the stack says.
void add_overlap(MeasuredLog& log, const Stack& stack) {
  Sample s{.kind = "overlap", .variant = "gemm beside all-reduce"};
  s.texts["compute"] = "gemm";
  s.texts["collective"] = "all-reduce";
  const double slower = 2.0, cost = stack.communication.overlap_cost.get();
  s.numbers = {{"ranks", 4},
               {"bytes", 26214400},
               {"compute_alone_us", 1000},
               {"compute_beside_us", 1000 / (1 - cost / slower)},
               {"collective_alone_us", 100},
               {"collective_beside_us", 100 * slower}};
  log.samples.push_back(s);
}

// What a machine with this stack would say.
MeasuredLog log_of(const Stack& stack, const Machine& machine) {
  MeasuredLog log;
  log.conditions.push_back(
      {.program = "framework", .date = "2026-11-21", .libraries = {{"torch", "2.11.0"}}});
  for (const LayerSizes& l :
       {LayerSizes{4096, 32, 8, 14336, 1, 4096}, LayerSizes{2048, 16, 16, 5504, 8, 2048},
        LayerSizes{4096, 32, 8, 3584, 1, 4096, 32, 4}})
    add_layer(log, l, stack, machine);
  add_head(log, 4096, 4096, 128256, stack, machine);
  add_head(log, 16384, 2048, 32000, stack, machine);
  for (const double parameters : {1e7, 1e8, 1e9}) add_update(log, parameters, stack, machine);
  add_overlap(log, stack);
  const double us = stack.host.dispatch.get().si() * 1e6;
  const HostOperations& o = stack.host.operations;
  const auto host = [&](const std::string& variant, double operations) {
    log.samples.push_back(software(variant, operations * us));
  };
  host("dispatch-autograd-add", 1);
  host("dispatch-all-reduce", o.collective.get());
  host("host-layer-forward", o.layer_forward.get());
  host("host-layer-backward", o.layer_backward.get());
  host("host-layer-head-forward", 1.5 * o.head.get());
  host("host-layer-head-backward", 0.5 * o.head.get());
  host("host-expert-layer-forward", o.layer_forward.get() + o.moe_forward.get());
  host("host-expert-layer-backward", o.layer_backward.get() + o.moe_backward.get());
  log.samples.push_back(software("barrier", stack.host.step_overhead.get().si() * 1e6));
  log.samples.push_back(software("allocator-rounding", stack.memory.allocator_rounding.get()));
  log.samples.push_back(software("context", stack.memory.context.get().si()));
  Sample attention = software("attention-default-training", 3);
  attention.texts["name"] = "cudnn-attention";
  log.samples.push_back(attention);
  return log;
}

double plain(double value) { return value; }
template <class Q>
double plain(const Q& value) {
  return value.si();
}

// Values of the stack by name, in SI.
std::map<std::string, double> values_of(const Stack& stack) {
  std::map<std::string, double> found;
  visit_stack_values(stack, [&](const std::string& name, const auto& sourced) {
    found[name] = plain(sourced.get());
  });
  return found;
}

Stack changed(Stack stack, RandomStream& random) {
  visit_stack_values(stack, [&](const std::string&, auto& sourced) {
    *sourced.value = *sourced.value * (0.5 + random.uniform());
  });
  return stack;
}

}  // namespace

TEST_CASE("Every value of a known stack comes back from what it would show") {
  const Machine machine;
  const Stack base = load_stack("pytorch", context, stack_folder());
  for (std::uint64_t seed = 0; seed < 8; ++seed) {
    RandomStream random(seed, 0);
    const Stack known = changed(base, random);
    const auto truth = values_of(known);
    const SoftwareFit fit =
        fit_software(log_of(known, machine), machine.resolved, machine.calibration, base);
    // Memory cannot be reserved below what is allocated: such a sample says nothing.
    const bool rounding = truth.at("allocator_rounding") >= 1;
    REQUIRE(fit.values.size() == (rounding ? 17u : 16u));
    for (const SoftwareValue& v : fit.values) {
      INFO(v.name << " with seed " << seed);
      CHECK(v.value == Approx(truth.at(v.name)).epsilon(2e-3));
      CHECK(v.low <= v.value);
      CHECK(v.value <= v.high);
    }
    CHECK(fit.attention == Library::cudnn_attention);
    CHECK(fit.torch == "2.11.0");
  }
}

TEST_CASE("The overlay is a stack that keeps what was not measured") {
  const Machine machine;
  const Stack base = load_stack("pytorch", context, stack_folder());
  RandomStream random(3, 0);
  const Stack known = changed(base, random);
  const SoftwareFit fit =
      fit_software(log_of(known, machine), machine.resolved, machine.calibration, base);
  const auto path = std::filesystem::temp_directory_path() /
                    ("software_fit_test_" + std::to_string(random.next()) + ".json");
  std::ofstream(path) << stack_overlay_json(fit, "orrery-h200-framework");
  const Stack loaded = load_stack(path.string(), context, stack_folder());
  std::filesystem::remove(path);
  const auto before = values_of(base), after = values_of(loaded);
  for (const auto& [name, value] : after) {
    INFO(name);
    const SoftwareValue* measured = fit.find(name);
    CHECK(value == Approx(measured ? measured->value : before.at(name)).epsilon(1e-3));
  }
  CHECK(loaded.host.dispatch.evidence == Evidence::measured);
  CHECK(loaded.host.dispatch.source == "orrery-h200-framework");
  CHECK(loaded.kernels.attention == Library::cudnn_attention);
  CHECK(software_text(fit).find("elementwise_passes") != std::string::npos);
}

TEST_CASE("A log without software samples changes nothing") {
  const Machine machine;
  const Stack base = load_stack("pytorch", context, stack_folder());
  const SoftwareFit fit = fit_software({}, machine.resolved, machine.calibration, base);
  CHECK(fit.values.empty());
  CHECK(!fit.attention);
  MeasuredLog broken;
  broken.samples.push_back({.kind = "software", .variant = "dispatch-autograd-add"});
  CHECK_THROWS_AS(fit_software(broken, machine.resolved, machine.calibration, base), Error);
}
