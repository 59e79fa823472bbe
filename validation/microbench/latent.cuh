// Knows a kernel of paged decode attention over latents: all heads share keys, which hold the
// values.
#pragma once

#include "paged.cuh"

namespace bench {

constexpr int latent_dim = 576, latent_value_dim = 512;
constexpr int latent_heads = 64, latent_keys = 32, latent_threads = 256;  // of a block

// Rows lie so that neither 16 byte loads of two rows nor pairs of keys meet in a bank.
constexpr int latent_pitch = 2 * latent_dim + 32, query_pitch = 2 * latent_dim + 64;
constexpr int latent_tile = latent_keys * latent_pitch;
constexpr int latent_shared = 2 * latent_tile + latent_heads * query_pitch;

// Two warps share 16 heads: each finds the weights of half of a tile's keys, then sums half of the
// dims over all of them.
__device__ inline void meet_pair(int pair) {
  asm volatile("bar.sync %0, 64;" ::"r"(1 + pair) : "memory");
}

__device__ inline void score_latents(const std::uint8_t* queries, const std::uint8_t* keys,
                                     int lane, float (&s)[2][4]) {
  const std::uint8_t* rows[2] = {queries + lane / 4 * query_pitch + 16 * (lane % 4),
                                 queries + (lane / 4 + 8) * query_pitch + 16 * (lane % 4)};
  const std::uint8_t* key = keys + key_of(lane / 4) * latent_pitch + 16 * (lane % 4);
#pragma unroll
  for (int t = 0; t < 2; ++t)
#pragma unroll
    for (int e = 0; e < 4; ++e) s[t][e] = 0;
#pragma unroll 6
  for (int c = 0; c < latent_dim / 32; ++c) {
    const uint4 low = *reinterpret_cast<const uint4*>(rows[0] + 64 * c);
    const uint4 high = *reinterpret_cast<const uint4*>(rows[1] + 64 * c);
    const unsigned first[4] = {low.x, high.x, low.y, high.y};
    const unsigned second[4] = {low.z, high.z, low.w, high.w};
#pragma unroll
    for (int t = 0; t < 2; ++t) {
      const uint4 w = *reinterpret_cast<const uint4*>(key + 8 * t * latent_pitch + 64 * c);
      multiply<false>(s[t], first, w.x, w.y);
      multiply<false>(s[t], second, w.z, w.w);
    }
  }
}

// weigh() for two warps that hold different keys of the same rows.
__device__ inline float2 weigh_pair(Softmax& state, float (&s)[2][4], float scale, int lane,
                                    float* mine, const float* others, int pair) {
  float top[2], factor[2];
#pragma unroll
  for (int side = 0; side < 2; ++side) {
    top[side] =
        fmaxf(fmaxf(s[0][2 * side], s[0][2 * side + 1]), fmaxf(s[1][2 * side], s[1][2 * side + 1]));
    top[side] = fmaxf(top[side], __shfl_xor_sync(0xffffffffu, top[side], 1));
    top[side] = fmaxf(top[side], __shfl_xor_sync(0xffffffffu, top[side], 2));
    if (lane % 4 == 0) mine[lane / 4 + 8 * side] = top[side];
  }
  meet_pair(pair);
#pragma unroll
  for (int side = 0; side < 2; ++side) {
    const float high = fmaxf(fmaxf(top[side], others[lane / 4 + 8 * side]), state.high[side]);
    factor[side] = exp2f((state.high[side] - high) * scale);
    state.high[side] = high;
    state.sum[side] *= factor[side];
#pragma unroll
    for (int t = 0; t < 2; ++t)
#pragma unroll
      for (int e = 2 * side; e < 2 * side + 2; ++e) {
        s[t][e] = exp2f((s[t][e] - high) * scale);
        state.sum[side] += s[t][e];
      }
  }
  return {factor[0], factor[1]};
}

// A block per (split, 64 heads, sequence). Pages hold a multiple of 32 keys.
__global__ void __launch_bounds__(latent_threads, 1) latent_kernel(const Paged p) {
  extern __shared__ __align__(128) std::uint8_t memory[];
  __shared__ float highs[8][16], sums[8][16];
  __shared__ uint4 weights[8][32];
  std::uint8_t* queries = memory + 2 * latent_tile;
  const int thread = static_cast<int>(threadIdx.x), lane = thread % 32, warp = thread / 32;
  const int pair = warp / 2, side = warp % 2, sequence = static_cast<int>(blockIdx.z);
  const int length = p.lengths[sequence];
  const int tiles = (length + latent_keys - 1) / latent_keys;
  const int per_split = (tiles + p.splits - 1) / p.splits;
  const int first = static_cast<int>(blockIdx.x) * per_split;
  const int end = min(tiles, first + per_split);
  const int* table = p.table + static_cast<std::uint64_t>(sequence) * p.table_width;
  const std::uint64_t head0 =
      static_cast<std::uint64_t>(sequence) * p.heads + blockIdx.y * latent_heads;
  const auto shared = static_cast<unsigned>(__cvta_generic_to_shared(memory));

  constexpr int chunks = 2 * latent_dim / 16;  // of a row
  int page = first < end ? table[first * latent_keys / p.page_size] : 0;
  const auto load = [&](int tile, int stage) {
    if (tile < end) {
      const int key = tile * latent_keys;
      const std::uint8_t* from =
          static_cast<const std::uint8_t*>(p.k) +
          (static_cast<std::uint64_t>(page) * p.page_size + key % p.page_size) * (2 * latent_dim);
      if (tile + 1 < end) page = table[(tile + 1) * latent_keys / p.page_size];
#pragma unroll
      for (int i = 0; i < latent_keys * chunks / latent_threads; ++i) {
        const int chunk = thread + latent_threads * i, row = chunk / chunks;
        copy_async(shared + static_cast<unsigned>(stage * latent_tile + row * latent_pitch +
                                                  chunk % chunks * 16),
                   from + chunk * 16, key + row < length);
      }
    }
    commit();
  };
  const auto* all = reinterpret_cast<const std::uint8_t*>(p.q + head0 * latent_dim);
  for (int chunk = thread; chunk < latent_heads * chunks; chunk += latent_threads)
    copy_async(shared + static_cast<unsigned>(2 * latent_tile + chunk / chunks * query_pitch +
                                              chunk % chunks * 16),
               all + chunk * 16, true);
  load(first, 0);  // in one group with the queries

  float o[8][4][4] = {};
  Softmax state;
  for (int tile = first; tile < end; ++tile) {
    const int stage = (tile - first) % 2;
    wait_for_all_but<0>();
    __syncthreads();  // the tile is there, and the one before has been used
    load(tile + 1, 1 - stage);
    const std::uint8_t* keys = memory + stage * latent_tile;
    float s[2][4];
    score_latents(queries + pair * 16 * query_pitch, keys + side * 16 * latent_pitch, lane, s);
#pragma unroll
    for (int t = 0; t < 2; ++t)
#pragma unroll
      for (int e = 0; e < 4; ++e)
        if (tile * latent_keys + 16 * side + 8 * t + key_of(2 * (lane % 4) + e % 2) >= length)
          s[t][e] = -INFINITY;
    const float2 factor =
        weigh_pair(state, s, p.softmax_scale, lane, highs[warp], highs[warp ^ 1], pair);
    weights[warp][lane] = {pack2(s[0][0], s[0][1]), pack2(s[0][2], s[0][3]),
                           pack2(s[1][0], s[1][1]), pack2(s[1][2], s[1][3])};
    if (__any_sync(0xffffffffu, factor.x != 1 || factor.y != 1)) {
#pragma unroll
      for (int d = 0; d < 8; ++d)
#pragma unroll
        for (int j = 0; j < 4; ++j)
          o[d][j][0] *= factor.x, o[d][j][1] *= factor.x, o[d][j][2] *= factor.y,
              o[d][j][3] *= factor.y;
    }
    meet_pair(pair);
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const uint4 w = weights[2 * pair + half][lane];
      const unsigned packed[4] = {w.x, w.y, w.z, w.w};
      add_values<bf16, 256, latent_pitch>(keys + half * 16 * latent_pitch + side * latent_value_dim,
                                          lane, packed, o);
    }
  }
  wait_for_all_but<0>();
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    float sum = state.sum[half];
    sum += __shfl_xor_sync(0xffffffffu, sum, 1);
    sum += __shfl_xor_sync(0xffffffffu, sum, 2);
    if (lane % 4 == 0) sums[warp][lane / 4 + 8 * half] = sum;
  }
  meet_pair(pair);
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const int row = lane / 4 + 8 * half;
    const float sum = sums[warp][row] + sums[warp ^ 1][row];
    const std::uint64_t head = head0 + static_cast<unsigned>(pair * 16 + row);
    const std::uint64_t part = head * p.splits + blockIdx.x;
    const float share = sum > 0 ? 1 / sum : 0;
#pragma unroll
    for (int d = 0; d < 8; ++d) {  // a lane holds eight neighbouring dims
      const int dim = side * 256 + 32 * d + 8 * (lane % 4);
      Float8 v;
#pragma unroll
      for (int j = 0; j < 4; ++j)
        v.v[j] = o[d][j][2 * half] * share, v.v[4 + j] = o[d][j][2 * half + 1] * share;
      if (p.splits == 1) {
        *reinterpret_cast<uint4*>(p.out + head * latent_value_dim + dim) = pack(v);
      } else {
        auto* to = reinterpret_cast<float4*>(p.partial + part * latent_value_dim + dim);
        to[0] = {v.v[0], v.v[1], v.v[2], v.v[3]};
        to[1] = {v.v[4], v.v[5], v.v[6], v.v[7]};
      }
    }
    if (p.splits > 1 && side == 0 && lane % 4 == 0)
      p.scale[part] = sum > 0 ? state.high[half] * p.softmax_scale + log2f(sum) : -INFINITY;
  }
}

}  // namespace bench
