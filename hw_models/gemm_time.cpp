// Knows how long matrix products take: tiles, waves, split-k, weight streaming, operand layouts.
#include <algorithm>

#include "hw_models/kernel_parts.h"

namespace orrery {

namespace {

// Shares of the largest tile that libraries ship kernels for.
struct TileShape {
  double m, n;
};
constexpr TileShape tile_shapes[] = {{1, 1},     {2, 0.5},    {1.5, 0.5},  {1, 0.5},    {0.5, 1},
                                     {0.5, 0.5}, {0.5, 0.25}, {0.25, 0.5}, {0.25, 0.25}};

bool on_grid(double extent, double grid) { return ceiling(extent / grid) * grid == extent; }

// Off the 16-byte grid the bulk copies cannot be used and a slower kernel runs; off the 4-byte grid
// it is slower by as much again (H200: 800 TFLOP/s, 280 with n of 4,090, 109 with n of 50,257).
double misalignment(const Work& work, const Curve& curve) {
  const double element = bytes_per_element(work.input);
  const double n = static_cast<double>(work.n) * element, k = static_cast<double>(work.k) * element;
  if (on_grid(n, 16) && on_grid(k, 16)) return 1;
  const bool words = on_grid(n, 4) && on_grid(k, 4);
  return words ? curve.misaligned_factor : curve.misaligned_factor * curve.misaligned_factor;
}

double gemm_bytes(const Work& work) {
  const double m = static_cast<double>(work.m), n = static_cast<double>(work.n);
  const double k = static_cast<double>(work.k);
  return static_cast<double>(work.groups) * (m + n) * k * bytes_per_element(work.input);
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

// Operations, losses against the largest tile included, on the processor that has most to do, for
// the best tile shape.
double tile_work(const Product& p, const Curve& curve, double processors) {
  double best = 0;
  const double largest = 1 + curve.tile_loss * (1 / curve.tile_m + 1 / curve.tile_n);
  for (const TileShape& shape : tile_shapes) {
    const double tile_m = curve.tile_m * shape.m, tile_n = curve.tile_n * shape.n;
    const double rows = p.m / tile_m;
    const double row_tiles = p.ragged ? std::max(1.0, rows + 0.5) : ceiling(rows);
    const double tiles = row_tiles * ceiling(p.n / tile_n) * p.groups;
    double steps = waves(tiles, processors, curve.wave_exponent);
    double depth = p.k;
    if (tiles < processors && p.k > curve.split_k)
      depth = std::max(curve.split_k, p.k * tiles / processors);
    const double loss = 1 + curve.tile_loss * (1 / tile_m + 1 / tile_n);
    const double work = steps * tile_m * tile_n * (depth + curve.k_half) * loss;
    if (best == 0 || work < best) best = work;
  }
  return 2 * best / largest;
}

UnitTimes product_times(const Work& work, const Curve& curve, const ResolvedDevice& device,
                        bool ragged) {
  UnitTimes t;
  const Product p = {.m = static_cast<double>(work.m),
                     .n = static_cast<double>(work.n),
                     .k = static_cast<double>(work.k),
                     .groups = static_cast<double>(work.groups),
                     .ragged = ragged};
  const double peak = tensor_rate(device, work.input);
  const double rate = peak * curve.tensor_efficiency;
  const double operations = 2 * p.m * p.n * p.k * p.groups;
  if (device.tile_model && device.sm_count > 0)
    t.tensor = tile_work(p, curve, device.sm_count) * device.sm_count / rate;
  else
    t.tensor = operations * (1 + curve.k_half / p.k) / rate;
  t.tensor *= curve.role_factor[static_cast<std::size_t>(work.role)];
  t.tensor *= misalignment(work, curve);
  const double result = result_bytes(work);
  t.memory_work = gemm_bytes(work) + result;
  t.memory = stream_seconds(t.memory_work, curve, device);
  const double share = work.accumulate_fp32 ? curve.accumulate_exposed : curve.epilogue_exposed;
  t.exposed = share * result / (device.memory_bandwidth.si() * curve.memory_efficiency);
  t.tensor_work = operations;
  return t;
}

}  // namespace

UnitTimes gemm_times(const Work& work, const Curve& curve, const ResolvedDevice& device) {
  return product_times(work, curve, device, false);
}

UnitTimes grouped_gemm_times(const Work& work, const Curve& curve, const ResolvedDevice& device) {
  return product_times(work, curve, device, true);
}

}  // namespace orrery
