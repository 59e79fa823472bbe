// SPDX-License-Identifier: Apache-2.0
// Tests what kernel times must show: measured points, shapes that cost, and law 7.
#include "hw_models/kernel/kernel_time.h"

#include <rapidcheck.h>
#include <catch2/catch.hpp>
#include <cmath>

#include "hw_models/catalog.h"
#include "hw_models/power.h"
#include "tests/hw_models/machine.h"

namespace orrery {
namespace {

Kernel gemm(std::int64_t m, std::int64_t n, std::int64_t k, Format format = Format::bf16,
            Library library = Library::cublas) {
  return {.work = {.kind = WorkKind::gemm, .input = format, .m = m, .n = n, .k = k},
          .library = library};
}

Kernel attention(WorkKind kind, std::int64_t batch, std::int64_t length, Library library,
                 bool causal = true, std::int64_t dim = 128) {
  return {.work = {.kind = kind,
                   .batch = batch,
                   .heads = 32,
                   .kv_heads = 8,
                   .q_length = kind == WorkKind::attention_decode ? 1 : length,
                   .kv_length = length,
                   .qk_dim = dim,
                   .v_dim = dim,
                   .causal = causal},
          .library = library};
}

Kernel stream(WorkKind kind, double bytes, Library library = Library::fused) {
  return {.work = {.kind = kind, .bytes_read = bytes / 2, .bytes_written = bytes / 2},
          .library = library};
}

TEST_CASE("a large product on H200 runs at the measured burst and sustained speeds") {
  const Machine h200("h200-sxm");
  const Kernel cube = gemm(8192, 8192, 8192);
  const KernelTime t = h200.time(cube);
  CHECK(h200.tflops(cube) == Approx(795).epsilon(0.03));
  const Seconds sustained = sustained_time(t.time, t.energy, h200.device);
  CHECK(tensor_flop(cube.work) / sustained.si() / 1e12 == Approx(665).epsilon(0.03));
  CHECK(t.limit == Limit::tensor);
  CHECK(h200.tflops(gemm(8192, 8192, 8192, Format::fp8)) == Approx(1512).epsilon(0.04));
}

TEST_CASE("B200 throttles from 1,700 to 1,300 TFLOP/s in a long run of products") {
  const Machine b200("b200-sxm");
  const Kernel cube = gemm(16384, 16384, 16384);
  const KernelTime t = b200.time(cube);
  CHECK(b200.tflops(cube) == Approx(1680).epsilon(0.05));
  const Seconds sustained = sustained_time(t.time, t.energy, b200.device);
  CHECK(tensor_flop(cube.work) / sustained.si() / 1e12 == Approx(1372).epsilon(0.05));
}

TEST_CASE("few rows stream the weights") {
  const Machine h200("h200-sxm");
  const Kernel skinny = gemm(8, 8192, 8192);
  const KernelTime t = h200.time(skinny);
  CHECK(t.limit == Limit::memory);
  CHECK(in_microseconds(t.time) == Approx(36).epsilon(0.1));  // measured: 34 to 38 us
  CHECK(h200.time(gemm(1, 1024, 1024)).time < microseconds(4));
}

TEST_CASE("a product that just misses the grid of its processors or of memory is slower") {
  const Machine a100("a100-sxm4-80gb");
  const double full = a100.tflops(gemm(128 * 108, 256, 8192));
  const double over = a100.tflops(gemm(128 * 108 + 1, 256, 8192));
  CHECK(over < full);
  const Machine h200("h200-sxm");
  CHECK(h200.time(gemm(4096, 4090, 4096)).time > h200.time(gemm(4096, 4096, 4096)).time * 2);
  CHECK(h200.time(gemm(8192, 50257, 2048)).time > h200.time(gemm(8192, 50260, 2048)).time * 2);
}

TEST_CASE("operands whose rows start inside a sector cost more where neither is aligned") {
  const Machine h200("h200-sxm");
  Kernel odd = gemm(4096, 4096, 4104), even = gemm(4096, 4096, 4096);  // 8,208 and 8,192 bytes
  const auto ratio = [&] { return h200.time(odd).time / h200.time(even).time; };
  CHECK(ratio() > 1.04);
  CHECK(ratio() < 1.15);
  // An input gradient reads one operand along n.
  odd.work.role = even.work.role = GemmRole::input_gradient;
  CHECK(ratio() < 1.01);
}

// A curve of one kernel whose blocks are a row each.
KernelTime row_time(const Machine& h200, std::int64_t rows, double row_bytes, double capacity = 0) {
  Calibration calibration = h200.calibration;
  Curve curve = calibration.curve(WorkKind::norm, Format::bf16, Library::fused);
  curve.kind = WorkKind::norm;
  curve.library = Library::fused;
  curve.memory_efficiency = 0.9;
  curve.l2_efficiency = 0.6;
  curve.saturation_bytes = 5e6;
  curve.stream_width = 0.5;
  curve.fixed_seconds = 0;
  put_curve(calibration, curve);
  complete(calibration);
  ResolvedDevice device = h200.device;
  device.l2_capacity = Bytes(capacity);
  Kernel kernel = stream(WorkKind::norm, static_cast<double>(rows) * row_bytes);
  kernel.work.m = rows;
  return kernel_time(kernel, device, calibration);
}

TEST_CASE("few blocks do not fill the memory's pipe, and its latency shrinks in the cache") {
  const Machine h200("h200-sxm");
  const Seconds start = row_time(h200, 1, 1).time;
  CHECK(in_microseconds(start) == Approx(5e6 / (0.9 * 4.8e6)).epsilon(0.02));
  CHECK(row_time(h200, 1, 1).limit == Limit::latency);
  const auto streams = [&](std::int64_t rows) { return row_time(h200, rows, 1e6).time - start; };
  CHECK(streams(16) / streams(1) == Approx(1).epsilon(0.02));  // each on a processor of its own
  CHECK(streams(1320) / streams(132) == Approx(10).epsilon(0.02));
  const Seconds cached = row_time(h200, 1, 1, 1e9).time;
  CHECK(cached < start * 0.8);
  CHECK(cached > start * 0.3);
}

TEST_CASE("adding to an fp32 buffer costs its traffic") {
  const Machine h200("h200-sxm");
  Kernel weight = gemm(28672, 4096, 2048);
  weight.work.role = GemmRole::weight_gradient;
  const Seconds plain = h200.time(weight).time;
  weight.work.accumulate_fp32 = true;
  const Seconds added = h200.time(weight).time;
  CHECK(in_microseconds(plain) == Approx(627).epsilon(0.05));
  CHECK(in_microseconds(added) == Approx(775).epsilon(0.06));
}

TEST_CASE("experts one after the other are slower than grouped") {
  const Machine h100("h100-sxm");
  Kernel experts{
      .work = {.kind = WorkKind::grouped_gemm, .m = 64, .n = 4096, .k = 2048, .groups = 64},
      .library = Library::grouped_gemm};
  const Seconds grouped = h100.time(experts).time;
  experts.library = Library::sequential_gemm;
  CHECK(h100.time(experts).time > grouped);
}

TEST_CASE("attention knows masks, variants, heads and the exponential units") {
  const Machine h200("h200-sxm"), b200("b200-sxm");
  const auto forward = WorkKind::attention_forward, backward = WorkKind::attention_backward;
  const auto seconds_of = [&](const Kernel& k) { return h200.time(k).time.si(); };
  CHECK(h200.tflops(attention(forward, 1, 16384, Library::cudnn_attention)) ==
        Approx(664).epsilon(0.05));
  CHECK(h200.tflops(attention(backward, 1, 16384, Library::cudnn_attention)) ==
        Approx(588).epsilon(0.08));
  CHECK(h200.tflops(attention(forward, 1, 16384, Library::flash2)) == Approx(346).epsilon(0.05));
  const double causal = seconds_of(attention(forward, 1, 16384, Library::flash3));
  const double full = seconds_of(attention(forward, 1, 16384, Library::flash3, false));
  CHECK(causal / full == Approx(0.5).margin(0.05));
  CHECK(seconds_of(attention(forward, 1, 4096, Library::unfused_attention)) > 3 * causal / 16);
  // B200 has twice the tensor units for the same exponentials: with half of them they decide.
  const Kernel prefill = attention(forward, 1, 16384, Library::flashinfer);
  ResolvedDevice half = b200.device;
  half.special_function_per_second *= 0.5;
  const KernelTime slow = kernel_time(prefill, half, b200.calibration);
  CHECK(slow.limit == Limit::special_function);
  CHECK(slow.time > 1.2 * b200.time(prefill).time);
  // BLOOM's head dimension of 108 is no multiple of 8.
  CHECK(seconds_of(attention(forward, 4, 2048, Library::unfused_attention, true, 108)) >
        seconds_of(attention(forward, 4, 2048, Library::unfused_attention, true, 112)));
  Kernel window = attention(forward, 1, 16384, Library::flash3);
  window.work.window = 1024;
  CHECK(seconds_of(window) < 0.3 * causal);
}

TEST_CASE("decode reads the cache at the memory's speed above a floor of ten microseconds") {
  const Machine h200("h200-sxm");
  const auto decode = WorkKind::attention_decode;
  CHECK(in_microseconds(h200.time(attention(decode, 1, 64, Library::flash3)).time) ==
        Approx(11).epsilon(0.15));
  const Kernel many = attention(decode, 64, 8192, Library::flash3);
  const double rate = minimum_bytes(many.work) / h200.time(many).time.si() / 1e12;
  CHECK(rate == Approx(4.38).epsilon(0.1));
}

TEST_CASE("streams run at the memory's speed, small ones from L2, host copies over their link") {
  const Machine h200("h200-sxm");
  const double large = 1e9, small = 4e6;
  const double slow = h200.time(stream(WorkKind::elementwise, large)).time.si() / large;
  CHECK(1 / slow / 1e12 == Approx(4.1).epsilon(0.05));
  const auto& curve = h200.calibration.curve(WorkKind::elementwise, Format::bf16, Library::fused);
  const double quick =
      (h200.time(stream(WorkKind::elementwise, small)).time.si() - curve.fixed_seconds) / small;
  CHECK(quick < slow * 1.3);
  const KernelTime copy = h200.time(stream(WorkKind::host_copy, 268435456, Library::eager));
  CHECK(copy.limit == Limit::host_link);
  CHECK(in_milliseconds(copy.time) == Approx(5.1).epsilon(0.05));
}

Kernel random_kernel() {
  const auto extent = [](int low, int high) {
    return static_cast<std::int64_t>(*rc::gen::inRange(low, high));
  };
  const Format format = *rc::gen::element(Format::bf16, Format::fp16, Format::fp8, Format::fp4);
  Kernel kernel;
  kernel.library = static_cast<Library>(*rc::gen::inRange(0, library_count));
  Work& work = kernel.work;
  work.input = format;
  work.role = static_cast<GemmRole>(*rc::gen::inRange(0, 3));
  work.accumulate_fp32 = *rc::gen::arbitrary<bool>();
  work.m = extent(1, 20000);
  work.n = extent(1, 20000);
  work.k = extent(1, 20000);
  work.groups = extent(1, 65);
  work.batch = extent(1, 65);
  work.kv_heads = extent(1, 17);
  work.heads = work.kv_heads * extent(1, 9);
  work.kv_length = extent(1, 20000);
  work.q_length = std::min(work.kv_length, extent(1, 20000));
  work.qk_dim = extent(16, 257);
  work.v_dim = extent(16, 257);
  work.window = *rc::gen::arbitrary<bool>() ? extent(1, 5000) : 0;
  work.causal = *rc::gen::arbitrary<bool>();
  work.bytes_read = std::exp(*rc::gen::inRange(0, 2300) / 100.0);
  work.bytes_written = std::exp(*rc::gen::inRange(0, 2300) / 100.0);
  work.vector_flop = *rc::gen::arbitrary<bool>() ? work.bytes_read * 100 : 0;
  return kernel;
}

constexpr int resource_count = 6;

ResolvedDevice improved(ResolvedDevice device, int resource, double factor) {
  switch (resource) {
    case 0:
      for (auto& rate : device.tensor_rate) rate *= factor;
      break;
    case 1:
      device.memory_bandwidth *= factor;
      break;
    case 2:
      device.l2_bandwidth *= factor;
      break;
    case 3:
      device.special_function_per_second *= factor;
      break;
    case 4:
      device.vector_rate *= factor;
      break;
    default:
      device.host_bandwidth *= factor;
      break;
  }
  return device;
}

TEST_CASE("law 7: more of any rate or bandwidth is never slower") {
  const Machine machines[] = {Machine("a100-sxm4-80gb"), Machine("h200-sxm"), Machine("b200-sxm"),
                              Machine("tpu-v5p")};
  const bool held = rc::check("kernel_time is monotone", [&] {
    const Machine& machine = machines[*rc::gen::inRange(0, 4)];
    const double factor = 1 + *rc::gen::inRange(1, 300) / 100.0;
    Kernel kernel = random_kernel();
    for (int kind = 0; kind < work_kind_count; ++kind) {
      kernel.work.kind = static_cast<WorkKind>(kind);
      const double before = machine.time(kernel).time.si();
      RC_ASSERT(std::isfinite(before) && before > 0);
      for (int resource = 0; resource < resource_count; ++resource) {
        const ResolvedDevice better = improved(machine.device, resource, factor);
        const double after = kernel_time(kernel, better, machine.calibration).time.si();
        RC_ASSERT(after <= before * (1 + 1e-12));
      }
    }
  });
  CHECK(held);
}

TEST_CASE("every accelerator of the catalogue times every kind of kernel") {
  for (const std::string& name : catalog_names("hw_models/catalog/accelerators")) {
    const Device device = load_device(name);
    ResolvedDevice plain;
    try {
      plain = device.resolved();
    } catch (const Error&) {
      continue;  // announced parts without FLOP/s or memory are refused by name
    }
    const Calibration calibration = load_calibration(device);
    CHECK(calibration.device == name);
    for (int kind = 0; kind < work_kind_count; ++kind) {
      Kernel kernel = attention(static_cast<WorkKind>(kind), 2, 2048, Library::flash2);
      kernel.work.m = kernel.work.n = kernel.work.k = 2048;
      kernel.work.bytes_read = 1e8;
      const KernelTime t = kernel_time(kernel, plain, calibration);
      INFO(name << " " << to_text(static_cast<WorkKind>(kind)));
      CHECK(std::isfinite(t.time.si()));
      CHECK(t.time > microseconds(1));
      CHECK(t.time < seconds(1));
      CHECK(t.energy.si() > 0);
    }
  }
}

}  // namespace
}  // namespace orrery
