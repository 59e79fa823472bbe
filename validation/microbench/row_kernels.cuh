// Knows the kernels that reduce along rows which a block holds in its registers.
#pragma once

#include "kernels.cuh"

namespace bench {

// A block of `Warps` warps holds one row of at most Warps * 1024 numbers in its registers, so that
// each is read once: four vectors of eight a thread.
constexpr int vectors = 4;

template <int Warps, class Visit>
__device__ inline void for_each_vector(int width, Visit visit) {
#pragma unroll
  for (int j = 0; j < vectors; ++j) {
    const int index = static_cast<int>(threadIdx.x) + j * Warps * 32;
    if (index < width / 8) visit(j, index);
  }
}
__device__ inline const uint4* row_of(const bf16* x, int width) {
  return reinterpret_cast<const uint4*>(x + static_cast<std::uint64_t>(blockIdx.x) * width);
}
__device__ inline uint4* row_of(bf16* x, int width) {
  return reinterpret_cast<uint4*>(x + static_cast<std::uint64_t>(blockIdx.x) * width);
}
__device__ inline Float8 vector_of(const bf16* x, int index) {
  return unpack(reinterpret_cast<const uint4*>(x)[index]);
}
template <int Warps>
__device__ inline void load_row(const bf16* x, int width, uint4 (&row)[vectors]) {
  for_each_vector<Warps>(width, [&](int j, int i) { row[j] = row_of(x, width)[i]; });
}

// y = x / rms(x) * weight; with Residual, x + residual takes the place of x and is kept.
template <int Warps, bool Residual>
__global__ void __launch_bounds__(Warps * 32)
    rms_forward(const bf16* x, const bf16* residual, const bf16* weight, bf16* sum_out, bf16* y,
                int width) {
  uint4 row[vectors], added[vectors];
  load_row<Warps>(x, width, row);
  if constexpr (Residual) load_row<Warps>(residual, width, added);
  float squares = 0;
  for_each_vector<Warps>(width, [&](int j, int i) {
    Float8 v = unpack(row[j]);
    if constexpr (Residual) {
      const Float8 r = unpack(added[j]);
      for (int e = 0; e < 8; ++e) v.v[e] += r.v[e];
      row[j] = pack(v);
      row_of(sum_out, width)[i] = row[j];
    }
    for (int e = 0; e < 8; ++e) squares += v.v[e] * v.v[e];
  });
  const float inverse = rsqrtf(block_reduce<Warps, 0>(squares) / width + 1e-6f);
  for_each_vector<Warps>(width, [&](int j, int i) {
    Float8 v = unpack(row[j]);
    const Float8 w = vector_of(weight, i);
    for (int e = 0; e < 8; ++e) v.v[e] *= inverse * w.v[e];
    row_of(y, width)[i] = pack(v);
  });
}

// dx, and each block's share of the weight's gradient: a block walks over rows with that share in
// its registers, `sum_columns` adds the shares.
template <int Warps>
__global__ void __launch_bounds__(Warps * 32)
    rms_backward(const bf16* x, const bf16* dy, const bf16* weight, bf16* dx, float* shares,
                 int rows, int width) {
  Float8 share[vectors] = {};
  const int step = static_cast<int>(gridDim.x);
  uint4 xs[vectors], ds[vectors], next_xs[vectors], next_ds[vectors];
  const auto load = [&](int r) {
    const std::uint64_t first = static_cast<std::uint64_t>(r) * width;
    const auto* in = reinterpret_cast<const uint4*>(x + first);
    const auto* slope = reinterpret_cast<const uint4*>(dy + first);
    for_each_vector<Warps>(width, [&](int j, int i) { next_xs[j] = in[i], next_ds[j] = slope[i]; });
  };
  if (static_cast<int>(blockIdx.x) < rows) load(static_cast<int>(blockIdx.x));
  for (int r = static_cast<int>(blockIdx.x); r < rows; r += step) {
    const std::uint64_t first = static_cast<std::uint64_t>(r) * width;
#pragma unroll
    for (int j = 0; j < vectors; ++j) xs[j] = next_xs[j], ds[j] = next_ds[j];
    if (r + step < rows) load(r + step);  // on its way while this row meets
    float squares = 0, product = 0;
    for_each_vector<Warps>(width, [&](int j, int i) {
      const Float8 v = unpack(xs[j]), d = unpack(ds[j]), w = vector_of(weight, i);
      for (int e = 0; e < 8; ++e) {
        squares += v.v[e] * v.v[e];
        product += v.v[e] * d.v[e] * w.v[e];
      }
    });
    squares = block_reduce<Warps, 0>(squares);
    product = block_reduce<Warps, 1>(product);
    const float inverse = rsqrtf(squares / width + 1e-6f);
    const float pull = product * inverse * inverse * inverse / width;
    for_each_vector<Warps>(width, [&](int j, int i) {
      const Float8 v = unpack(xs[j]), d = unpack(ds[j]), w = vector_of(weight, i);
      Float8 out;
      for (int e = 0; e < 8; ++e) {
        out.v[e] = inverse * d.v[e] * w.v[e] - pull * v.v[e];
        share[j].v[e] += d.v[e] * v.v[e] * inverse;
      }
      reinterpret_cast<uint4*>(dx + first)[i] = pack(out);
    });
  }
  for_each_vector<Warps>(width, [&](int j, int i) {
    auto* out = reinterpret_cast<float4*>(shares + static_cast<std::uint64_t>(blockIdx.x) * width);
    out[2 * i] = {share[j].v[0], share[j].v[1], share[j].v[2], share[j].v[3]};
    out[2 * i + 1] = {share[j].v[4], share[j].v[5], share[j].v[6], share[j].v[7]};
  });
}
// Blocks of 32 columns by 32 rows.
__global__ void __launch_bounds__(1024)
    sum_columns(const float* shares, bf16* out, int rows, int width) {
  __shared__ float parts[32][33];
  const int column = static_cast<int>(blockIdx.x * 32 + threadIdx.x);
  float sum = 0;
#pragma unroll 4
  for (int r = static_cast<int>(threadIdx.y); r < rows; r += 32)
    sum += shares[static_cast<std::uint64_t>(r) * width + column];
  parts[threadIdx.y][threadIdx.x] = sum;
  __syncthreads();
  // Warp y adds column y of the 32.
  const float all = warp_sum(parts[threadIdx.x][threadIdx.y]);
  if (threadIdx.x == 0) out[blockIdx.x * 32 + threadIdx.y] = __float2bfloat16(all);
}

template <int Warps>
__global__ void __launch_bounds__(Warps * 32)
    layer_forward(const bf16* x, const bf16* weight, const bf16* bias, bf16* y, int width) {
  uint4 row[vectors];
  load_row<Warps>(x, width, row);
  float sum = 0, squares = 0;
  for_each_vector<Warps>(width, [&](int j, int) {
    const Float8 v = unpack(row[j]);
    for (int e = 0; e < 8; ++e) sum += v.v[e];
  });
  const float mean = block_reduce<Warps, 0>(sum) / width;
  for_each_vector<Warps>(width, [&](int j, int) {
    const Float8 v = unpack(row[j]);
    for (int e = 0; e < 8; ++e) squares += (v.v[e] - mean) * (v.v[e] - mean);
  });
  const float inverse = rsqrtf(block_reduce<Warps, 1>(squares) / width + 1e-6f);
  for_each_vector<Warps>(width, [&](int j, int i) {
    Float8 v = unpack(row[j]);
    const Float8 w = vector_of(weight, i), b = vector_of(bias, i);
    for (int e = 0; e < 8; ++e) v.v[e] = (v.v[e] - mean) * inverse * w.v[e] + b.v[e];
    row_of(y, width)[i] = pack(v);
  });
}

// Highest value and sum of exp(x - highest) of a row that the block holds.
template <int Warps>
__device__ inline float2 row_exponents(const uint4 (&row)[vectors], int width) {
  float high = -INFINITY, sum = 0;
  for_each_vector<Warps>(width, [&](int j, int) {
    const Float8 v = unpack(row[j]);
    for (int e = 0; e < 8; ++e) high = fmaxf(high, v.v[e]);
  });
  high = block_reduce<Warps, 0, true>(high);
  for_each_vector<Warps>(width, [&](int j, int) {
    const Float8 v = unpack(row[j]);
    for (int e = 0; e < 8; ++e) sum += __expf(v.v[e] - high);
  });
  return {high, block_reduce<Warps, 1>(sum)};
}

template <int Warps>
__global__ void __launch_bounds__(Warps * 32) softmax_forward(const bf16* x, bf16* y, int width) {
  uint4 row[vectors];
  load_row<Warps>(x, width, row);
  const float2 s = row_exponents<Warps>(row, width);
  const float share = 1 / s.y;
  for_each_vector<Warps>(width, [&](int j, int i) {
    Float8 v = unpack(row[j]);
    for (int e = 0; e < 8; ++e) v.v[e] = __expf(v.v[e] - s.x) * share;
    row_of(y, width)[i] = pack(v);
  });
}

__device__ inline int target_of(unsigned row, int width) {
  return static_cast<int>(mix(row) % static_cast<unsigned>(width));
}
__device__ inline uint4 cross_entropy_slope(uint4 packed, int index, int target, float2 s) {
  Float8 v = unpack(packed);
  const float share = __fdividef(1, s.y);
  for (int e = 0; e < 8; ++e)
    v.v[e] = __expf(v.v[e] - s.x) * share - (8 * index + e == target ? 1.0f : 0.0f);
  return pack(v);
}

// Loss and the logits' gradient while the block holds the row: vocabularies up to 32768.
__global__ void __launch_bounds__(1024)
    cross_entropy_held(const bf16* x, float* loss, bf16* dx, int width) {
  uint4 row[vectors];
  load_row<32>(x, width, row);
  const float2 s = row_exponents<32>(row, width);
  const int target = target_of(blockIdx.x, width);
  for_each_vector<32>(width, [&](int j, int i) {
    row_of(dx, width)[i] = cross_entropy_slope(row[j], i, target, s);
  });
  if (threadIdx.x == 0)
    loss[blockIdx.x] = __logf(s.y) + s.x -
                       __bfloat162float(x[static_cast<std::uint64_t>(blockIdx.x) * width + target]);
}
// The same for any vocabulary: a pass that finds the sum, another that reads the row once more,
// from the L2 where it is still there.
__global__ void __launch_bounds__(1024, 2)
    cross_entropy_twice(const bf16* x, float* loss, bf16* dx, int width) {
  const uint4* in = row_of(x, width);
  float high = -INFINITY, sum = 0;
  const int count = width / 8;
#pragma unroll 2
  for (int i = static_cast<int>(threadIdx.x); i < count; i += 1024) {
    const Float8 v = unpack(in[i]);
    float top = high;
    for (int e = 0; e < 8; ++e) top = fmaxf(top, v.v[e]);
    if (top > high) sum *= __expf(high - top), high = top;
    for (int e = 0; e < 8; ++e) sum += __expf(v.v[e] - high);
  }
  const float top = block_reduce<32, 0, true>(high);
  const float2 s{top, block_reduce<32, 1>(high == -INFINITY ? 0 : sum * __expf(high - top))};
  const int target = target_of(blockIdx.x, width);
#pragma unroll 2
  for (int i = static_cast<int>(threadIdx.x); i < count; i += 1024)
    row_of(dx, width)[i] = cross_entropy_slope(in[i], i, target, s);
  if (threadIdx.x == 0)
    loss[blockIdx.x] = __logf(s.y) + s.x -
                       __bfloat162float(x[static_cast<std::uint64_t>(blockIdx.x) * width + target]);
}

template <int Warps>
__global__ void __launch_bounds__(Warps * 32)
    quantise_rows(const bf16* x, std::uint8_t* y, float* scales, int width) {
  uint4 row[vectors];
  load_row<Warps>(x, width, row);
  float high = 1e-12f;
  for_each_vector<Warps>(width, [&](int j, int) {
    const Float8 v = unpack(row[j]);
    for (int e = 0; e < 8; ++e) high = fmaxf(high, fabsf(v.v[e]));
  });
  high = block_reduce<Warps, 0, true>(high);
  auto* out = reinterpret_cast<uint2*>(y + static_cast<std::uint64_t>(blockIdx.x) * width);
  for_each_vector<Warps>(width,
                         [&](int j, int i) { out[i] = pack_fp8(unpack(row[j]), 448.0f / high); });
  if (threadIdx.x == 0) scales[blockIdx.x] = high / 448.0f;
}
// A scale for every 128 numbers: sixteen lanes hold them, so that no block need meet.
__global__ void __launch_bounds__(256)
    quantise_blocks(const uint4* x, uint2* y, float* scales, std::uint64_t count) {
  const std::uint64_t first = blockIdx.x * 1024ull + threadIdx.x;
  uint4 held[vectors];
#pragma unroll
  for (int j = 0; j < vectors; ++j)
    if (first + j * 256u < count) held[j] = x[first + j * 256u];
#pragma unroll
  for (int j = 0; j < vectors; ++j) {
    const std::uint64_t i = first + j * 256u;
    const Float8 v = i < count ? unpack(held[j]) : Float8{};
    float high = 1e-12f;
    for (int e = 0; e < 8; ++e) high = fmaxf(high, fabsf(v.v[e]));
    for (int step = 8; step > 0; step /= 2)
      high = fmaxf(high, __shfl_xor_sync(0xffffffffu, high, step));
    if (i >= count) continue;
    y[i] = pack_fp8(v, 448.0f / high);
    if (i % 16 == 0) scales[i / 16] = high / 448.0f;
  }
}

}  // namespace bench
