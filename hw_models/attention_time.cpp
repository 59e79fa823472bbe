// Knows how long attention takes: tensor, exponential and memory limits, prefill, backward, decode.
#include <algorithm>
#include <cmath>

#include "hw_models/kernel_parts.h"

namespace orrery {

namespace {

double head_dim_loss(double dim, const Curve& curve) {
  if (dim >= 128 || curve.head_dim_exponent == 0) return 1;
  return std::exp2(curve.head_dim_exponent * std::log2(128 / dim));
}

double operand_bytes(const Work& work, double passes) {
  const double q = static_cast<double>(work.batch * work.heads * work.q_length);
  const double kv = static_cast<double>(work.batch * work.kv_heads * work.kv_length);
  const double dims = static_cast<double>(work.qk_dim + work.v_dim);
  return passes * (q + kv) * dims * bytes_per_element(work.output);
}

// Scores through memory: batched products over the whole square, masked or not.
UnitTimes unfused_times(const Work& work, const Curve& curve, const ResolvedDevice& device,
                        double products) {
  UnitTimes t;
  const double scores = static_cast<double>(work.batch * work.heads) *
                        static_cast<double>(work.q_length) * static_cast<double>(work.kv_length);
  const double dims = static_cast<double>(work.qk_dim + work.v_dim);
  const double rate = tensor_rate(device, work.input);
  t.tensor_work = 2 * scores * dims * products;
  t.tensor = t.tensor_work / (rate * curve.tensor_efficiency) * head_dim_loss(0.5 * dims, curve);
  if (work.qk_dim % 8 != 0) t.tensor *= curve.misaligned_factor;
  t.memory_work = scores * curve.bytes_per_score + operand_bytes(work, 2);
  // Products and softmax are kernels of their own: nothing overlaps.
  t.exposed = t.memory_work / (device.memory_bandwidth.si() * curve.memory_efficiency);
  return t;
}

}  // namespace

UnitTimes attention_times(const Work& work, const Curve& curve, const ResolvedDevice& device) {
  const bool backward = work.kind == WorkKind::attention_backward;
  // Stored scores need four products backward, recomputed ones five, against two forward.
  if (curve.bytes_per_score > 0) return unfused_times(work, curve, device, backward ? 2 : 1);
  const double products = backward ? 2.5 : 1;
  UnitTimes t;
  const double q = static_cast<double>(work.q_length), kv = static_cast<double>(work.kv_length);
  const double sequences = static_cast<double>(work.batch * work.heads);
  const double dims = static_cast<double>(work.qk_dim + work.v_dim);
  const double keys = visible_scores(work) / sequences;
  // Query heads that share keys are packed into one tile. Rows are padded to the tile, masked
  // diagonal blocks are computed whole, and a block takes k_half keys' worth of time to start.
  const double group = static_cast<double>(work.heads) / static_cast<double>(work.kv_heads);
  const double blocks =
      static_cast<double>(work.batch * work.kv_heads) * ceiling(q * group / curve.tile_m);
  const double padded = keys / q * curve.tile_m;
  const double diagonal = work.causal ? 0.5 * std::min(kv, curve.tile_n) : 0;
  const double mean_block = padded + (diagonal + curve.k_half) * curve.tile_m;
  const double longest_keys =
      (work.window > 0 ? std::min(kv, static_cast<double>(work.window)) : kv) + curve.k_half;
  double per_processor = mean_block * blocks;
  if (device.tile_model && device.sm_count > 0) {
    // The last blocks leave processors idle for a part of the longest one.
    const double last = longest_keys * curve.tile_m;
    const double even = mean_block * blocks / device.sm_count;
    per_processor = std::max(last, even + curve.wave_exponent * last) * device.sm_count;
  }
  const double rate = tensor_rate(device, work.input);
  t.tensor = 2 * per_processor * dims * products / (rate * curve.tensor_efficiency) *
             head_dim_loss(0.5 * dims, curve);
  if (work.qk_dim % 8 != 0) t.tensor *= curve.misaligned_factor;
  if (curve.special_efficiency > 0 && device.special_function_per_second > 0)
    t.special = per_processor / (device.special_function_per_second * curve.special_efficiency);
  // Forward reads q, k, v and writes the output; backward reads those and the output's gradient
  // and writes three gradients, of which dq passes through fp32.
  t.memory_work = operand_bytes(work, backward ? 3 : 1);
  t.memory = stream_seconds(t.memory_work, curve, device);
  t.exposed = t.memory * curve.epilogue_exposed;
  t.tensor_work = 2 * keys * sequences * dims * products;
  return t;
}

// One or few query rows: the cache is read once, by as many processors as it can be split over;
// queries that share a key head are padded to a tile of the tensor unit.
UnitTimes decode_times(const Work& work, const Curve& curve, const ResolvedDevice& device) {
  UnitTimes t;
  const double kv = work.window > 0 ? static_cast<double>(std::min(work.kv_length, work.window))
                                    : static_cast<double>(work.kv_length);
  const double sequences = static_cast<double>(work.batch * work.kv_heads);
  const double group = static_cast<double>(work.heads * std::max<std::int64_t>(1, work.q_length)) /
                       static_cast<double>(work.kv_heads);
  // Absorbed MLA keeps one latent row a token, whose first v_dim elements are the values.
  const bool latent = work.kv_heads == 1 && work.qk_dim > work.v_dim && work.v_dim > 0;
  const double row = static_cast<double>(latent ? work.qk_dim : work.qk_dim + work.v_dim);
  const double dims = static_cast<double>(work.qk_dim + work.v_dim);
  t.memory_work = sequences * kv * row * bytes_per_element(work.input) +
                  sequences * group * dims * bytes_per_element(work.output);
  t.memory = stream_seconds(t.memory_work, curve, device);
  const double rows = ceiling(group / curve.tile_m) * curve.tile_m;
  const double rate = tensor_rate(device, work.input);
  const double per_key = 2 * sequences * rows * dims / (rate * curve.tensor_efficiency);
  t.tensor = kv * per_key;
  t.exposed = curve.k_half * per_key;  // what each sequence and head takes to start and to join
  t.tensor_work = 2 * sequences * kv * group * dims;
  return t;
}

}  // namespace orrery
