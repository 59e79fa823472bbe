// SPDX-License-Identifier: Apache-2.0
// Wrong: the sum is one percent too large.
#include "candidate.cuh"

__global__ void softmax(const bf16* x, bf16* y, long long width) {
  const bf16* row = x + blockIdx.x * width;
  float most = -INFINITY, sum = 0;
  for (long long i = threadIdx.x; i < width; i += blockDim.x) most = fmaxf(most, to_float(row[i]));
  most = block_max(most);
  for (long long i = threadIdx.x; i < width; i += blockDim.x) sum += expf(to_float(row[i]) - most);
  sum = 1.01f * block_sum(sum);
  for (long long i = threadIdx.x; i < width; i += blockDim.x)
    y[blockIdx.x * width + i] = to_bf16(expf(to_float(row[i]) - most) / sum);
}

extern "C" int launch(const void* const* in, void* const* out, const long long* size,
                      void* stream) {
  LAUNCH(softmax, size[0], 256, 0, stream, static_cast<const bf16*>(in[0]),
         static_cast<bf16*>(out[0]), size[1]);
  return LAUNCHED();
}
