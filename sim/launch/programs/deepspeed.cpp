// SPDX-License-Identifier: Apache-2.0
// Reads DeepSpeed's file, and arguments of Hugging Face's trainer beside it.
#include <algorithm>

#include <fmt/format.h>

#include "sim/base/errors/check.h"
#include "sim/launch/programs/deepspeed_settings.h"
#include "sim/launch/programs/program_readers.h"
#include "workloads/layout/layout.h"

namespace orrery {

const Said* DeepspeedSettings::kept(const std::string& name) const {
  const auto at = kept_.find(name);
  return at == kept_.end() ? nullptr : &at->second;
}

Take DeepspeedSettings::unless_auto(const std::string& name, Take take) {
  return [this, name, take = std::move(take)](const Said& said) {
    if (said.value.is_string() && said.value.text() == "auto") {
      left_[name] = said;
      return reading_.without_effect(said, "the trainer's arguments say it");
    }
    take(said);
  };
}

Take DeepspeedSettings::keep(const std::string& name) {
  return unless_auto(name, [this, name](const Said& said) { kept_[name] = said; });
}

Rules DeepspeedSettings::rules() {
  Rules r;
  for (const char* name :
       {"train_batch_size", "train_micro_batch_size_per_gpu", "gradient_accumulation_steps",
        "bf16.enabled", "fp16.enabled", "bfloat16.enabled",
        "zero_optimization.offload_optimizer.device", "zero_optimization.offload_param.device",
        "activation_checkpointing.cpu_checkpointing", "zero_optimization.reduce_bucket_size",
        "zero_optimization.cpu_offload"})
    r[name] = keep(name);
  const bool alone = !where_.beside_megatron;
  r["zero_optimization.stage"] =
      unless_auto("zero_optimization.stage", [this, alone](const Said& said) {
        const std::int64_t stage = whole_of(said, 0, 3);
        if (alone || !reading_.has("zero")) return reading_.set(said, "zero", stage);
        if (reading_.size("zero") == stage) return reading_.part_of(said, "zero");
        reading_.not_understood(said, "--zero-stage says another");
      });
  r["zero_optimization.zero_hpz_partition_size"] = [this](const Said& said) {
    const std::int64_t ranks = whole_of(said);
    if (ranks > 1)
      reading_.set(said, "shard_group", ranks);
    else
      reading_.without_effect(said, "it is the default");
  };
  r["zero_optimization.offload_optimizer.ratio"] = [this](const Said& said) {
    reading_.set(said, "optimizer_offload_fraction", number_of(said, 0, 1));
  };
  for (const char* name :
       {"zero_optimization.overlap_comm", "zero_optimization.contiguous_gradients",
        "zero_optimization.reduce_scatter", "zero_optimization.allgather_partitions",
        "zero_optimization.allgather_bucket_size", "zero_optimization.round_robin_gradients",
        "zero_optimization.sub_group_size", "communication_data_type",
        "zero_optimization.stage3_prefetch_bucket_size",
        "zero_optimization.stage3_param_persistence_threshold",
        "zero_optimization.stage3_max_live_parameters",
        "zero_optimization.stage3_max_reuse_distance", "data_types.grad_accum_dtype"})
    r[name] = [this](const Said& said) {
      reading_.without_effect(said, "predicted as the stack's release does it");
    };
  r["tensor_parallel.autotp_size"] = [this](const Said& said) {
    reading_.set(said, "tp", whole_of(said));
  };
  return r;
}

void DeepspeedSettings::settle() {
  SortedJson moved = reading_.run().settings.contains("offload")
                         ? reading_.run().settings.at("offload")
                         : SortedJson::array();
  const auto device = [&](const char* name, const char* what) {
    const Said* said = kept(name);
    if (said == nullptr) return;
    if (is_nothing(*said)) return reading_.without_effect(*said, "it is not set");
    const std::string place = one_of(*said, {"cpu", "nvme"});
    if (place == "nvme")
      return reading_.not_understood(*said,
                                     "a disk: states are predicted in the accelerators' "
                                     "memory");
    moved.push_back(what);
    reading_.set(*said, "offload", moved);
  };
  device("zero_optimization.offload_optimizer.device", "optimizer");
  device("zero_optimization.offload_param.device", "weights");
  for (const char* name :
       {"activation_checkpointing.cpu_checkpointing", "zero_optimization.cpu_offload"}) {
    const Said* said = kept(name);
    if (said == nullptr) continue;
    if (!truth_of(*said)) {
      reading_.without_effect(*said, "it is the default");
      continue;
    }
    moved.push_back(std::string(name).ends_with("checkpointing") ? "activations" : "optimizer");
    reading_.set(*said, "offload", moved);
  }
  for (const char* name : {"bf16.enabled", "bfloat16.enabled", "fp16.enabled"}) {
    const Said* said = kept(name);
    if (said == nullptr) continue;
    if (!truth_of(*said))
      reading_.without_effect(*said, "it is the default");
    else
      reading_.set(*said, "precision", name[0] == 'b' ? "bf16" : "fp16");
  }
  if (const Said* bucket = kept("zero_optimization.reduce_bucket_size")) {
    // Elements, of gradients that are reduced in the training's 16 bits.
    const std::int64_t elements = whole_of(*bucket, 1, std::int64_t{1} << 40);
    if (reading_.size_or_one("zero") >= 1)
      reading_.set(*bucket, "bucket", fmt::format("{} B", 2 * elements));
    else
      reading_.without_effect(*bucket, "nothing is sharded");
  }
  if (!where_.beside_megatron) return;
  for (const char* name :
       {"train_batch_size", "train_micro_batch_size_per_gpu", "gradient_accumulation_steps"})
    if (const Said* said = kept(name))
      reading_.without_effect(*said, "the program's arguments say it");
}

namespace {

// Names as flags, in DeepSpeed's file and in accelerate's, as one.
std::string plain_name(const std::string& name) {
  static const std::map<std::string, std::string> accelerate = {
      {"deepspeed_config.zero_stage", "zero_optimization.stage"},
      {"deepspeed_config.gradient_accumulation_steps", "gradient_accumulation_steps"},
      {"deepspeed_config.offload_optimizer_device", "zero_optimization.offload_optimizer.device"},
      {"deepspeed_config.offload_param_device", "zero_optimization.offload_param.device"},
      {"fsdp_config.fsdp_sharding_strategy", "fsdp"},
      {"fsdp_config.fsdp_reshard_after_forward", "fsdp"}};
  if (const auto at = accelerate.find(name); at != accelerate.end()) return at->second;
  if (!name.starts_with("--")) return name;
  std::string plain = name.substr(2);
  std::replace(plain.begin(), plain.end(), '-', '_');
  return plain;
}

class Deepspeed {
 public:
  explicit Deepspeed(GivenReading& reading) : s_(reading), reading_(reading), file_(reading, {}) {}

  void read(const GivenWords& given) {
    s_.count(given);
    s_.rules = file_.rules();
    trainer_rules();
    reading_.apply(given.said, s_.rules, plain_name);
    s_.ranks.settle();
    s_.model.settle();
    trainer_precision();
    trainer_sharding();
    file_.settle();
    settle_batch();
  }

 private:
  void trainer_rules();
  void trainer_precision();
  void trainer_sharding();
  void settle_batch();

  SectionReader s_;
  GivenReading& reading_;
  DeepspeedSettings file_;
};

void Deepspeed::trainer_rules() {
  Rules& r = s_.rules;
  s_.keep_all({"per_device_train_batch_size", "bf16", "fp16", "fsdp", "fsdp_config",
               "mixed_precision", "fsdp_config.fsdp_offload_params",
               "fsdp_config.fsdp_activation_checkpointing"});
  for (const char* name : {"num_processes", "num_machines"})
    r[name] = [this, all = std::string(name) == "num_processes"](const Said& said) {
      if (all)
        s_.ranks.total(said);
      else
        s_.ranks.nodes(said);
    };
  // Both the trainer's and the file's; the file wins where it has a number.
  r["gradient_accumulation_steps"] =
      [this, own = r["gradient_accumulation_steps"]](const Said& said) { own(said); };
  r["gradient_checkpointing"] = [this](const Said& said) {
    reading_.set(said, "recompute", truth_of(said) ? "full" : "none");
  };
  for (const char* name : {"max_seq_length", "max_length", "model_max_length", "cutoff_len",
                           "block_size", "max_seq_len", "sequence_len"})
    r[name] = s_.whole("seq");
  for (const char* name : {"model_name_or_path", "base_model", "model_id", "model_name"})
    r[name] = [this](const Said& said) { s_.model.name(said, text_of(said)); };
  r["optim"] = [this](const Said& said) {
    const std::string name = text_of(said);
    if (name.find("8bit") != std::string::npos)
      reading_.set(said, "optimizer", std::string(to_text(Optimizer::adam_8bit)));
    else if (name.find("adamw") != std::string::npos)
      reading_.part_of(said, "optimizer");
    else if (name == "adafactor")
      reading_.set(said, "optimizer", std::string(to_text(Optimizer::adafactor)));
    else if (name == "sgd")
      reading_.set(said, "optimizer", std::string(to_text(Optimizer::sgd)));
    else
      reading_.not_understood(said, "an optimizer that is not predicted: Adam is");
  };
  r["zero_stage"] = r["zero_optimization.stage"];
  for (const char* name : {"lora_r", "lora_rank", "lora_dim"})
    r[name] = [this](const Said& said) {
      if (whole_of(said, 0) == 0) return reading_.without_effect(said, "no adapters are trained");
      reading_.set(said, "lora_rank", whole_of(said));
      reading_.follow("task", "lora");
    };
  for (const char* name : {"deepspeed", "deepspeed_config"})
    r[name] = [this](const Said& said) { reading_.without_effect(said, "it names a file"); };
  for (const char* name : {"tf32", "torch_compile", "attn_implementation", "use_flash_attn",
                           "use_liger_kernel", "flash_attention"})
    r[name] = s_.as_the_stack();
}

void Deepspeed::trainer_precision() {
  for (const char* name : {"bf16", "fp16"}) {
    const Said* said = s_.kept(name);
    if (said == nullptr) continue;
    if (truth_of(*said))
      reading_.set(*said, "precision", name);
    else
      reading_.without_effect(*said, "it is the default");
  }
  if (const Said* mixed = s_.kept("mixed_precision")) {
    const std::string kind = one_of(*mixed, {"bf16", "fp16", "no", "fp8", "false"});
    if (kind == "no" || kind == "false")
      reading_.without_effect(*mixed, "the trainer says its precision");
    else
      reading_.set(*mixed, "precision", kind);
  }
}

void Deepspeed::trainer_sharding() {
  const Said* fsdp = s_.kept("fsdp");
  if (fsdp != nullptr && !is_nothing(*fsdp) && !(fsdp->value.is_array() && fsdp->value.empty())) {
    std::string text = value_text(fsdp->value);
    for (char& c : text) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    const auto has = [&](const char* part) { return text.find(part) != std::string::npos; };
    if (has("hybrid"))
      reading_.not_understood(*fsdp, "shards of a node's ranks: all ranks are predicted to shard");
    const bool part = has("shard_grad_op") || text == "false" || text == "2";
    const std::int64_t stage = part ? 2 : has("no_shard") || text == "3" ? 0 : 3;
    reading_.set(*fsdp, "zero", stage);
    if (has("offload")) reading_.follow("offload", SortedJson::array({"weights", "optimizer"}));
  } else if (fsdp != nullptr) {
    reading_.without_effect(*fsdp, "it is not set");
  }
  if (const Said* more = s_.kept("fsdp_config")) reading_.not_understood(*more, "");
  if (const Said* moved = s_.kept("fsdp_config.fsdp_offload_params")) {
    if (truth_of(*moved))
      reading_.set(*moved, "offload", SortedJson::array({"weights", "optimizer"}));
    else
      reading_.without_effect(*moved, "it is the default");
  }
  if (const Said* again = s_.kept("fsdp_config.fsdp_activation_checkpointing"))
    reading_.set(*again, "recompute", truth_of(*again) ? "full" : "none");
}

void Deepspeed::settle_batch() {
  const Said* all = file_.kept("train_batch_size");
  const Said* each = file_.kept("train_micro_batch_size_per_gpu");
  const Said* steps = file_.kept("gradient_accumulation_steps");
  const Said* own = s_.kept("per_device_train_batch_size");
  if (each == nullptr) std::swap(each, own);
  if (own != nullptr) reading_.without_effect(*own, "DeepSpeed's file says it");
  if (each != nullptr) reading_.set(*each, "micro_batch", whole_of(*each));
  const std::int64_t pieces = steps != nullptr ? whole_of(*steps) : 1;
  if (all != nullptr) {
    reading_.set(*all, "global_batch", whole_of(*all));
    if (each != nullptr && steps != nullptr && !reading_.has("gpus") &&
        !reading_.asked().contains("gpus")) {
      const std::int64_t rank = whole_of(*each) * pieces;
      const std::int64_t dp = whole_of(*all) / rank;
      if (whole_of(*all) % rank != 0)
        fail(*all, fmt::format("a multiple of {} sequences, {} steps of {}", rank, pieces,
                               whole_of(*each)));
      reading_.set(
          *steps, "gpus",
          dp * reading_.size_or_one("tp") * reading_.size_or_one("pp") * reading_.size_or_one("cp"),
          "what the three batch sizes leave");
    } else if (steps != nullptr) {
      reading_.part_of(*steps, "global_batch");
    }
    return;
  }
  if (each != nullptr) s_.batch_of_ranks(steps, whole_of(*each) * pieces);
}

}  // namespace

void read_deepspeed(GivenReading& reading, const GivenWords& given) {
  Deepspeed(reading).read(given);
}

}  // namespace orrery
