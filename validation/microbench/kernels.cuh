// Knows what our own memory-bound kernels share: 16-byte accesses, reductions, rotating operands.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp8.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "bench.cuh"
#include "random.cuh"

namespace bench {

using bf16 = __nv_bfloat16;

struct Float8 {
  float v[8];
};

// Eight bf16 numbers of 16 aligned bytes.
__device__ inline Float8 unpack(uint4 packed) {
  Float8 out;
  const unsigned words[4] = {packed.x, packed.y, packed.z, packed.w};
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    out.v[2 * i] = __uint_as_float(words[i] << 16);
    out.v[2 * i + 1] = __uint_as_float(words[i] & 0xffff0000u);
  }
  return out;
}
__device__ inline unsigned pack2(float low, float high) {
  const __nv_bfloat162 pair = __floats2bfloat162_rn(low, high);
  return *reinterpret_cast<const unsigned*>(&pair);
}
__device__ inline uint4 pack(const Float8& x) {
  return {pack2(x.v[0], x.v[1]), pack2(x.v[2], x.v[3]), pack2(x.v[4], x.v[5]),
          pack2(x.v[6], x.v[7])};
}
__device__ inline uint2 pack_fp8(const Float8& x, float scale) {
  unsigned words[2];
#pragma unroll
  for (int i = 0; i < 2; ++i) {
    const unsigned low = __nv_cvt_float2_to_fp8x2({x.v[4 * i] * scale, x.v[4 * i + 1] * scale},
                                                  __NV_SATFINITE, __NV_E4M3);
    const unsigned high = __nv_cvt_float2_to_fp8x2({x.v[4 * i + 2] * scale, x.v[4 * i + 3] * scale},
                                                   __NV_SATFINITE, __NV_E4M3);
    words[i] = low | high << 16;
  }
  return {words[0], words[1]};
}
__device__ inline float fp8_value(std::uint8_t bits) {
  __nv_fp8_e4m3 x;
  x.__x = bits;
  return static_cast<float>(x);
}

__device__ inline float warp_sum(float x) {
#pragma unroll
  for (int step = 16; step > 0; step /= 2) x += __shfl_xor_sync(0xffffffffu, x, step);
  return x;
}
__device__ inline float warp_max(float x) {
#pragma unroll
  for (int step = 16; step > 0; step /= 2) x = fmaxf(x, __shfl_xor_sync(0xffffffffu, x, step));
  return x;
}
// Over a block of `Warps` full warps; every thread gets the result. `Slot` names the call: two
// calls of one kernel must not share the memory in which the warps meet.
template <int Warps, int Slot, bool Max = false>
__device__ inline float block_reduce(float x) {
  x = Max ? warp_max(x) : warp_sum(x);
  if constexpr (Warps > 1) {
    __shared__ float parts[Warps];
    __syncthreads();  // the call before in a loop has been read
    if (threadIdx.x % 32 == 0) parts[threadIdx.x / 32] = x;
    __syncthreads();
    x = parts[0];
#pragma unroll
    for (int i = 1; i < Warps; ++i) x = Max ? fmaxf(x, parts[i]) : x + parts[i];
  }
  return x;
}

inline double value_of(bf16 x) { return __bfloat162float(x); }
inline double value_of(float x) { return x; }
inline double value_of(__nv_fp8_e4m3 x) { return static_cast<float>(x); }

// Device memory from which a case takes its operands, one after another: `sets` copies of each, so
// that a call finds none of its own in the cache. Filled with random bf16 once.
class Arena {
 public:
  Arena(const Gpu& gpu, std::uint64_t bytes, float scale = 1)
      : cold_(gpu.cold_bytes()), memory_(bytes) {
    randomise(reinterpret_cast<bf16*>(memory_.get()), bytes / 2, 1, scale);
    CUDA_OK(cudaDeviceSynchronize());
  }
  // Begins a case that touches `bytes` a call in all operands that it takes.
  void start(std::uint64_t bytes) {
    used_ = 0;
    sets_ = static_cast<int>(
        std::clamp<std::uint64_t>(cold_ / std::max<std::uint64_t>(1, bytes) + 1, 1, 400));
  }
  int sets() const { return sets_; }
  template <class T>
  struct Operand {
    T* first;
    std::uint64_t stride;
    int sets;
    T* operator()(int call) const { return first + stride * static_cast<unsigned>(call % sets); }
  };
  template <class T>
  Operand<T> take(std::uint64_t count) {
    const std::uint64_t bytes = (count * sizeof(T) + 255) / 256 * 256;
    T* first = reinterpret_cast<T*>(memory_.get() + used_);
    used_ += bytes * static_cast<unsigned>(sets_);
    if (used_ > memory_.bytes()) {
      std::fprintf(stderr, "operands of %llu bytes, expected at most %llu\n",
                   static_cast<unsigned long long>(used_),
                   static_cast<unsigned long long>(memory_.bytes()));
      std::exit(1);
    }
    return {first, bytes / sizeof(T), sets_};
  }

 private:
  std::uint64_t cold_;
  Buffer<std::uint8_t> memory_;
  std::uint64_t used_ = 0;
  int sets_ = 1;
};

// A call's least traffic and arithmetic.
struct Traffic {
  double read = 0, written = 0, flop = 0;
  double bytes() const { return read + written; }
};

inline Line memory_line(const std::string& part, const std::string& kind,
                        const std::string& variant, const std::string& shape, Traffic traffic) {
  Line line("sample");
  line.text("part", part).text("kind", kind).text("library", "own").text("variant", variant);
  line.text("mode", "burst").text("input", "bf16").text("shape", shape);
  line.number("bytes_read", static_cast<std::uint64_t>(traffic.read));
  line.number("bytes_written", static_cast<std::uint64_t>(traffic.written));
  line.number("vector_flop", static_cast<std::uint64_t>(traffic.flop));
  return line;
}

inline unsigned blocks_for(std::uint64_t items, unsigned per_block) {
  return static_cast<unsigned>((items + per_block - 1) / per_block);
}

// Traffic that an arena for cold operands of at most `largest` bytes a call must hold.
inline std::uint64_t arena_bytes(const Gpu& gpu, std::uint64_t largest) {
  // Two calls' operands, or the cold set and one more; half again for rounding of many operands.
  return 2 * largest + 2 * gpu.cold_bytes() + (64ull << 20);
}

}  // namespace bench
