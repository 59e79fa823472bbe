// SPDX-License-Identifier: Apache-2.0
// Knows how long attention takes: tensor, exponential and memory limits, prefill, backward, decode.
#include <algorithm>
#include <cmath>

#include "hw_models/kernel/kernel_parts.h"

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

// Blocks that a processor runs at once. Kernels spend most of the room that short rows leave on
// deeper pipelines: our own hold 3, 2, 2 and 1 blocks of rows of 64, 128, 256 and 512 bytes.
double resident_blocks(const Work& work, const Curve& curve) {
  const double bytes = static_cast<double>(work.qk_dim) * bytes_per_element(work.input);
  const double room = curve.resident_blocks * std::sqrt(std::sqrt(256 / bytes));
  return std::max(1.0, static_cast<double>(static_cast<std::int64_t>(room)));
}

// Time of equal blocks, in rounds of all that fit at once. A processor with only some of them in
// the last round is faster with each, by the curve's wave exponent.
double rounds(double blocks, double processors, double resident, double exponent) {
  const double w = blocks / (processors * resident);
  const auto full = static_cast<double>(static_cast<std::int64_t>(w));
  const double last = ceiling((w - full) * resident) / resident;
  return last > 0 ? full + last + exponent * (1 - last) : full;
}

// Rows of a tile where the keys are split: kernels that do it have no larger ones.
constexpr double most_split_rows = 64;

// Parts that the keys of `blocks` blocks are cut into: the fewest that use the last round to 85% of
// the best use, of those that give a part less to do; none where the blocks nearly fill the device
// (FlashAttention 2 and 3; the kernels of others follow it).
double split_parts(double blocks, double keys, double slots, const Curve& curve) {
  if (blocks >= 0.8 * slots) return 1;
  const double tiles = ceiling(keys / curve.tile_n);
  double most = std::min({ceiling(keys / curve.split_k), tiles, slots});
  if (curve.most_splits > 0) most = std::min(most, curve.most_splits);
  const auto use = [&](double parts) {
    const bool useful = parts == 1 || ceiling(tiles / parts) != ceiling(tiles / (parts - 1));
    const double w = blocks * parts / slots;
    return useful ? w / ceiling(w) : 0;
  };
  double best = 0, parts = 1;
  for (int p = 1; p <= most; ++p) best = std::max(best, use(p));
  while (parts < most && use(parts) < 0.85 * best) ++parts;
  return parts;
}

// A kernel of its own that reads the parts a few at a time: its start counts once more each time
// that their number doubles. They pass through memory in fp32.
double join_seconds(double parts, double results, const Curve& curve,
                    const ResolvedDevice& device) {
  if (parts <= 1) return 0;
  const double traffic = 8 * results * parts;
  return curve.split_seconds * std::log2(2 * parts) +
         curve.split_exposed * traffic / (device.memory_bandwidth.si() * curve.memory_efficiency);
}

// Operations of one score and output, with head sizes as given: two products forward, five back.
double score_flop(double qk, double v, bool backward) {
  return backward ? 6 * qk + 4 * v : 2 * qk + 2 * v;
}

double padded_dim(std::int64_t dim, const Curve& curve) {
  const auto wanted = static_cast<double>(dim);
  if (curve.dim_step > 0) return ceiling(wanted / curve.dim_step) * curve.dim_step;
  double power = 64;
  while (power < wanted) power *= 2;
  return power;
}

// What the kernels around the backward one move: the sums of output times gradient, the query
// gradient from fp32, and gradients of keys and values that each query head has of its own until
// they are added up.
double backward_side_bytes(const Work& work) {
  const auto per_head = static_cast<double>(work.batch * work.heads);
  const double rows = per_head * static_cast<double>(work.q_length);
  const double keys = per_head * static_cast<double>(work.kv_length);
  const auto qk = static_cast<double>(work.qk_dim), v = static_cast<double>(work.v_dim);
  const double element = bytes_per_element(work.output);
  const double own = rows * (2 * v * element + qk * (8 + element));
  if (work.heads == work.kv_heads) return own;
  const double shared = static_cast<double>(work.kv_heads) / static_cast<double>(work.heads);
  return own + keys * (qk + v) * element * (2 + shared);
}

// How the rows and keys of prefill lie on blocks, in keys times rows.
struct BlockWork {
  double blocks = 0, parts = 1, slots = 0;
  double total = 0;  // of all processors together, those that wait included
};

BlockWork block_work(const Work& work, const Curve& curve, const ResolvedDevice& device) {
  const double q = static_cast<double>(work.q_length), kv = static_cast<double>(work.kv_length);
  const double sequences = static_cast<double>(work.batch * work.heads);
  // Some libraries pack query heads that share keys into one tile. Rows are padded to the tile,
  // masked diagonal blocks are computed whole, and a block takes k_half keys' worth of time to
  // start.
  const double group = curve.packed_heads > 0
                           ? static_cast<double>(work.heads) / static_cast<double>(work.kv_heads)
                           : 1;
  const auto blocks_of = [&](double tile) { return sequences / group * ceiling(q * group / tile); };
  BlockWork b{.blocks = blocks_of(curve.tile_m)};
  const bool on_tiles = device.tile_model && device.sm_count > 0;
  const double resident = resident_blocks(work, curve);
  b.slots = on_tiles ? device.sm_count * resident : 1;
  double tile_m = curve.tile_m;
  if (on_tiles && curve.most_splits > 0 && work.kind == WorkKind::attention_forward) {
    const double tile = std::min(tile_m, most_split_rows);
    b.parts = split_parts(blocks_of(tile), kv, b.slots, curve);
    if (b.parts > 1) {
      tile_m = tile;
      b.blocks = blocks_of(tile) * b.parts;
    }
  }
  const double diagonal = work.causal ? 0.5 * std::min(kv, curve.tile_n) : 0;
  const double mean =
      ((visible_scores(work) / (sequences * q) + diagonal) / b.parts + curve.k_half) * tile_m;
  b.total = mean * b.blocks;
  if (!on_tiles) return b;
  const double reach = work.window > 0 ? std::min(kv, static_cast<double>(work.window)) : kv;
  const double longest = (reach / b.parts + curve.k_half) * tile_m;
  // Where blocks differ, by as much as the causal mask cuts off, the last ones leave processors
  // idle for a part of the longest one; where they are equal, the last round counts as one.
  const double spread = work.causal ? std::min(1.0, q / reach) : 0;
  const double equal = rounds(b.blocks, device.sm_count, resident, curve.wave_exponent);
  const double idle = spread * curve.wave_exponent * longest +
                      (1 - spread) * (equal - b.blocks / b.slots) * mean * resident;
  b.total = std::max(longest, b.total / device.sm_count + idle) * device.sm_count;
  return b;
}

}  // namespace

UnitTimes attention_times(const Work& work, const Curve& curve, const ResolvedDevice& device) {
  const bool backward = work.kind == WorkKind::attention_backward;
  // Stored scores need four products backward, recomputed ones five, against two forward.
  if (curve.bytes_per_score > 0) return unfused_times(work, curve, device, backward ? 2 : 1);
  UnitTimes t;
  const auto qk = static_cast<double>(work.qk_dim), v = static_cast<double>(work.v_dim);
  const BlockWork b = block_work(work, curve, device);
  const double flop =
      score_flop(padded_dim(work.qk_dim, curve), padded_dim(work.v_dim, curve), backward);
  const double rate = tensor_rate(device, work.input);
  t.tensor =
      b.total * flop / (rate * curve.tensor_efficiency) * head_dim_loss(0.5 * (qk + v), curve);
  if (work.qk_dim % 8 != 0) t.tensor *= curve.misaligned_factor;
  if (curve.special_efficiency > 0 && device.special_function_per_second > 0)
    t.special = b.total / (device.special_function_per_second * curve.special_efficiency);
  // Forward reads q, k, v and writes the output; backward reads those and the output's gradient
  // and writes three gradients.
  t.memory_work = operand_bytes(work, backward ? 3 : 1);
  t.memory = stream_seconds(t.memory_work, curve, device);
  // Every block but a processor's first loads its queries and stores its result in turn.
  if (device.tile_model && device.sm_count > 0)
    t.exposed = curve.block_seconds * std::max(0.0, b.blocks / device.sm_count - 1);
  if (work.vector_flop > 0 && device.vector_rate.si() > 0)
    t.exposed += work.vector_flop / device.vector_rate.si();
  const double results = static_cast<double>(work.batch * work.heads * work.q_length) * v;
  t.exposed += join_seconds(b.parts, results, curve, device);
  const double bandwidth = device.memory_bandwidth.si() * curve.memory_efficiency;
  t.exposed +=
      curve.epilogue_exposed * (backward ? backward_side_bytes(work) / bandwidth : t.memory);
  t.tensor_work = visible_scores(work) * score_flop(qk, v, backward);
  return t;
}

// How the keys of decode lie on blocks of processors.
struct DecodeParts {
  double parts = 1;   // of a sequence
  double blocks = 0;  // of all sequences
  double keys = 0;    // that a processor with most to do walks, of all its blocks
};

// Parts where a kernel asks for so many blocks a processor (TensorRT-LLM: XQA for eight, and no
// more parts than the root of eight times the most, rounded down; its masked kernel for one,
// rounded up).
double filling_parts(double blocks, double keys, const Curve& curve, const ResolvedDevice& device) {
  double most = std::floor(keys / curve.split_k);
  if (curve.split_growth > 0)
    most = std::min(most, std::round(std::sqrt(curve.split_growth * most)));
  const double wanted = curve.split_waves * device.sm_count / blocks;
  const double filling = curve.split_growth > 0 ? std::floor(wanted) : ceiling(wanted);
  return std::max(1.0, std::min(most, filling));
}

// `blocks` of a sequence's keys and a tile of rows each. Engines that plan each step deal equal
// shares of all keys to the processors, cutting sequences where a share ends (FlashMLA,
// FlashInfer, FlashAttention 3 with its scheduler's metadata).
DecodeParts decode_parts(double blocks, double keys, double resident, const Curve& curve,
                         const ResolvedDevice& device) {
  const double slots = device.sm_count * resident;
  if (curve.balanced <= 0) {
    const double parts = curve.split_waves > 0 ? filling_parts(blocks, keys, curve, device)
                                               : split_parts(blocks, keys, slots, curve);
    const double walked = ceiling(ceiling(keys / curve.tile_n) / parts) * curve.tile_n;
    const double times = rounds(blocks * parts, device.sm_count, resident, curve.wave_exponent);
    return {.parts = parts, .blocks = blocks * parts, .keys = walked * times};
  }
  double most = ceiling(keys / curve.split_k);
  if (curve.most_splits > 0) most = std::min(most, curve.most_splits);
  const double parts = std::min(most, std::max(1.0, slots / blocks));
  const double part = ceiling(keys / parts / curve.tile_n) * curve.tile_n;
  // A share may begin and end inside a tile of keys.
  const double share = blocks * keys / slots + curve.tile_n;
  const bool all_busy = blocks * parts >= slots * (1 - 1e-9);
  return {.parts = parts, .blocks = blocks * parts, .keys = all_busy ? share : part};
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
  // Heads that share keys are the rows of one block, or each has blocks of its own.
  const double packed = curve.packed_heads > 0 ? group : 1;
  const double walks = sequences * group / packed;
  // Absorbed MLA keeps one latent row a token, whose first v_dim elements are the values.
  const bool latent = work.kv_heads == 1 && work.qk_dim > work.v_dim && work.v_dim > 0;
  const double row =
      static_cast<double>(latent ? work.qk_dim : work.qk_dim + work.v_dim) * stored_bytes(work);
  const double dims = static_cast<double>(work.qk_dim + work.v_dim);
  t.memory_work = sequences * (kv * row + group * dims * bytes_per_element(work.output));
  t.memory = stream_seconds(t.memory_work, curve, device);
  t.tensor_work = 2 * sequences * kv * group * dims;
  // A key of one row of queries, and of a whole group, on the whole device.
  const double rate = tensor_rate(device, work.input) * curve.tensor_efficiency;
  const double per_key = 2 * dims / rate;
  double rows = ceiling(packed / curve.tile_m) * curve.tile_m;
  double starts = curve.k_half * per_key * packed;  // until queries are there and joined again
  if (!device.tile_model || device.sm_count <= 0) {
    t.tensor = walks * kv * rows * per_key * head_dim_loss(0.5 * dims, curve);
    starts *= walks;
  } else {
    // A block alone on its processor is no faster: `slots` are those of the curve's own count.
    const bool crowded =
        curve.row_room > 0 && rows * static_cast<double>(work.v_dim) > curve.row_room;
    const double most = curve.row_room > 0 ? curve.resident_blocks : resident_blocks(work, curve);
    const double resident = most - (crowded ? 1 : 0), slots = device.sm_count * most;
    const double tiles = ceiling(packed / most_split_rows);
    const auto [parts, blocks, keys] = decode_parts(walks * tiles, kv, resident, curve, device);
    if (parts > 1)
      rows = ceiling(packed / std::min(curve.tile_m, most_split_rows)) *
             std::min(curve.tile_m, most_split_rows);
    // A device's worth of blocks takes as long as one of them on its processor.
    t.tensor = slots * keys * rows / tiles * per_key * head_dim_loss(0.5 * dims, curve);
    // Few blocks do not fill the memory's pipe: each waits for its own tiles.
    const double waits = ceiling(keys / curve.tile_n) * curve.tile_seconds;
    t.tensor = combine(t.tensor, waits);
    starts = waves(blocks, device.sm_count * resident, curve.wave_exponent) *
             (starts / tiles * device.sm_count + curve.block_seconds);
    const double results = sequences * group * static_cast<double>(work.v_dim);
    t.exposed = join_seconds(parts, results, curve, device);
  }
  // Blocks start while others stream, partly.
  const double body = combine(t.tensor, t.memory);
  t.exposed += std::max(0.0, starts - body) + curve.block_exposed * std::min(starts, body);
  return t;
}

}  // namespace orrery
