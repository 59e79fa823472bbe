// SPDX-License-Identifier: Apache-2.0
// Wrong: the smallest of the largest first.
#include "candidate.cuh"

// Each element counts those that come before it: its rank is its place.
__global__ void top(const float* x, float* value, int* place, int width, int k) {
  const float* row = x + static_cast<long long>(blockIdx.x) * width;
  for (int i = threadIdx.x; i < width; i += blockDim.x) {
    int rank = 0;
    for (int j = 0; j < width; ++j) rank += row[j] > row[i] || (row[j] == row[i] && j < i);
    if (rank >= k) continue;
    value[static_cast<long long>(blockIdx.x) * k + (k - 1 - rank)] = row[i];
    place[static_cast<long long>(blockIdx.x) * k + (k - 1 - rank)] = i;
  }
}

extern "C" int launch(const void* const* in, void* const* out, const long long* size,
                      void* stream) {
  LAUNCH(top, size[0], 256, 0, stream, static_cast<const float*>(in[0]),
         static_cast<float*>(out[0]), static_cast<int*>(out[1]), static_cast<int>(size[1]),
         static_cast<int>(size[2]));
  return LAUNCHED();
}
