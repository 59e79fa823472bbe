// SPDX-License-Identifier: Apache-2.0
// Counts a neural network's parameters, and checks that its sizes fit together.
#include "workloads/model/model.h"

#include <fmt/format.h>

#include <algorithm>

#include "sim/base/errors/check.h"

namespace orrery {

bool Model::has_experts() const { return max_experts() > 0; }

bool Model::has_scans() const {
  return std::any_of(classes.begin(), classes.end(),
                     [](const LayerClass& c) { return c.mixer.kind == MixerKind::mamba2; });
}

std::int64_t Model::max_experts() const {
  std::int64_t most = 0;
  for (const LayerClass& c : classes) {
    if (c.ffn.kind == FfnKind::moe) most = std::max(most, c.ffn.experts);
  }
  return most;
}

void append_layer(Model& model, const LayerClass& layer) {
  auto found = std::find(model.classes.begin(), model.classes.end(), layer);
  if (found == model.classes.end()) {
    if (model.classes.size() == 256) {
      throw Error({.file = model.name,
                   .path = "layers",
                   .found = "more than 256 kinds of layer",
                   .expected = "at most 256 layers that differ from each other"});
    }
    found = model.classes.insert(found, layer);
  }
  model.layers.push_back(static_cast<std::uint8_t>(found - model.classes.begin()));
}

bool same_network(const Model& a, const Model& b) {
  return a.hidden == b.hidden && a.vocab == b.vocab && a.positions == b.positions &&
         a.norm == b.norm && a.position == b.position && a.tied_embeddings == b.tied_embeddings &&
         a.embedding_norm == b.embedding_norm && a.parallel_block == b.parallel_block &&
         a.classes == b.classes && a.layers == b.layers && a.mtp_layers == b.mtp_layers;
}

namespace {

std::int64_t attention_parameters(const Mixer& m, std::int64_t hidden) {
  const std::int64_t q = m.heads * m.qk_dim, k = m.kv_heads * m.qk_dim, v = m.kv_heads * m.v_dim;
  std::int64_t count = hidden * (q + k + v) + m.heads * m.v_dim * hidden;
  if (m.qkv_bias) count += q + k + v;
  if (m.out_bias) count += hidden;
  if (m.qk_norm) count += 2 * m.qk_dim;  // one weight vector for all heads, for queries and keys
  if (m.out_gate) count += hidden * m.heads * m.v_dim;
  if (m.sinks) count += m.heads;
  return count;
}

// DeepSeek-V3.2: the indexer's queries from the queries' latent, its key with a norm of weight and
// bias, the weights of its heads. Of compressed keys: values and weights, twice as wide since keys
// overlap, positions in a key, a norm.
std::int64_t index_parameters(const Mixer& m, std::int64_t hidden) {
  if (m.index_heads == 0) return 0;
  const std::int64_t queries = m.index_heads * (m.q_lora * m.index_dim + hidden);
  if (m.compress == 0) return queries + hidden * m.index_dim + 2 * m.index_dim;
  return queries + 2 * (2 * hidden + m.compress) * m.index_dim + m.index_dim;
}

// DeepSeek-V4's code (inference/model.py): one key for all heads, which is its value as well; where
// tokens are compressed, a value and a weight of each, and its place in the key; results through
// narrow rows of groups of heads.
std::int64_t compressed_parameters(const Mixer& m, std::int64_t hidden) {
  const std::int64_t key = m.kv_lora + m.rope_dim, width = m.heads * m.v_dim;
  std::int64_t count = hidden * m.q_lora + m.q_lora + m.q_lora * m.heads * m.qk_dim;
  count += hidden * key + key + m.heads;  // its norm, and a sink of each head
  count += width * m.out_lora + m.out_groups * m.out_lora * hidden;
  if (m.compress == 0) return count;
  const std::int64_t overlap = m.index_heads > 0 ? 2 : 1;
  return count + overlap * (2 * hidden + m.compress) * key + key + index_parameters(m, hidden);
}

// DeepSeek-V2 (arXiv 2405.04434), equations 9 to 19: low-rank joint compression of keys and values,
// and of queries, each with a norm on the compressed vector; the rotary key is shared by all heads.
std::int64_t mla_parameters(const Mixer& m, std::int64_t hidden) {
  if (m.out_groups > 0) return compressed_parameters(m, hidden);
  const std::int64_t q = m.heads * m.qk_dim;
  const std::int64_t compressed = m.kv_lora + m.rope_dim;
  std::int64_t count = m.q_lora > 0 ? hidden * m.q_lora + m.q_lora + m.q_lora * q : hidden * q;
  count += hidden * compressed + m.kv_lora;
  count += m.kv_lora * m.heads * (m.qk_dim - m.rope_dim + m.v_dim);
  count += m.heads * m.v_dim * hidden;
  if (m.qkv_bias) count += (m.q_lora > 0 ? m.q_lora : 0) + compressed;
  if (m.out_bias) count += hidden;
  return count + index_parameters(m, hidden);
}

// Mamba-2 (arXiv 2405.21060): one input projection to gate, x, B, C and dt; a short convolution
// over x, B and C; per head a decay, a skip and a dt bias; a gated norm; the output projection.
std::int64_t mamba2_parameters(const Mixer& m, std::int64_t hidden) {
  const std::int64_t convolved = m.inner + 2 * m.groups * m.state;
  return hidden * (m.inner + convolved + m.heads) + convolved * (m.conv + 1) + 3 * m.heads +
         m.inner + m.inner * hidden;
}

// Gated DeltaNet (arXiv 2412.06464) as in Qwen3-Next: projections to queries, keys, values and a
// gate, and to a decay and a strength of each head; a convolution without bias over the first
// three; a decay and its bias of each head; a norm as wide as a head; the output.
std::int64_t delta_parameters(const Mixer& m, std::int64_t hidden) {
  const std::int64_t convolved = m.inner + 2 * m.groups * m.state;
  return hidden * (m.inner + convolved + 2 * m.heads) + convolved * m.conv + 2 * m.heads + m.v_dim +
         m.inner * hidden;
}

std::int64_t mixer_parameters(const Mixer& m, std::int64_t hidden) {
  switch (m.kind) {
    case MixerKind::attention:
      return attention_parameters(m, hidden);
    case MixerKind::mla:
      return mla_parameters(m, hidden);
    case MixerKind::mamba2:
      return mamba2_parameters(m, hidden);
    case MixerKind::gated_delta:
      return delta_parameters(m, hidden);
    case MixerKind::none:
      return 0;
  }
  return 0;
}

// One feed-forward network between `in` and `width`: up (and gate) and down projection.
std::int64_t ffn_weights(const Ffn& f, std::int64_t in, std::int64_t width) {
  const std::int64_t matrices = is_gated(f.activation) ? 3 : 2;
  return matrices * in * width + (f.bias ? (matrices - 1) * width + in : 0);
}

}  // namespace

LayerParameters layer_parameters(const Model& model, const LayerClass& layer) {
  const Ffn& f = layer.ffn;
  LayerParameters p;
  p.mixer = mixer_parameters(layer.mixer, model.hidden);
  p.norms = layer.norms * model.hidden * (model.norm == NormKind::layer_norm ? 2 : 1);
  if (f.kind == FfnKind::dense) p.ffn = ffn_weights(f, model.hidden, f.width);
  if (f.kind == FfnKind::moe) {
    const std::int64_t in = f.latent > 0 ? f.latent : model.hidden;
    const std::int64_t expert = ffn_weights(f, in, f.width);
    p.experts = f.experts * expert;
    p.active_experts = f.topk * expert;
    p.router = model.hidden * f.experts + (f.router_bias ? f.experts : 0) +
               (f.shared_gate ? model.hidden : 0);
    const Ffn unbiased = {.activation = f.activation};
    if (f.shared_width > 0) p.ffn += ffn_weights(unbiased, model.hidden, f.shared_width);
    if (f.latent > 0) p.ffn += 2 * model.hidden * f.latent;
  }
  return p;
}

ParameterCount count_parameters(const Model& model) {
  const std::int64_t norm = model.hidden * (model.norm == NormKind::layer_norm ? 2 : 1);
  ParameterCount count;
  count.embedding = (model.vocab + model.positions) * model.hidden;
  if (model.embedding_norm) count.embedding += norm;
  if (!model.tied_embeddings) count.head = model.vocab * model.hidden;
  count.final_norm = norm;
  count.total = count.active = count.embedding + count.head + norm;
  std::vector<LayerParameters> of_class;
  for (const LayerClass& c : model.classes) of_class.push_back(layer_parameters(model, c));
  for (std::uint8_t c : model.layers) {
    const LayerParameters& p = of_class[c];
    count.total += p.total();
    count.active += p.total() - p.experts + p.active_experts;
  }
  if (model.mtp_layers > 0 && !model.layers.empty()) {
    // DeepSeek-V3 (arXiv 2412.19437), 2.2: a layer, a projection of two vectors to one, a norm of
    // each and one before the shared head.
    const std::int64_t hidden = model.hidden;
    count.mtp = model.mtp_layers *
                (of_class[model.layers.back()].total() + 2 * hidden * hidden + 3 * hidden);
  }
  return count;
}

namespace {

double approximate_parameters(const Model& model) {
  const auto number = [](std::int64_t v) { return static_cast<double>(v); };
  const double hidden = number(model.hidden);
  std::vector<double> of_class;
  for (const LayerClass& c : model.classes) {
    const Mixer& m = c.mixer;
    const Ffn& f = c.ffn;
    double sum = 2 * hidden * number(m.heads + m.kv_heads) * (number(m.qk_dim) + number(m.v_dim));
    sum += number(m.q_lora) * (hidden + number(m.heads) * number(m.qk_dim));
    sum += (number(m.kv_lora) + number(m.rope_dim)) *
           (hidden + number(m.heads) * (number(m.qk_dim) + number(m.v_dim)));
    sum +=
        (3 * hidden + number(m.conv)) * (number(m.inner) + 2 * number(m.groups) * number(m.state));
    sum += number(m.index_heads) * (number(m.q_lora) * number(m.index_dim) + hidden) +
           4 * hidden * number(m.index_dim) + number(m.out_lora) * number(m.out_groups) * hidden;
    sum += 3 * (number(f.width) + 1) * (hidden + number(f.latent)) * (number(f.experts) + 1);
    sum += 3 * hidden * (number(f.shared_width) + number(f.latent) + c.norms);
    of_class.push_back(sum);
  }
  double total = hidden * (2 * number(model.vocab) + number(model.positions));
  for (std::uint8_t c : model.layers) total += of_class[c];
  if (!model.layers.empty()) {
    total += number(model.mtp_layers) * (of_class[model.layers.back()] + 3 * hidden * hidden);
  }
  return total;
}

void check_mixer(const Mixer& m, const JsonValue& at) {
  if (m.kind == MixerKind::none) return;
  if (m.heads < 1) at.fail("at least one head", fmt::format("{} heads", m.heads));
  if (m.kind == MixerKind::attention && (m.kv_heads < 1 || m.heads % m.kv_heads != 0)) {
    at.fail("key-value heads that divide the heads",
            fmt::format("{} heads and {} key-value heads", m.heads, m.kv_heads));
  }
  const bool states = keeps_states(m);
  if (m.v_dim < 1 || (!states && m.qk_dim < 1)) {
    at.fail("heads of at least one element", fmt::format("{} and {}", m.qk_dim, m.v_dim));
  }
  if (m.kind == MixerKind::mla && (m.kv_lora < 1 || m.rope_dim >= m.qk_dim)) {
    at.fail("kv_lora above 0 and rope_dim below qk_dim",
            fmt::format("kv_lora {}, rope_dim {}, qk_dim {}", m.kv_lora, m.rope_dim, m.qk_dim));
  }
  if (states && (m.state < 1 || m.groups < 1 || m.heads % m.groups != 0)) {
    at.fail("a state above 0 and groups that divide the heads",
            fmt::format("state {}, {} groups, {} heads", m.state, m.groups, m.heads));
  }
  if ((m.index_heads > 0) != (m.index_dim > 0) || (m.index_heads > 0) != (m.index_topk > 0) ||
      (m.index_heads > 0 && m.q_lora == 0)) {
    at.fail("an indexer with heads, their width and a number of keys, beside a q_lora",
            fmt::format("index_heads {}, index_dim {}, index_topk {}, q_lora {}", m.index_heads,
                        m.index_dim, m.index_topk, m.q_lora));
  }
  if ((m.out_groups > 0) != (m.out_lora > 0) || (m.compress > 0 && m.out_groups == 0) ||
      (m.out_groups > 0 && m.heads % m.out_groups != 0)) {
    at.fail("compressed attention with out_lora and out_groups that divide the heads",
            fmt::format("compress {}, out_lora {}, out_groups {}, {} heads", m.compress, m.out_lora,
                        m.out_groups, m.heads));
  }
}

void check_ffn(const Ffn& f, const JsonValue& at) {
  if (f.kind == FfnKind::none) return;
  if (f.width < 1) at.fail("a feed-forward width of at least 1", std::to_string(f.width));
  if (f.kind == FfnKind::moe && (f.topk < 1 || f.topk > f.experts)) {
    at.fail("top-k from 1 to the number of experts",
            fmt::format("top-{} of {} experts", f.topk, f.experts));
  }
}

}  // namespace

void check_model(const Model& model, const JsonValue& at) {
  if (model.hidden < 1 || model.vocab < 1) {
    at.fail("hidden and vocab of at least 1",
            fmt::format("hidden {}, vocab {}", model.hidden, model.vocab));
  }
  if (model.layers.empty()) at.fail("at least one layer", "no layers");
  for (const LayerClass& c : model.classes) {
    if (c.mixer.kind == MixerKind::none && c.ffn.kind == FfnKind::none) {
      at.fail("layers with a mixer or a feed-forward part", "a layer with neither");
    }
    check_mixer(c.mixer, at);
    check_ffn(c.ffn, at);
  }
  const double parameters = approximate_parameters(model);
  if (parameters > 1e17) {
    at.fail("a model below 10^17 parameters", fmt::format("about {:.1e} parameters", parameters));
  }
}

}  // namespace orrery
