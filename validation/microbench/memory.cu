// SPDX-License-Identifier: Apache-2.0
// Knows how fast a device's memory and its cache are: copy, read, write and triad by size.
// Build: nvcc -O3 -std=c++20 -arch=native memory.cu -ldl
#include "streams.cuh"

namespace {

using namespace bench;

struct Bench {
  explicit Bench(const Options& options)
      : gpu(options.gpu),
        quick(options.quick),
        pool(pool_vectors(quick ? 3ull << 30 : 24ull << 30)),
        sink(static_cast<std::uint64_t>(2 * gpu.properties.multiProcessorCount)) {
    randomise(reinterpret_cast<float*>(pool.get()), pool.bytes() / 4, 1);
    CUDA_OK(cudaGetLastError());
    CUDA_OK(cudaDeviceSynchronize());
  }
  // At most these bytes, less where the device has little memory; three equal arrays.
  static std::uint64_t pool_vectors(std::uint64_t bytes) {
    std::size_t free = 0, total = 0;
    CUDA_OK(cudaMemGetInfo(&free, &total));
    return std::min<std::uint64_t>(bytes, free / 10 * 8) / sizeof(uint4) / 192 * 192;
  }
  std::uint64_t third() const { return pool.count() / 3; }
  const uint4* a() const { return pool.get(); }
  const uint4* b() const { return pool.get() + third(); }
  uint4* c() const { return pool.get() + 2 * third(); }

  Gpu gpu;
  bool quick;
  Buffer<uint4> pool;
  Buffer<unsigned> sink;
};

std::string in_words(std::uint64_t bytes) {
  const char* units[] = {"KiB", "MiB", "GiB"};
  const int unit = bytes < 1ull << 20 ? 0 : bytes < 1ull << 30 ? 1 : 2;
  char text[32];
  std::snprintf(text, sizeof text, "%.4g %s",
                static_cast<double>(bytes) / static_cast<double>(1ull << (10 * (unit + 1))),
                units[unit]);
  return text;
}

void print(Stream kind, const std::string& library, const std::string& variant, std::uint64_t bytes,
           double error, const Timing& t) {
  Line line("sample");
  line.text("part", "memory").text("kind", "copy").text("library", library);
  line.text("variant", variant).text("mode", "burst");
  line.text("input", "fp32").text("output", "fp32").text("shape", in_words(bytes));
  line.number("bytes_read", static_cast<std::uint64_t>(arrays_read(kind)) * bytes);
  line.number("bytes_written", static_cast<std::uint64_t>(arrays_written(kind)) * bytes);
  line.number("vector_flop", kind == Stream::triad ? bytes / 2 : 0);  // one multiply-add in 4 bytes
  add(line, t).number("error", error).print();
}

// `cached`: the same buffers again and again, else sets that fill three caches before one returns.
void run_stream(const Bench& b, Stream kind, std::uint64_t bytes, bool cached) {
  const std::uint64_t count = bytes / sizeof(uint4);
  const auto arrays = static_cast<std::uint64_t>(arrays_read(kind) + arrays_written(kind));
  const std::uint64_t wanted = cached ? 1 : b.gpu.cold_bytes() / (arrays * bytes) + 1;
  const std::uint64_t sets = std::min(wanted, b.third() / count);
  const unsigned blocks = stream_blocks(b.gpu, count);
  const Enqueue enqueue = [&](cudaStream_t stream, int i) {
    const std::uint64_t at = static_cast<std::uint64_t>(i) % sets * count;
    launch_stream(kind, blocks, b.a() + at, b.b() + at, b.c() + at, b.sink.get(), count, stream);
  };
  CUDA_OK(cudaMemsetAsync(b.c(), 0, bytes, b.gpu.stream));
  enqueue(b.gpu.stream, 0);
  const double error = stream_error(b.gpu, kind, b.a(), b.b(), b.c(), b.sink, blocks, count);
  const std::string variant = name_of(kind) + std::string(cached ? "-cached" : "");
  expect_error_below(error, 0, variant + " of " + in_words(bytes));
  print(kind, "own", variant, bytes, error,
        burst(b.gpu, enqueue, 5, 5, static_cast<int>(std::max<std::uint64_t>(2, sets))));
}

void run_memcpy(const Bench& b, std::uint64_t bytes) {
  const std::uint64_t count = bytes / sizeof(uint4);
  const std::uint64_t sets = std::min(b.gpu.cold_bytes() / (2 * bytes) + 1, b.third() / count);
  const Enqueue enqueue = [&](cudaStream_t stream, int i) {
    const std::uint64_t at = static_cast<std::uint64_t>(i) % sets * count;
    CUDA_OK(cudaMemcpyAsync(b.c() + at, b.a() + at, bytes, cudaMemcpyDeviceToDevice, stream));
  };
  CUDA_OK(cudaMemsetAsync(b.c(), 0, bytes, b.gpu.stream));
  enqueue(b.gpu.stream, 0);
  const double error = stream_error(b.gpu, Stream::copy, b.a(), b.b(), b.c(), b.sink, 0, count);
  expect_error_below(error, 0, "memcpy of " + in_words(bytes));
  print(Stream::copy, "eager", "memcpy", bytes, error,
        burst(b.gpu, enqueue, 5, 5, static_cast<int>(std::max<std::uint64_t>(2, sets))));
}

// Two sizes an octave from 16 KiB to 8 GiB; quick: every fifth octave.
std::vector<std::uint64_t> sizes(const Bench& b) {
  std::vector<std::uint64_t> all;
  for (int octave = 14; octave <= 33; octave += b.quick ? 5 : 1)
    for (const std::uint64_t bytes : {1ull << octave, 3ull << (octave - 1)})
      if (bytes / sizeof(uint4) <= b.third() && bytes <= 8ull << 30) all.push_back(bytes);
  return all;
}

void run_all(const Bench& b) {
  const auto cache = static_cast<std::uint64_t>(b.gpu.properties.l2CacheSize);
  for (const std::uint64_t bytes : sizes(b)) {
    for (const Stream kind : {Stream::copy, Stream::read, Stream::write, Stream::triad}) {
      run_stream(b, kind, bytes, false);
      const auto arrays = static_cast<std::uint64_t>(arrays_read(kind) + arrays_written(kind));
      if (arrays * bytes <= cache) run_stream(b, kind, bytes, true);
    }
    run_memcpy(b, bytes);
  }
}

}  // namespace

int main(int argc, char** argv) {
  const Bench b(read_options(argc, argv));
  print_conditions("memory", b.gpu);
  run_all(b);
}
