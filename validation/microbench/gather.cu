// SPDX-License-Identifier: Apache-2.0
// Knows how fast rows are gathered, scattered, permuted to experts' order and combined again.
#include "kernels.cuh"

using namespace bench;

namespace {

constexpr int top_k = 8;

// A warp copies a row, four vectors of eight numbers in flight a lane. Rows are multiples of 8.
__device__ void copy_row(const uint4* from, uint4* to, int count, int lane) {
  for (int first = lane; first < count; first += 128) {
    uint4 held[4];
#pragma unroll
    for (int j = 0; j < 4; ++j)
      if (first + 32 * j < count) held[j] = from[first + 32 * j];
#pragma unroll
    for (int j = 0; j < 4; ++j)
      if (first + 32 * j < count) to[first + 32 * j] = held[j];
  }
}

// out[t] = table[index[t]]: a block a token.
__global__ void __launch_bounds__(128)
    gather_rows(const uint4* table, const std::int64_t* index, uint4* out, int vectors) {
  const std::int64_t row = index[blockIdx.x];
  const uint4* from = table + row * vectors;
  uint4* to = out + static_cast<std::uint64_t>(blockIdx.x) * static_cast<unsigned>(vectors);
  for (int first = static_cast<int>(threadIdx.x); first < vectors; first += 512) {
    uint4 held[4];
#pragma unroll
    for (int j = 0; j < 4; ++j)
      if (first + 128 * j < vectors) held[j] = from[first + 128 * j];
#pragma unroll
    for (int j = 0; j < 4; ++j)
      if (first + 128 * j < vectors) to[first + 128 * j] = held[j];
  }
}

// table[index[t]] += slope[t], fp32, by atomic additions: a block a token.
__global__ void __launch_bounds__(256)
    scatter_add(const uint4* slope, const std::int64_t* index, float* table, int vectors) {
  float* to = table + index[blockIdx.x] * vectors * 8;
  const uint4* from =
      slope + static_cast<std::uint64_t>(blockIdx.x) * static_cast<unsigned>(vectors);
  for (int i = static_cast<int>(threadIdx.x); i < vectors; i += 256) {
    const Float8 v = unpack(from[i]);
#if __CUDA_ARCH__ >= 900
    auto* at = reinterpret_cast<float4*>(to + 8 * i);
    atomicAdd(at, float4{v.v[0], v.v[1], v.v[2], v.v[3]});
    atomicAdd(at + 1, float4{v.v[4], v.v[5], v.v[6], v.v[7]});
#else
    for (int e = 0; e < 8; ++e) atomicAdd(to + 8 * i + e, v.v[e]);
#endif
  }
}

// Each token's row goes to the rows of its experts: read once, written `top_k` times. A warp a copy
// of a token, the copies of one token in one block, so that the cache serves all but one of them.
__global__ void __launch_bounds__(32 * top_k)
    dispatch(const uint4* x, const int* place, uint4* out, int vectors) {
  const auto row = static_cast<unsigned>(vectors);
  const unsigned warp = threadIdx.x / 32;
  const int to = place[static_cast<std::uint64_t>(blockIdx.x) * top_k + warp];
  copy_row(x + static_cast<std::uint64_t>(blockIdx.x) * row,
           out + static_cast<std::uint64_t>(to) * row, vectors, static_cast<int>(threadIdx.x % 32));
}

// y[t] = sum over a token's experts of weight * row: a block a token.
__global__ void __launch_bounds__(128)
    combine(const uint4* rows, const int* place, const float* weight, uint4* y, int vectors) {
  const std::uint64_t first = static_cast<std::uint64_t>(blockIdx.x) * top_k;
  const auto width = static_cast<unsigned>(vectors);
  int from[top_k];
  float share[top_k];
#pragma unroll
  for (int k = 0; k < top_k; ++k) from[k] = place[first + k], share[k] = weight[first + k];
  for (int i = static_cast<int>(threadIdx.x); i < vectors; i += 128) {
    uint4 held[top_k];
#pragma unroll
    for (int k = 0; k < top_k; ++k) held[k] = rows[static_cast<std::uint64_t>(from[k]) * width + i];
    Float8 sum = {};
#pragma unroll
    for (int k = 0; k < top_k; ++k) {
      const Float8 v = unpack(held[k]);
      for (int e = 0; e < 8; ++e) sum.v[e] += share[k] * v.v[e];
    }
    y[static_cast<std::uint64_t>(blockIdx.x) * width + i] = pack(sum);
  }
}

// The best eight of a softmax over the experts, their weights scaled to sum one (the softmax's own
// sum falls out): a warp a token, `Each` experts a lane.
template <int Each>
__global__ void __launch_bounds__(128)
    route(const float* logits, int* expert, float* weight, int tokens) {
  const int token = static_cast<int>(blockIdx.x * 4 + threadIdx.x / 32);
  const int lane = static_cast<int>(threadIdx.x % 32);
  if (token >= tokens) return;
  float p[Each];
  float high = -INFINITY;
#pragma unroll
  for (int j = 0; j < Each; ++j)
    p[j] = logits[static_cast<std::int64_t>(token) * Each * 32 + 32 * j + lane];
  for (int j = 0; j < Each; ++j) high = fmaxf(high, p[j]);
  high = warp_max(high);
#pragma unroll
  for (int j = 0; j < Each; ++j) p[j] = __expf(p[j] - high);
  float kept = 0, mine = 0;
  int chosen = 0;
#pragma unroll
  for (int k = 0; k < top_k; ++k) {
    float best = p[0];
    int at = lane;
#pragma unroll
    for (int j = 1; j < Each; ++j)
      if (p[j] > best) best = p[j], at = 32 * j + lane;
#pragma unroll
    for (int step = 16; step > 0; step /= 2) {
      const float other = __shfl_xor_sync(0xffffffffu, best, step);
      const int other_at = __shfl_xor_sync(0xffffffffu, at, step);
      if (other > best || (other == best && other_at < at)) best = other, at = other_at;
    }
#pragma unroll
    for (int j = 0; j < Each; ++j)
      if (at == 32 * j + lane) p[j] = -1;
    kept += best;
    if (lane == k) mine = best, chosen = at;
  }
  if (lane < top_k) {
    expert[static_cast<std::int64_t>(token) * top_k + lane] = chosen;
    weight[static_cast<std::int64_t>(token) * top_k + lane] = mine / kept;
  }
}

struct Case {
  std::string what;
  int tokens, width, rows;  // `rows`: of the table, or experts
};

class Gather {
 public:
  Gather(const Gpu& gpu, std::uint64_t largest)
      : gpu_(gpu), in_(gpu, arena_bytes(gpu, largest)), out_(gpu, arena_bytes(gpu, largest)) {}

  void run(const Case& c) {
    if (c.what == "gather") return gather(c);
    if (c.what == "scatter") return scatter(c);
    if (c.what == "route") return router(c);
    permute(c);
  }

 private:
  void print(const Case& c, const std::string& kind, const std::string& variant, Traffic traffic,
             const Timing& timing, double error, double limit) {
    const std::string of =
        std::to_string(c.tokens) + "x" + std::to_string(c.width) + " of " + std::to_string(c.rows);
    expect_error_below(error, limit, kind + " " + variant + " " + of);
    Line line = memory_line("gather", kind, variant, of, traffic);
    line.number("rows", c.tokens).number("width", c.width);
    line.number(kind == "embedding" ? "vocabulary" : "experts", c.rows);
    add(line, timing).number("error", error).print();
  }
  static std::uint64_t product(int a, int b) {
    return static_cast<std::uint64_t>(a) * static_cast<unsigned>(b);
  }
  template <class T>
  static std::vector<T> read(const T* from, std::uint64_t count) {
    std::vector<T> out(count);
    CUDA_OK(cudaMemcpy(out.data(), from, count * sizeof(T), cudaMemcpyDeviceToHost));
    return out;
  }
  static uint4* vec(bf16* x) { return reinterpret_cast<uint4*>(x); }

  void gather(const Case& c) {
    const double bytes = 2.0 * c.tokens * c.width;
    const Traffic traffic{.read = bytes + 8.0 * c.tokens, .written = bytes};
    in_.start(1ull << 62);  // one table: it is far larger than the cache, and tokens change
    out_.start(static_cast<std::uint64_t>(traffic.bytes()));
    const auto table = in_.take<bf16>(product(c.rows, c.width));
    const auto y = out_.take<bf16>(product(c.tokens, c.width));
    const auto tokens = static_cast<unsigned>(c.tokens);
    const int sets = out_.sets();
    const Buffer<std::int64_t> index(static_cast<std::uint64_t>(sets) * tokens);
    random_indices(index.get(), index.count(), 7, static_cast<unsigned>(c.rows));
    CUDA_OK(cudaDeviceSynchronize());
    const Enqueue enqueue = [&](cudaStream_t s, int i) {
      gather_rows<<<tokens, 128, 0, s>>>(
          vec(table(i)), index.get() + static_cast<std::uint64_t>(i % sets) * tokens, vec(y(i)),
          c.width / 8);
    };
    const Timing timing = burst(gpu_, enqueue);
    enqueue(gpu_.stream, 0);
    CUDA_OK(cudaStreamSynchronize(gpu_.stream));
    const auto picked = index.to_host(0, tokens);
    RelativeError error;
    for (const unsigned t : {0u, tokens / 2, tokens - 1}) {
      const auto want = read(table(0) + static_cast<std::uint64_t>(picked[t]) * unsigned(c.width),
                             unsigned(c.width));
      const auto have = read(y(0) + product(int(t), c.width), unsigned(c.width));
      for (std::size_t i = 0; i < want.size(); ++i) error.add(value_of(have[i]), value_of(want[i]));
    }
    print(c, "embedding", "gather", traffic, timing, error.value(), 0);
  }

  void scatter(const Case& c) {
    const double n = static_cast<double>(c.tokens) * c.width;
    const Traffic traffic{.read = 6 * n + 8.0 * c.tokens, .written = 4 * n, .flop = n};
    in_.start(static_cast<std::uint64_t>(2 * n));
    const auto slope = in_.take<bf16>(product(c.tokens, c.width));
    const auto tokens = static_cast<unsigned>(c.tokens);
    const int sets = in_.sets();
    const Buffer<float> table(product(c.rows, c.width));
    const Buffer<std::int64_t> index(static_cast<std::uint64_t>(sets) * tokens);
    random_indices(index.get(), index.count(), 8, static_cast<unsigned>(c.rows));
    CUDA_OK(cudaMemset(table.get(), 0, table.bytes()));
    CUDA_OK(cudaDeviceSynchronize());
    const Enqueue enqueue = [&](cudaStream_t s, int i) {
      scatter_add<<<tokens, 256, 0, s>>>(
          vec(slope(i)), index.get() + static_cast<std::uint64_t>(i % sets) * tokens, table.get(),
          c.width / 8);
    };
    const Timing timing = burst(gpu_, enqueue);
    CUDA_OK(cudaMemset(table.get(), 0, table.bytes()));
    enqueue(gpu_.stream, 0);
    CUDA_OK(cudaDeviceSynchronize());
    // The row of the first token, from every token that names it.
    const auto picked = index.to_host(0, tokens);
    std::vector<double> want(static_cast<std::size_t>(c.width));
    for (unsigned t = 0; t < tokens; ++t) {
      if (picked[t] != picked[0]) continue;
      const auto row = read(slope(0) + product(int(t), c.width), unsigned(c.width));
      for (std::size_t i = 0; i < want.size(); ++i) want[i] += value_of(row[i]);
    }
    const auto have =
        table.to_host(static_cast<std::uint64_t>(picked[0]) * unsigned(c.width), unsigned(c.width));
    RelativeError error;
    for (std::size_t i = 0; i < want.size(); ++i) error.add(have[i], want[i]);
    print(c, "embedding", "scatter-atomics", traffic, timing, error.value(), 1e-4);
  }

  // Rows of the experts in order, by counting: place[t, k] is where copy k of token t lies.
  static std::vector<int> places(const Case& c, std::uint64_t seed) {
    std::vector<std::vector<int>> copies(static_cast<std::size_t>(c.rows));
    for (int t = 0; t < c.tokens; ++t) {
      // Eight different experts: an odd stride visits each once where their number is a power of 2.
      const std::uint64_t bits = mix(seed + static_cast<unsigned>(t));
      for (unsigned k = 0; k < top_k; ++k)
        copies[(bits + k * ((bits >> 32) | 1)) % static_cast<unsigned>(c.rows)].push_back(
            t * top_k + static_cast<int>(k));
    }
    std::vector<int> place(static_cast<std::size_t>(c.tokens) * top_k);
    int next = 0;
    for (const auto& expert : copies)
      for (const int copy : expert) place[static_cast<std::size_t>(copy)] = next++;
    return place;
  }

  void permute(const Case& c) {
    const bool there = c.what == "dispatch";
    const double n = static_cast<double>(c.tokens) * c.width;
    const double map = (there ? 4.0 : 8.0) * top_k * c.tokens;
    const Traffic traffic{.read = (there ? 2 : 2 * top_k) * n + map,
                          .written = (there ? 2 * top_k : 2) * n,
                          .flop = there ? 0 : 2 * top_k * n};
    in_.start(static_cast<std::uint64_t>(traffic.bytes()));
    out_.start(static_cast<std::uint64_t>(traffic.bytes()));
    const std::uint64_t tokens = product(c.tokens, c.width);
    const auto x = in_.take<bf16>(there ? tokens : tokens * top_k);
    const auto weight = in_.take<float>(product(c.tokens, top_k));
    const auto y = out_.take<bf16>(there ? tokens * top_k : tokens);
    const std::vector<int> host = places(c, 3);
    const Buffer<int> place(host.size());
    CUDA_OK(cudaMemcpy(place.get(), host.data(), place.bytes(), cudaMemcpyHostToDevice));
    const Enqueue enqueue = [&](cudaStream_t s, int i) {
      const auto grid = static_cast<unsigned>(c.tokens);
      if (there)
        dispatch<<<grid, 32 * top_k, 0, s>>>(vec(x(i)), place.get(), vec(y(i)), c.width / 8);
      else
        combine<<<grid, 128, 0, s>>>(vec(x(i)), place.get(), weight(i), vec(y(i)), c.width / 8);
    };
    const Timing timing = burst(gpu_, enqueue);
    enqueue(gpu_.stream, 0);
    CUDA_OK(cudaStreamSynchronize(gpu_.stream));
    RelativeError error;
    const auto width = static_cast<unsigned>(c.width);
    for (const int t : {0, c.tokens - 1}) {
      const auto token = read((there ? x(0) : y(0)) + product(t, c.width), width);
      const auto shares = read(weight(0) + product(t, top_k), top_k);
      std::vector<double> sum(width);
      for (unsigned k = 0; k < top_k; ++k) {
        const int at = host[product(t, top_k) + k];
        const auto copy = read((there ? y(0) : x(0)) + product(at, c.width), width);
        for (unsigned i = 0; i < width; ++i)
          if (there)
            error.add(value_of(copy[i]), value_of(token[i]));
          else
            sum[i] += shares[k] * value_of(copy[i]);
      }
      for (unsigned i = 0; i < width && !there; ++i) error.add(value_of(token[i]), sum[i]);
    }
    print(c, "permute", c.what, traffic, timing, error.value(), there ? 0 : 5e-3);
  }

  void router(const Case& c) {
    const double n = static_cast<double>(c.tokens) * c.rows;
    const Traffic traffic{.read = 4 * n, .written = 8.0 * top_k * c.tokens, .flop = 12 * n};
    in_.start(static_cast<std::uint64_t>(traffic.bytes()));
    out_.start(static_cast<std::uint64_t>(traffic.bytes()));
    const auto logits = in_.take<float>(product(c.tokens, c.rows));
    const auto expert = out_.take<int>(product(c.tokens, top_k));
    const auto weight = out_.take<float>(product(c.tokens, top_k));
    const Enqueue enqueue = [&](cudaStream_t s, int i) {
      const unsigned grid = blocks_for(static_cast<unsigned>(c.tokens), 4);
      if (c.rows == 64)
        route<2><<<grid, 128, 0, s>>>(logits(i), expert(i), weight(i), c.tokens);
      else if (c.rows == 128)
        route<4><<<grid, 128, 0, s>>>(logits(i), expert(i), weight(i), c.tokens);
      else
        route<8><<<grid, 128, 0, s>>>(logits(i), expert(i), weight(i), c.tokens);
    };
    const Timing timing = burst(gpu_, enqueue);
    enqueue(gpu_.stream, 0);
    CUDA_OK(cudaStreamSynchronize(gpu_.stream));
    RelativeError error;
    for (const int t : {0, c.tokens - 1}) {
      const auto row = read(logits(0) + product(t, c.rows), unsigned(c.rows));
      const auto chosen = read(expert(0) + product(t, top_k), top_k);
      const auto shares = read(weight(0) + product(t, top_k), top_k);
      std::vector<double> p(row.begin(), row.end());
      std::sort(p.begin(), p.end(), std::greater<>());
      double sum = 0;
      for (unsigned k = 0; k < top_k; ++k) sum += std::exp(p[k]);
      for (unsigned k = 0; k < top_k; ++k) {
        error.add(shares[k], std::exp(p[k]) / sum);
        error.add(row[static_cast<std::size_t>(chosen[k])], p[k]);
      }
    }
    print(c, "router", "", traffic, timing, error.value(), 1e-3);
  }

  const Gpu& gpu_;
  Arena in_, out_;
};

std::vector<Case> cases(bool quick) {
  std::vector<Case> out;
  const std::vector<int> counts =
      quick ? std::vector{33, 2048}
            : std::vector{1, 128, 512, 1024, 2048, 3072, 4096, 8192, 12288, 16384, 32768, 65536};
  for (const int tokens : counts) {
    out.push_back({"gather", tokens, 4096, 128256});
    out.push_back({"scatter", tokens, 4096, 128256});
    if (!quick && tokens >= 128) out.push_back({"gather", tokens, 8192, 128256});
    if (!quick && tokens >= 4096) out.push_back({"scatter", tokens, 2048, 32000});
  }
  for (const int tokens : quick
                              ? std::vector{33, 2048}
                              : std::vector{1, 64, 512, 1024, 1536, 2048, 3072, 4096, 8192, 16384})
    for (const char* what : {"dispatch", "combine"}) {
      out.push_back({what, tokens, 7168, 256});
      if (!quick && tokens >= 512) out.push_back({what, tokens, 2048, 128});
    }
  for (const int tokens : quick ? std::vector{33} : std::vector{1, 256, 4096, 65536})
    for (const int experts : {64, 128, 256}) out.push_back({"route", tokens, experts, experts});
  return out;
}

}  // namespace

int main(int argc, char** argv) {
  const Options options = read_options(argc, argv);
  const Gpu gpu(options.gpu);
  print_conditions("gather", gpu);
  // The largest operands: a table of 128256 rows of 8192, and eight copies of 16384 tokens.
  Gather gather(gpu, 2ull << 30);
  for (const Case& c : cases(options.quick)) gather.run(c);
}
