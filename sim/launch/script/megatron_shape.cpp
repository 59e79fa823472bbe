// SPDX-License-Identifier: Apache-2.0
// Says a model's shape in Megatron-LM's flags.
#include <algorithm>
#include <optional>

#include <fmt/format.h>

#include "sim/launch/flag_writer.h"
#include "sim/launch/script/program.h"
#include "sim/launch/script/shape.h"

namespace orrery {
namespace {

class MegatronShape {
 public:
  MegatronShape(const Model& model, const Job& job, const Stack& stack)
      : model_(model), job_(job), release_(release_number(stack.flags_release)) {}

  ShapeFlags all() {
    if (release_ < std::pair(0, 12))
      lacks("names of these flags were read in Megatron-Core 0.15: check them in this release");
    size("--num-layers", model_.layer_count());
    size("--hidden-size", model_.hidden);
    mixers();
    windows();
    feed_forwards();
    norms_and_positions();
    biases();
    return std::move(out_);
  }

 private:
  void set(const char* name, std::string value = "") {
    out_.flags.push_back({name, std::move(value), ""});
  }
  void size(const char* name, std::int64_t value) { set(name, fmt::format("{}", value)); }
  void lacks(const std::string& what) {
    std::string sentence = fmt::format("The model's shape: {}.", what);
    std::vector<std::string>& said = out_.missing;
    if (std::find(said.begin(), said.end(), sentence) == said.end())
      said.push_back(std::move(sentence));
  }

  // The value that all layers with one share; nullopt: none has one. Says where they differ.
  template <class Of>
  std::optional<std::int64_t> common(const char* what, Of of) {
    std::optional<std::int64_t> value;
    for (const LayerClass& layer : model_.classes) {
      const std::int64_t here = of(layer);
      if (here <= 0) continue;
      if (value && *value != here) {
        lacks(fmt::format("no flag says that {} differ from layer to layer", what));
        return std::max(*value, here);
      }
      value = here;
    }
    return value;
  }
  template <class Of>
  void common_size(const char* name, const char* what, Of of) {
    if (const auto value = common(what, of)) size(name, *value);
  }
  template <class Is>
  bool any(Is is) const {
    return std::any_of(model_.classes.begin(), model_.classes.end(), is);
  }

  static bool attends(const LayerClass& l) {
    return l.mixer.kind == MixerKind::attention || l.mixer.kind == MixerKind::mla;
  }

  void mixers();
  void grouped();
  void latent();
  void scans();

  // Runs of layers by whether `is` holds, as Python says them: "([0]*3+[1]*58)", or what is
  // repeated, "([1]*5+[0]*1)*8".
  template <class Is>
  std::string pattern(Is is) const {
    const std::int64_t layers = model_.layer_count();
    const auto repeats = [&](std::int64_t period) {
      for (std::int64_t i = period; i < layers; ++i)
        if (is(model_.layer(i)) != is(model_.layer(i - period))) return false;
      return layers % period == 0;
    };
    std::int64_t period = 1;
    while (!repeats(period)) ++period;
    std::string text;
    for (std::int64_t i = 0, run = 0; i < period; i += run) {
      const bool now = is(model_.layer(i));
      for (run = 1; i + run < period && is(model_.layer(i + run)) == now;) ++run;
      text += fmt::format("{}[{}]*{}", text.empty() ? "" : "+", now ? 1 : 0, run);
    }
    return period < layers ? fmt::format("'({})*{}'", text, layers / period)
                           : fmt::format("'({})'", text);
  }
  template <class Is>
  bool all_layers(Is is) const {
    return std::all_of(model_.classes.begin(), model_.classes.end(), is);
  }

  void windows();
  void feed_forwards();
  void activation();
  void norms_and_positions();
  void biases();

  const Model& model_;
  const Job& job_;
  std::pair<int, int> release_;
  ShapeFlags out_;
};

void MegatronShape::mixers() {
  common_size("--num-attention-heads", "numbers of heads",
              [](const LayerClass& l) { return attends(l) ? l.mixer.heads : 0; });
  if (any([](const LayerClass& l) { return l.mixer.kind == MixerKind::mla; })) latent();
  if (any([](const LayerClass& l) { return l.mixer.kind == MixerKind::attention; })) grouped();
  if (any([](const LayerClass& l) { return l.mixer.kind == MixerKind::mamba2; })) scans();
  if (any([](const LayerClass& l) { return l.mixer.qk_norm; })) set("--qk-layernorm");
  if (any([](const LayerClass& l) { return is_served_only(l.mixer); }))
    lacks("no flag says its indexers, compressed keys or gated delta nets");
  if (any([](const LayerClass& l) { return l.mixer.out_gate; }))
    lacks("no flag says the gate on attention's result");
  if (!any([](const LayerClass& l) { return l.mixer.sinks; })) return;
  if (release_ < std::pair(0, 14)) return lacks("no flag says attention's sinks");
  set("--softmax-type", "learnable");
}

void MegatronShape::grouped() {
  const auto of = [](std::int64_t Mixer::*size) {
    return [size](const LayerClass& l) {
      return l.mixer.kind == MixerKind::attention ? l.mixer.*size : 0;
    };
  };
  const auto heads = common("numbers of heads", of(&Mixer::heads));
  const auto groups = common("numbers of key heads", of(&Mixer::kv_heads));
  common_size("--kv-channels", "widths of heads", of(&Mixer::qk_dim));
  if (any([](const LayerClass& l) {
        return l.mixer.kind == MixerKind::attention && l.mixer.qk_dim != l.mixer.v_dim;
      }))
    lacks("no flag says values of another width than keys");
  if (!heads || !groups || *heads == *groups) return;
  set("--group-query-attention");
  size("--num-query-groups", *groups);
}

void MegatronShape::latent() {
  set("--multi-latent-attention");
  const auto of = [](auto size) {
    return [size](const LayerClass& l) {
      return l.mixer.kind == MixerKind::mla ? size(l.mixer) : std::int64_t{0};
    };
  };
  common_size("--q-lora-rank", "ranks of queries", of([](const Mixer& m) { return m.q_lora; }));
  common_size("--kv-lora-rank", "ranks of keys", of([](const Mixer& m) { return m.kv_lora; }));
  common_size("--qk-head-dim", "widths of heads",
              of([](const Mixer& m) { return m.qk_dim - m.rope_dim; }));
  common_size("--qk-pos-emb-head-dim", "widths of positions",
              of([](const Mixer& m) { return m.rope_dim; }));
  common_size("--v-head-dim", "widths of values", of([](const Mixer& m) { return m.v_dim; }));
}

void MegatronShape::scans() {
  const auto of = [](std::int64_t Mixer::*size) {
    return [size](const LayerClass& l) {
      return l.mixer.kind == MixerKind::mamba2 ? l.mixer.*size : 0;
    };
  };
  common_size("--mamba-num-heads", "numbers of Mamba heads", of(&Mixer::heads));
  common_size("--mamba-head-dim", "widths of Mamba heads", of(&Mixer::v_dim));
  common_size("--mamba-num-groups", "numbers of Mamba groups", of(&Mixer::groups));
  common_size("--mamba-state-dim", "sizes of Mamba states", of(&Mixer::state));
}

void MegatronShape::windows() {
  const auto sees = [](const LayerClass& l) { return l.mixer.window > 0; };
  if (!any(sees)) return;
  if (release_ < std::pair(0, 14)) return lacks("no flag says its sliding windows");
  const auto window = common("sliding windows", [](const LayerClass& l) { return l.mixer.window; });
  // Keys before a token and after it: the token itself is one of the window.
  set("--window-size", quoted_word(fmt::format("{},0", *window - 1)));
  if (!all_layers(sees)) set("--window-attn-skip-freq", pattern(sees));
}

void MegatronShape::feed_forwards() {
  const auto dense = [](const LayerClass& l) {
    return l.ffn.kind == FfnKind::dense ? l.ffn.width : 0;
  };
  const auto routed = [](const LayerClass& l) { return l.ffn.kind == FfnKind::moe; };
  const auto width = common("widths of feed-forwards", dense);
  const auto expert =
      common("widths of experts", [&](const LayerClass& l) { return routed(l) ? l.ffn.width : 0; });
  if (width || expert) size("--ffn-hidden-size", width ? *width : *expert);
  activation();
  if (!expert) return;
  size("--moe-ffn-hidden-size", *expert);
  common_size("--num-experts", "numbers of experts",
              [](const LayerClass& l) { return l.ffn.experts; });
  common_size("--moe-router-topk", "experts of a token",
              [](const LayerClass& l) { return l.ffn.topk; });
  common_size("--moe-shared-expert-intermediate-size", "widths of shared experts",
              [](const LayerClass& l) { return l.ffn.shared_width; });
  // Hybrid models name their expert layers in their pattern.
  if (!all_layers(routed) && !model_.has_scans()) set("--moe-layer-freq", pattern(routed));
  if (any([](const LayerClass& l) { return l.ffn.shared_gate; }))
    lacks("no flag says the gate on its shared expert");
  if (any([](const LayerClass& l) { return l.ffn.latent > 0; }))
    lacks("no flag says experts that work in a width of their own");
  if (any([](const LayerClass& l) { return l.ffn.router_bias; }))
    lacks(
        "its router has a bias; that of balancing without a loss is "
        "--moe-router-enable-expert-bias, for another there is no flag");
}

void MegatronShape::activation() {
  std::optional<Activation> one;
  for (const LayerClass& layer : model_.classes) {
    if (layer.ffn.kind == FfnKind::none) continue;
    if (one && *one != layer.ffn.activation)
      lacks("no flag says that activations differ from layer to layer");
    one = layer.ffn.activation;
  }
  if (!one || *one == Activation::gelu) return;  // as is the default
  if (*one == Activation::swiglu) return set("--swiglu");
  if (*one == Activation::squared_relu) return set("--squared-relu");
  lacks(fmt::format("no flag says the activation {}", to_text(*one)));
}

void MegatronShape::norms_and_positions() {
  set("--normalization", model_.norm == NormKind::rms_norm ? "RMSNorm" : "LayerNorm");
  if (any([](const LayerClass& l) { return l.norms > 2; }))
    lacks("no flag says norms behind attention and feed-forward");
  if (model_.parallel_block) lacks("no flag says attention and feed-forward side by side");
  if (model_.embedding_norm) lacks("no flag says a norm behind the embedding");
  switch (model_.position) {
    case PositionKind::rotary:
      set("--position-embedding-type", "rope");
      break;
    case PositionKind::learned:
      set("--position-embedding-type", "learned_absolute");
      break;
    case PositionKind::none:
      set("--position-embedding-type", "none");
      break;
    case PositionKind::alibi:
      set("--position-embedding-type", "none");
      lacks("no flag says ALiBi");
      break;
  }
  // A table's rows; for others a limit that no sequence may pass.
  size("--max-position-embeddings",
       model_.positions > 0 ? model_.positions : std::max(model_.max_context, job_.sequence));
  if (!model_.tied_embeddings) set("--untie-embeddings-and-output-weights");
}

void MegatronShape::biases() {
  const auto all = [&](auto has) { return all_layers(has); };
  const bool queries = any([](const LayerClass& l) { return l.mixer.qkv_bias; });
  const bool rest = any([](const LayerClass& l) { return l.mixer.out_bias || l.ffn.bias; });
  const bool every = all([](const LayerClass& l) {
    return (!attends(l) || (l.mixer.qkv_bias && l.mixer.out_bias)) &&
           (l.ffn.kind == FfnKind::none || l.ffn.bias);
  });
  if (queries && every) return;  // as is the default
  set("--disable-bias-linear");
  if (queries) set("--add-qkv-bias");
  if (rest) lacks("no flag says biases of some linear layers beside queries, keys and values");
}

}  // namespace

ShapeFlags megatron_shape(const Model& model, const Job& job, const Stack& stack) {
  return MegatronShape(model, job, stack).all();
}

}  // namespace orrery
