// Knows how device buffers are filled with random numbers: zeros would run faster than real data.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_fp8.h>

#include <cstdint>

namespace bench {

__host__ __device__ inline std::uint64_t mix(std::uint64_t x) {  // SplitMix64's finaliser
  x += 0x9e3779b97f4a7c15ull;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ull;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebull;
  return x ^ (x >> 31);
}

// Close to a standard normal: four uniforms of 16 bits, centred and scaled to variance 1.
__host__ __device__ inline float normal(std::uint64_t seed, std::uint64_t i) {
  const std::uint64_t bits = mix(seed * 0x9e3779b97f4a7c15ull + i);
  float sum = 0;
  for (int part = 0; part < 4; ++part)
    sum += static_cast<float>((bits >> (16 * part)) & 0xffff) / 65536.0f;
  return (sum - 2.0f) * 1.7320508f;
}

template <class T>
__device__ inline T from_float(float x) {
  return T(x);
}
template <>
__device__ inline std::int8_t from_float(float x) {
  return static_cast<std::int8_t>(fminf(fmaxf(rintf(x * 32.0f), -127.0f), 127.0f));
}

template <class T>
__global__ void fill_normal(T* out, std::uint64_t count, std::uint64_t seed, float scale) {
  const std::uint64_t stride = static_cast<std::uint64_t>(gridDim.x) * blockDim.x;
  for (std::uint64_t i = blockIdx.x * static_cast<std::uint64_t>(blockDim.x) + threadIdx.x;
       i < count; i += stride)
    out[i] = from_float<T>(scale * normal(seed, i));
}

// Uniform whole numbers in [0, limit), for indices.
template <class T>
__global__ void fill_index(T* out, std::uint64_t count, std::uint64_t seed, std::uint64_t limit) {
  const std::uint64_t stride = static_cast<std::uint64_t>(gridDim.x) * blockDim.x;
  for (std::uint64_t i = blockIdx.x * static_cast<std::uint64_t>(blockDim.x) + threadIdx.x;
       i < count; i += stride)
    out[i] = static_cast<T>(mix(seed * 0x9e3779b97f4a7c15ull + i) % limit);
}

// Standard normal numbers times `scale`; int8 in 32nds.
template <class T>
void randomise(T* device_memory, std::uint64_t count, std::uint64_t seed, float scale = 1,
               cudaStream_t stream = nullptr) {
  fill_normal<<<1024, 256, 0, stream>>>(device_memory, count, seed, scale);
}
template <class T>
void random_indices(T* device_memory, std::uint64_t count, std::uint64_t seed, std::uint64_t limit,
                    cudaStream_t stream = nullptr) {
  fill_index<<<1024, 256, 0, stream>>>(device_memory, count, seed, limit);
}
// Random bits: every byte value is as likely as any other (packed 4-bit numbers).
inline void random_bytes(std::uint8_t* device_memory, std::uint64_t count, std::uint64_t seed) {
  random_indices(device_memory, count, seed, 256);
}

}  // namespace bench
