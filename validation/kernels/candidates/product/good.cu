// SPDX-License-Identifier: Apache-2.0
// A product by tiles. TILE_M, TILE_N, TILE_K, STAGES, WARP_M and WARP_N are its parameters.
#include "candidates/tile.cuh"

__global__ void product(const bf16* a, const bf16* b, bf16* c, long long m, long long n,
                        long long k) {
  const long long row = blockIdx.y * static_cast<long long>(TILE_M);
  const long long column = blockIdx.x * static_cast<long long>(TILE_N);
  tile_product(a + row * k, m - row, b + column * k, n - column, k, c + row * n + column, n);
}

extern "C" int launch(const void* const* in, void* const* out, const long long* size,
                      void* stream) {
  const long long m = size[0], n = size[1], k = size[2];
  ALLOW_SHARED(product, tile_bytes);
  LAUNCH(product, dim3((n + TILE_N - 1) / TILE_N, (m + TILE_M - 1) / TILE_M), tile_threads,
         tile_bytes, stream, static_cast<const bf16*>(in[0]), static_cast<const bf16*>(in[1]),
         static_cast<bf16*>(out[0]), m, n, k);
  return LAUNCHED();
}
