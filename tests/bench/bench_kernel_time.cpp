// SPDX-License-Identifier: Apache-2.0
// Times kernel_time over the kernels of a Llama 3.1 405B layer, a DeepSeek-V3 layer, and each kind.
#include <benchmark/benchmark.h>

#include <vector>

#include "hw_models/catalog.h"
#include "hw_models/kernel/kernel_time.h"

namespace orrery {
namespace {

Kernel product(std::int64_t m, std::int64_t n, std::int64_t k, Format format = Format::bf16,
               std::int64_t groups = 1) {
  const bool grouped = groups > 1;
  return {.work = {.kind = grouped ? WorkKind::grouped_gemm : WorkKind::gemm,
                   .input = format,
                   .m = m,
                   .n = n,
                   .k = k,
                   .groups = groups},
          .library = grouped ? Library::grouped_gemm : Library::cublas};
}

Kernel stream(WorkKind kind, double bytes) {
  return {.work = {.kind = kind, .bytes_read = bytes, .bytes_written = bytes},
          .library = Library::fused};
}

Kernel attention(WorkKind kind, std::int64_t heads, std::int64_t kv, std::int64_t qk,
                 std::int64_t v) {
  const bool decode = kind == WorkKind::attention_decode;
  return {.work = {.kind = kind,
                   .batch = decode ? 64 : 1,
                   .heads = heads,
                   .kv_heads = kv,
                   .q_length = decode ? 1 : 8192,
                   .kv_length = 8192,
                   .qk_dim = qk,
                   .v_dim = v,
                   .causal = true},
          .library = Library::cudnn_attention};
}

// A linear layer's three products.
void linear(std::vector<Kernel>& kernels, std::int64_t m, std::int64_t n, std::int64_t k,
            Format format = Format::bf16, std::int64_t groups = 1) {
  kernels.push_back(product(m, n, k, format, groups));
  kernels.push_back(product(m, k, n, format, groups));
  kernels.back().work.role = GemmRole::input_gradient;
  kernels.push_back(product(n, k, m, format, groups));
  kernels.back().work.role = GemmRole::weight_gradient;
  kernels.back().work.accumulate_fp32 = true;
}

void surroundings(std::vector<Kernel>& kernels, double bytes) {
  for (int pass = 0; pass < 2; ++pass)
    for (const WorkKind kind : {WorkKind::norm, WorkKind::norm, WorkKind::rotary,
                                WorkKind::elementwise, WorkKind::elementwise})
      kernels.push_back(stream(kind, bytes));
}

std::vector<Kernel> llama_405b_layer() {  // tensor parallel 8, one sequence of 8,192
  std::vector<Kernel> kernels;
  linear(kernels, 8192, 2304, 16384);
  linear(kernels, 8192, 16384, 2048);
  linear(kernels, 8192, 13312, 16384);
  linear(kernels, 8192, 16384, 6656);
  kernels.push_back(attention(WorkKind::attention_forward, 16, 1, 128, 128));
  kernels.push_back(attention(WorkKind::attention_backward, 16, 1, 128, 128));
  surroundings(kernels, 3.3e7);
  return kernels;
}

std::vector<Kernel> deepseek_v3_layer() {  // expert parallel 8, one sequence of 8,192, FP8
  std::vector<Kernel> kernels;
  linear(kernels, 8192, 1536, 7168, Format::fp8);
  linear(kernels, 8192, 24576, 1536, Format::fp8);
  linear(kernels, 8192, 576, 7168, Format::fp8);
  linear(kernels, 8192, 32768, 512, Format::fp8);
  linear(kernels, 8192, 7168, 16384, Format::fp8);
  linear(kernels, 2048, 4096, 7168, Format::fp8, 32);
  linear(kernels, 2048, 7168, 2048, Format::fp8, 32);
  kernels.push_back(attention(WorkKind::attention_forward, 128, 128, 192, 128));
  kernels.push_back(attention(WorkKind::attention_backward, 128, 128, 192, 128));
  surroundings(kernels, 1.2e8);
  for (const WorkKind kind : {WorkKind::router, WorkKind::permute, WorkKind::permute,
                              WorkKind::quantise, WorkKind::quantise})
    kernels.push_back(stream(kind, 1e8));
  return kernels;
}

void run(benchmark::State& state, const std::vector<Kernel>& kernels) {
  const Device h100 = load_device("h100-sxm");
  const ResolvedDevice device = h100.resolved();
  const Calibration calibration = load_calibration(h100);
  for (auto step : state) {
    for (const Kernel& kernel : kernels)
      benchmark::DoNotOptimize(kernel_time(kernel, device, calibration));
  }
  const double calls =
      static_cast<double>(state.iterations()) * static_cast<double>(kernels.size());
  state.counters["per_kernel"] =
      benchmark::Counter(calls, benchmark::Counter::kIsRate | benchmark::Counter::kInvert);
}

void llama_405b(benchmark::State& state) { run(state, llama_405b_layer()); }
void deepseek_v3(benchmark::State& state) { run(state, deepseek_v3_layer()); }

void kind(benchmark::State& state) {
  const auto work_kind = static_cast<WorkKind>(state.range(0));
  Kernel kernel = attention(work_kind, 32, 8, 128, 128);
  kernel.work.m = kernel.work.n = kernel.work.k = 4096;
  kernel.work.groups = work_kind == WorkKind::grouped_gemm ? 32 : 1;
  kernel.work.bytes_read = 1e7;
  state.SetLabel(std::string(to_text(work_kind)));
  run(state, {kernel});
}

BENCHMARK(llama_405b);
BENCHMARK(deepseek_v3);
BENCHMARK(kind)->DenseRange(0, work_kind_count - 1);

}  // namespace
}  // namespace orrery
