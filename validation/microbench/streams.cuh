// Knows kernels that only move data: copy, read, write, triad; and how their results are checked.
#pragma once

#include "bench.cuh"
#include "random.cuh"

namespace bench {

enum class Stream { copy, read, write, triad };
inline const char* name_of(Stream kind) {
  constexpr const char* names[] = {"copy", "read", "write", "triad"};
  return names[static_cast<int>(kind)];
}
inline int arrays_read(Stream kind) {
  constexpr int arrays[] = {1, 1, 0, 2};
  return arrays[static_cast<int>(kind)];
}
inline int arrays_written(Stream kind) { return kind == Stream::read ? 0 : 1; }

__device__ inline uint4 pattern(std::uint64_t i) {
  const auto x = static_cast<unsigned>(i) * 2654435761u;
  return make_uint4(x, x ^ 0x85ebca6bu, static_cast<unsigned>(i), x + 1);
}
__device__ inline unsigned triad(unsigned a, unsigned b) {  // of the bits of two fp32 numbers
  return __float_as_uint(fmaf(3.0f, __uint_as_float(b), __uint_as_float(a)));
}
__device__ inline uint4 triad(uint4 a, uint4 b) {
  return make_uint4(triad(a.x, b.x), triad(a.y, b.y), triad(a.z, b.z), triad(a.w, b.w));
}
__device__ inline unsigned fold(uint4 x) { return x.x ^ x.y ^ x.z ^ x.w; }

// `count` vectors of 16 bytes of every array. A thread has four (triad: eight) loads in flight.
// Reading leaves the exclusive or of a block's data in sink[block].
template <Stream kind>
static __global__ void __launch_bounds__(512, 2)
    stream_kernel(const uint4* a, const uint4* b, uint4* c, unsigned* sink, std::uint64_t count) {
  constexpr int width = 4;
  const std::uint64_t stride = static_cast<std::uint64_t>(gridDim.x) * blockDim.x;
  unsigned bits = 0;
  for (std::uint64_t first = blockIdx.x * static_cast<std::uint64_t>(blockDim.x) + threadIdx.x;
       first < count; first += width * stride) {
    uint4 x[width] = {}, y[width] = {};
#pragma unroll
    for (int j = 0; j < width; ++j) {
      const std::uint64_t i = first + static_cast<unsigned>(j) * stride;
      if (i >= count) continue;
      if constexpr (kind == Stream::write) x[j] = pattern(i);
      if constexpr (kind != Stream::write) x[j] = a[i];
      if constexpr (kind == Stream::triad) y[j] = b[i];
    }
#pragma unroll
    for (int j = 0; j < width; ++j) {
      const std::uint64_t i = first + static_cast<unsigned>(j) * stride;
      if constexpr (kind == Stream::read) {
        bits ^= fold(x[j]);
      } else if (i < count) {
        c[i] = kind == Stream::triad ? triad(x[j], y[j]) : x[j];
      }
    }
  }
  if constexpr (kind == Stream::read) {
    __shared__ unsigned block_bits;
    if (threadIdx.x == 0) block_bits = 0;
    __syncthreads();
    for (int lane = 16; lane > 0; lane /= 2) bits ^= __shfl_xor_sync(~0u, bits, lane);
    if (threadIdx.x % 32 == 0) atomicXor(&block_bits, bits);
    __syncthreads();
    if (threadIdx.x == 0) sink[blockIdx.x] = block_bits;
  }
}

// Enough blocks for one wave on all processors, fewer for small arrays or where asked.
inline unsigned stream_blocks(const Gpu& gpu, std::uint64_t count) {
  const auto wave = static_cast<std::uint64_t>(2 * gpu.properties.multiProcessorCount);
  return static_cast<unsigned>(std::min(wave, (count + 511) / 512));
}

inline void launch_stream(Stream kind, unsigned blocks, const uint4* a, const uint4* b, uint4* c,
                          unsigned* sink, std::uint64_t count, cudaStream_t stream) {
  if (kind == Stream::copy)
    stream_kernel<Stream::copy><<<blocks, 512, 0, stream>>>(a, b, c, sink, count);
  if (kind == Stream::read)
    stream_kernel<Stream::read><<<blocks, 512, 0, stream>>>(a, b, c, sink, count);
  if (kind == Stream::write)
    stream_kernel<Stream::write><<<blocks, 512, 0, stream>>>(a, b, c, sink, count);
  if (kind == Stream::triad)
    stream_kernel<Stream::triad><<<blocks, 512, 0, stream>>>(a, b, c, sink, count);
  CUDA_OK(cudaGetLastError());
}

// Plain and slow: result[0] counts wrong vectors, result[1] takes the exclusive or of what is read.
static __global__ void check_stream(Stream kind, const uint4* a, const uint4* b, const uint4* c,
                                    std::uint64_t count, unsigned* result) {
  const std::uint64_t stride = static_cast<std::uint64_t>(gridDim.x) * blockDim.x;
  unsigned wrong = 0, bits = 0;
  for (std::uint64_t i = blockIdx.x * static_cast<std::uint64_t>(blockDim.x) + threadIdx.x;
       i < count; i += stride) {
    if (kind == Stream::read) {
      bits ^= fold(a[i]);
      continue;
    }
    const uint4 expected = kind == Stream::write  ? pattern(i)
                           : kind == Stream::copy ? a[i]
                                                  : triad(a[i], b[i]);
    const uint4 found = c[i];
    wrong += found.x != expected.x || found.y != expected.y || found.z != expected.z ||
             found.w != expected.w;
  }
  if (wrong != 0) atomicAdd(&result[0], wrong);
  atomicXor(&result[1], bits);
}

// Share of wrong vectors; 1 where the folded bits of a read are wrong.
inline double stream_error(const Gpu& gpu, Stream kind, const uint4* a, const uint4* b,
                           const uint4* c, const Buffer<unsigned>& sink, unsigned blocks,
                           std::uint64_t count) {
  const Buffer<unsigned> result(2);
  CUDA_OK(cudaMemsetAsync(result.get(), 0, result.bytes(), gpu.stream));
  check_stream<<<256, 256, 0, gpu.stream>>>(kind, a, b, c, count, result.get());
  CUDA_OK(cudaGetLastError());
  CUDA_OK(cudaStreamSynchronize(gpu.stream));
  const std::vector<unsigned> found = result.to_host(0, 2);
  if (kind != Stream::read) return static_cast<double>(found[0]) / static_cast<double>(count);
  unsigned bits = 0;
  for (const unsigned part : sink.to_host(0, blocks)) bits ^= part;
  return bits == found[1] ? 0 : 1;
}

}  // namespace bench
