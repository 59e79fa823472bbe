// SPDX-License-Identifier: Apache-2.0
// Finds the model of a configuration in the catalogue, or describes it.
#include "sim/launch/read/model_shape.h"

#include <algorithm>

#include <fmt/format.h>

#include "hw_models/catalog.h"
#include "sim/base/errors/check.h"
#include "sim/base/text/words.h"
#include "workloads/model/model_catalog.h"

namespace orrery {
namespace {

// Programs round tables up so that ranks get equal parts: rows of one table lie in one such block.
constexpr std::int64_t padding_of_vocabulary = 1024;

std::filesystem::path models_folder() { return data_root() / "workloads/catalog/models"; }

std::int64_t blocks(std::int64_t vocab) {
  return (vocab + padding_of_vocabulary - 1) / padding_of_vocabulary;
}

bool same_mixer(const GivenShape& s, const Mixer& m) {
  if (s.latent)
    return m.kind == MixerKind::mla && m.heads == s.heads && m.kv_lora == s.kv_lora &&
           m.q_lora == s.q_lora && !is_served_only(m);
  const std::int64_t kv = s.kv_heads > 0 ? s.kv_heads : s.heads;
  const std::int64_t width =
      s.head_dim > 0 ? s.head_dim : s.hidden / std::max<std::int64_t>(1, s.heads);
  return m.kind == MixerKind::attention && m.heads == s.heads && m.kv_heads == kv &&
         m.qk_dim == width && !is_served_only(m);
}

std::int64_t feed_forward(const GivenShape& s) { return s.ffn > 0 ? s.ffn : 4 * s.hidden; }

bool same_activation(const GivenShape& s, Activation a) {
  if (s.gated) return is_gated(a);
  return s.squared_relu ? a == Activation::squared_relu : a == Activation::gelu;
}

bool same_position(const GivenShape& s, PositionKind p) {
  if (s.rotary) return p == PositionKind::rotary;
  if (s.alibi) return p == PositionKind::alibi;
  return p == PositionKind::learned || p == PositionKind::none;
}

bool same_ffn(const GivenShape& s, const Ffn& f, bool expert_layer) {
  if (!same_activation(s, f.activation)) return false;
  if (!expert_layer) return f.kind == FfnKind::dense && f.width == feed_forward(s);
  const std::int64_t width = s.expert_width > 0 ? s.expert_width : feed_forward(s);
  return f.kind == FfnKind::moe && f.experts == s.experts && f.width == width &&
         (s.topk == 0 || f.topk == s.topk) && f.shared_width == s.shared_width;
}

bool fits(const GivenShape& s, const Model& model) {
  if (model.layer_count() != s.layers || model.hidden != s.hidden) return false;
  if (s.tied && *s.tied != model.tied_embeddings) return false;
  if (!same_position(s, model.position)) return false;
  if (s.vocab > 0 && s.vocab != model.vocab &&
      !(s.padded && blocks(s.vocab) == blocks(model.vocab)))
    return false;
  for (std::int64_t i = 0; i < model.layer_count(); ++i) {
    const LayerClass& layer = model.layer(i);
    if (!same_mixer(s, layer.mixer)) return false;
    if (!same_ffn(s, layer.ffn, s.experts > 0 && i >= s.dense_layers)) return false;
  }
  return true;
}

}  // namespace

Take ModelReader::size(std::int64_t GivenShape::*member, std::int64_t low) {
  return [this, member, low](const Said& said) {
    shape.*member = whole_of(said, low, std::int64_t{1} << 27);
    part(said);
  };
}

Take ModelReader::flag(bool GivenShape::*member, bool value) {
  return [this, member, value](const Said& said) {
    shape.*member = truth_of(said) == value;
    part(said);
  };
}

void ModelReader::name(const Said& said, const std::string& name) {
  named_ = said;
  name_ = name;
}

void ModelReader::note_parts(const std::string& note) {
  for (const Said& said : said_) reading_.without_effect(said, note);
}

void ModelReader::take_catalogue(const std::string& entry, const std::string& how) {
  model_ = load_model(entry, models_folder());
  reading_.follow("model", entry);
  if (named_)
    reading_.set(*named_, "model", entry, how);
  else
    for (const Said& said : said_) reading_.set(said, "model", entry, how);
}

// Networks of these sizes, and the entries that hold them.
struct ModelReader::Matches {
  std::vector<std::string> entries;
  std::vector<Model> networks;
};

ModelReader::Matches ModelReader::matches(bool with_context) const {
  Matches found;
  for (const std::string& entry : model_names(models_folder())) {
    Model model = load_model(entry, models_folder());
    if (!fits(shape, model) || (with_context && model.max_context != shape.positions)) continue;
    found.entries.push_back(entry);
    const bool known = std::any_of(found.networks.begin(), found.networks.end(),
                                   [&](const Model& one) { return same_network(one, model); });
    if (!known) found.networks.push_back(std::move(model));
  }
  return found;
}

bool ModelReader::match() {
  Matches all = matches(false);
  // Models that differ in what is not said may differ in the context that they are trained for.
  if (all.networks.size() > 1 && shape.positions > 0)
    if (Matches fewer = matches(true); fewer.networks.size() == 1) all = std::move(fewer);
  std::vector<std::string>& found = all.entries;
  const std::vector<Model>& networks = all.networks;
  // Of several names of one network that which others are based on.
  const auto is_based = [](const std::string& entry) {
    return JsonValue::load(models_folder() / (entry + ".json")).has("based_on");
  };
  std::stable_partition(found.begin(), found.end(),
                        [&](const std::string& entry) { return !is_based(entry); });
  if (networks.size() == 1) {
    const std::string how =
        found.size() == 1
            ? "the catalogue's only model of these sizes"
            : fmt::format("the catalogue's only network of these sizes, which {} share",
                          joined(found, ", "));
    take_catalogue(found.front(), how);
    return true;
  }
  if (networks.empty()) return false;
  for (const Said& said : said_) reading_.part_of(said, "model");
  reading_.missing("the model",
                   fmt::format("{} have these sizes: name one with --model", joined(found, ", ")));
  model_ = networks.front();  // layers and heads are the same
  return true;
}

void ModelReader::make_entry() {
  const GivenShape& s = shape;
  if (s.vocab == 0 || s.odd || s.alibi) {
    for (const Said& said : said_) reading_.part_of(said, "model");
    reading_.missing("the model",
                     s.odd ? "no entry can be made of these settings: name one with --model"
                           : "its vocabulary is not said, and no model of the "
                             "catalogue has these sizes: name one with --model");
    return;
  }
  SortedJson mixer;
  if (s.latent)
    mixer = {{"kind", "mla"},         {"heads", s.heads},   {"qk_dim", s.nope_dim + s.rope_dim},
             {"v_dim", s.v_dim},      {"q_lora", s.q_lora}, {"kv_lora", s.kv_lora},
             {"rope_dim", s.rope_dim}};
  else
    mixer = {
        {"kind", "attention"},
        {"heads", s.heads},
        {"kv_heads", s.kv_heads > 0 ? s.kv_heads : s.heads},
        {"qk_dim", s.head_dim > 0 ? s.head_dim : std::max<std::int64_t>(1, s.hidden / s.heads)},
        {"qkv_bias", s.biases || s.qkv_bias},
        {"out_bias", s.biases},
        {"qk_norm", s.qk_norm}};
  const char* activation = s.gated ? "swiglu" : s.squared_relu ? "squared-relu" : "gelu";
  const SortedJson dense = {{"kind", "dense"},
                            {"activation", activation},
                            {"width", feed_forward(s)},
                            {"bias", s.biases}};
  const SortedJson routed = {{"kind", "moe"},
                             {"activation", activation},
                             {"width", s.expert_width > 0 ? s.expert_width : feed_forward(s)},
                             {"bias", s.biases},
                             {"experts", std::max<std::int64_t>(1, s.experts)},
                             {"topk", s.topk > 0 ? s.topk : 2},
                             {"shared_width", s.shared_width}};
  SortedJson layers = SortedJson::array();
  const std::int64_t first = s.experts > 0 ? s.dense_layers : s.layers;
  if (first > 0) layers.push_back({{"count", first}, {"mixer", mixer}, {"ffn", dense}});
  if (first < s.layers)
    layers.push_back({{"count", s.layers - first}, {"mixer", mixer}, {"ffn", routed}});
  const SortedJson entry = {{"name", "as-configured"},
                            {"title", "the model of the configuration"},
                            {"hidden", s.hidden},
                            {"vocab", s.vocab},
                            {"positions", s.rotary ? 0 : s.positions},
                            {"max_context", s.positions},
                            {"norm", s.rms_norm ? "rms-norm" : "layer-norm"},
                            {"position", s.rotary          ? "rotary"
                                         : s.positions > 0 ? "learned"
                                                           : "none"},
                            {"tied_embeddings", s.tied.value_or(true)},
                            {"layers", layers}};
  try {
    model_ = read_model(JsonValue::from(entry, reading_.run().file));
  } catch (const Error& error) {
    throw Error({.file = reading_.run().file,
                 .path = "the model's sizes",
                 .found = error.info().path + ": " + error.info().found,
                 .expected = error.info().expected});
  }
  for (const Said& said : said_)
    reading_.set(said, "model", entry,
                 "an entry of its own: no model of the catalogue is of these sizes");
  for (GivenItem& item : reading_.run().understood)
    if (item.key == "model") item.becomes = "an entry of its own";
  reading_.follow("model", entry);
}

const Model* ModelReader::settle() {
  if (const auto asked = reading_.asked().find("model"); asked != reading_.asked().end()) {
    model_ = load_model(JsonValue::from(*asked, "model").reference(), models_folder());
    if (named_) reading_.without_effect(*named_, "the question names the model");
    note_parts("the question names the model");
    if (shape.layers > 0 && shape.layers != model_->layer_count())
      reading_.missing("the model", fmt::format("it has {} layers here and {} in the question",
                                                shape.layers, model_->layer_count()));
    return &*model_;
  }
  if (named_) {
    if (const auto entry = model_of_name(name_)) {
      take_catalogue(*entry, "");
      note_parts("sizes of the model that is named");
      return &*model_;
    }
  }
  const bool sized = shape.layers > 0 && shape.hidden > 0 && shape.heads > 0;
  if (sized) {
    if (named_) reading_.without_effect(*named_, "the sizes say which model it is");
    named_.reset();
    if (!match()) make_entry();
  } else {
    if (named_)
      reading_.not_understood(*named_,
                              "no model of the catalogue has this name: name one with --model");
    for (const Said& said : said_)
      reading_.not_understood(said, "the model's layers, width and heads are not all said");
  }
  return model_ ? &*model_ : nullptr;
}

std::optional<std::int64_t> leading_dense_layers(const std::string& pattern, std::int64_t layers) {
  std::string text;
  for (const char c : pattern)
    if (c != ' ' && c != '\'' && c != '"') text += c;
  if (text == "1") return 0;
  while (text.size() > 2 && text.front() == '(' && text.back() == ')')
    text = text.substr(1, text.size() - 2);
  std::vector<int> kinds;
  for (std::size_t at = 0; at < text.size();) {
    if (text.compare(at, 1, "[") != 0) return std::nullopt;
    const std::size_t close = text.find(']', at);
    if (close == std::string::npos) return std::nullopt;
    std::vector<int> group;
    for (std::size_t i = at + 1; i < close; ++i) {
      if (text[i] == '0' || text[i] == '1')
        group.push_back(text[i] - '0');
      else if (text[i] != ',')
        return std::nullopt;
    }
    at = close + 1;
    std::int64_t times = 1;
    if (at < text.size() && text[at] == '*') {
      std::size_t end = at + 1;
      times = 0;
      while (end < text.size() && text[end] >= '0' && text[end] <= '9' && times < 100'000)
        times = 10 * times + (text[end++] - '0');
      at = end;
    }
    if (times * static_cast<std::int64_t>(group.size()) > 100'000) return std::nullopt;
    for (std::int64_t i = 0; i < times; ++i) kinds.insert(kinds.end(), group.begin(), group.end());
    if (at < text.size() && text[at++] != '+') return std::nullopt;
  }
  if (kinds.empty() || (layers > 0 && static_cast<std::int64_t>(kinds.size()) != layers))
    return std::nullopt;
  const auto first = std::find(kinds.begin(), kinds.end(), 1);
  if (std::find(first, kinds.end(), 0) != kinds.end()) return std::nullopt;
  return first - kinds.begin();
}

}  // namespace orrery
