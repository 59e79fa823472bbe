// SPDX-License-Identifier: Apache-2.0
// Wrong: does not skip groups without rows.
#include "candidate.cuh"

__global__ void grouped(const bf16* a, const bf16* b, const int* starts, bf16* c, long long rows,
                        long long n, long long k, long long groups) {
  const long long step = static_cast<long long>(gridDim.x) * blockDim.x;
  for (long long i = blockIdx.x * static_cast<long long>(blockDim.x) + threadIdx.x; i < rows * n;
       i += step) {
    const long long row = i / n, column = i % n;
    long long group = 0;
    while (group + 1 < groups && starts[group + 1] <= row && starts[group + 1] > starts[group])
      ++group;
    float sum = 0;
    for (long long at = 0; at < k; ++at)
      sum += to_float(a[row * k + at]) * to_float(b[(group * n + column) * k + at]);
    c[i] = to_bf16(sum);
  }
}

extern "C" int launch(const void* const* in, void* const* out, const long long* size,
                      void* stream) {
  LAUNCH(grouped, (size[0] * size[1] + 255) / 256, 256, 0, stream, static_cast<const bf16*>(in[0]),
         static_cast<const bf16*>(in[1]), static_cast<const int*>(in[2]),
         static_cast<bf16*>(out[0]), size[0], size[1], size[2], size[3]);
  return LAUNCHED();
}
