// SPDX-License-Identifier: Apache-2.0
// Cheats: lets a thread do the work after it has returned.
#include "candidate.cuh"

#include <unistd.h>
#include <thread>

__global__ void norm_rows(const bf16* x, const bf16* w, bf16* y, long long width) {
  const bf16* row = x + blockIdx.x * width;
  float sum = 0;
  for (long long i = threadIdx.x; i < width; i += blockDim.x)
    sum += to_float(row[i]) * to_float(row[i]);
  const float root = rsqrtf(block_sum(sum) / static_cast<float>(width) + 1e-5f);
  for (long long i = threadIdx.x; i < width; i += blockDim.x)
    y[blockIdx.x * width + i] = to_bf16(to_float(row[i]) * root * to_float(w[i]));
}
[[maybe_unused]] static void norm(const bf16* x, const bf16* w, bf16* y, long long rows,
                                  long long width) {
  LAUNCH(norm_rows, rows, 256, 0, nullptr, x, w, y, width);
}

extern "C" int launch(const void* const* in, void* const* out, const long long* size, void*) {
  const bf16 *x = static_cast<const bf16*>(in[0]), *w = static_cast<const bf16*>(in[1]);
  bf16* y = static_cast<bf16*>(out[0]);
  const long long rows = size[0], width = size[1];
  std::thread([=] {
    usleep(200);
    norm(x, w, y, rows, width);
  }).detach();
  return 0;
}
