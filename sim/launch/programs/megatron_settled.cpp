// SPDX-License-Identifier: Apache-2.0
// Settles what follows from several settings of Megatron-LM and NeMo.
#include <algorithm>

#include <fmt/format.h>

#include "sim/base/errors/check.h"
#include "sim/launch/programs/megatron_reader.h"
#include "workloads/layout/layout.h"

namespace orrery {

using namespace megatron_names;
using Dialect = MegatronDialect;

namespace {

// GPT-2's table, which this tokenizer brings along (https://huggingface.co/openai-community/gpt2,
// config.json, vocab_size).
constexpr std::int64_t gpt2_vocabulary = 50257;

// Presets of mixed precision are named by what they do.
std::string precision_of_preset(const std::string& name) {
  const auto has = [&](const char* part) { return name.find(part) != std::string::npos; };
  if (has("nvfp4")) return "nvfp4";
  if (has("mxfp8")) return "mxfp8";
  if (has("subchannel") || has("blockwise")) return "fp8-blockwise";
  if (has("current_scaling") || has("tensorwise")) return "fp8-current";
  if (has("fp8")) return "fp8-delayed";
  if (has("bf16")) return "bf16";
  return has("fp16") || name.starts_with("16") ? "fp16" : "";
}

}  // namespace

std::optional<std::int64_t> MegatronReader::replicas() const {
  const auto gpus = reading_.size("gpus");
  const std::int64_t ranks = reading_.size_or_one("tp") * reading_.size_or_one("pp");
  if (!gpus || *gpus % ranks != 0) return std::nullopt;
  return *gpus / ranks;
}

void MegatronReader::settle_gates() {
  GivenShape& s = model_.shape;
  const Said* grouped = kept("--group-query-attention");
  if (grouped != nullptr) {
    model_.part(*grouped);
    if (!truth_of(*grouped)) s.kv_heads = 0;
  } else if (dialect_ == Dialect::megatron) {
    s.kv_heads = 0;  // Megatron-LM reads their number where the switch is on
  }
  if (const Said* pattern = kept("--moe-layer-freq")) {
    const auto dense = leading_dense_layers(value_text(pattern->value), s.layers);
    model_.part(*pattern);
    s.dense_layers = dense.value_or(0);
    s.odd = s.odd || !dense;
  }
  const Said* tokenizer = kept("--tokenizer-type");
  if (tokenizer == nullptr) tokenizer = kept("--tokenizer.type");
  if (tokenizer != nullptr) {
    const bool gpt2 = value_text(tokenizer->value) == "GPT2BPETokenizer";
    if (s.vocab == 0 && gpt2) {
      s.vocab = gpt2_vocabulary;
      model_.part(*tokenizer);
    } else {
      reading_.without_effect(*tokenizer);
    }
  }
}

void MegatronReader::settle_precision() {
  const auto say = [&](const Said* said, const std::string& precision) {
    if (precision.empty())
      reading_.not_understood(*said, "no precision that is predicted: bf16 is");
    else
      reading_.set(*said, "precision", precision);
  };
  const auto rest = [&](std::initializer_list<const char*> names) {
    for (const char* name : names)
      if (const Said* said = kept(name)) reading_.part_of(*said, "precision");
  };
  if (const Said* preset = kept("mixed_precision"))
    return say(preset, precision_of_preset(value_text(preset->value)));
  if (const Said* preset = kept("recipe.trainer.plugins"))
    return say(preset, precision_of_preset(value_text(preset->value)));
  if (const Said* fp8 = kept("--fp8");
      fp8 != nullptr && dialect_ == Dialect::nemo1 && truth_of(*fp8)) {
    rest({"trainer.precision", "--fp8-hybrid", "--fp8-e4m3", "--transformer-engine"});
    return say(fp8, "fp8-delayed");
  }
  if (const Said* trainer = kept("trainer.precision")) {
    rest({"--fp8", "--fp8-hybrid", "--fp8-e4m3", "--precision", "--transformer-engine"});
    return say(trainer, precision_of_preset(value_text(trainer->value)));
  }
  if (const Said* fp4 = kept("--fp4-format"); fp4 != nullptr && !is_nothing(*fp4)) {
    rest({"--bf16", "--fp4-recipe"});
    return say(fp4, "nvfp4");
  }
  for (const char* name : {"--fp8-format", "--fp8-hybrid", "--fp8-e4m3", "--fp8"}) {
    const Said* fp8 = kept(name);
    if (fp8 == nullptr || is_nothing(*fp8)) continue;
    rest({"--bf16", "--fp16"});
    const Said* recipe = kept("--fp8-recipe");
    std::string kind = "delayed";
    if (recipe != nullptr) {
      kind = one_of(*recipe, {"delayed", "tensorwise", "blockwise", "mxfp8", "custom"});
      reading_.part_of(*recipe, "precision");
    }
    return say(fp8, kind == "delayed"      ? "fp8-delayed"
                    : kind == "tensorwise" ? "fp8-current"
                    : kind == "blockwise"  ? "fp8-blockwise"
                    : kind == "mxfp8"      ? "mxfp8"
                                           : "");
  }
  if (const Said* fp16 = kept("--fp16"); is_on(fp16)) return say(fp16, "fp16");
  if (const Said* bf16 = kept("--bf16"); is_on(bf16)) return say(bf16, "bf16");
  if (!recipes())
    reading_.missing("--bf16",
                     "without it or --fp16 the program computes in FP32, which is not "
                     "predicted: bf16 is");
}

void MegatronReader::settle_sharding() {
  const Said* name = kept(optimizer);
  const std::string text = name != nullptr && name->value.is_string() ? name->value.text() : "";
  const Said* own = kept(distributed_optimizer);
  const Said* twin = kept("optimizer.use_distributed_optimizer");
  const auto part = [&](const Said* said) {
    if (said != nullptr) reading_.part_of(*said, "zero");
  };
  const Said* strategy = kept(sharding);
  const Said* whole_fsdp = nullptr;
  for (const Said* said : {kept(fsdp), kept(custom_fsdp), kept("--use-torch-fsdp2"),
                           kept("recipe.trainer.strategy.fsdp"), kept("--fsdp")}) {
    if (said == nullptr || is_nothing(*said)) continue;
    const bool on = said->value.is_string() && dialect_ == Dialect::nemo2 ? true : truth_of(*said);
    if (on) whole_fsdp = said;
  }
  if (text == "dist_muon" || text == "muon") {
    reading_.follow("zero", text == "dist_muon" ? 1 : 0);
    part(own);
    part(twin);
  } else if (whole_fsdp != nullptr) {
    std::int64_t stage = whole_fsdp == kept("--use-torch-fsdp2") ? 3 : 0;
    if (strategy != nullptr) {
      const std::string kind =
          one_of(*strategy, {"no_shard", "optim", "optim_grads", "optim_grads_params"});
      stage = kind == "no_shard" ? 0 : kind == "optim" ? 1 : kind == "optim_grads" ? 2 : 3;
      part(strategy);
    }
    reading_.set(*whole_fsdp, "zero", stage);
    part(own);
    part(twin);
  } else {
    if (own == nullptr) std::swap(own, twin);
    if (own != nullptr) reading_.set(*own, "zero", truth_of(*own) ? 1 : 0);
    part(twin);
    if (strategy != nullptr) reading_.without_effect(*strategy, "no program of FSDP is turned on");
  }
  if (const Said* old = kept("--optim.name")) {
    const std::string kind = text_of(*old);
    reading_.set(*old, "zero", kind.find("distributed") != std::string::npos ? 1 : 0);
  }
  if (const Said* copies = kept(shard_copies); copies != nullptr && !is_nothing(*copies)) {
    const std::int64_t count = whole_of(*copies);
    const auto ranks = replicas();
    if (count == 1)
      reading_.without_effect(*copies, "it is the default");
    else if (!ranks || *ranks % count != 0)
      reading_.not_understood(*copies,
                              "how many ranks share states follows from gpus, which are "
                              "not said");
    else
      reading_.set(*copies, "shard_group", *ranks / count);
  }
  const Said* bucket = kept(bucket_size);
  if (const Said* half = kept(reduce_in_bf16))
    reading_.without_effect(*half, "gradients are predicted as the stack's release reduces them");
  if (const Said* whole_format = kept(reduce_in_fp32))
    reading_.without_effect(*whole_format,
                            "gradients are predicted as the stack's release reduces them");
  if (bucket == nullptr || is_nothing(*bucket)) return;
  const Said* fp32 = kept(reduce_in_fp32);
  const bool half = is_on(kept(reduce_in_bf16)) || (fp32 != nullptr && !truth_of(*fp32));
  reading_.set(*bucket, "bucket",
               fmt::format("{} B", whole_of(*bucket, 1, std::int64_t{1} << 40) * (half ? 2 : 4)));
}

void MegatronReader::settle_optimizer() {
  std::string kind;
  const Said* name = kept(optimizer);
  if (name != nullptr) {
    const std::string text = text_of(*name);
    if (text == "sgd")
      kind = to_text(Optimizer::sgd);
    else if (text == "muon" || text == "dist_muon")
      kind = to_text(Optimizer::muon);
    else if (text.find("adam") == std::string::npos)
      return reading_.not_understood(*name, "an optimizer that is not predicted: Adam is");
    if (!kind.empty()) return reading_.set(*name, "optimizer", kind);
    reading_.part_of(*name, "optimizer");
  }
  if (const Said* on = kept(precise)) {
    if (truth_of(*on))
      reading_.part_of(*on, "optimizer");
    else
      reading_.set(*on, "optimizer", std::string(to_text(Optimizer::adam_fp32)));
  }
  for (const char* moment :
       {"--exp-avg-dtype", "recipe.optim.config.exp_avg_dtype", "optimizer.exp_avg_dtype"}) {
    const Said* format = kept(moment);
    if (format == nullptr) continue;
    const std::string text = value_text(format->value);
    if (text.find("bf16") != std::string::npos || text.find("bfloat16") != std::string::npos)
      reading_.set(*format, "optimizer", std::string(to_text(Optimizer::adam_bf16_moments)));
    else if (text.find("fp8") != std::string::npos || text.find("uint8") != std::string::npos)
      reading_.set(*format, "optimizer", std::string(to_text(Optimizer::adam_8bit)));
    else if (text.find("32") != std::string::npos)
      reading_.set(*format, "optimizer", std::string(to_text(Optimizer::adam_fp32)));
    else
      reading_.not_understood(*format, "moments in a format that is not predicted");
  }
  for (const char* second :
       {"--exp-avg-sq-dtype", "recipe.optim.config.exp_avg_sq_dtype", "optimizer.exp_avg_sq_dtype"})
    if (const Said* format = kept(second)) reading_.part_of(*format, "optimizer");
}

void MegatronReader::settle_offload() {
  SortedJson moved = SortedJson::array();
  const Said* states = kept(offload_states);
  const Said* activations = kept(offload_layers);
  const Said* fraction = kept(offload_fraction);
  if (is_on(states)) moved.push_back("optimizer");
  const bool layers =
      activations != nullptr && !is_nothing(*activations) && whole_of(*activations, 0) > 0;
  if (layers) moved.push_back("activations");
  if (const Said* on = kept("--cpu-offloading")) reading_.part_of(*on, "offload");
  if (states != nullptr) reading_.part_of(*states, "offload");
  if (activations != nullptr) reading_.part_of(*activations, "offload");
  if (fraction != nullptr) {
    const double share = number_of(*fraction, 0, 1);
    if (is_on(states) && share > 0)
      reading_.set(*fraction, "optimizer_offload_fraction", share);
    else
      reading_.without_effect(*fraction, "no optimizer states are moved");
  }
  if (!moved.empty()) reading_.follow("offload", moved);
}

void MegatronReader::settle_recompute() {
  const Said* kind = kept(granularity);
  if (kind == nullptr) kind = kept("--activations-checkpoint-granularity");
  const Said* how = kept(method);
  const Said* count = kept(recomputed_layers);
  const Said* list = kept(modules);
  const auto unused = [&](std::initializer_list<const Said*> all_of_them) {
    for (const Said* said : all_of_them)
      if (said != nullptr)
        reading_.without_effect(*said, "no recompute that takes it is turned on");
  };
  if (const Said* old = kept("--checkpoint-activations"); is_on(old)) {
    reading_.set(*old, "recompute", "full");
    return unused({list});
  }
  if (const Said* on = kept("--recompute-activations"); is_on(on) && kind == nullptr) {
    reading_.set(*on, "recompute", "selective");
    if (list == nullptr) return unused({how, count});
    kind = on;
  }
  // NeMo's first releases had no word for what it recomputes: all, where it says how.
  if (kind == nullptr && dialect_ == Dialect::nemo1 && how != nullptr && !is_nothing(*how)) {
    reading_.set(*how, "recompute", "full");
    return unused({count, list});
  }
  if (kind == nullptr || is_nothing(*kind)) {
    if (kind != nullptr) reading_.set(*kind, "recompute", "none");
    return unused({how, count, list});
  }
  if (kind->name == "--recompute-activations" ||
      one_of(*kind, {"full", "selective"}) == "selective") {
    if (list == nullptr || is_nothing(*list)) {
      reading_.set(*kind, "recompute", "selective");
      return unused({how, count});
    }
    std::string names;
    const auto known = recompute_kind_text.names();
    for (const std::string& name : texts_of(*list)) names += (names.empty() ? "" : ",") + name;
    SortedJson choice = names;
    try {
      recompute_from(JsonValue::from(choice, list->place()));
    } catch (const Error&) {
      reading_.set(*kind, "recompute", "selective");
      return reading_.not_understood(*list,
                                     "modules that are not all predicted: attention's core is");
    }
    reading_.set(*list, "recompute", names);
    reading_.part_of(*kind, "recompute");
    return unused({how, count});
  }
  reading_.set(*kind, "recompute", "full");
  const bool block =
      how != nullptr && !is_nothing(*how) && one_of(*how, {"uniform", "block"}) == "block";
  if (how != nullptr) reading_.part_of(*how, "recompute");
  if (count != nullptr && !is_nothing(*count)) {
    const std::int64_t layers = whole_of(*count, 0);
    if (block)
      reading_.set(*count, "recompute_layers", layers);
    else if (layers == 1)
      reading_.part_of(*count, "recompute");
    else
      reading_.not_understood(*count,
                              "groups of layers that are kept at their begin alone: "
                              "predicted with every layer kept so");
  }
  unused({list});
}

}  // namespace orrery
