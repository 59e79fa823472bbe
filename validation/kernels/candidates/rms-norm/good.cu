// SPDX-License-Identifier: Apache-2.0
// An RMS norm. THREADS (of a row), PACKS (16 bytes each, that a thread keeps in registers) and ROWS
// (a block works on) are its parameters.
#include "candidate.cuh"

#ifndef THREADS
#define THREADS 256
#endif
#ifndef PACKS
#define PACKS 4
#endif
#ifndef ROWS
#define ROWS 1
#endif
#ifndef TAILS
#define TAILS 1  // 0: widths of whole packs alone
#endif

// Rows of whole packs, of which the first PACKS a thread are read once.
__global__ void __launch_bounds__(THREADS)
    norm_packs(const Pack* x, const Pack* w, Pack* y, long long rows, int packs) {
  for (int r = 0; r < ROWS; ++r) {
    const long long row = blockIdx.x * static_cast<long long>(ROWS) + r;
    if (row >= rows) return;
    const Pack* from = x + row * packs;
    Pack kept[PACKS];
    float sum = 0;
#pragma unroll
    for (int p = 0; p < PACKS; ++p) {
      const int i = threadIdx.x + p * blockDim.x;
      if (i >= packs) break;
      kept[p] = from[i];
      for (int e = 0; e < 8; ++e) sum += to_float(kept[p].of[e]) * to_float(kept[p].of[e]);
    }
    for (int i = threadIdx.x + PACKS * blockDim.x; i < packs; i += blockDim.x)
      for (int e = 0; e < 8; ++e) sum += to_float(from[i].of[e]) * to_float(from[i].of[e]);
    const float root = rsqrtf(block_sum(sum) / (8 * static_cast<float>(packs)) + 1e-5f);
#pragma unroll
    for (int p = 0; p < PACKS; ++p) {
      const int i = threadIdx.x + p * blockDim.x;
      if (i >= packs) break;
      const Pack scale = w[i];
      Pack to;
      for (int e = 0; e < 8; ++e)
        to.of[e] = to_bf16(to_float(kept[p].of[e]) * root * to_float(scale.of[e]));
      y[row * packs + i] = to;
    }
    for (int i = threadIdx.x + PACKS * blockDim.x; i < packs; i += blockDim.x) {
      Pack to = from[i];
      const Pack scale = w[i];
      for (int e = 0; e < 8; ++e)
        to.of[e] = to_bf16(to_float(to.of[e]) * root * to_float(scale.of[e]));
      y[row * packs + i] = to;
    }
  }
}

__global__ void norm_any(const bf16* x, const bf16* w, bf16* y, long long width) {
  const bf16* row = x + blockIdx.x * width;
  float sum = 0;
  for (long long i = threadIdx.x; i < width; i += blockDim.x)
    sum += to_float(row[i]) * to_float(row[i]);
  const float root = rsqrtf(block_sum(sum) / static_cast<float>(width) + 1e-5f);
  for (long long i = threadIdx.x; i < width; i += blockDim.x)
    y[blockIdx.x * width + i] = to_bf16(to_float(row[i]) * root * to_float(w[i]));
}

extern "C" int launch(const void* const* in, void* const* out, const long long* size,
                      void* stream) {
  if (size[1] % 8 == 0 || !TAILS)
    LAUNCH(norm_packs, (size[0] + ROWS - 1) / ROWS, THREADS, 0, stream,
           static_cast<const Pack*>(in[0]), static_cast<const Pack*>(in[1]),
           static_cast<Pack*>(out[0]), size[0], static_cast<int>(size[1] / 8));
  else
    LAUNCH(norm_any, size[0], THREADS, 0, stream, static_cast<const bf16*>(in[0]),
           static_cast<const bf16*>(in[1]), static_cast<bf16*>(out[0]), size[1]);
  return LAUNCHED();
}
