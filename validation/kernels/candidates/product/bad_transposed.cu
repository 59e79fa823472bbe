// SPDX-License-Identifier: Apache-2.0
// Wrong: takes the second operand as k rows of n, which it is not.
#include "candidate.cuh"

__global__ void product(const bf16* a, const bf16* b, bf16* c, long long m, long long n,
                        long long k) {
  const long long step = static_cast<long long>(gridDim.x) * blockDim.x;
  for (long long i = blockIdx.x * static_cast<long long>(blockDim.x) + threadIdx.x; i < m * n;
       i += step) {
    const long long row = i / n, column = i % n;
    float sum = 0;
    for (long long at = 0; at < k; ++at)
      sum += to_float(a[row * k + at]) * to_float(b[at * n + column]);
    c[i] = to_bf16(sum);
  }
}

extern "C" int launch(const void* const* in, void* const* out, const long long* size,
                      void* stream) {
  const long long m = size[0], n = size[1], k = size[2];
  LAUNCH(product, (m * n + 255) / 256, 256, 0, stream, static_cast<const bf16*>(in[0]),
         static_cast<const bf16*>(in[1]), static_cast<bf16*>(out[0]), m, n, k);
  return LAUNCHED();
}
