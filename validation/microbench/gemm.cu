// SPDX-License-Identifier: Apache-2.0
// Knows how fast the library's matrix products are: every format, the shapes of real models, the
// layouts of training, odd shapes, batches, experts, short and sustained.
// Build: nvcc -O3 -std=c++20 -arch=native gemm.cu -lcublasLt -lcublas -ldl
#include <cublas_v2.h>

#include <memory>

#include "gemm_cases.cuh"

namespace {

using namespace bench;

constexpr double longest_seconds = 195;  // then what is left is not run
Line sample(const Product& p, const char* kind, const char* role, const char* variant,
            const char* mode) {
  Line line("sample");
  line.text("part", "gemm").text("kind", kind).text("library", "cublas").text("variant", variant);
  line.text("mode", mode).text("input", name_of(p.input)).text("output", name_of(p.output));
  line.text("role", role).number("accumulate_fp32", p.accumulate ? 1 : 0);
  line.number("m", p.m).number("n", p.n).number("k", p.k).number("groups", p.groups);
  line.number("workspace_bytes", Blas::workspace_bytes);
  return line;
}

struct Bench {
  explicit Bench(const Options& options)
      : gpu(options.gpu),
        quick(options.quick),
        pool(quick ? 2ull << 30 : 10ull << 30, quick ? 1ull << 30 : 6ull << 30),
        blas(gpu.properties.major >= 10 ? pool.in_bytes() / 8 + (256ull << 20) : 0) {}
  double elapsed() const {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  }
  bool late() const { return elapsed() > longest_seconds; }
  // A wrong result is no measurement: it is told and left out, and the program fails in the end.
  bool is_right(double error, double limit, const Product& p) {
    if (error <= limit) return true;
    ++wrong;
    std::fprintf(stderr, "%s %lldx%lldx%lld: relative error %g, expected at most %g\n",
                 name_of(p.input), static_cast<long long>(p.m), static_cast<long long>(p.n),
                 static_cast<long long>(p.k), error, limit);
    return false;
  }

  std::chrono::steady_clock::time_point start = std::chrono::steady_clock::now();
  Gpu gpu;
  bool quick;
  OperandPool pool;
  Blas blas;
  int wrong = 0, missing = 0, unfit = 0, skipped = 0;
};

void run_case(Bench& b, const Case& c) {
  const Product& p = c.product;
  const OperandPool::Sets sets = b.pool.sets(b.gpu, p);
  if (sets.in_sets == 0 || sets.out_sets == 0) {
    ++b.unfit;
    return;
  }
  const PlannedProduct plan(b.blas, p);
  if (!plan.exists()) {
    ++b.missing;
    return;
  }
  const Enqueue enqueue = calls_of(plan, b.pool, sets);
  // What a product is added to is zero before the one that is checked.
  if (p.accumulate) CUDA_OK(cudaMemsetAsync(b.pool.out(), 0, p.out_bytes(), b.gpu.stream));
  enqueue(b.gpu.stream, 0);
  const double error =
      product_error(b.gpu, p, b.pool.in(), b.pool.in() + sets.right_at(0), b.pool.out());
  if (!b.is_right(error, error_limit(p), p)) return;
  const Timing t = burst(b.gpu, enqueue, p.flop() > 2e12 ? 3 : 5);
  Line line = sample(p, "gemm", c.role, c.variant, "burst");
  bench::add(line, t).number("error", error).print();
}

// In an order drawn once: a run cut short still has some of everything.
void run_cases(Bench& b, Number format, std::vector<Case> cases) {
  if (b.late()) {
    b.skipped += static_cast<int>(cases.size());
    return;
  }
  b.pool.fill(b.gpu, format);
  for (std::size_t i = cases.size(); i > 1; --i) std::swap(cases[i - 1], cases[mix(i) % i]);
  if (b.quick && cases.size() > 6) cases.resize(6);
  for (const Case& c : cases) {
    if (b.late())
      ++b.skipped;
    else
      run_case(b, c);
  }
}

// An expert layer's products in one call: rows of each group about equal, one weight a group.
class GroupedProduct {
 public:
  GroupedProduct(const Bench& b, cublasHandle_t handle, const Product& p, int sets)
      : handle_(handle), product_(p) {
    const auto count = static_cast<std::size_t>(p.groups);
    std::vector<const void*> left, right;
    std::vector<void*> out;
    const OperandPool::Sets places = b.pool.sets(b.gpu, p);
    for (int s = 0; s < sets; ++s) {
      std::int64_t row = 0;
      for (std::size_t g = 0; g < count; ++g) {
        if (s == 0) rows_.push_back(rows_of(g));
        left.push_back(b.pool.in() + places.left_at(s) + bytes_of(p.input, row * p.k));
        right.push_back(b.pool.in() + places.right_at(s) +
                        bytes_of(p.input, static_cast<std::int64_t>(g) * p.n * p.k));
        out.push_back(b.pool.out() + places.out_at(s) + bytes_of(p.output, row * p.n));
        row += rows_[g];
      }
    }
    const auto keep = [](auto& buffer, const auto& pointers) {
      CUDA_OK(cudaMemcpy(buffer.get(), pointers.data(), buffer.bytes(), cudaMemcpyHostToDevice));
    };
    left_ = std::make_unique<Buffer<const void*>>(left.size());
    right_ = std::make_unique<Buffer<const void*>>(right.size());
    out_ = std::make_unique<Buffer<void*>>(out.size());
    keep(*left_, left);
    keep(*right_, right);
    keep(*out_, out);
    sets_ = sets;
    columns_.assign(count, static_cast<int>(p.n));
    depths_.assign(count, static_cast<int>(p.k));
    ones_.assign(count, 1.0f);
    zeros_.assign(count, 0.0f);
    sizes_.assign(count, 1);
    transposed_.assign(count, CUBLAS_OP_T);
    plain_.assign(count, CUBLAS_OP_N);
  }

  cublasStatus_t run(cudaStream_t stream, int i) const {
    BLAS_OK(cublasSetStream(handle_, stream));
    const std::size_t first = static_cast<std::size_t>(i % sets_) * rows_.size();
    return cublasGemmGroupedBatchedEx(
        handle_, transposed_.data(), plain_.data(), columns_.data(), rows_.data(), depths_.data(),
        ones_.data(), right_->get() + first, cuda_type(product_.input), depths_.data(),
        left_->get() + first, cuda_type(product_.input), depths_.data(), zeros_.data(),
        out_->get() + first, cuda_type(product_.output), columns_.data(),
        static_cast<int>(rows_.size()), sizes_.data(), CUBLAS_COMPUTE_32F);
  }
  int rows(std::size_t group) const { return rows_[group]; }

 private:
  // Neighbours differ by up to an eighth, and even out.
  int rows_of(std::size_t g) const {
    const auto m = static_cast<int>(product_.m);
    if (g == static_cast<std::size_t>(product_.groups) - 1 && g % 2 == 0) return m;
    const int more = m >= 16 ? static_cast<int>(mix(g / 2) % static_cast<unsigned>(m / 16)) : 0;
    return g % 2 == 0 ? m + more : m - more;
  }

  cublasHandle_t handle_;
  Product product_;
  int sets_ = 1;
  std::unique_ptr<Buffer<const void*>> left_, right_;
  std::unique_ptr<Buffer<void*>> out_;
  std::vector<int> rows_, columns_, depths_, sizes_;
  std::vector<float> ones_, zeros_;
  std::vector<cublasOperation_t> transposed_, plain_;
};

// Whether the calls can be part of a graph; after a failure the stream is as it was before.
bool can_be_captured(cudaStream_t stream, const std::function<bool()>& call) {
  CUDA_OK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
  const bool made = call();
  cudaGraph_t graph = nullptr;
  const cudaError_t ended = cudaStreamEndCapture(stream, &graph);
  if (graph != nullptr) cudaGraphDestroy(graph);
  cudaGetLastError();
  return made && ended == cudaSuccess;
}

// Calls that cannot be captured, one after the other in a stream.
Timing in_stream(const Gpu& gpu, const Enqueue& enqueue) {
  const double once = rough_us(gpu, enqueue);
  Timing t;
  t.calls = static_cast<int>(std::clamp(5e3 / once, 2.0, 100.0));
  Events events;
  std::vector<double> times;
  t.clock_before_mhz = gpu.nvml.sm_clock_mhz();
  for (int r = 0; r < 5; ++r) {
    pause_ms(10);
    enqueue(gpu.stream, r);
    events.begin(gpu.stream);
    for (int i = 0; i < t.calls; ++i) enqueue(gpu.stream, i);
    events.end(gpu.stream);
    times.push_back(events.microseconds() / t.calls);
  }
  t.clock_after_mhz = gpu.nvml.sm_clock_mhz();
  t.power_w = gpu.nvml.power_w();
  t.temperature_c = gpu.nvml.temperature_c();
  summarise(times, t);
  return t;
}

void run_grouped(Bench& b, cublasHandle_t handle, const Product& p) {
  const OperandPool::Sets sets = b.pool.sets(b.gpu, p);
  const auto rotation = static_cast<int>(std::min(sets.in_sets, sets.out_sets));
  if (rotation == 0) {
    ++b.unfit;
    return;
  }
  const GroupedProduct grouped(b, handle, p, rotation);
  if (grouped.run(b.gpu.stream, 0) != CUBLAS_STATUS_SUCCESS) {
    ++b.missing;
    return;
  }
  // The first group's result tells whether the call did what it should.
  Product first = p;
  first.groups = 1;
  first.m = grouped.rows(0);
  const double error =
      product_error(b.gpu, first, b.pool.in(), b.pool.in() + sets.right_at(0), b.pool.out());
  if (!b.is_right(error, error_limit(p), p)) return;
  const bool graph = can_be_captured(
      b.gpu.stream, [&] { return grouped.run(b.gpu.stream, 0) == CUBLAS_STATUS_SUCCESS; });
  const Enqueue enqueue = [&](cudaStream_t stream, int i) { BLAS_OK(grouped.run(stream, i)); };
  const Timing t = graph ? burst(b.gpu, enqueue) : in_stream(b.gpu, enqueue);
  Line line = sample(p, "grouped-gemm", "forward", graph ? "" : "stream", "burst");
  bench::add(line, t).number("error", error).print();
}

void run_all_grouped(Bench& b) {
  constexpr Weight experts[] = {{4096, 7168}, {7168, 2048}, {28672, 4096}, {1536, 2048}};
  cublasHandle_t handle = nullptr;
  BLAS_OK(cublasCreate(&handle));
  BLAS_OK(cublasSetWorkspace(handle, b.blas.workspace.get(), Blas::workspace_bytes));
  std::size_t at = 0;
  int left = b.quick ? 2 : 1000;
  for (const auto& [n, k] : experts)
    for (const std::int64_t groups : {8, 32, 64})
      for (const std::int64_t m : {32, 128, 512, 2048}) {
        const Product p{.m = m, .n = n, .k = k, .groups = groups};
        if (++at % 2 == 0 || p.flop() > largest_flop || b.late()) continue;
        if (left-- > 0) run_grouped(b, handle, p);
      }
  BLAS_OK(cublasDestroy(handle));
}

void run_sustained(Bench& b, const Product& p) {
  const OperandPool::Sets sets = b.pool.sets(b.gpu, p);
  const PlannedProduct plan(b.blas, p);
  if (sets.in_sets == 0 || sets.out_sets == 0 || !plan.exists()) return;
  b.pool.fill(b.gpu, p.input);
  const Enqueue enqueue = calls_of(plan, b.pool, sets);
  const Timing t = sustained(b.gpu, enqueue, b.quick ? 0.3 : 1.2);
  const int last = 0;  // all sets hold finished results: check the first
  const double error = product_error(b.gpu, p, b.pool.in() + sets.left_at(last),
                                     b.pool.in() + sets.right_at(last), b.pool.out());
  if (!b.is_right(error, error_limit(p), p)) return;
  Line line = sample(p, "gemm", "forward", "", "sustained");
  bench::add(line, t).number("seconds", t.seconds).number("error", error).print();
}

void run_all(Bench& b) {
  const int major = b.gpu.properties.major, minor = b.gpu.properties.minor;
  const bool has_fp8 = major >= 9 || (major == 8 && minor == 9);
  run_cases(b, Number::bf16, bf16_cases());
  run_all_grouped(b);
  if (has_fp8) run_cases(b, Number::fp8, fp8_cases());
  run_cases(b, Number::fp16, forward_cases(Number::fp16, Number::fp16, 3));
  run_cases(b, Number::int8, forward_cases(Number::int8, Number::int32, 3));
  if (major >= 10) run_cases(b, Number::fp4, forward_cases(Number::fp4, Number::bf16, 3));

  Product cube{.m = 8192, .n = 8192, .k = 8192};
  run_sustained(b, cube);
  if (b.quick) return;
  run_sustained(b, {.m = 4096, .n = 28672, .k = 4096});
  cube.input = cube.output = Number::fp16;
  run_sustained(b, cube);
  cube.output = Number::bf16;
  for (const Number format : {Number::fp8, Number::fp4}) {
    cube.input = format;
    if (format == Number::fp8 ? has_fp8 : major >= 10) run_sustained(b, cube);
  }
  cube.input = Number::int8;
  cube.output = Number::int32;
  run_sustained(b, cube);
}

}  // namespace

int main(int argc, char** argv) {
  Bench b(read_options(argc, argv));
  print_conditions("gemm", b.gpu, {{"cublasLt", Blas::version()}});
  run_all(b);
  std::fprintf(stderr, "gemm: %.0f s; %d without a kernel, %d too large, %d late, %d wrong\n",
               b.elapsed(), b.missing, b.unfit, b.skipped, b.wrong);
  return b.wrong == 0 ? 0 : 1;
}
