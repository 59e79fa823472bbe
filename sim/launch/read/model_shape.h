// SPDX-License-Identifier: Apache-2.0
// Knows which model a configuration trains: by its name, or by the sizes that it gives.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "sim/launch/read/reading.h"
#include "workloads/model/model.h"

namespace orrery {

// Sizes of a model as configurations give them; 0: not said.
struct GivenExperts {
  std::int64_t experts = 0, topk = 0, expert_width = 0, shared_width = 0;
  std::int64_t dense_layers = 0;  // before those with experts
};
struct GivenLatent {
  bool latent = false;  // multi-head latent attention
  std::int64_t q_lora = 0, kv_lora = 0, nope_dim = 0, rope_dim = 0, v_dim = 0;
};
struct GivenStyle {
  bool gated = false, squared_relu = false;  // of the feed-forward; else GELU
  bool biases = false, qkv_bias = false, qk_norm = false, rms_norm = false;
  bool rotary = false, alibi = false;  // else learned positions
};
struct GivenShape : GivenExperts, GivenLatent, GivenStyle {
  std::int64_t layers = 0, hidden = 0, ffn = 0, heads = 0, kv_heads = 0, head_dim = 0;
  std::int64_t vocab = 0, positions = 0;
  bool padded = false;  // the vocabulary may be rounded up
  std::optional<bool> tied;
  bool odd = false;  // it has parts that no entry made of these sizes would have
};

// Settles "model" of the reading: the question's own, the one that is named, the catalogue's only
// network of these sizes, or an entry of its own. `said`: the settings that gave the sizes.
class ModelReader {
 public:
  explicit ModelReader(GivenReading& reading) : reading_(reading) {}
  GivenShape shape;
  // A setting that gives a size.
  Take size(std::int64_t GivenShape::*member, std::int64_t low = 1);
  Take flag(bool GivenShape::*member, bool value = true);
  void part(const Said& said) { said_.push_back(said); }
  // A name of a model, a checkpoint or a tokenizer's folder.
  void name(const Said& said, const std::string& name);
  // The model that is trained, where it can be told; nullptr: it cannot.
  const Model* settle();

 private:
  void take_catalogue(const std::string& entry, const std::string& how);
  struct Matches;
  Matches matches(bool with_context) const;
  bool match();
  void make_entry();
  void note_parts(const std::string& note);

  GivenReading& reading_;
  std::vector<Said> said_;
  std::optional<Said> named_;
  std::string name_;
  std::optional<Model> model_;
};

// The pattern of expert layers as Megatron-LM takes it: 1, 2, "([0]*3+[1]*58)". Layers without
// experts before the others; nullopt: another pattern.
std::optional<std::int64_t> leading_dense_layers(const std::string& pattern, std::int64_t layers);

}  // namespace orrery
