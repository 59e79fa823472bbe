// SPDX-License-Identifier: Apache-2.0
// Wrong: takes the mean away first: another norm.
#include "candidate.cuh"

__global__ void norm(const bf16* x, const bf16* w, bf16* y, long long width) {
  const bf16* row = x + blockIdx.x * width;
  float sum = 0, mean = 0;
  for (long long i = threadIdx.x; i < width; i += blockDim.x) mean += to_float(row[i]);
  mean = block_sum(mean) / static_cast<float>(width);
  for (long long i = threadIdx.x; i < width; i += blockDim.x)
    sum += (to_float(row[i]) - mean) * (to_float(row[i]) - mean);
  sum = block_sum(sum);
  const float root = rsqrtf(sum / static_cast<float>(width) + 1e-5f);
  for (long long i = threadIdx.x; i < width; i += blockDim.x)
    y[blockIdx.x * width + i] = to_bf16((to_float(row[i]) - mean) * root * to_float(w[i]));
}

extern "C" int launch(const void* const* in, void* const* out, const long long* size,
                      void* stream) {
  LAUNCH(norm, size[0], 256, 0, stream, static_cast<const bf16*>(in[0]),
         static_cast<const bf16*>(in[1]), static_cast<bf16*>(out[0]), size[1]);
  return LAUNCHED();
}
