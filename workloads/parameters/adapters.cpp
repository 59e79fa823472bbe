// SPDX-License-Identifier: Apache-2.0
// Lists the linear layers of a layer that have adapters, and adds up what those hold.
#include "workloads/parameters/adapters.h"

#include <algorithm>

namespace orrery {
namespace {

void add_mixer(std::vector<AdaptedLinear>& out, const Mixer& m, std::int64_t hidden,
               AdapterSites sites) {
  const bool all = sites == AdapterSites::every_linear;
  const std::int64_t queries = m.heads * m.qk_dim;
  switch (m.kind) {
    case MixerKind::attention:
      out.push_back({hidden, queries + m.kv_heads * (m.qk_dim + m.v_dim)});
      break;
    case MixerKind::mla:
      // Down-projections are whole on every rank.
      if (m.q_lora > 0) {
        out.push_back({hidden, m.q_lora, false});
        out.push_back({m.q_lora, queries});
      } else {
        out.push_back({hidden, queries});
      }
      out.push_back({hidden, m.kv_lora + m.rope_dim, false});
      out.push_back({m.kv_lora, m.heads * (m.qk_dim - m.rope_dim + m.v_dim)});
      break;
    case MixerKind::mamba2:
      if (!all) return;
      out.push_back({hidden, 2 * m.inner + 2 * m.groups * m.state + m.heads});
      out.push_back({m.inner, hidden});
      return;
    case MixerKind::gated_delta:  // served only
    case MixerKind::none:
      return;
  }
  if (all) out.push_back({m.heads * m.v_dim, hidden});
}

}  // namespace

std::vector<AdaptedLinear> adapted_linears(const Model& model, const LayerClass& layer,
                                           AdapterSites sites) {
  std::vector<AdaptedLinear> out;
  add_mixer(out, layer.mixer, model.hidden, sites);
  if (sites != AdapterSites::every_linear) return out;
  const Ffn& f = layer.ffn;
  const bool experts = f.kind == FfnKind::moe;
  if (experts && f.latent > 0) {
    out.push_back({model.hidden, f.latent, false});
    out.push_back({f.latent, model.hidden, false});
  }
  const std::int64_t width = f.kind == FfnKind::dense ? f.width : experts ? f.shared_width : 0;
  if (width > 0) {
    out.push_back({model.hidden, (is_gated(f.activation) ? 2 : 1) * width});
    out.push_back({width, model.hidden});
  }
  return out;
}

double adapter_parameters(const Model& model, const LayerClass& layer, const Job& job,
                          const Layout& layout, const Stack& stack) {
  if (job.task != Task::lora) return 0;
  double sum = 0;
  for (const AdaptedLinear& l : adapted_linears(model, layer, stack.kernels.adapter_sites))
    sum += static_cast<double>(l.inputs + l.outputs) / static_cast<double>(l.split ? layout.tp : 1);
  return sum * static_cast<double>(job.lora_rank);
}

double adapter_activations(const Model& model, const LayerClass& layer, const Job& job,
                           const Layout& layout, const Stack& stack) {
  if (job.task != Task::lora) return 0;
  const auto adapters =
      static_cast<double>(adapted_linears(model, layer, stack.kernels.adapter_sites).size());
  return 2 * adapters * static_cast<double>(job.lora_rank) *
         static_cast<double>(layout.micro_batch * job.sequence) / static_cast<double>(layout.cp);
}

std::int64_t largest_adapter_rank(const Model& model) {
  std::int64_t least = model.hidden;
  for (const LayerClass& layer : model.classes)
    for (const AdaptedLinear& l : adapted_linears(model, layer, AdapterSites::every_linear))
      least = std::min({least, l.inputs, l.outputs});
  return least;
}

}  // namespace orrery
