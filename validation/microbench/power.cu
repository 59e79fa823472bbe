// SPDX-License-Identifier: Apache-2.0
// Knows what a board draws at rest and for each kind of work, over seconds.
// Build: nvcc -O3 -std=c++20 -arch=native power.cu -lcublasLt -ldl
#include "product.cuh"
#include "streams.cuh"

namespace {

using namespace bench;

// Chains of multiply-adds in registers: arithmetic without traffic. Never writes.
__global__ void __launch_bounds__(512, 2) multiply_add(float* out, int rounds, float factor) {
  float x[8];
  for (int j = 0; j < 8; ++j) x[j] = static_cast<float>(threadIdx.x + 512 * j);
  for (int i = 0; i < rounds; ++i)
#pragma unroll
    for (int j = 0; j < 8; ++j) x[j] = fmaf(x[j], factor, 0.5f);
  float sum = 0;
  for (int j = 0; j < 8; ++j) sum += x[j];
  if (sum == -1.0f) out[threadIdx.x] = sum;
}

// The special-function units in the same way.
__global__ void __launch_bounds__(512, 2) exponentials(float* out, int rounds) {
  float x[8];
  for (int j = 0; j < 8; ++j) x[j] = 1e-3f * static_cast<float>(threadIdx.x + 512 * j);
  for (int i = 0; i < rounds; ++i)
#pragma unroll
    for (int j = 0; j < 8; ++j) x[j] = __expf(-x[j]);
  float sum = 0;
  for (int j = 0; j < 8; ++j) sum += x[j];
  if (sum == -1.0f) out[threadIdx.x] = sum;
}

// A copy that computes: `rounds` multiply-adds for each number.
__global__ void __launch_bounds__(512, 2)
    copy_and_compute(const float4* in, float4* out, std::uint64_t count, int rounds, float factor) {
  constexpr int width = 4;
  const std::uint64_t stride = static_cast<std::uint64_t>(gridDim.x) * blockDim.x;
  for (std::uint64_t first = blockIdx.x * static_cast<std::uint64_t>(blockDim.x) + threadIdx.x;
       first < count; first += width * stride) {
    float4 x[width] = {};
#pragma unroll
    for (int j = 0; j < width; ++j)
      if (first + j * stride < count) x[j] = in[first + j * stride];
    for (int i = 0; i < rounds; ++i)
#pragma unroll
      for (int j = 0; j < width; ++j)
        x[j] = make_float4(fmaf(x[j].x, factor, 0.5f), fmaf(x[j].y, factor, 0.5f),
                           fmaf(x[j].z, factor, 0.5f), fmaf(x[j].w, factor, 0.5f));
#pragma unroll
    for (int j = 0; j < width; ++j)
      if (first + j * stride < count) out[first + j * stride] = x[j];
  }
}

struct Bench {
  explicit Bench(const Options& options)
      : gpu(options.gpu),
        seconds(options.quick ? 0.3 : 1.6),
        quick(options.quick),
        pool(4ull << 30, 4ull << 30),
        blas(gpu.properties.major >= 10 ? pool.in_bytes() / 8 + (256ull << 20) : 0),
        sink(static_cast<std::uint64_t>(2 * gpu.properties.multiProcessorCount)) {}
  unsigned processors() const { return static_cast<unsigned>(gpu.properties.multiProcessorCount); }

  Gpu gpu;
  double seconds;
  bool quick;
  OperandPool pool;
  Blas blas;
  Buffer<unsigned> sink;
};

struct Question {
  std::string variant;
  const char* input = "fp32";
  double flop = 0, bytes = 0;  // of one call
  bool occupied = true;        // every processor has work all the time, of one kind
};

void print(const Question& q, const Timing& t) {
  Line line("sample");
  line.text("part", "power").text("kind", "power").text("library", "").text("variant", q.variant);
  line.text("mode", "sustained").text("input", q.input).number("flop", q.flop);
  line.number("bytes", q.bytes).number("occupied", q.occupied ? 1 : 0);
  line.number("seconds", t.seconds);
  line.number("clock_mhz", t.clock_after_mhz);
  add(line, t).print();
}

void ask(const Bench& b, const Question& q, const Enqueue& enqueue) {
  print(q, sustained(b.gpu, enqueue, b.seconds));
}

// After a rest, for a second; "a call" is all of it.
void ask_idle(const Bench& b) {
  CUDA_OK(cudaDeviceSynchronize());
  pause_ms(b.quick ? 300 : 3000);
  Timing t;
  constexpr int readings = 20;
  t.clock_before_mhz = b.gpu.nvml.sm_clock_mhz();
  for (int i = 0; i < readings; ++i) {
    pause_ms(b.quick ? 10 : 50);
    t.power_w += b.gpu.nvml.power_w() / readings;
    t.clock_after_mhz += b.gpu.nvml.sm_clock_mhz() / readings;
    t.temperature_c += b.gpu.nvml.temperature_c() / readings;
  }
  t.seconds = 1;
  t.calls = 1;
  summarise({1e6}, t);
  print({.variant = "idle", .occupied = false}, t);
}

// Operands read and results written once, as the energy model counts them.
double traffic(const Product& p) {
  return static_cast<double>(p.left_bytes() + p.right_bytes() + p.out_bytes());
}

void ask_product(Bench& b, const std::string& variant, const Product& p, bool occupied = true) {
  const OperandPool::Sets sets = b.pool.sets(b.gpu, p);
  const PlannedProduct plan(b.blas, p);
  if (sets.in_sets == 0 || sets.out_sets == 0 || !plan.exists()) {
    std::fprintf(stderr, "power: no kernel or no room for %s\n", variant.c_str());
    return;
  }
  const Enqueue enqueue = calls_of(plan, b.pool, sets);
  enqueue(b.gpu.stream, 0);
  expect_error_below(
      product_error(b.gpu, p, b.pool.in(), b.pool.in() + sets.right_at(0), b.pool.out()),
      error_limit(p), variant);
  ask(b, {variant, name_of(p.input), p.flop(), traffic(p), occupied}, enqueue);
}

void ask_products(Bench& b) {
  const int major = b.gpu.properties.major, minor = b.gpu.properties.minor;
  Product cube{.m = 8192, .n = 8192, .k = 8192};
  b.pool.fill(b.gpu, Number::bf16);
  ask_product(b, "gemm 8192-cube", cube);
  if (b.quick) return;
  ask_product(b, "gemm 4096x28672x4096", {.m = 4096, .n = 28672, .k = 4096});
  ask_product(b, "gemm 4096x4096x14336", {.m = 4096, .n = 4096, .k = 14336});
  // Few tiles: part of the processors wait.
  ask_product(b, "gemm small grid", {.m = 512, .n = 1024, .k = 2048}, false);
  // As in decode: bound by the memory.
  ask_product(b, "gemm 16 rows", {.m = 16, .n = 16384, .k = 8192});
  ask_product(b, "gemm 128 rows", {.m = 128, .n = 16384, .k = 8192});
  // As attention's products: small inside, large between.
  ask_product(b, "gemm batched", {.m = 1024, .n = 1024, .k = 128, .groups = 64});
  cube.input = cube.output = Number::fp16;
  b.pool.fill(b.gpu, Number::fp16);
  ask_product(b, "gemm 8192-cube", cube);
  cube.output = Number::bf16;
  if (major >= 9 || (major == 8 && minor == 9)) {
    cube.input = Number::fp8;
    b.pool.fill(b.gpu, Number::fp8);
    ask_product(b, "gemm 8192-cube", cube);
    ask_product(b, "gemm 4096x28672x4096",
                {.input = Number::fp8, .m = 4096, .n = 28672, .k = 4096});
  }
  if (major >= 10) {
    cube.input = Number::fp4;
    b.pool.fill(b.gpu, Number::fp4);
    ask_product(b, "gemm 8192-cube", cube);
  }
  cube.input = Number::int8;
  cube.output = Number::int32;
  b.pool.fill(b.gpu, Number::int8);
  ask_product(b, "gemm 8192-cube", cube);
}

// `blocks` 0: all processors. `bytes` of each array.
void ask_stream(const Bench& b, const std::string& variant, Stream kind, std::uint64_t bytes,
                unsigned blocks = 0) {
  const std::uint64_t count = bytes / sizeof(uint4);
  const auto* in = reinterpret_cast<const uint4*>(b.pool.in());
  auto* out = reinterpret_cast<uint4*>(b.pool.out());
  if (2 * bytes > b.pool.in_bytes() || bytes > b.pool.out_bytes()) return;
  const bool occupied = blocks == 0;
  if (occupied) blocks = stream_blocks(b.gpu, count);
  const double moved =
      static_cast<double>(arrays_read(kind) + arrays_written(kind)) * static_cast<double>(bytes);
  const Question q{variant, "fp32", 0, moved, occupied};
  ask(b, q, [&](cudaStream_t stream, int) {
    launch_stream(kind, blocks, in, in + count, out, b.sink.get(), count, stream);
  });
}

void ask_streams(const Bench& b) {
  constexpr std::uint64_t large = 1ull << 30;
  randomise(reinterpret_cast<float*>(b.pool.in()), b.pool.in_bytes() / 4, 1);
  CUDA_OK(cudaDeviceSynchronize());
  ask_stream(b, "copy", Stream::copy, large);
  if (b.quick) return;
  ask_stream(b, "read", Stream::read, large);
  ask_stream(b, "write", Stream::write, large);
  ask_stream(b, "triad", Stream::triad, large);
  // Blocks that share few processors: busy ones, with less traffic.
  ask_stream(b, "copy half", Stream::copy, large, b.processors() / 3);
  ask_stream(b, "copy quarter", Stream::copy, large, b.processors() / 6);
  ask_stream(b, "read half", Stream::read, large, b.processors() / 3);
  ask_stream(b, "triad quarter", Stream::triad, large, b.processors() / 6);
  // Nothing crosses the memory here, which is what `bytes` counts.
  const auto cached = static_cast<std::uint64_t>(b.gpu.properties.l2CacheSize) / 6 / 1024 * 1024;
  const std::uint64_t count = cached / sizeof(uint4);
  const auto* in = reinterpret_cast<const uint4*>(b.pool.in());
  auto* out = reinterpret_cast<uint4*>(b.pool.out());
  ask(b, {"copy-cached"}, [&](cudaStream_t stream, int) {
    launch_stream(Stream::copy, stream_blocks(b.gpu, count), in, in, out, b.sink.get(), count,
                  stream);
  });
}

void ask_arithmetic(const Bench& b) {
  auto* out = reinterpret_cast<float*>(b.pool.out());
  const unsigned all = 2 * b.processors();
  constexpr int rounds = 20000;
  const auto work = [](unsigned blocks) { return 16.0 * 512 * rounds * blocks; };
  ask(b, {"multiply-add", "fp32", work(all)}, [&](cudaStream_t stream, int) {
    multiply_add<<<all, 512, 0, stream>>>(out, rounds, 0.999f);
    CUDA_OK(cudaGetLastError());
  });
  if (b.quick) return;
  ask(b, {"multiply-add half", "fp32", work(all / 4), 0, false}, [&](cudaStream_t stream, int) {
    multiply_add<<<all / 4, 512, 0, stream>>>(out, rounds, 0.999f);
    CUDA_OK(cudaGetLastError());
  });
  ask(b, {"exponentials", "fp32", work(all) / 2}, [&](cudaStream_t stream, int) {
    exponentials<<<all, 512, 0, stream>>>(out, rounds);
    CUDA_OK(cudaGetLastError());
  });
  // Traffic at several rates while all processors compute: what a byte costs.
  const auto* in = reinterpret_cast<const float4*>(b.pool.in());
  auto* result = reinterpret_cast<float4*>(b.pool.out());
  constexpr std::uint64_t count = (1ull << 30) / sizeof(float4);
  for (const int depth : {32, 128, 512}) {
    const Question q{"copy and " + std::to_string(depth) + " multiply-adds", "fp32",
                     8.0 * depth * count, 2.0 * sizeof(float4) * count};
    ask(b, q, [&](cudaStream_t stream, int) {
      copy_and_compute<<<all, 512, 0, stream>>>(in, result, count, depth, 0.999f);
      CUDA_OK(cudaGetLastError());
    });
  }
  ask(b, {.variant = "spin", .occupied = false}, [&](cudaStream_t stream, int) {
    spin<<<all, 512, 0, stream>>>(1'000'000);
    CUDA_OK(cudaGetLastError());
  });
}

// A product and a copy in turn: what a layer does, in one number.
void ask_mix(Bench& b) {
  b.pool.fill(b.gpu, Number::bf16);
  const Product p{.m = 4096, .n = 4096, .k = 4096};
  const OperandPool::Sets sets = b.pool.sets(b.gpu, p);
  const PlannedProduct plan(b.blas, p);
  if (sets.in_sets == 0 || sets.out_sets == 0 || !plan.exists()) return;
  const Enqueue product = calls_of(plan, b.pool, sets);
  constexpr std::uint64_t bytes = 256ull << 20;
  constexpr std::uint64_t count = bytes / sizeof(uint4);
  const auto* in = reinterpret_cast<const uint4*>(b.pool.in());
  auto* out = reinterpret_cast<uint4*>(b.pool.out());
  const Question q{"mix", "bf16", p.flop(), traffic(p) + 2.0 * bytes, false};
  ask(b, q, [&](cudaStream_t stream, int i) {
    product(stream, i);
    launch_stream(Stream::copy, stream_blocks(b.gpu, count), in, in, out, b.sink.get(), count,
                  stream);
  });
}

}  // namespace

int main(int argc, char** argv) {
  Bench b(read_options(argc, argv));
  print_conditions("power", b.gpu, {{"cublasLt", Blas::version()}});
  ask_idle(b);
  ask_products(b);
  ask_streams(b);
  ask_arithmetic(b);
  if (!b.quick) ask_mix(b);
}
