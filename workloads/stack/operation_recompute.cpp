// SPDX-License-Identifier: Apache-2.0
// Lists a layer's products in the order in which a program runs them one by one.
#include "workloads/stack/operation_recompute.h"

#include <algorithm>

#include "workloads/stack/memory_traits.h"

namespace orrery {
namespace {

using Products = std::vector<SeparateProduct>;

void add_mixer(Products& out, const Mixer& m, std::int64_t hidden, const Layout& layout) {
  const auto part = [&](std::int64_t width) {
    return std::max<std::int64_t>(1, width / layout.tp);
  };
  const std::int64_t heads = part(m.heads), kv_heads = part(m.kv_heads);
  switch (m.kind) {
    case MixerKind::attention:
      out.push_back({.outputs = heads * m.qk_dim, .inputs = hidden});
      out.push_back({.outputs = kv_heads * m.qk_dim, .inputs = hidden});
      out.push_back({.outputs = kv_heads * m.v_dim, .inputs = hidden});
      break;
    case MixerKind::mla:
      if (m.q_lora > 0) {
        out.push_back({.outputs = m.q_lora, .inputs = hidden});
        out.push_back({.outputs = heads * m.qk_dim, .inputs = m.q_lora});
      } else {
        out.push_back({.outputs = heads * m.qk_dim, .inputs = hidden});
      }
      out.push_back({.outputs = m.kv_lora + m.rope_dim, .inputs = hidden});
      out.push_back({.outputs = heads * (m.qk_dim - m.rope_dim + m.v_dim), .inputs = m.kv_lora});
      break;
    case MixerKind::mamba2:
      out.push_back(
          {.outputs = 2 * part(m.inner) + part(2 * m.groups * m.state) + heads, .inputs = hidden});
      out.push_back({.outputs = hidden, .inputs = part(m.inner), .reduced = true});
      return;
    case MixerKind::gated_delta:  // served only
    case MixerKind::none:
      return;
  }
  out.push_back({.outputs = hidden, .inputs = heads * m.v_dim, .reduced = true});
}

}  // namespace

Products separate_products(const Model& model, const LayerClass& layer, const Layout& layout) {
  Products out;
  add_mixer(out, layer.mixer, model.hidden, layout);
  const Ffn& f = layer.ffn;
  const std::int64_t whole = f.kind == FfnKind::dense ? f.width
                             : f.kind == FfnKind::moe ? f.shared_width
                                                      : 0;
  if (whole > 0) {
    const std::int64_t width = std::max<std::int64_t>(1, whole / layout.tp);
    if (is_gated(f.activation)) out.push_back({.outputs = width, .inputs = model.hidden});
    out.push_back({.outputs = width, .inputs = model.hidden});
    out.push_back({.outputs = model.hidden, .inputs = width, .needed = false, .reduced = true});
  } else if (f.kind == FfnKind::none && !out.empty()) {
    out.back().needed = false;
  }
  if (is_quantised(layout.precision)) return out;
  for (std::size_t i = 0; i < out.size(); i += 2) out[i].kept = true;
  return out;
}

}  // namespace orrery
