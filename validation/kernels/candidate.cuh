// SPDX-License-Identifier: Apache-2.0
// Knows what a candidate may lean on: number formats, sums over a block, and launches that a host
// compiler takes too. There a block has one thread and blocks run in order, so that one source, if
// it strides by blockDim.x, is checked without a GPU.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>

// A candidate defines this. `in` and `out` are tensors in device memory, row after row, in the
// order of the specification; `size` are its sizes. Work goes to `stream` (a cudaStream_t). 0:
// launched.
extern "C" int launch(const void* const* in, void* const* out, const long long* size, void* stream);

#ifdef __CUDACC__

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_fp8.h>

using bf16 = __nv_bfloat16;
__device__ inline float to_float(bf16 x) { return __bfloat162float(x); }
__device__ inline float to_float(float x) { return x; }
__device__ inline bf16 to_bf16(float x) { return __float2bfloat16(x); }
__device__ inline float rounded_to_half(float x) { return __half2float(__float2half(x)); }
__device__ inline unsigned char to_fp8(float x) {  // e4m3; beyond its range: the largest
  return __nv_cvt_float_to_fp8(x, __NV_SATFINITE, __NV_E4M3);
}

template <class Join>
__device__ inline float over_block(float value, float none, Join join) {
  __shared__ float parts[32];
  __syncthreads();
  for (int step = 16; step > 0; step /= 2)
    value = join(value, __shfl_xor_sync(0xffffffffu, value, step));
  if (threadIdx.x % 32 == 0) parts[threadIdx.x / 32] = value;
  __syncthreads();
  const int warps = (blockDim.x + 31) / 32;
  value = threadIdx.x % 32 < warps ? parts[threadIdx.x % 32] : none;
  for (int step = 16; step > 0; step /= 2)
    value = join(value, __shfl_xor_sync(0xffffffffu, value, step));
  return value;
}
// Of all threads of the block, whose number is a multiple of 32; every thread gets it.
__device__ inline float block_sum(float value) {
  return over_block(value, 0.0f, [](float a, float b) { return a + b; });
}
__device__ inline float block_max(float value) {
  return over_block(value, -INFINITY, [](float a, float b) { return fmaxf(a, b); });
}

#define LAUNCH(kernel, blocks, threads, bytes, stream, ...) \
  kernel<<<blocks, threads, bytes, static_cast<cudaStream_t>(stream)>>>(__VA_ARGS__)
#define SHARED(type, name)                                  \
  extern __shared__ __align__(16) unsigned char dynamic_[]; \
  type* name = reinterpret_cast<type*>(dynamic_)
// More than 48 KiB of shared memory must be asked for.
#define ALLOW_SHARED(kernel, bytes) \
  cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes)
#define LAUNCHED() (cudaGetLastError() == cudaSuccess ? 0 : 1)

#else

#include "numbers.cuh"

#define __global__
#define __device__
#define __host__
#define __shared__ static
#define __forceinline__ inline
#define __launch_bounds__(...)
struct Place {
  unsigned x = 0, y = 0, z = 0;
};
struct dim3 {
  unsigned x, y, z;
  dim3(long long a, long long b = 1, long long c = 1)
      : x(static_cast<unsigned>(a)), y(static_cast<unsigned>(b)), z(static_cast<unsigned>(c)) {}
};
static Place blockIdx, gridDim;
static const Place threadIdx, blockDim{1, 1, 1};
static inline void __syncthreads() {}

struct bf16 {
  std::uint16_t bits;
};
inline float to_float(bf16 x) { return bf16_value(x.bits); }
inline float to_float(float x) { return x; }
inline bf16 to_bf16(float x) { return {bf16_bits(x)}; }
inline float rounded_to_half(float x) { return half_rounded(x); }
inline unsigned char to_fp8(float x) { return fp8_bits(x); }
inline float block_sum(float value) { return value; }
inline float block_max(float value) { return value; }
inline float rsqrtf(float x) { return 1 / std::sqrt(x); }
inline float __expf(float x) { return std::exp(x); }
template <class Kernel>
void run_blocks(dim3 blocks, Kernel kernel) {
  gridDim = {blocks.x, blocks.y, blocks.z};
  for (blockIdx.z = 0; blockIdx.z < blocks.z; ++blockIdx.z)
    for (blockIdx.y = 0; blockIdx.y < blocks.y; ++blockIdx.y)
      for (blockIdx.x = 0; blockIdx.x < blocks.x; ++blockIdx.x) kernel();
}
#define LAUNCH(kernel, blocks, threads, bytes, stream, ...) \
  ((void)(threads), (void)(bytes), (void)(stream), run_blocks(blocks, [&] { kernel(__VA_ARGS__); }))
alignas(16) inline unsigned char dynamic_[232448];
#define SHARED(type, name) type* name = reinterpret_cast<type*>(dynamic_)
#define ALLOW_SHARED(kernel, bytes) ((void)(bytes))
#define LAUNCHED() 0

#endif

// Sixteen bytes, moved at once.
struct alignas(16) Pack {
  bf16 of[8];
};

__host__ __device__ inline long long least_of(long long a, long long b) { return b < a ? b : a; }
