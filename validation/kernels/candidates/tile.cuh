// SPDX-License-Identifier: Apache-2.0
// Knows one tile of a product: C[m, n] = A[m, k] B[n, k], operands in 16 bits, sums in fp32. On a
// GPU its warps use the tensor units, and copies run ahead by STAGES; a host compiler gets plain
// loops.
#pragma once

#include "candidate.cuh"

#ifndef TILE_M
#define TILE_M 128
#endif
#ifndef TILE_N
#define TILE_N 128
#endif
#ifndef TILE_K
#define TILE_K 32
#endif
#ifndef STAGES
#define STAGES 3
#endif
#ifndef WARP_M
#define WARP_M 64
#endif
#ifndef WARP_N
#define WARP_N 32
#endif

constexpr int tile_pitch = TILE_K + 8;  // rows lie apart, so that banks do not collide
constexpr int tile_warps = (TILE_M / WARP_M) * (TILE_N / WARP_N);
constexpr int tile_threads = 32 * tile_warps;
constexpr int tile_stage = (TILE_M + TILE_N) * tile_pitch;  // elements
constexpr int tile_bytes_operands = STAGES * tile_stage * 2;
constexpr int tile_bytes_result = tile_warps * 16 * 20 * 4;
constexpr int tile_bytes =
    tile_bytes_operands > tile_bytes_result ? tile_bytes_operands : tile_bytes_result;

#ifdef __CUDACC__

#include <cuda_pipeline.h>
#include <mma.h>

// Rows of an operand into shared memory; what lies outside becomes zero.
template <int rows>
__device__ inline void tile_load(bf16* to, const bf16* from, long long k, long long at,
                                 long long valid_rows) {
  constexpr int packs = TILE_K / 8;
  const bool aligned = k % 8 == 0 && reinterpret_cast<unsigned long long>(from) % 16 == 0;
  for (int i = threadIdx.x; i < rows * packs; i += tile_threads) {
    const int row = i / packs;
    const long long column = at + i % packs * 8;
    bf16* place = to + row * tile_pitch + i % packs * 8;
    if (aligned && row < valid_rows && column < k) {
      __pipeline_memcpy_async(place, from + row * k + column, 16);
    } else {
      for (int j = 0; j < 8; ++j)
        place[j] = row < valid_rows && column + j < k ? from[row * k + column + j] : to_bf16(0);
    }
  }
}

__device__ inline void tile_product(const bf16* a, long long rows, const bf16* b, long long columns,
                                    long long k, bf16* c, long long n) {
  using namespace nvcuda;
  SHARED(bf16, shared);
  wmma::fragment<wmma::accumulator, 16, 16, 16, float> sum[WARP_M / 16][WARP_N / 16];
  for (auto& line : sum)
    for (auto& part : line) wmma::fill_fragment(part, 0.0f);
  const int warp = threadIdx.x / 32;
  const int warp_row = warp / (TILE_N / WARP_N) * WARP_M,
            warp_column = warp % (TILE_N / WARP_N) * WARP_N;
  const long long steps = (k + TILE_K - 1) / TILE_K;
  const auto fetch = [&](long long step) {
    if (step < steps) {
      bf16* to = shared + step % STAGES * tile_stage;
      tile_load<TILE_M>(to, a, k, step * TILE_K, rows);
      tile_load<TILE_N>(to + TILE_M * tile_pitch, b, k, step * TILE_K, columns);
    }
    __pipeline_commit();
  };
  for (int step = 0; step < STAGES - 1; ++step) fetch(step);
  for (long long step = 0; step < steps; ++step) {
    __pipeline_wait_prior(STAGES - 2);
    __syncthreads();
    fetch(step + STAGES - 1);
    const bf16* left = shared + step % STAGES * tile_stage;
    const bf16* right = left + TILE_M * tile_pitch;
    for (int at = 0; at < TILE_K; at += 16) {
      wmma::fragment<wmma::matrix_a, 16, 16, 16, bf16, wmma::row_major> x[WARP_M / 16];
      wmma::fragment<wmma::matrix_b, 16, 16, 16, bf16, wmma::col_major> y[WARP_N / 16];
      for (int i = 0; i < WARP_M / 16; ++i)
        wmma::load_matrix_sync(x[i], left + (warp_row + 16 * i) * tile_pitch + at, tile_pitch);
      for (int j = 0; j < WARP_N / 16; ++j)
        wmma::load_matrix_sync(y[j], right + (warp_column + 16 * j) * tile_pitch + at, tile_pitch);
      for (int i = 0; i < WARP_M / 16; ++i)
        for (int j = 0; j < WARP_N / 16; ++j) wmma::mma_sync(sum[i][j], x[i], y[j], sum[i][j]);
    }
  }
  __pipeline_wait_prior(0);
  __syncthreads();
  float* result = reinterpret_cast<float*>(shared) + warp * 16 * 20;
  for (int i = 0; i < WARP_M / 16; ++i)
    for (int j = 0; j < WARP_N / 16; ++j) {
      wmma::store_matrix_sync(result, sum[i][j], 20, wmma::mem_row_major);
      __syncwarp();
      for (int e = threadIdx.x % 32; e < 256; e += 32) {
        const long long row = warp_row + 16 * i + e / 16, column = warp_column + 16 * j + e % 16;
        if (row < rows && column < columns)
          c[row * n + column] = to_bf16(result[e / 16 * 20 + e % 16]);
      }
      __syncwarp();
    }
}

#else

inline void tile_product(const bf16* a, long long rows, const bf16* b, long long columns,
                         long long k, bf16* c, long long n) {
  for (long long i = 0; i < least_of(rows, TILE_M); ++i)
    for (long long j = 0; j < least_of(columns, TILE_N); ++j) {
      float sum = 0;
      for (long long at = 0; at < k; ++at) sum += to_float(a[i * k + at]) * to_float(b[j * k + at]);
      c[i * n + j] = to_bf16(sum);
    }
}

#endif
