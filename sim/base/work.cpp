// SPDX-License-Identifier: Apache-2.0
// Knows the least traffic of a kernel, from its shapes alone.
#include "sim/base/work.h"

namespace orrery {
namespace {

double product_bytes(const Work& w) {
  const auto m = static_cast<double>(w.m), n = static_cast<double>(w.n),
             k = static_cast<double>(w.k);
  const double result = w.accumulate_fp32 ? 2 * bytes_per_element(Format::fp32)  // read and write
                                          : bytes_per_element(w.output);
  return static_cast<double>(w.groups) *
         (m * k * bytes_per_element(w.input) + k * n * stored_bytes(w) + m * n * result);
}

double attention_bytes(const Work& w) {
  const auto queries = static_cast<double>(w.q_length), keys = static_cast<double>(w.kv_length),
             qk = static_cast<double>(w.qk_dim), v = static_cast<double>(w.v_dim),
             sequences = static_cast<double>(w.batch);
  // A window over the last queries leaves the oldest keys unread.
  const double seen =
      w.window > 0 ? std::min(keys, queries + static_cast<double>(w.window) - 1) : keys;
  const double query_rows = sequences * static_cast<double>(w.heads) * queries;
  const double key_rows = sequences * static_cast<double>(w.kv_heads) * seen;
  const double input = bytes_per_element(w.input), output = bytes_per_element(w.output);
  const double q = query_rows * qk * input, o = query_rows * v * output;
  const bool latent = w.kind == WorkKind::attention_decode && w.kv_heads == 1 && w.v_dim < w.qk_dim;
  const double kv = key_rows * (latent ? qk : qk + v) * stored_bytes(w);
  if (w.kind != WorkKind::attention_backward) return q + kv + o;
  // Backward reads Q, K, V, O and dO and writes dQ, dK and dV.
  return q + kv + 2 * o + (query_rows * qk + key_rows * (qk + v)) * output;
}

}  // namespace

double minimum_bytes(const Work& work) {
  if (is_product(work.kind)) return product_bytes(work);
  if (is_attention(work.kind)) return attention_bytes(work);
  return work.bytes_read + work.bytes_written;
}

}  // namespace orrery
