// SPDX-License-Identifier: Apache-2.0
// Reads settings of NeMo AutoModel.
#include <algorithm>

#include <fmt/format.h>

#include "sim/launch/programs/program_readers.h"
#include "sim/launch/programs/torch_schedule.h"

namespace orrery {
namespace {

class Automodel {
 public:
  explicit Automodel(GivenReading& reading) : s_(reading), reading_(reading) {}

  void read(const GivenWords& given) {
    s_.count(given);
    fill_rules();
    reading_.apply(given.said, s_.rules, [](const std::string& name) {
      return name.substr(name.starts_with("--") ? 2 : 0);
    });
    s_.ranks.settle();
    const Model* model = s_.model.settle();
    read_schedule(reading_, s_.kept("pp_schedule"));
    settle_batch();
    settle_stages(model);
    settle_sharding();
    if (model != nullptr && !model->has_experts()) {
      if (reading_.size_or_one("ep") == 1) reading_.forget("ep");
    } else if (model != nullptr) {
      reading_.follow("etp", 1);
    }
  }

 private:
  void fill_rules();
  void settle_batch();
  void settle_stages(const Model* model);
  void settle_sharding();

  SectionReader s_;
  GivenReading& reading_;
};

void Automodel::fill_rules() {
  Rules& r = s_.rules;
  r["step_scheduler.global_batch_size"] = s_.whole("global_batch");
  r["step_scheduler.local_batch_size"] = s_.keep("local_batch");
  for (const char* name :
       {"dataset.seq_len", "dataset.seq_length", "packed_sequence.packed_sequence_size"})
    r[name] = s_.whole("seq", 0);
  r["distributed.tp_size"] = s_.whole("tp");
  r["distributed.cp_size"] = s_.whole("cp");
  r["distributed.pp_size"] = s_.whole("pp");
  r["distributed.ep_size"] = s_.whole("ep");
  r["distributed.sequence_parallel"] = [this](const Said& said) {
    reading_.set(said, "sequence_parallel", truth_of(said));
  };
  r["distributed.dp_replicate_size"] = s_.keep("copies");
  for (const char* name : {"distributed.dp_size", "distributed._target_", "distributed.strategy"})
    r[name] = s_.as_the_stack();
  for (const char* section : {"autopipeline.", "distributed.pipeline."}) {
    r[section + std::string("pp_schedule")] = s_.keep("pp_schedule");
    r[section + std::string("pp_microbatch_size")] = s_.keep("pp_microbatch");
    r[section + std::string("layers_per_stage")] = s_.keep("layers_per_stage");
  }
  for (const char* name :
       {"parallelizer.activation_checkpointing", "distributed.activation_checkpointing"})
    r[name] = [this](const Said& said) {
      reading_.set(said, "recompute", truth_of(said) ? "full" : "none");
    };
  for (const char* name :
       {"parallelizer.reshard_after_forward", "distributed.moe.reshard_after_forward"})
    r[name] = s_.keep("reshard");
  r["model.backend.te_fp8.recipe"] = [this](const Said& said) {
    const std::string recipe = one_of(said, {"current", "block", "delayed", "mxfp8"});
    reading_.set(said, "precision",
                 recipe == "block"   ? "fp8-blockwise"
                 : recipe == "mxfp8" ? "mxfp8"
                                     : "fp8-" + recipe);
  };
  for (const char* name :
       {"model.backend.te_fp8._target_", "model.backend.experts", "model.backend.dispatcher",
        "model.backend.enable_deepep", "model.backend.enable_fsdp_optimizations",
        "model.backend.attn", "model.backend.linear", "model.backend.rms_norm"})
    r[name] = s_.as_the_stack();
  r["peft.dim"] = [this](const Said& said) {
    reading_.set(said, "lora_rank", whole_of(said));
    reading_.follow("task", "lora");
  };
  for (const char* name : {"peft._target_", "peft.match_all_linear"}) r[name] = s_.part("task");
  for (const char* name :
       {"model.pretrained_model_name_or_path", "model.config.pretrained_model_name_or_path"})
    r[name] = [this](const Said& said) { s_.model.name(said, text_of(said)); };
}

void Automodel::settle_batch() {
  const Said* local = s_.kept("local_batch");
  const Said* pieces = s_.kept("pp_microbatch");
  const bool staged = reading_.size_or_one("pp") > 1;
  if (staged && pieces != nullptr) reading_.set(*pieces, "micro_batch", whole_of(*pieces));
  if (!staged && pieces != nullptr) reading_.without_effect(*pieces, "there is one stage");
  if (local == nullptr) return;
  if (staged)
    reading_.part_of(*local, "micro_batch");
  else
    reading_.set(*local, "micro_batch", whole_of(*local));
}

void Automodel::settle_stages(const Model* model) {
  const Said* each = s_.kept("layers_per_stage");
  if (each == nullptr || is_nothing(*each)) return;
  const std::int64_t pp = reading_.size_or_one("pp");
  if (pp == 1) return reading_.without_effect(*each, "there is one stage");
  if (model == nullptr) return reading_.not_understood(*each, "the model's layers are not said");
  const std::int64_t size = whole_of(*each);
  const std::int64_t count = (model->layer_count() + size - 1) / size;
  reading_.set(*each, "vpp", std::max<std::int64_t>(1, (count + pp - 1) / pp));
}

void Automodel::settle_sharding() {
  const Said* again = s_.kept("reshard");
  // Kept or gathered again, parameters are sharded between steps.
  if (again != nullptr) {
    static_cast<void>(truth_of(*again));
    reading_.set(*again, "zero", 3);
  }
  const Said* copies = s_.kept("copies");
  if (copies == nullptr || is_nothing(*copies)) return;
  const std::int64_t count = whole_of(*copies);
  const auto ranks = s_.data_ranks();
  if (count == 1)
    reading_.without_effect(*copies, "it is the default");
  else if (!ranks || (*ranks * reading_.size_or_one("cp")) % count != 0)
    reading_.not_understood(*copies, "the ranks that shard follow from gpus, which are not said");
  else
    reading_.set(*copies, "shard_group", *ranks * reading_.size_or_one("cp") / count);
}

}  // namespace

void read_automodel(GivenReading& reading, const GivenWords& given) {
  Automodel(reading).read(given);
}

}  // namespace orrery
