// SPDX-License-Identifier: Apache-2.0
// Describes a neural network: its layers by class, their shapes and exact parameter counts.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "sim/base/json/json.h"
#include "sim/base/text/enum_names.h"

namespace orrery {

// What a shape's sizes and its layers are at most: far above any that was published.
inline constexpr std::int64_t max_model_size = std::int64_t{1} << 28;
inline constexpr std::int64_t max_model_layers = 16384;

enum class MixerKind : std::uint8_t { attention, mla, mamba2, gated_delta, none };
enum class FfnKind : std::uint8_t { dense, moe, none };
enum class Activation : std::uint8_t { gelu, relu, squared_relu, swiglu, geglu };
enum class NormKind : std::uint8_t { layer_norm, rms_norm };  // layer_norm has weight and bias
enum class PositionKind : std::uint8_t { learned, rotary, alibi, none };

inline constexpr auto mixer_kind_text =
    enum_names<MixerKind>({"attention", "mla", "mamba2", "gated-delta", "none"});
inline constexpr auto ffn_kind_text = enum_names<FfnKind>({"dense", "moe", "none"});
inline constexpr auto activation_text =
    enum_names<Activation>({"gelu", "relu", "squared-relu", "swiglu", "geglu"});
inline constexpr auto norm_kind_text = enum_names<NormKind>({"layer-norm", "rms-norm"});
inline constexpr auto position_kind_text =
    enum_names<PositionKind>({"learned", "rotary", "alibi", "none"});
constexpr std::string_view to_text(MixerKind k) { return mixer_kind_text[k]; }
constexpr std::string_view to_text(FfnKind k) { return ffn_kind_text[k]; }
constexpr std::string_view to_text(Activation a) { return activation_text[a]; }
constexpr std::string_view to_text(NormKind k) { return norm_kind_text[k]; }
constexpr std::string_view to_text(PositionKind k) { return position_kind_text[k]; }

constexpr bool is_gated(Activation a) { return a == Activation::swiglu || a == Activation::geglu; }

struct Mixer {
  MixerKind kind = MixerKind::attention;
  std::int64_t heads = 0, kv_heads = 0;
  std::int64_t qk_dim = 128, v_dim = 128;              // per head; MLA: qk_dim = nope + rope
  std::int64_t window = 0;                             // sliding window in tokens; 0: full
  std::int64_t q_lora = 0, kv_lora = 0, rope_dim = 0;  // MLA; q_lora 0: full-rank queries
  bool qkv_bias = false, out_bias = false, qk_norm = false, sinks = false;
  bool out_gate = false;  // a sigmoid gate as wide as the result, from queries' projection
  // Mamba-2: heads of v_dim, `groups` of state size `state`, convolution width `conv`. Gated delta
  // net: the same with `groups` key heads of width `state`.
  std::int64_t state = 0, groups = 0, conv = 0, inner = 0;
  // An indexer (heads, width of one, keys that it chooses) picks the keys that are attended to.
  std::int64_t index_heads = 0, index_dim = 0, index_topk = 0;
  // Compressed attention: every `compress` tokens become one key, beside a window of plain ones;
  // keys are values. Results go through `out_lora` elements for each of `out_groups` groups.
  std::int64_t compress = 0, out_lora = 0, out_groups = 0;
  bool operator==(const Mixer&) const = default;
};

// Mixers that serving engines run, and that no training kernel was measured of.
constexpr bool is_served_only(const Mixer& m) {
  return m.kind == MixerKind::gated_delta || m.index_heads > 0 || m.compress > 0;
}

// Mixers that keep a state of one size for each sequence in place of keys and values.
constexpr bool keeps_states(const Mixer& m) {
  return m.kind == MixerKind::mamba2 || m.kind == MixerKind::gated_delta;
}

struct Ffn {
  FfnKind kind = FfnKind::dense;
  Activation activation = Activation::swiglu;
  std::int64_t width = 0;  // dense: intermediate size; moe: of one expert
  bool bias = false;
  std::int64_t experts = 0, topk = 0;
  std::int64_t shared_width = 0;  // total intermediate size of the shared experts; 0: none
  bool shared_gate = false;       // Qwen2-MoE: a sigmoid gate on the shared expert
  bool router_bias = false;
  std::int64_t latent = 0;  // latent MoE: experts work in this width instead of hidden; 0: no
  bool operator==(const Ffn&) const = default;
};

// Layers that are equal in every shape form one class and are computed once.
struct LayerClass {
  Mixer mixer;
  Ffn ffn;
  int norms = 2;  // normalisations of width hidden (Gemma 2: 4)
  bool operator==(const LayerClass&) const = default;
};

// Parts of a layer whose weights a checkpoint may keep in a format of their own.
enum class ModelPart : std::uint8_t {
  attention,         // what makes queries, keys and values
  attention_output,  // the projection behind attention
  indexer,
  state_mixer,  // Mamba-2 and gated delta nets
  dense,        // feed-forwards without experts
  shared,       // shared experts
  experts,      // routed ones
};
inline constexpr auto model_part_text =
    enum_names<ModelPart>({"attention", "attention-output", "indexer", "state-mixer", "dense",
                           "shared-experts", "experts"});

// A checkpoint of a precision recipe whose parts are not all in it.
struct Checkpoint {
  struct Part {
    ModelPart part = ModelPart::attention;
    std::string precision;
    bool operator==(const Part&) const = default;
  };
  std::string precision;    // a recipe's text ("nvfp4")
  std::vector<Part> other;  // parts in another one
};

struct Model {
  std::string name, title, family, source;
  std::vector<std::string> assumptions;  // sentences: what is not published
  std::int64_t hidden = 0, vocab = 0;
  std::int64_t positions = 0;    // rows of a learned position table; 0: none
  std::int64_t max_context = 0;  // as trained; 0: unknown
  NormKind norm = NormKind::rms_norm;
  PositionKind position = PositionKind::rotary;
  bool tied_embeddings = false;
  bool embedding_norm = false;  // BLOOM
  bool parallel_block = false;  // attention and FFN side by side, one norm
  std::vector<LayerClass> classes;
  std::vector<std::uint8_t> layers;  // class of each layer, in order
  std::int64_t mtp_layers = 0;       // multi-token prediction modules (class of the last layer)
  std::vector<Checkpoint> checkpoints;

  std::int64_t layer_count() const { return static_cast<std::int64_t>(layers.size()); }
  const LayerClass& layer(std::int64_t i) const {
    return classes[layers[static_cast<std::size_t>(i)]];
  }
  bool has_experts() const;
  bool has_scans() const;            // layers of Mamba-2
  std::int64_t max_experts() const;  // of any layer; 0 for dense
};

// Parameters of one layer, split the way parallelism splits them.
struct LayerParameters {
  std::int64_t mixer = 0;           // split over tp
  std::int64_t ffn = 0;             // dense FFN and shared experts, split over tp
  std::int64_t experts = 0;         // routed experts, all of them, split over ep x etp
  std::int64_t router = 0;          // replicated
  std::int64_t norms = 0;           // replicated
  std::int64_t active_experts = 0;  // of `experts`, those that one token uses
  std::int64_t total() const { return mixer + ffn + experts + router + norms; }
};
struct ParameterCount {
  // Without MTP modules. Active: all but the routed experts that one token does not use; the
  // embedding table counts whole, as most publishers count it.
  std::int64_t total = 0, active = 0;
  std::int64_t embedding = 0, head = 0;  // head 0 when tied
  std::int64_t final_norm = 0;
  std::int64_t mtp = 0;  // all MTP modules, not in total
};
// Appends a layer, in the class that equals it or in a new one. Error past 256 classes.
void append_layer(Model& model, const LayerClass& layer);
// Whether both compute the same: every shape and layer is equal; names, source and context are not
// compared.
bool same_network(const Model& a, const Model& b);

LayerParameters layer_parameters(const Model& model, const LayerClass& layer);
ParameterCount count_parameters(const Model& model);

// Catalogue form: workloads/catalog/models/<name>.json (schema in workloads/catalog/README.md).
Model read_model(const JsonValue& file);
// Throws an Error at `at` unless the sizes are positive and fit together (heads divide, top-k is at
// most the experts) and the parameters stay below 10^17, so that counts fit an int64.
void check_model(const Model& model, const JsonValue& at);
// A Hugging Face config.json: llama, mistral, mixtral, qwen2(_moe), qwen3(_moe), deepseek_v2/v3,
// kimi_k2, gpt2, gpt_neox, opt, bloom, gemma/2/3, phi3, glm4_moe, gpt_oss, llama4, nemotron,
// nemotron_h, grok, falcon. Error naming model_type and the nearest known one otherwise. The name
// is the file's, or its folder's when the file is called config.json.
Model read_hugging_face_config(const JsonValue& file);

}  // namespace orrery
