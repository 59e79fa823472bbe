// SPDX-License-Identifier: Apache-2.0
// Knows which parameters of a curve a fit may move, between which bounds, from where.
#include "sim/calibrate/fit/free_parameters.h"

#include <algorithm>
#include <cmath>

namespace orrery {

namespace {

// What only some rows show: other layouts than the forward one, an fp32 buffer that the result is
// added to, shapes off the 16-byte grid.
void add_shown(const OperatorTable& table, std::vector<Free>& free) {
  bool role[3] = {}, accumulates = false, misaligned = false, splits_sectors = false;
  for (const OperatorRow& row : table.rows) {
    const Work& work = row.kernels[0].work;
    if (work.kind != table.kind) continue;
    role[static_cast<std::size_t>(work.role)] = true;
    accumulates = accumulates || work.accumulate_fp32;
    const double element = bytes_per_element(work.input);
    const auto off = [&](std::int64_t extent) {
      return std::fmod(static_cast<double>(extent) * element, 16) != 0;
    };
    misaligned = misaligned || off(work.n) || off(work.k);
    splits_sectors = splits_sectors || std::fmod(static_cast<double>(work.k) * element, 64) != 0;
  }
  // The forward layout is the measure of the others.
  if (role[0])
    for (const int r : {1, 2})
      if (role[r]) free.push_back({nullptr, 0.8, 1.5, 1.0, false, r});
  if (accumulates) free.push_back({&Curve::accumulate_exposed, 0.0, 1.5, 0.5});
  if (misaligned) free.push_back({&Curve::misaligned_factor, 1.0, 6.0, 2.0});
  if (splits_sectors) free.push_back({&Curve::sector_factor, 1.0, 1.5, 1.08, false, -1, true});
}

// Libraries that cut k where it pays and choose among many tiles; others have a few kernels.
bool splits(const OperatorTable& table) {
  return table.kind == WorkKind::gemm && !table.host_bound && table.library == Library::cublas;
}

std::vector<Free> gemm_parameters(const OperatorTable& table) {
  std::vector<Free> free = {
      {&Curve::tensor_efficiency, 0.05, 1.1, 0.7}, {&Curve::k_half, 10, 3000, 200},
      {&Curve::wave_exponent, 0.0, 1.0, 0.7},      {&Curve::tile_loss, 1.0, 1000, 20},
      {&Curve::memory_efficiency, 0.1, 1.0, 0.8},  {&Curve::saturation_bytes, 1e4, 1e8, 2e6},
      {&Curve::epilogue_exposed, 0.0, 1.0, 0.3},   {&Curve::fixed_seconds, 3e-7, 4e-5, 1.5e-6}};
  if (table.host_bound) free.resize(2);  // the rest is set to what other frameworks measured
  if (splits(table)) {
    free.push_back({&Curve::split_seconds, 1e-8, 1e-5, 2e-6});
    free.push_back({&Curve::split_exposed, 0.0, 2.0, 0.3});
    free.push_back({&Curve::partial_tile, 0.0, 1.0, 0.5});
  }
  if (table.converts) {
    free.push_back({&Curve::memory_efficiency, 0.05, 0.95, 0.4, true});
    if (!table.host_bound) free.push_back({&Curve::fixed_seconds, 3e-7, 2e-5, 2e-6, true});
    if (table.library == Library::trtllm_rows) {
      free.push_back({&Curve::block_seconds, 1e-9, 1e-7, 2e-8, true});
      free.push_back({&Curve::l2_efficiency, 0.02, 2.0, 0.6, true});
    }
  }
  if (table.kind == WorkKind::grouped_gemm && goes_through_lists(table.library))
    free.push_back({&Curve::block_seconds, 1e-9, 1e-6, 1e-7});
  add_shown(table, free);
  return free;
}

// Traffic over bandwidth, the latency of the memory, and what rows of a block each need to fill it.
// Where many samples stayed in the L2, its rate, and what of the start is not memory's latency.
std::vector<Free> stream_parameters(const OperatorTable& table) {
  constexpr std::ptrdiff_t many = 8;
  std::vector<Free> free = {{&Curve::memory_efficiency, 0.02, 1.05, 0.7}};
  const auto some = [&](auto&& is) {
    return std::any_of(table.rows.begin(), table.rows.end(), is);
  };
  if (!some([](const OperatorRow& row) { return row.cold; })) return free;  // few rows, all large
  if (table.kind == WorkKind::router) {  // bound by instructions wherever its scores lie
    free.push_back({&Curve::fixed_seconds, 1e-8, 5e-5, 2e-6});
    return free;
  }
  free.push_back({&Curve::saturation_bytes, 1e4, 1e8, 5e6});
  if (some([](const OperatorRow& row) { return row.kernels[0].work.m > 0; }))
    free.push_back({&Curve::stream_width, 0.01, 10, 0.5, false, -1, true});
  const auto cached = std::count_if(table.rows.begin(), table.rows.end(),
                                    [](const OperatorRow& row) { return row.cached > 0.5; });
  if (cached < many) return free;
  free.push_back({&Curve::fixed_seconds, 1e-8, 5e-5, 5e-7});
  free.push_back({&Curve::l2_efficiency, 0.02, 2.0, 0.6});
  return free;
}

std::vector<Free> attention_parameters(const OperatorTable& table) {
  // Few rows are limited by memory; what the others leave open is what streams usually reach.
  const double slowest = table.format == Format::bf16 ? 0.6 : 0.3;
  std::vector<Free> free = {
      {&Curve::tensor_efficiency, 0.2, 1.0, 0.75},     {&Curve::k_half, 10, 2000, 150},
      {&Curve::wave_exponent, 0.0, 1.0, 0.5},          {&Curve::special_efficiency, 0.1, 1.0, 0.6},
      {&Curve::memory_efficiency, slowest, 0.95, 0.8}, {&Curve::saturation_bytes, 1e4, 3e7, 1e6},
      {&Curve::epilogue_exposed, 0.0, 3.0, 1.0},       {&Curve::head_dim_exponent, 0.0, 1.0, 0.2},
      {&Curve::fixed_seconds, 5e-7, 1.7e-5, 5e-6},     {&Curve::block_seconds, 1e-9, 1e-5, 1e-6}};
  if (table.library == Library::flash2 && table.kind == WorkKind::attention_forward)
    free.push_back({&Curve::split_seconds, 1e-8, 1e-5, 1e-6});  // it cuts keys of few rows
  if (table.converts) {
    free.push_back({&Curve::memory_efficiency, 0.02, 1.2, 0.5, true});
    free.push_back({&Curve::fixed_seconds, 1e-8, 5e-6, 1e-6, true});
  }
  return free;
}

std::vector<Free> decode_parameters(const OperatorTable& table) {
  // A cache of 8 bits may be converted to 16 before it is read, by a kernel of its own.
  const double slowest = table.format == Format::bf16 ? 0.5 : 0.03;
  // The masked kernel multiplies on the fp32 units: its rate is theirs, as a share of the tensor
  // peak. XQA fills 8 columns of instructions made for 64 and more.
  const bool masked = table.library == Library::trtllm_masked;
  const bool xqa = table.library == Library::trtllm_xqa;
  const double least = masked ? 0.0005 : 0.02, first = masked ? 0.005 : xqa ? 0.1 : 0.3;
  std::vector<Free> free = {
      {&Curve::tensor_efficiency, least, 1.0, first},  {&Curve::k_half, 1, 10000, 500},
      {&Curve::memory_efficiency, slowest, 1.0, 0.92}, {&Curve::saturation_bytes, 1e4, 1e7, 1e6},
      {&Curve::fixed_seconds, 5e-7, 3e-5, 5e-6},       {&Curve::block_seconds, 1e-7, 1e-5, 2e-6},
      {&Curve::split_seconds, 1e-8, 1e-5, 1e-6},       {&Curve::wave_exponent, 0.0, 1.0, 0.3},
      {&Curve::block_exposed, 0.0, 1.0, 0.2},          {&Curve::split_exposed, 0.0, 2.0, 0.5}};
  // XQA's blocks hold two tiles of keys in flight, whatever the head size.
  if (xqa)
    free.push_back({&Curve::tile_seconds, 1e-8, 1e-5, 5e-7});
  else
    free.push_back({&Curve::head_dim_exponent, 0.0, 1.0, 0.1});
  return free;
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

std::string_view Free::name() const {
  return role >= 0 ? role_factor_names[role] : parameter_name(member);
}

std::vector<Free> free_parameters(const OperatorTable& table) {
  // Tiles, streams and starts are the same to the nanosecond; the tensor units are not (fp16 on
  // H200: 4.4% slower wherever they decide).
  if (table.twin) return {{&Curve::tensor_efficiency, 0.05, 1.1, 0.7}};
  if (table.refine) return refined_parameters(table);
  if (!is_product(table.kind) && !is_attention(table.kind)) return stream_parameters(table);
  switch (table.kind) {
    case WorkKind::attention_forward:
    case WorkKind::attention_backward:
      return attention_parameters(table);
    case WorkKind::attention_decode:
      return decode_parameters(table);
    default:
      return gemm_parameters(table);
  }
}

namespace {

bool is_serving(Library library) {
  return library == Library::flash3 || library == Library::flashinfer ||
         library == Library::trtllm_attention || library == Library::sglang_attention ||
         library == Library::flashmla || library == Library::sglang_latent ||
         library == Library::trtllm_latent;
}

// TensorRT-LLM on Hopper: how its program cuts keys, and launches (version 1.3, decoderXQAImplJIT,
// xqa/mha_sm90.cu, decoderMaskedMultiheadAttentionLaunch.h). XQA has rows in eights and, in 8 bits,
// tiles of 64 keys and three blocks on a processor, two where queries of more than 2,048 elements
// take their registers. The masked kernel gives each query head blocks of 256 threads of its own.
void set_trtllm_tiles(Curve& curve) {
  if (curve.library == Library::trtllm_masked) {
    curve.tile_m = 1;
    curve.packed_heads = 0;
    curve.split_waves = 1;
    curve.resident_blocks = 2;
    return;
  }
  const bool narrow = curve.format != Format::bf16;
  curve.tile_m = 8;
  curve.tile_n = narrow ? 64 : 256;
  curve.split_growth = curve.split_waves = 8;
  curve.resident_blocks = narrow ? 3 : 1;
  if (narrow) curve.row_room = 2048;
}

// FlashAttention 2: two blocks of 128 rows on a processor (backward one), of 64 where it cuts keys,
// head sizes padded to 32. cuDNN pads to 64, backward to the next of 64, 128 and 256,
// and walks a sequence's keys on one processor. Serving frameworks cut a sequence into 32 parts at
// most, which CUDA graphs hold room for. Queries fill 64 rows of Hopper's own instruction, 16 of
// the one that other kernels use.
void set_attention_tiles(Curve& curve, Architecture architecture) {
  const bool decode = curve.kind == WorkKind::attention_decode;
  const bool serving = is_serving(curve.library);
  curve.tile_m = decode ? (serving ? 64 : 16) : 128;
  curve.tile_n = decode ? 16 : 128;
  curve.split_k = 128;
  if (serving && decode) {
    curve.balanced = 1;
    curve.most_splits =
        curve.library == Library::flash3 || curve.library == Library::flashinfer ? 32 : 128;
  }
  if (curve.library == Library::trtllm_xqa || curve.library == Library::trtllm_masked)
    set_trtllm_tiles(curve);
  if (curve.library == Library::cudnn_split_keys) {
    curve.tile_n = 128;
    curve.most_splits = 128;
  }
  if (curve.library == Library::flash2) {
    curve.tile_m = curve.tile_n = 128;
    if (curve.kind != WorkKind::attention_backward) {
      curve.most_splits = 128;
      curve.resident_blocks = 2.2;
    }
    curve.dim_step = 32;
    curve.packed_heads = decode ? 1 : 0;
  }
  if (curve.library == Library::cudnn_attention) {
    if (decode)
      curve.most_splits = 1;
    else
      curve.dim_step = curve.kind == WorkKind::attention_forward ? 64 : 0;
  }
  // Our own decode kernel (validation/microbench/paged.cuh): two blocks on a processor.
  if (curve.library == Library::own && decode) {
    curve.most_splits = 128;
    curve.resident_blocks = 2.2;
  }
  // Triton's (validation/microbench/serve_kernels.py): a program for each query head of a tile, for
  // each key-value head of a decode; keys are cut until a processor has four programs.
  if (curve.library == Library::triton_paged) {
    curve.packed_heads = decode ? 1 : 0;
    curve.tile_n = 128;
    if (decode) curve.split_waves = 4;
    curve.resident_blocks = decode ? 2.2 : 1;
  }
  const bool blackwell =
      architecture == Architecture::blackwell || architecture == Architecture::blackwell_ultra;
  if (curve.kind == WorkKind::attention_forward && serving && blackwell) {
    curve.tile_m = 256;  // two tiles of 128 rows take turns
    curve.packed_heads = 0;
  }
}

}  // namespace

void set_tiles(Curve& curve, Architecture architecture) {
  curve.tile_m = 128;
  curve.tile_n = 256;
  if (is_attention(curve.kind)) set_attention_tiles(curve, architecture);
  if (curve.kind != WorkKind::gemm) return;
  curve.split_k = 64;  // one step of the main loop: what joins the parts decides
  // TensorRT-LLM's on Hopper are DeepGEMM's kernels, which it builds in
  // (cpp/tensorrt_llm/deep_gemm).
  const bool own = curve.library == Library::trtllm_blocks && architecture == Architecture::hopper;
  if (curve.library != Library::deepgemm && curve.library != Library::flashinfer && !own) return;
  curve.split_k = 1e9;  // never
  curve.tile_n = 128;
  // DeepGEMM compiles the tile that fits a product (deep_gemm/jit_kernels/gemm.py:
  // get_best_configs).
  if (curve.library == Library::flashinfer) curve.row_cluster = 2;
}

}  // namespace orrery
