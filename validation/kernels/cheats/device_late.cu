// SPDX-License-Identifier: Apache-2.0
// Cheats: a thread launches the kernel after the answer, on a stream of its own.
#include "candidate.cuh"

#include <unistd.h>

#include <thread>

__global__ void norm(const bf16* x, const bf16* w, bf16* y, long long width) {
  const bf16* row = x + blockIdx.x * width;
  float sum = 0;
  for (long long i = threadIdx.x; i < width; i += blockDim.x)
    sum += to_float(row[i]) * to_float(row[i]);
  const float root = rsqrtf(block_sum(sum) / static_cast<float>(width) + 1e-5f);
  for (long long i = threadIdx.x; i < width; i += blockDim.x)
    y[blockIdx.x * width + i] = to_bf16(to_float(row[i]) * root * to_float(w[i]));
}

extern "C" int launch(const void* const* in, void* const* out, const long long* size, void*) {
  const auto *x = static_cast<const bf16*>(in[0]), *w = static_cast<const bf16*>(in[1]);
  auto* y = static_cast<bf16*>(out[0]);
  const long long rows = size[0], width = size[1];
  std::thread([=] {
    usleep(300);
    LAUNCH(norm, rows, 256, 0, nullptr, x, w, y, width);
  }).detach();
  return 0;
}
