// Knows a kernel of paged decode attention: grouped queries, keys split over warps and blocks.
#pragma once

#include "kernels.cuh"

namespace bench {

using fp8 = __nv_fp8_e4m3;

// One query a sequence. Caches: [pages][kv_heads][page_size][D]; tables: pages of a sequence.
struct Paged {
  const bf16* q = nullptr;                // [batch][heads][D]
  const void *k = nullptr, *v = nullptr;  // of bf16 or fp8
  const int *table = nullptr, *lengths = nullptr;
  bf16* out = nullptr;                         // [batch][heads][D]
  float *partial = nullptr, *scale = nullptr;  // of splits: [batch][heads][splits][D], and log2
  int batch = 0, heads = 0, kv_heads = 0, page_size = 0, table_width = 0, splits = 1;
  float softmax_scale = 1;  // times log2(e): powers of two are what the hardware takes
};

// D[16, 8] += A[16, 16] B[16, 8] in registers.
template <bool Half>
__device__ inline void multiply(float (&d)[4], const unsigned (&a)[4], unsigned b0, unsigned b1) {
  if constexpr (Half)
    asm volatile(
        "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, "
        "{%0,%1,%2,%3};"
        : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
  else
    asm volatile(
        "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, "
        "{%8,%9}, {%0,%1,%2,%3};"
        : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}
__device__ inline unsigned half_pair(float low, float high) {
  const __half2 pair = __floats2half2_rn(low, high);
  return *reinterpret_cast<const unsigned*>(&pair);
}
__device__ inline unsigned half_pair(unsigned two_fp8) {
  const __half2_raw pair =
      __nv_cvt_fp8x2_to_halfraw2(static_cast<__nv_fp8x2_storage_t>(two_fp8), __NV_E4M3);
  return static_cast<unsigned>(pair.x) | static_cast<unsigned>(pair.y) << 16;
}
// Sixteen bytes to shared memory, or zeros.
__device__ inline void copy_async(unsigned to, const std::uint8_t* from, bool there) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to), "l"(from),
               "r"(there ? 16 : 0)
               : "memory");
}
__device__ inline void commit() { asm volatile("cp.async.commit_group;" ::: "memory"); }
template <int Left>
__device__ inline void wait_for_all_but() {
  asm volatile("cp.async.wait_group %0;" ::"n"(Left) : "memory");
}

constexpr int tile_keys = 16, decode_warps = 4;

template <class T, int D, int Stages>
struct DecodeShape {
  static constexpr bool half = sizeof(T) == 1;  // fp8 is widened to fp16, exactly
  static constexpr int row = D * static_cast<int>(sizeof(T));
  // Rows of a tile start 32 bytes apart in the banks: no access below has a conflict.
  static constexpr int pitch = row + 32;
  static constexpr int stage = 2 * tile_keys * pitch;  // keys, then values
  static constexpr int shared = decode_warps * Stages * stage;
  static_assert(shared >= decode_warps * 16 * D * 4, "the warps' results meet in the same memory");
};
// Where key `column` of eight lies in a tile's half. Both products sum over keys or lay them out in
// any order, as long as it is the same one; in this one neither the keys' 64 byte rows nor the
// values' pairs of rows meet in a bank.
__device__ inline int key_of(int column) {
  return column % 2 == 0 ? column / 2 : 4 + ((column / 2) ^ 2);
}

template <class T, int D>
__device__ void load_queries(const Paged& p, int sequence, int kv_head, int lane,
                             unsigned (&q)[D / 32][2][4]) {
  const int group = p.heads / p.kv_heads;
#pragma unroll
  for (int side = 0; side < 2; ++side) {
    const int row = lane / 4 + 8 * side;
    const auto* from = reinterpret_cast<const uint4*>(
        p.q + (static_cast<std::uint64_t>(sequence) * p.heads + kv_head * group + row) * D);
#pragma unroll
    for (int c = 0; c < D / 32; ++c) {
      uint4 w = row < group ? from[4 * c + lane % 4] : uint4{0, 0, 0, 0};
      if constexpr (sizeof(T) == 1) {
        const Float8 x = unpack(w);
        w = {half_pair(x.v[0], x.v[1]), half_pair(x.v[2], x.v[3]), half_pair(x.v[4], x.v[5]),
             half_pair(x.v[6], x.v[7])};
      }
      // The sum over dims runs in an order in which a lane's share is eight neighbours.
      q[c][0][side] = w.x, q[c][0][2 + side] = w.y;
      q[c][1][side] = w.z, q[c][1][2 + side] = w.w;
    }
  }
}

template <class T, int D, int Pitch>
__device__ void score_keys(const std::uint8_t* keys, int lane, const unsigned (&q)[D / 32][2][4],
                           float (&s)[2][4]) {
  constexpr bool half = sizeof(T) == 1;
#pragma unroll
  for (int t = 0; t < 2; ++t) {
    const std::uint8_t* row = keys + (8 * t + key_of(lane / 4)) * Pitch;
#pragma unroll
    for (int e = 0; e < 4; ++e) s[t][e] = 0;
#pragma unroll
    for (int c = 0; c < D / 32; ++c) {
      if constexpr (half) {
        const uint2 w = *reinterpret_cast<const uint2*>(row + 32 * c + 8 * (lane % 4));
        multiply<true>(s[t], q[c][0], half_pair(w.x & 0xffff), half_pair(w.x >> 16));
        multiply<true>(s[t], q[c][1], half_pair(w.y & 0xffff), half_pair(w.y >> 16));
      } else {
        const uint4 w = *reinterpret_cast<const uint4*>(row + 64 * c + 16 * (lane % 4));
        multiply<false>(s[t], q[c][0], w.x, w.y);
        multiply<false>(s[t], q[c][1], w.z, w.w);
      }
    }
  }
}

// o += P V: a lane takes four neighbouring dims from the rows of its four keys and pairs them.
template <class T, int D, int Pitch>
__device__ void add_values(const std::uint8_t* values, int lane, const unsigned (&p)[4],
                           float (&o)[D / 32][4][4]) {
  constexpr bool half = sizeof(T) == 1;
  const int c = lane % 4;
  const int keys[4] = {c, 4 + (c ^ 2), 8 + c, 12 + (c ^ 2)};
#pragma unroll
  for (int d = 0; d < D / 32; ++d) {
    unsigned b[2][4];
#pragma unroll
    for (int pair = 0; pair < 2; ++pair) {
      const int at = (32 * d + 4 * (lane / 4)) * static_cast<int>(sizeof(T));
      const std::uint8_t* first = values + keys[2 * pair] * Pitch + at;
      const std::uint8_t* second = values + keys[2 * pair + 1] * Pitch + at;
      if constexpr (half) {
        const unsigned x = *reinterpret_cast<const unsigned*>(first);
        const unsigned y = *reinterpret_cast<const unsigned*>(second);
        const unsigned low = __byte_perm(x, y, 0x5140), high = __byte_perm(x, y, 0x7362);
        b[pair][0] = half_pair(low & 0xffff), b[pair][1] = half_pair(low >> 16);
        b[pair][2] = half_pair(high & 0xffff), b[pair][3] = half_pair(high >> 16);
      } else {
        const uint2 x = *reinterpret_cast<const uint2*>(first);
        const uint2 y = *reinterpret_cast<const uint2*>(second);
        b[pair][0] = __byte_perm(x.x, y.x, 0x5410), b[pair][1] = __byte_perm(x.x, y.x, 0x7632);
        b[pair][2] = __byte_perm(x.y, y.y, 0x5410), b[pair][3] = __byte_perm(x.y, y.y, 0x7632);
      }
    }
#pragma unroll
    for (int j = 0; j < 4; ++j) multiply<half>(o[d][j], p, b[0][j], b[1][j]);
  }
}

// Highest score and sum of a row over the keys seen so far; [0]: row lane / 4, [1]: eight on.
struct Softmax {
  float high[2] = {-INFINITY, -INFINITY}, sum[2] = {0, 0};
};
// Scores to weights, in place. Returns what earlier results are to be scaled by.
__device__ inline float2 weigh(Softmax& state, float (&s)[2][4], float scale) {
  float factor[2];
#pragma unroll
  for (int side = 0; side < 2; ++side) {
    float top =
        fmaxf(fmaxf(s[0][2 * side], s[0][2 * side + 1]), fmaxf(s[1][2 * side], s[1][2 * side + 1]));
    top = fmaxf(top, __shfl_xor_sync(0xffffffffu, top, 1));
    top = fmaxf(top, __shfl_xor_sync(0xffffffffu, top, 2));
    top = fmaxf(top, state.high[side]);
    factor[side] = exp2f((state.high[side] - top) * scale);
    state.high[side] = top;
    state.sum[side] *= factor[side];
#pragma unroll
    for (int t = 0; t < 2; ++t)
#pragma unroll
      for (int e = 2 * side; e < 2 * side + 2; ++e) {
        s[t][e] = exp2f((s[t][e] - top) * scale);
        state.sum[side] += s[t][e];
      }
  }
  return {factor[0], factor[1]};
}

// Adds the warps' results and writes the block's.
template <int D>
__device__ void merge_warps(const Paged& p, float* results, Softmax state, int sequence,
                            int kv_head, const float (&o)[D / 32][4][4]) {
  __shared__ float highs[decode_warps][16], sums[decode_warps][16];
  const int lane = static_cast<int>(threadIdx.x % 32), warp = static_cast<int>(threadIdx.x / 32);
#pragma unroll
  for (int side = 0; side < 2; ++side) {
    float sum = state.sum[side];
    sum += __shfl_xor_sync(0xffffffffu, sum, 1);
    sum += __shfl_xor_sync(0xffffffffu, sum, 2);
    const int row = lane / 4 + 8 * side;
    if (lane % 4 == 0) highs[warp][row] = state.high[side], sums[warp][row] = sum;
#pragma unroll
    for (int d = 0; d < D / 32; ++d)
#pragma unroll
      for (int j = 0; j < 4; ++j)
#pragma unroll
        for (int e = 0; e < 2; ++e)
          results[(warp * 16 + row) * D + 32 * d + 8 * (lane % 4) + 4 * e + j] =
              o[d][j][2 * side + e];
  }
  __syncthreads();
  const int group = p.heads / p.kv_heads;
  for (int i = static_cast<int>(threadIdx.x); i < group * D; i += decode_warps * 32) {
    const int row = i / D, dim = i % D;
    float high = -INFINITY, sum = 0, total = 0;
    for (int w = 0; w < decode_warps; ++w) high = fmaxf(high, highs[w][row]);
    for (int w = 0; w < decode_warps; ++w) {
      if (highs[w][row] == -INFINITY) continue;  // a warp without keys
      const float share = exp2f((highs[w][row] - high) * p.softmax_scale);
      sum += share * sums[w][row];
      total += share * results[(w * 16 + row) * D + dim];
    }
    const float value = sum > 0 ? total / sum : 0;
    const std::uint64_t head =
        static_cast<std::uint64_t>(sequence) * p.heads + kv_head * group + row;
    if (p.splits == 1) {
      p.out[head * D + dim] = __float2bfloat16(value);
      continue;
    }
    const std::uint64_t part = head * p.splits + blockIdx.x;
    p.partial[part * D + dim] = value;
    if (dim == 0) p.scale[part] = sum > 0 ? high * p.softmax_scale + log2f(sum) : -INFINITY;
  }
}

// A block per (split, kv head, sequence); each of its warps streams tiles of 16 keys of its own
// through its own part of shared memory, so that the warps never wait for one another.
template <class T, int D, int Stages>
__global__ void __launch_bounds__(decode_warps * 32) decode_kernel(const Paged p) {
  using Shape = DecodeShape<T, D, Stages>;
  extern __shared__ __align__(128) std::uint8_t memory[];
  const int lane = static_cast<int>(threadIdx.x % 32), warp = static_cast<int>(threadIdx.x / 32);
  const int kv_head = static_cast<int>(blockIdx.y), sequence = static_cast<int>(blockIdx.z);
  const int length = p.lengths[sequence];
  const int tiles = (length + tile_keys - 1) / tile_keys;
  const int per_split = (tiles + p.splits - 1) / p.splits;
  const int first = static_cast<int>(blockIdx.x) * per_split + warp;
  const int end = min(tiles, (static_cast<int>(blockIdx.x) + 1) * per_split);
  std::uint8_t* mine = memory + warp * Stages * Shape::stage;
  const auto shared = static_cast<unsigned>(__cvta_generic_to_shared(mine));
  const int* table = p.table + static_cast<std::uint64_t>(sequence) * p.table_width;

  // The page of the tile after next is looked up a tile ahead: its address is there in time.
  int page = first < end ? table[first * tile_keys / p.page_size] : 0;
  const auto load = [&](int tile, int stage) {
    if (tile < end) {
      const int key = tile * tile_keys;
      const std::uint64_t start =
          ((static_cast<std::uint64_t>(page) * p.kv_heads + kv_head) * p.page_size +
           key % p.page_size) *
          Shape::row;
      const int next = tile + decode_warps;
      if (next < end) page = table[next * tile_keys / p.page_size];
      constexpr int chunks = Shape::row / 16;
#pragma unroll
      for (int i = 0; i < Shape::row / 32; ++i) {
        const int chunk = lane + 32 * i, row = chunk / chunks;
        const bool there = key + row < length;
        const unsigned to =
            shared +
            static_cast<unsigned>(stage * Shape::stage + row * Shape::pitch + chunk % chunks * 16);
        const std::uint64_t at = start + static_cast<unsigned>(chunk) * 16;
        copy_async(to, static_cast<const std::uint8_t*>(p.k) + at, there);
        copy_async(to + tile_keys * Shape::pitch, static_cast<const std::uint8_t*>(p.v) + at,
                   there);
      }
    }
    commit();  // an empty group where there is no tile: the count of groups stays right
  };

#pragma unroll
  for (int i = 0; i < Stages - 1; ++i) load(first + i * decode_warps, i);
  unsigned q[D / 32][2][4];
  load_queries<T, D>(p, sequence, kv_head, lane, q);
  float o[D / 32][4][4] = {};
  Softmax state;
  int stage = 0;
  for (int tile = first; tile < end; tile += decode_warps) {
    wait_for_all_but<Stages - 2>();
    __syncwarp();  // every lane's copies have come, and all have read the stage filled next
    load(tile + (Stages - 1) * decode_warps, stage == 0 ? Stages - 1 : stage - 1);
    const std::uint8_t* keys = mine + stage * Shape::stage;
    stage = stage + 1 == Stages ? 0 : stage + 1;
    float s[2][4];
    score_keys<T, D, Shape::pitch>(keys, lane, q, s);
    if ((tile + 1) * tile_keys > length) {
#pragma unroll
      for (int t = 0; t < 2; ++t)
#pragma unroll
        for (int e = 0; e < 4; ++e)
          if (tile * tile_keys + 8 * t + key_of(2 * (lane % 4) + e % 2) >= length)
            s[t][e] = -INFINITY;
    }
    const float2 factor = weigh(state, s, p.softmax_scale);
    if (__any_sync(0xffffffffu, factor.x != 1 || factor.y != 1)) {
#pragma unroll
      for (int d = 0; d < D / 32; ++d)
#pragma unroll
        for (int j = 0; j < 4; ++j)
          o[d][j][0] *= factor.x, o[d][j][1] *= factor.x, o[d][j][2] *= factor.y,
              o[d][j][3] *= factor.y;
    }
    unsigned weights[4];
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const float low = s[i / 2][i % 2 * 2], high = s[i / 2][i % 2 * 2 + 1];
      weights[i] = Shape::half ? half_pair(low, high) : pack2(low, high);
    }
    add_values<T, D, Shape::pitch>(keys + tile_keys * Shape::pitch, lane, weights, o);
  }
  wait_for_all_but<0>();
  __syncthreads();
  merge_warps<D>(p, reinterpret_cast<float*>(memory), state, sequence, kv_head, o);
}

constexpr int most_splits = 128;

// A block per (head, sequence), a thread per dim.
template <int D>
__global__ void __launch_bounds__(D) merge_splits(const Paged p) {
  __shared__ float shares[most_splits];
  const std::uint64_t head = static_cast<std::uint64_t>(blockIdx.y) * p.heads + blockIdx.x;
  const auto thread = static_cast<int>(threadIdx.x);
  for (int s = thread; s < p.splits; s += D) shares[s] = p.scale[head * p.splits + s];
  __syncthreads();
  float high = -INFINITY, sum = 0, total = 0;
#pragma unroll 8
  for (int s = 0; s < p.splits; ++s) high = fmaxf(high, shares[s]);
#pragma unroll 16
  for (int s = 0; s < p.splits; ++s) {
    const float share = exp2f(shares[s] - high);
    sum += share;
    total += share * p.partial[(head * p.splits + s) * D + thread];
  }
  p.out[head * D + thread] = __float2bfloat16(total / sum);
}

}  // namespace bench
