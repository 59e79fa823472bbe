// SPDX-License-Identifier: Apache-2.0
// Reads settings of nanotron, MaxText, NeuronX Distributed Training and Megatron-LM for Gaudi.
#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "sim/base/errors/check.h"
#include "sim/launch/programs/program_readers.h"
#include "workloads/layout/layout.h"

namespace orrery {
namespace {

std::string without_dashes(const std::string& name) {
  return name.starts_with("--") ? name.substr(2) : name;
}

// Sizes that say nothing where the model has no experts.
void forget_experts(GivenReading& reading, const Model* model) {
  if (model == nullptr || model->has_experts()) return;
  if (reading.size_or_one("ep") == 1) reading.forget("ep");
  reading.forget("etp");
}

void read_type(GivenReading& reading, const Said& said) {
  const std::string type =
      one_of(said, {"bfloat16", "bf16", "float16", "fp16", "float32", "mixed_precision"});
  if (type == "float32") return reading.not_understood(said, "FP32 is not predicted: bf16 is");
  reading.set(said, "precision", type.ends_with("16") && type[0] != 'b' ? "fp16" : "bf16");
}

void read_nanotron_model(SectionReader& s) {
  const auto size = [&](const char* name, std::int64_t GivenShape::*member) {
    s.rules["model.model_config." + std::string(name)] = [&s, member](const Said& said) {
      if (is_nothing(said)) return s.reading.without_effect(said, "it is not set");
      s.model.size(member)(said);
    };
  };
  size("num_hidden_layers", &GivenShape::layers);
  size("hidden_size", &GivenShape::hidden);
  size("intermediate_size", &GivenShape::ffn);
  size("num_attention_heads", &GivenShape::heads);
  size("num_key_value_heads", &GivenShape::kv_heads);
  size("vocab_size", &GivenShape::vocab);
  size("max_position_embeddings", &GivenShape::positions);
  size("moe_config.num_experts", &GivenShape::experts);
  size("moe_config.top_k", &GivenShape::topk);
  size("moe_config.moe_intermediate_size", &GivenShape::expert_width);
  size("moe_config.shared_expert_intermediate_size", &GivenShape::shared_width);
  s.rules["model.model_config.moe_config"] = [&s](const Said& said) {
    if (is_nothing(said)) return s.reading.without_effect(said, "it is not set");
    s.reading.not_understood(said, "");
  };
  s.rules["model.model_config.tie_word_embeddings"] = [&s](const Said& said) {
    s.model.shape.tied = truth_of(said);
    s.model.part(said);
  };
  s.rules["model.model_config.attention_bias"] = s.model.flag(&GivenShape::qkv_bias);
  // Its models are Llama's and Qwen's.
  s.model.shape.gated = s.model.shape.rms_norm = s.model.shape.rotary = true;
  s.model.shape.tied = false;
}

}  // namespace

void read_nanotron(GivenReading& reading, const GivenWords& given) {
  SectionReader s(reading);
  Rules& r = s.rules;
  for (const char* key : {"dp", "tp", "pp"}) r["parallelism." + std::string(key)] = s.whole(key);
  r["parallelism.context_parallel_size"] = s.whole("cp");
  r["parallelism.expert_parallel_size"] = s.whole("ep");
  r["parallelism.pp_engine"] = [&](const Said& said) {
    const std::string engine = one_of(said, {"1f1b", "afab"});
    reading.set(said, "schedule",
                std::string(to_text(engine == "afab" ? Schedule::gpipe : Schedule::one_f_one_b)));
  };
  r["parallelism.tp_mode"] = [&](const Said& said) {
    reading.set(said, "sequence_parallel",
                one_of(said, {"reduce_scatter", "all_reduce"}) == "reduce_scatter");
  };
  r["parallelism.recompute_layer"] = [&](const Said& said) {
    reading.set(said, "recompute", truth_of(said) ? "full" : "none");
  };
  r["parallelism.tp_linear_async_communication"] = s.as_the_stack();
  r["parallelism.tp_recompute_allgather"] = s.as_the_stack();
  r["optimizer.accumulate_grad_in_fp32"] = s.as_the_stack();
  r["tokens.sequence_length"] = s.whole("seq");
  r["tokens.micro_batch_size"] = s.whole("micro_batch");
  r["tokens.batch_accumulation_per_replica"] = s.keep("accumulation");
  r["optimizer.zero_stage"] = [&](const Said& said) {
    reading.set(said, "zero", whole_of(said, 0, 1));
  };
  r["model.dtype"] = [&](const Said& said) { read_type(reading, said); };
  read_nanotron_model(s);
  s.count(given);
  reading.apply(given.said, r, without_dashes);
  s.ranks.settle();
  forget_experts(reading, s.model.settle());
  const std::int64_t accumulation = s.kept("accumulation") ? whole_of(*s.kept("accumulation")) : 1;
  if (!reading.has("gpus") && !reading.asked().contains("gpus") && reading.has("dp"))
    reading.follow("gpus", reading.size_or_one("dp") * reading.size_or_one("tp") *
                               reading.size_or_one("pp") * reading.size_or_one("cp"));
  s.batch_of_ranks(s.kept("accumulation"), accumulation * reading.size_or_one("micro_batch"));
  if (reading.size_or_one("pp") == 1) reading.forget("schedule");
}

namespace {

class Maxtext {
 public:
  explicit Maxtext(GivenReading& reading) : s_(reading), reading_(reading) {}

  void read(const GivenWords& given) {
    fill_rules();
    s_.count(given);
    reading_.apply(given.said, s_.rules, without_dashes);
    s_.ranks.settle();
    const Model* model = s_.model.settle();
    settle_axes(model);
    settle_batch();
    settle_recompute();
    forget_experts(reading_, model);
    if (model != nullptr && model->has_experts())
      reading_.follow("etp", reading_.size_or_one("tp"));
  }

 private:
  void fill_rules();
  std::optional<std::int64_t> axis(const char* name);
  void settle_axes(const Model* model);
  void settle_batch();
  void settle_recompute();

  SectionReader s_;
  GivenReading& reading_;
  bool rest_ = false;  // some axis takes what the others leave
};

void Maxtext::fill_rules() {
  Rules& r = s_.rules;
  for (const char* where : {"ici_", "dcn_"})
    for (const char* name : {"data", "fsdp", "fsdp_transpose", "tensor", "tensor_sequence",
                             "tensor_transpose", "context", "sequence", "expert", "pipeline"}) {
      const std::string full = where + std::string(name) + "_parallelism";
      r[full] = s_.keep(full);
    }
  s_.keep_all({"per_device_batch_size", "gradient_accumulation_steps", "remat_policy"});
  r["max_target_length"] = s_.whole("seq");
  r["dtype"] = [this](const Said& said) {
    if (!reading_.has("precision")) read_type(reading_, said);
  };
  r["quantization"] = [this](const Said& said) {
    const std::string kind = is_nothing(said) ? "" : text_of(said);
    if (kind.empty())
      reading_.without_effect(said, "it is not set");
    else if (kind.find("fp8") != std::string::npos)
      reading_.set(said, "precision", "fp8-delayed");
    else
      reading_.not_understood(said, "a format that is not predicted: bf16 is");
  };
  r["optimizer_memory_host_offload"] = [this](const Said& said) {
    if (truth_of(said))
      reading_.set(said, "offload", SortedJson::array({"optimizer"}));
    else
      reading_.without_effect(said, "it is the default");
  };
  r["model_name"] = [this](const Said& said) {
    if (text_of(said) == "default")
      reading_.without_effect(said, "the sizes say which model it is");
    else
      s_.model.name(said, text_of(said));
  };
  const auto size = [&](const char* name, std::int64_t GivenShape::*member) {
    r[name] = s_.model.size(member);
  };
  size("base_emb_dim", &GivenShape::hidden);
  size("base_num_decoder_layers", &GivenShape::layers);
  size("base_mlp_dim", &GivenShape::ffn);
  size("base_num_query_heads", &GivenShape::heads);
  size("base_num_kv_heads", &GivenShape::kv_heads);
  size("head_dim", &GivenShape::head_dim);
  size("vocab_size", &GivenShape::vocab);
  size("base_moe_mlp_dim", &GivenShape::expert_width);
  r["num_experts"] = [this](const Said& said) {
    const std::int64_t count = whole_of(said);
    s_.model.shape.experts = count > 1 ? count : 0;  // one is a dense layer
    s_.model.part(said);
  };
  size("num_experts_per_tok", &GivenShape::topk);
  r["logits_via_embedding"] = [this](const Said& said) {
    s_.model.shape.tied = truth_of(said);
    s_.model.part(said);
  };
  r["mlp_activations"] = [this](const Said& said) {
    s_.model.shape.gated = texts_of(said).size() > 1;
    s_.model.part(said);
  };
  s_.model.shape.rms_norm = s_.model.shape.rotary = s_.model.shape.gated = true;
  s_.model.shape.tied = false;
  for (const char* name : {"attention", "scan_layers", "use_iota_embed", "fused_qkv", "fused_mlp",
                           "megablox", "sparse_matmul", "capacity_factor", "weight_dtype"})
    r[name] = s_.as_the_stack();
}

// Inside a slice times across slices; nullopt: what the others leave.
std::optional<std::int64_t> Maxtext::axis(const char* name) {
  std::int64_t product = 1;
  for (const char* where : {"ici_", "dcn_"}) {
    const Said* said = s_.kept(where + std::string(name) + "_parallelism");
    if (said == nullptr) continue;
    const std::int64_t ranks = whole_of(*said, -1);
    if (ranks < 1) {
      if (ranks == 0) fail(*said, "a whole number above 0, or -1 for the rest");
      rest_ = true;
      return std::nullopt;
    }
    product *= ranks;
  }
  return product;
}

void Maxtext::settle_axes(const Model* model) {
  const auto say = [&](std::initializer_list<const char*> names, const char* key,
                       std::int64_t value) {
    for (const char* where : {"ici_", "dcn_"})
      for (const char* name : names)
        if (const Said* said = s_.kept(where + std::string(name) + "_parallelism"))
          reading_.set(*said, key, value);
  };
  const std::int64_t tp = axis("tensor").value_or(1) * axis("tensor_transpose").value_or(1) *
                          axis("tensor_sequence").value_or(1);
  const std::int64_t cp = axis("context").value_or(1) * axis("sequence").value_or(1);
  say({"tensor", "tensor_transpose", "tensor_sequence"}, "tp", tp);
  say({"context", "sequence"}, "cp", cp);
  if (cp > 1) reading_.follow("context_parallel", "all-gather");
  say({"pipeline"}, "pp", axis("pipeline").value_or(1));
  const std::int64_t ep = axis("expert").value_or(1);
  say({"expert"}, "ep", ep);
  const auto data = axis("data");
  auto shard = axis("fsdp");
  if (const auto more = axis("fsdp_transpose"); shard && more) *shard *= *more;
  const bool shards = s_.kept("ici_fsdp_parallelism") || s_.kept("dcn_fsdp_parallelism");
  const bool copies = s_.kept("ici_data_parallelism") || s_.kept("dcn_data_parallelism");
  const bool whole = shards ? shard == 1 && (!data || *data > 1) : copies && (!data || *data > 1);
  say({"data", "fsdp", "fsdp_transpose"}, "zero", whole ? 0 : 3);
  if (!shards && !copies)
    reading_.assume("ici_fsdp_parallelism", "zero", 3,
                    "all devices that are left shard; maxtext-gpu-configs");
  if (copies && !shards && data == 1) reading_.follow("zero", 0);
  if (!data || !shard) return;
  const std::int64_t experts = model != nullptr && model->has_experts() ? ep : 1;
  const bool several = shards && *data > 1 && *shard > 1;
  if (several) reading_.follow("shard_group", *shard * experts * cp);
  const bool known = reading_.has("gpus") || reading_.asked().contains("gpus");
  // A product of one says nothing of how many there are: it is the file's default.
  const std::int64_t all = *data * *shard * experts * tp * cp * reading_.size_or_one("pp");
  if (!known && !rest_ && all > 1) reading_.follow("gpus", all);
}

void Maxtext::settle_batch() {
  const Said* each = s_.kept("per_device_batch_size");
  const Said* steps = s_.kept("gradient_accumulation_steps");
  const std::int64_t pieces = steps != nullptr ? whole_of(*steps) : 1;
  if (each == nullptr) return;
  const double ranks = static_cast<double>(reading_.size_or_one("tp") * reading_.size_or_one("cp") *
                                           reading_.size_or_one("pp"));
  const double batch = number_of(*each, 1e-9, 1e9) * ranks;
  const double micro = std::max(1.0, std::round(batch));
  if (std::abs(batch - micro) > 1e-6)
    reading_.not_understood(
        *each, fmt::format("{} sequences on {} devices: {} is predicted", batch, ranks, micro));
  reading_.set(*each, "micro_batch", static_cast<std::int64_t>(micro));
  s_.batch_of_ranks(steps, static_cast<std::int64_t>(micro) * pieces);
}

void Maxtext::settle_recompute() {
  const Said* policy = s_.kept("remat_policy");
  if (policy == nullptr) return;
  const std::string name = text_of(*policy);
  if (name == "full")
    reading_.set(*policy, "recompute", "full");
  else if (name == "minimal_with_context" || name == "minimal" || name == "minimal_flash" ||
           name == "none")
    reading_.set(*policy, "recompute", "none");
  else
    reading_.not_understood(*policy,
                            "tensors that are kept by name: predicted as the stack's "
                            "release does");
}

}  // namespace

void read_maxtext(GivenReading& reading, const GivenWords& given) { Maxtext(reading).read(given); }

void read_neuronx(GivenReading& reading, const GivenWords& given) {
  SectionReader s(reading);
  Rules& r = s.rules;
  const std::string strategy = "distributed_strategy.";
  r[strategy + "tensor_model_parallel_size"] = s.whole("tp");
  r[strategy + "pipeline_model_parallel_size"] = s.whole("pp");
  r[strategy + "virtual_pipeline_model_parallel_size"] = s.whole("vpp");
  r[strategy + "context_parallel_size"] = s.whole("cp");
  r[strategy + "expert_model_parallel_size"] = s.whole("ep");
  r[strategy + "zero1"] = [&](const Said& said) {
    reading.set(said, "zero", truth_of(said) ? 1 : 0);
  };
  r[strategy + "sequence_parallel"] = [&](const Said& said) {
    reading.set(said, "sequence_parallel", truth_of(said));
  };
  r["data.micro_batch_size"] = s.whole("micro_batch");
  r["data.global_batch_size"] = s.whole("global_batch");
  r["model.encoder_seq_length"] = s.whole("seq");
  r["data.seq_length"] = s.whole("seq");
  r["model.activations_checkpoint_granularity"] = [&](const Said& said) {
    if (is_nothing(said)) return reading.set(said, "recompute", "none");
    reading.set(said, "recompute", one_of(said, {"full", "selective"}));
  };
  r["model.activations_checkpoint_recompute"] = s.keep("classes");
  r["precision.type"] = [&](const Said& said) {
    const std::string type = text_of(said);
    if (type.starts_with("mixed_precision") || type == "bf16SR" || type == "autocast")
      reading.set(said, "precision", "bf16");
    else
      reading.not_understood(said, "a precision that is not predicted: bf16 is");
  };
  r["trainer.devices"] = [&](const Said& said) { s.ranks.per_node(said); };
  r["trainer.num_nodes"] = [&](const Said& said) { s.ranks.nodes(said); };
  const auto size = [&](const char* name, std::int64_t GivenShape::*member) {
    r["model." + std::string(name)] = s.model.size(member);
  };
  size("num_layers", &GivenShape::layers);
  size("hidden_size", &GivenShape::hidden);
  size("ffn_hidden_size", &GivenShape::ffn);
  size("num_attention_heads", &GivenShape::heads);
  size("num_kv_heads", &GivenShape::kv_heads);
  size("max_position_embeddings", &GivenShape::positions);
  r["model.model_config"] = [&](const Said& said) { s.model.name(said, text_of(said)); };
  for (const char* name : {"model.fuse_qkv", "model.fusions.softmax",
                           "model.fusions.flash_attention", "model.fusions.ring_attention"})
    r[name] = s.as_the_stack();
  s.model.shape.gated = s.model.shape.rms_norm = s.model.shape.rotary = true;
  s.count(given);
  reading.apply(given.said, r, without_dashes);
  s.ranks.settle();
  const Model* model = s.model.settle();
  if (const Said* classes = s.kept("classes"))
    reading.not_understood(*classes, "classes of the model: predicted with attention's core");
  if (reading.size_or_one("vpp") == 1) reading.forget("vpp");
  forget_experts(reading, model);
  if (model != nullptr && model->has_experts()) reading.follow("etp", reading.size_or_one("tp"));
}

void read_gaudi(GivenReading& reading, const GivenWords& given) {
  SectionReader s(reading);
  Rules& r = s.rules;
  r["HL_TP"] = s.whole("tp");
  r["HL_PP"] = s.whole("pp");
  r["HL_DP"] = s.whole("dp");
  r["HL_MICRO_BATCH"] = s.whole("micro_batch");
  r["HL_GBS"] = s.whole("global_batch");
  r["HL_SEQ_LEN"] = s.whole("seq");
  r["HL_SEQ_PARALLEL"] = [&](const Said& said) {
    reading.set(said, "sequence_parallel", truth_of(said));
  };
  r["HL_FP8"] = [&](const Said& said) {
    reading.set(said, "precision", truth_of(said) ? "fp8-delayed" : "bf16");
  };
  r["HL_NUM_NODES"] = [&](const Said& said) { s.ranks.nodes(said); };
  r["HL_DEVICES_PER_NODE"] = [&](const Said& said) { s.ranks.per_node(said); };
  r["HL_CKP_ACT"] = [&](const Said& said) {
    if (value_text(said.value) == "0")
      reading.set(said, "recompute", "none");
    else
      reading.not_understood(said, "a number of the script's for what runs again");
  };
  r["HL_TRANSFORMER_IMPL"] = s.as_the_stack();
  r["HL_LLAMA_MODEL_SIZE"] = s.keep("size");
  r["HL_LLAMA_VER"] = s.keep("version");
  s.count(given);
  reading.apply(given.said, r, [](const std::string& name) { return name; });
  if (const Said* size = s.kept("size")) {
    const std::string version = s.kept("version") ? value_text(s.kept("version")->value) : "";
    Said both = *size;
    both.value = fmt::format("llama{}-{}b", version, value_text(size->value));
    s.model.name(both, value_text(both.value));
  }
  s.ranks.settle();
  const Model* model = s.model.settle();
  if (!reading.has("gpus") && !reading.asked().contains("gpus") && reading.has("dp"))
    reading.follow(
        "gpus", reading.size_or_one("dp") * reading.size_or_one("tp") * reading.size_or_one("pp"));
  if (model != nullptr && model->has_experts()) reading.follow("etp", reading.size_or_one("tp"));
}

}  // namespace orrery
