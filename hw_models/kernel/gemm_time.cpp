// SPDX-License-Identifier: Apache-2.0
// Knows how long matrix products take: tiles, waves, split-k, weight streaming, operand layouts.
#include <algorithm>
#include <iterator>

#include "hw_models/kernel/kernel_parts.h"

namespace orrery {

namespace {

// Shares of the largest tile that libraries ship kernels for: of 128 x 256, shapes in steps of 64
// that are no larger and no longer than 256. None has 192 rows: H200 takes for those what it takes
// for 256, in bf16, fp16 and fp8.
constexpr double shares_m[] = {2, 1, 0.5, 0.25}, shares_n[] = {1, 0.75, 0.5, 0.25};
// Kernels of experts, whose rows are few, also come with tiles of 32 rows.
constexpr bool in_library(double m, double n, bool ragged) {
  return m * n <= 1 && (m >= 0.5 || (ragged && n <= 0.5));
}

bool on_grid(double extent, double grid) { return ceiling(extent / grid) * grid == extent; }

// Bytes along which each operand and the result lie, one row after the other: x w^T forward, dy w
// for the input's gradient, dy^T x for the weights'. The tokens are m, m and k, and no row of
// theirs. Products of 8 bits and fewer only come with k for both operands.
struct Rows {
  double first, second, result;
};

Rows rows_of(const Work& work) {
  const double element = bytes_per_element(work.input);
  const double m = static_cast<double>(work.m) * element;
  const double n = static_cast<double>(work.n) * element;
  const double k = static_cast<double>(work.k) * element;
  if (element <= 1) return {ceiling(k / 16) * 16, ceiling(k / 16) * 16, ceiling(n / 16) * 16};
  if (work.role == GemmRole::forward) return {k, k, n};
  if (work.role == GemmRole::input_gradient) return {k, n, n};
  return {m, n, n};
}

// Rows of an operand that start in the middle of a sector of 32 bytes take one more for every 128
// bytes, rows that start in the middle of 64 half of that; whole copies of the other operand hide
// it (H200, bf16: 9% and 4%, nothing where one operand is aligned).
double split_sectors(const Rows& rows, const Curve& curve) {
  const auto split = [](double bytes) {
    return on_grid(bytes, 64) ? 0.0 : on_grid(bytes, 32) ? 0.5 : 1.0;
  };
  return 1 + std::min(split(rows.first), split(rows.second)) * (curve.sector_factor - 1);
}

// Off the 16-byte grid the bulk copies cannot be used and a slower kernel runs, which copies words
// of 4 bytes. Single elements of 2 cost it more, and most where the result alone is off, for which
// the library has nothing better (H200, bf16, 8,192 cubed: 2.7 to 3.0, 5.1 to 6.2 and 8.3 times as
// long, whichever extent lies along the row; validation/measurements/off_grid).
constexpr double elements_over_words = 2.3, result_over_words = 3.5;  // of what words cost more

double slow_copies(const Rows& rows, const Curve& curve) {
  const auto on = [&](double grid) {
    return on_grid(rows.first, grid) && on_grid(rows.second, grid) && on_grid(rows.result, grid);
  };
  if (on(16)) return 1;
  const double words = curve.misaligned_factor - 1;
  if (on(4)) return 1 + words;
  const bool result_alone = on_grid(rows.first, 16) && on_grid(rows.second, 16);
  return 1 + words * (result_alone ? result_over_words : elements_over_words);
}

double gemm_bytes(const Work& work) {
  const double m = static_cast<double>(work.m), n = static_cast<double>(work.n);
  const double k = static_cast<double>(work.k);
  const double groups = static_cast<double>(work.groups);
  if (work.stored_bits <= 0) return groups * (m + n) * k * bytes_per_element(work.input);
  return groups * k * (m * bytes_per_element(work.input) + n * stored_bytes(work));
}

// An fp32 buffer that the result is added to is read and written; else the result is written.
double result_bytes(const Work& work) {
  const double element = work.accumulate_fp32 ? 8 : bytes_per_element(work.output);
  return static_cast<double>(work.groups * work.m) * static_cast<double>(work.n) * element;
}

struct Product {
  double m, n, k, groups;
  bool ragged;  // rows differ from group to group: tiles do not come out even
};

// Products of 8 bits and fewer take no extent off the grid but the rows of the first operand:
// programs pad the others with zeros (cuBLASLt refuses them, H200).
Product product_of(const Work& work, bool ragged) {
  const double element = bytes_per_element(work.input);
  const double step = element <= 1 ? 16 / element : 1;
  const auto padded = [&](std::int64_t extent) {
    return ceiling(static_cast<double>(extent) / step) * step;
  };
  return {.m = static_cast<double>(work.m),
          .n = padded(work.n),
          .k = padded(work.k),
          .groups = static_cast<double>(work.groups),
          .ragged = ragged};
}

// What a product is timed with: the processors, a processor's time of one multiplication and
// addition in the largest tile, and HBM's of a byte.
struct Rates {
  double processors, per_operation, per_byte;
};

// Tiles along one side: at least one, and a partly filled one costs at most a whole.
double along(double extent, double tile, double partial) {
  const double tiles = extent / tile;
  return std::max(1.0, tiles + partial * (ceiling(tiles) - tiles));
}

// Tiles of m x n that a product is cut into; what a partly filled last wave of them costs.
struct Tiles {
  double m, n, count;
  double last_wave;  // 1: a whole one; 0: its share
};

// Seconds of the processor that has most to do. Where tiles are fewer than processors, k is split
// over the idle ones if what joins the parts costs less than they save.
double tiled_seconds(const Product& p, const Curve& curve, const Rates& rates, const Tiles& t) {
  const double per_depth = (t.m * t.n + curve.tile_loss * (t.m + t.n)) * rates.per_operation;
  const double whole =
      waves(t.count, rates.processors, t.last_wave) * per_depth * (p.k + curve.k_half);
  if (t.count >= rates.processors || p.k <= curve.split_k) return whole;
  const double parts = std::min(rates.processors / t.count, p.k / curve.split_k);
  // Partial results are written in fp32 and read again.
  const double joining =
      curve.split_seconds + curve.split_exposed * parts * p.m * p.n * p.groups * 8 * rates.per_byte;
  return std::min(whole, per_depth * (p.k / parts + curve.k_half) + joining);
}

double best_tile_seconds(const Product& p, const Curve& curve, const Rates& rates) {
  double columns[std::size(shares_n)];
  for (std::size_t j = 0; j < std::size(shares_n); ++j)
    columns[j] = p.groups * along(p.n, curve.tile_n * shares_n[j], curve.partial_tile);
  double best = 0;
  for (const double share_m : shares_m) {
    const double tile_m = curve.tile_m * share_m;
    const double rows =
        p.ragged ? std::max(1.0, p.m / tile_m + 0.5) : along(p.m, tile_m, curve.partial_tile);
    for (std::size_t j = 0; j < std::size(shares_n); ++j) {
      if (!in_library(share_m, shares_n[j], p.ragged)) continue;
      const double t = tiled_seconds(p, curve, rates,
                                     {.m = tile_m,
                                      .n = curve.tile_n * shares_n[j],
                                      .count = rows * columns[j],
                                      .last_wave = curve.wave_exponent});
      if (best == 0 || t < best) best = t;
    }
  }
  return best;
}

// Libraries with a few kernels choose by m alone: clusters of tiles over the rows, smaller tiles
// while they hold all of m, and what a cluster's tiles lack is computed all the same.
double fixed_tile_seconds(const Product& p, const Curve& curve, const Rates& rates) {
  const double cluster = curve.row_cluster;
  double tile_m = curve.tile_m;
  while (tile_m > 16 && 0.5 * tile_m * cluster >= p.m) tile_m *= 0.5;
  const double rows = cluster * ceiling(p.m / (tile_m * cluster));
  const double columns = along(p.n, curve.tile_n, curve.partial_tile);
  return tiled_seconds(p, curve, rates,
                       {.m = tile_m,
                        .n = curve.tile_n,
                        .count = rows * columns * p.groups,
                        .last_wave = curve.wave_exponent});
}

// The slower kernels off the 16-byte grid have one tile, of half the largest, in whole waves.
double slow_tile_seconds(const Product& p, const Curve& curve, const Rates& rates) {
  const double tile_n = 0.5 * curve.tile_n;
  const double tiles = ceiling(p.m / curve.tile_m) * ceiling(p.n / tile_n) * p.groups;
  return tiled_seconds(p, curve, rates,
                       {.m = curve.tile_m, .n = tile_n, .count = tiles, .last_wave = 1});
}

UnitTimes product_times(const Work& work, const Curve& curve, const ResolvedDevice& device,
                        bool ragged) {
  UnitTimes t;
  const Product p = product_of(work, ragged);
  const Rows rows = rows_of(work);
  const double slow = slow_copies(rows, curve);
  const double rate = tensor_rate(device, work.input) * curve.tensor_efficiency;
  const double operations = 2 * p.m * p.n * p.k * p.groups;
  if (device.tile_model && device.sm_count > 0) {
    const double largest = 1 + curve.tile_loss * (1 / curve.tile_m + 1 / curve.tile_n);
    const Rates rates = {.processors = device.sm_count,
                         .per_operation = 2 * device.sm_count / (rate * largest),
                         .per_byte = 1 / (device.memory_bandwidth.si() * curve.memory_efficiency)};
    t.tensor = slow > 1                           ? slow_tile_seconds(p, curve, rates)
               : curve.row_cluster > 0 && !ragged ? fixed_tile_seconds(p, curve, rates)
                                                  : best_tile_seconds(p, curve, rates);
  } else {
    t.tensor = operations * (1 + curve.k_half / p.k) / rate;
  }
  t.tensor *= curve.role_factor[static_cast<std::size_t>(work.role)];
  if (work.block_scales) t.tensor *= curve.block_scale_factor;
  t.tensor *= slow > 1 ? slow : split_sectors(rows, curve);
  const double result = result_bytes(work);
  t.memory_work = gemm_bytes(work) + result;
  const double share = work.accumulate_fp32 ? curve.accumulate_exposed : curve.epilogue_exposed;
  // Experts' sums can be most of their traffic: what is exposed of them hides behind nothing, once.
  const double beside = ragged && work.accumulate_fp32
                            ? t.memory_work - std::min(1.0, share) * result
                            : t.memory_work;
  t.memory = stream_seconds(beside, curve, device);
  t.exposed = share * result / (device.memory_bandwidth.si() * curve.memory_efficiency);
  t.tensor_work = operations;
  return t;
}

}  // namespace

UnitTimes gemm_times(const Work& work, const Curve& curve, const ResolvedDevice& device) {
  return product_times(work, curve, device, false);
}

UnitTimes grouped_gemm_times(const Work& work, const Curve& curve, const ResolvedDevice& device) {
  UnitTimes t = product_times(work, curve, device, true);
  t.latency += static_cast<double>(std::max(work.pool, work.groups)) * curve.block_seconds;
  return t;
}

}  // namespace orrery
