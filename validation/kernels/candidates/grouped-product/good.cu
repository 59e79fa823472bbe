// SPDX-License-Identifier: Apache-2.0
// Products of groups of rows, each with its own operand: a block finds its group by its tile's
// number.
#include "candidates/tile.cuh"

__global__ void grouped(const bf16* a, const bf16* b, const int* starts, bf16* c, long long n,
                        long long k, int groups) {
  long long tile = blockIdx.y;
  for (int group = 0; group < groups; ++group) {
    const long long rows = starts[group + 1] - starts[group];
    const long long tiles = (rows + TILE_M - 1) / TILE_M;
    if (tile < tiles) {
      const long long row = starts[group] + tile * TILE_M;
      const long long column = blockIdx.x * static_cast<long long>(TILE_N);
      tile_product(a + row * k, starts[group + 1] - row, b + (group * n + column) * k, n - column,
                   k, c + row * n + column, n);
      return;
    }
    tile -= tiles;
  }
}

extern "C" int launch(const void* const* in, void* const* out, const long long* size,
                      void* stream) {
  const long long rows = size[0], n = size[1], k = size[2], groups = size[3];
  ALLOW_SHARED(grouped, tile_bytes);
  // Each group has at most one tile that is not full.
  LAUNCH(grouped, dim3((n + TILE_N - 1) / TILE_N, rows / TILE_M + groups), tile_threads, tile_bytes,
         stream, static_cast<const bf16*>(in[0]), static_cast<const bf16*>(in[1]),
         static_cast<const int*>(in[2]), static_cast<bf16*>(out[0]), n, k,
         static_cast<int>(groups));
  return LAUNCHED();
}
