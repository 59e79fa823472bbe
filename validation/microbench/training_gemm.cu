// SPDX-License-Identifier: Apache-2.0
// Asks what a weight gradient costs that adds into a BF16 or FP32 gradient: products of cuBLASLt,
// four ways. Build: nvcc -O3 -std=c++20 -arch=sm_90a training_gemm.cu -lcublasLt -ldl
#include "product.cuh"

namespace {

using namespace bench;

constexpr double longest_seconds = 75;  // then what is left is not run

struct Layer {
  const char* model;
  std::int64_t out, in;
  bool by_column;            // tensor parallelism cuts the outputs, else the inputs
  std::int64_t least, most;  // tensor parallelism
};
constexpr Layer layers[] = {
    {"llama-3-8b", 6144, 4096, true, 1, 8},      {"llama-3-8b", 4096, 4096, false, 1, 8},
    {"llama-3-8b", 28672, 4096, true, 1, 8},     {"llama-3-8b", 4096, 14336, false, 1, 8},
    {"llama-3-70b", 10240, 8192, true, 1, 8},    {"llama-3-70b", 8192, 8192, false, 1, 8},
    {"llama-3-70b", 57344, 8192, true, 2, 8},    {"llama-3-70b", 8192, 28672, false, 2, 8},
    {"llama-3-405b", 18432, 16384, true, 4, 8},  {"llama-3-405b", 16384, 16384, false, 4, 8},
    {"llama-3-405b", 106496, 16384, true, 8, 8}, {"llama-3-405b", 16384, 53248, false, 8, 8}};

struct Way {
  const char* variant;
  Number output;
  bool accumulate;
};
constexpr Way ways[] = {{"bf16", Number::bf16, false},
                        {"bf16-add", Number::bf16, true},
                        {"fp32", Number::fp32, false},
                        {"fp32-add", Number::fp32, true}};

struct Case {
  const char* model;
  std::int64_t parallel, out, in, tokens;
};

std::vector<Case> all_cases(bool quick) {
  std::vector<Case> cases;
  for (const Layer& l : layers)
    for (std::int64_t tp = l.least; tp <= l.most; tp *= 2)
      for (const std::int64_t tokens : {1024, 2048, 4096, 8192})
        cases.push_back({l.model, tp, l.by_column ? l.out / tp : l.out,
                         l.by_column ? l.in : l.in / tp, tokens});
  for (std::size_t i = cases.size(); i > 1; --i) std::swap(cases[i - 1], cases[mix(i) % i]);
  if (quick) cases.resize(4);
  return cases;
}

// Whether the way's product is right, and its time.
void run(const Gpu& gpu, const Blas& blas, const OperandPool& pool, const Case& c, const Way& way) {
  const Product p{.output = way.output,
                  .m = c.out,
                  .n = c.in,
                  .k = c.tokens,
                  .left_by_k = true,
                  .right_by_k = true,
                  .accumulate = way.accumulate};
  const OperandPool::Sets sets = pool.sets(gpu, p);
  const PlannedProduct plan(blas, p);
  if (sets.in_sets == 0 || sets.out_sets == 0 || !plan.exists()) {
    Line("failed")
        .text("part", "wgrad")
        .text("what", way.variant)
        .number("m", p.m)
        .number("n", p.n)
        .number("k", p.k)
        .text("reason", plan.exists() ? "too large" : "no kernel")
        .print();
    return;
  }
  const Enqueue enqueue = calls_of(plan, pool, sets);
  CUDA_OK(cudaMemsetAsync(pool.out(), 0, p.out_bytes(), gpu.stream));
  enqueue(gpu.stream, 0);
  const double error = product_error(gpu, p, pool.in(), pool.in() + sets.right_at(0), pool.out());
  expect_error_below(error, error_limit(p), way.variant);
  const Timing t = burst(gpu, enqueue, 5, p.flop() > 2e12 ? 6 : 3);
  Line line("sample");
  line.text("part", "wgrad")
      .text("kind", "gemm")
      .text("library", "cublas")
      .text("variant", way.variant);
  line.text("mode", "burst").text("input", "bf16").text("output", name_of(p.output));
  line.text("role", "weight-gradient").number("accumulate", p.accumulate ? 1 : 0);
  line.number("m", p.m).number("n", p.n).number("k", p.k).number("groups", p.groups);
  line.text("model", c.model).number("tensor_parallel", c.parallel);
  bench::add(line, t).number("error", error).print();
}

}  // namespace

int main(int argc, char** argv) {
  const Options options = read_options(argc, argv);
  const auto start = std::chrono::steady_clock::now();
  const Gpu gpu(options.gpu);
  OperandPool pool(options.quick ? 1ull << 30 : 4ull << 30,
                   options.quick ? 2ull << 30 : 8ull << 30);
  const Blas blas(0);
  print_conditions("training-gemm", gpu, {{"cublasLt", Blas::version()}});
  pool.fill(gpu, Number::bf16);
  int late = 0;
  for (const Case& c : all_cases(options.quick)) {
    const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - start;
    if (elapsed.count() > longest_seconds) {
      ++late;
      continue;
    }
    for (const Way& way : ways) run(gpu, blas, pool, c, way);
  }
  std::fprintf(stderr, "training-gemm: %d cases late\n", late);
  return 0;
}
