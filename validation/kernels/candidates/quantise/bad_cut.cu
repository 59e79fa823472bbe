// SPDX-License-Identifier: Apache-2.0
// Wrong: cuts off in place of rounding to the nearest.
#include "candidate.cuh"

constexpr float largest = 448;
// Three bits of the fraction, whatever follows.
__device__ inline unsigned char stored(float x) {
  unsigned bits;
  memcpy(&bits, &x, 4);
  bits &= 0xfff00000u;
  memcpy(&x, &bits, 4);
  return to_fp8(x);
}
// A block of threads for each 128 elements of a row.
__global__ void quantise(const bf16* x, unsigned char* q, float* scale, long long width) {
  const long long block = blockIdx.x, row = blockIdx.y, blocks = gridDim.x;
  const long long from = row * width + block * 128;
  const long long to = row * width + least_of(block * 128 + 128, width);
  float most = 1e-30f;
  for (long long i = from + threadIdx.x; i < to; i += blockDim.x)
    most = fmaxf(most, fabsf(to_float(x[i])));
  most = block_max(most);
  const float unit = most / largest;
  if (threadIdx.x == 0) scale[row * blocks + block] = unit;
  const long long end = row * width + least_of(block * 128 + 128, width);
  for (long long i = row * width + block * 128 + threadIdx.x; i < end; i += blockDim.x)
    q[i] = stored(to_float(x[i]) / unit);
}

extern "C" int launch(const void* const* in, void* const* out, const long long* size,
                      void* stream) {
  LAUNCH(quantise, dim3((size[1] + 127) / 128, size[0]), 128, 0, stream,
         static_cast<const bf16*>(in[0]), static_cast<unsigned char*>(out[0]),
         static_cast<float*>(out[1]), size[1]);
  return LAUNCHED();
}
