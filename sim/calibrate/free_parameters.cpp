// Knows which parameters of a curve a fit may move, between which bounds, from where.
#include "sim/calibrate/free_parameters.h"

namespace orrery {

namespace {

std::vector<Free> gemm_parameters(const OperatorTable& table) {
  std::vector<Free> free = {
      {&Curve::tensor_efficiency, 0.05, 1.1, 0.7}, {&Curve::k_half, 10, 3000, 200},
      {&Curve::wave_exponent, 0.0, 1.0, 0.7},      {&Curve::tile_loss, 1.0, 1000, 20},
      {&Curve::memory_efficiency, 0.1, 1.0, 0.8},  {&Curve::saturation_bytes, 1e4, 1e8, 2e6},
      {&Curve::epilogue_exposed, 0.0, 1.0, 0.3},   {&Curve::split_k, 128, 16384, 512},
      {&Curve::fixed_seconds, 3e-7, 4e-5, 1.5e-6}};
  if (table.host_bound) free.resize(2);  // the rest is set to what other frameworks measured
  if (table.kind == WorkKind::gemm && table.format != Format::bf16 && !table.refine) {
    free.push_back({&Curve::memory_efficiency, 0.05, 0.95, 0.4, true});
    if (!table.host_bound) free.push_back({&Curve::fixed_seconds, 3e-7, 2e-5, 2e-6, true});
  }
  return free;
}

std::vector<Free> attention_parameters() {
  return {{&Curve::tensor_efficiency, 0.2, 1.0, 0.75}, {&Curve::k_half, 10, 2000, 150},
          {&Curve::wave_exponent, 0.0, 1.0, 0.5},      {&Curve::special_efficiency, 0.1, 1.0, 0.6},
          {&Curve::memory_efficiency, 0.3, 0.95, 0.8}, {&Curve::saturation_bytes, 1e4, 3e7, 1e6},
          {&Curve::epilogue_exposed, 0.0, 3.0, 1.0},   {&Curve::head_dim_exponent, 0.0, 1.0, 0.2},
          {&Curve::fixed_seconds, 5e-7, 1.7e-5, 5e-6}};
}

std::vector<Free> decode_parameters() {
  return {{&Curve::tensor_efficiency, 0.02, 1.0, 0.3},
          {&Curve::k_half, 1, 2000, 100},
          {&Curve::memory_efficiency, 0.3, 1.0, 0.9},
          {&Curve::saturation_bytes, 1e4, 1e8, 2e6},
          {&Curve::fixed_seconds, 2e-6, 3e-5, 1e-5}};
}

// What training's kernels change of a curve whose start-up and streaming others measured.
std::vector<Free> refined_parameters(const OperatorTable& table) {
  std::vector<Free> free = {{&Curve::tensor_efficiency, 0.3, 1.1, 0.8}};
  // Plain bf16 products keep the tiles that thousands of shapes showed.
  if (table.kind == WorkKind::grouped_gemm || table.format != Format::bf16)
    free.push_back({&Curve::tile_loss, 1.0, 1000, 20});
  if (table.kind == WorkKind::grouped_gemm) {
    free.push_back({&Curve::k_half, 10, 1000, 200});
    return free;
  }
  free.push_back({nullptr, 0.8, 1.3, 1.0, false, 1});
  if (table.format != Format::bf16) {
    free.push_back({&Curve::k_half, 10, 1000, 100});
    return free;
  }
  free.push_back({nullptr, 0.8, 1.3, 1.0, false, 2});
  free.push_back({&Curve::accumulate_exposed, 0.0, 1.5, 0.5});
  free.push_back({&Curve::misaligned_factor, 1.0, 5.0, 2.8});
  return free;
}

}  // namespace

std::vector<Free> free_parameters(const OperatorTable& table) {
  if (table.refine) return refined_parameters(table);
  if (!is_product(table.kind) && !is_attention(table.kind))
    return {{&Curve::memory_efficiency, 0.02, 1.0, 0.7}};
  switch (table.kind) {
    case WorkKind::attention_forward:
    case WorkKind::attention_backward:
      return attention_parameters();
    case WorkKind::attention_decode:
      return decode_parameters();
    default:
      return gemm_parameters(table);
  }
}

void set_tiles(Curve& curve) {
  curve.tile_m = curve.kind == WorkKind::attention_decode ? 64 : 128;
  curve.tile_n = is_attention(curve.kind) ? 128 : 256;
}

}  // namespace orrery
