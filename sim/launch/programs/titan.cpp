// SPDX-License-Identifier: Apache-2.0
// Reads settings of TorchTitan.
#include <algorithm>
#include <numeric>

#include <fmt/format.h>

#include "sim/base/errors/check.h"
#include "sim/launch/programs/program_readers.h"
#include "sim/launch/programs/torch_schedule.h"
#include "workloads/layout/layout.h"

namespace orrery {

namespace {

bool has_two_chunks(const std::string& schedule) {
  return schedule == to_text(Schedule::interleaved) ||
         schedule == to_text(Schedule::zero_bubble_v) ||
         schedule == to_text(Schedule::dual_pipe_v) ||
         schedule == to_text(Schedule::interleaved_zero_bubble);
}

// Degrees of -1 are what the others leave.
std::optional<std::int64_t> degree(const Said* said) {
  if (said == nullptr) return std::nullopt;
  const std::int64_t value = whole_of(*said, -1);
  if (value == 0) fail(*said, "a whole number above 0, or -1 for the rest");
  return value;
}

class Titan {
 public:
  explicit Titan(GivenReading& reading) : s_(reading), reading_(reading) {}

  void read(const GivenWords& given) {
    s_.count(given);
    fill_rules();
    reading_.apply(given.said, s_.rules, [](const std::string& name) {
      std::string plain = name.starts_with("--") ? name.substr(2) : name;
      std::replace(plain.begin(), plain.end(), '-', '_');
      return plain;
    });
    s_.ranks.settle();
    name_model();
    const Model* model = s_.model.settle();
    settle_ranks();
    settle_sharding();
    read_schedule(reading_, s_.kept("parallelism.pipeline_parallel_schedule"));
    settle_stages(model);
    settle_batch();
    settle_precision();
    settle_memory();
    if (model == nullptr || !model->has_experts()) {
      if (reading_.size_or_one("ep") == 1) reading_.forget("ep");
      reading_.forget("etp");
    } else if (!reading_.has("etp")) {
      // Without expert parallelism experts are split as all else is.
      const std::int64_t etp = reading_.size_or_one("ep") > 1 ? 1 : reading_.size_or_one("tp");
      reading_.assume("parallelism.expert_tensor_parallel_degree", "etp", etp,
                      "1 beside expert parallelism; torchtitan-job-config");
    }
  }

 private:
  void fill_rules();
  void name_model();
  void settle_ranks();
  void settle_sharding();
  void settle_stages(const Model* model);
  void settle_batch();
  void settle_precision();
  void settle_memory();

  SectionReader s_;
  GivenReading& reading_;
};

void Titan::fill_rules() {
  Rules& r = s_.rules;
  r["training.seq_len"] = s_.whole("seq");
  r["parallelism.tensor_parallel_degree"] = s_.whole("tp");
  r["parallelism.pipeline_parallel_degree"] = s_.whole("pp");
  r["parallelism.context_parallel_degree"] = s_.whole("cp");
  r["parallelism.expert_parallel_degree"] = s_.whole("ep");
  r["parallelism.expert_tensor_parallel_degree"] = s_.whole("etp");
  // Names of its first releases.
  r["training.tensor_parallel_degree"] = s_.whole("tp");
  r["experimental.pipeline_parallel_degree"] = s_.whole("pp");
  r["experimental.context_parallel_degree"] = s_.whole("cp");
  r["training.data_parallel_degree"] = s_.keep("parallelism.data_parallel_shard_degree");
  for (const char* section : {"training.", "parallelism."}) {
    r[section + std::string("data_parallel_shard_degree")] =
        s_.keep("parallelism.data_parallel_shard_degree");
    r[section + std::string("data_parallel_replicate_degree")] =
        s_.keep("parallelism.data_parallel_replicate_degree");
  }
  for (const char* section : {"experimental.", "parallelism."})
    for (const char* name :
         {"pipeline_parallel_schedule", "pipeline_parallel_microbatch_size",
          "pipeline_parallel_microbatches", "pipeline_parallel_layers_per_stage",
          "pipeline_parallel_first_stage_less_layers", "pipeline_parallel_last_stage_less_layers",
          "module_fqns_per_model_part", "context_parallel_rotate_method",
          "fsdp_reshard_after_forward"})
      r[section + std::string(name)] = s_.keep("parallelism." + std::string(name));
  s_.keep_all({"training.global_batch_size", "training.local_batch_size",
               "training.mixed_precision_param", "training.dtype", "model.converters",
               "quantize.linear.float8.recipe_name", "float8.recipe_name", "mx.recipe_name",
               "quantize.linear.mx.recipe_name", "activation_checkpoint.mode",
               "activation_checkpoint.selective_ac_option", "training.enable_cpu_offload",
               "optimizer.name", "model.name", "model.flavor"});
  r["training.batch_size"] = s_.keep("training.local_batch_size");
  r["model.tokenizer_path"] = s_.as_the_stack();
  for (const char* name :
       {"training.compile", "compile.enable", "compile.components", "optimizer.implementation",
        "parallelism.enable_async_tensor_parallel", "experimental.enable_async_tensor_parallel",
        "parallelism.expert_parallel_comm_backend", "training.mixed_precision_reduce",
        "parallelism.enable_compiled_autograd", "optimizer.fused", "activation_checkpoint.type",
        "parallelism.disable_loss_parallel", "parallelism.context_parallel_load_balancer"})
    r[name] = s_.as_the_stack();
  for (const char* name : {"float8.", "quantize.linear.float8.", "quantize.linear.mx.", "mx."})
    for (const char* what :
         {"enable_fsdp_float8_all_gather", "precompute_float8_dynamic_scale_for_fsdp",
          "filter_fqns", "force_recompute_fp8_weight_in_bwd", "mxfp8_dim1_cast_kernel_choice",
          "use_fp8dim1_triton_kernel", "emulate", "enable_float8_linear"})
      r[name + std::string(what)] = s_.as_the_stack();
}

void Titan::name_model() {
  const Said* name = s_.kept("model.name");
  const Said* flavor = s_.kept("model.flavor");
  if (name == nullptr) return;
  const std::string text = text_of(*name);
  if (flavor == nullptr) return s_.model.name(*name, text);
  Said both = *flavor;
  both.name = "model.name, model.flavor";
  both.value = text + " " + value_text(flavor->value);
  s_.model.name(both, value_text(both.value));
}

void Titan::settle_ranks() {
  const auto shard = degree(s_.kept("parallelism.data_parallel_shard_degree"));
  const auto copies = degree(s_.kept("parallelism.data_parallel_replicate_degree"));
  const std::int64_t others =
      reading_.size_or_one("tp") * reading_.size_or_one("pp") * reading_.size_or_one("cp");
  const bool whole = shard && *shard > 0 && copies.value_or(1) > 0;
  if (whole) {
    reading_.follow("dp", *shard * copies.value_or(1));
    if (!reading_.has("gpus") && !reading_.asked().contains("gpus"))
      reading_.follow("gpus", *shard * copies.value_or(1) * others);
  }
  if (reading_.asked().contains("gpus")) reading_.forget("dp");
}

void Titan::settle_sharding() {
  const Said* shard_said = s_.kept("parallelism.data_parallel_shard_degree");
  const Said* copies_said = s_.kept("parallelism.data_parallel_replicate_degree");
  const Said* again = s_.kept("parallelism.fsdp_reshard_after_forward");
  const std::int64_t copies = degree(copies_said).value_or(1);
  const std::int64_t shard = degree(shard_said).value_or(-1);
  if (copies < 1) fail(*copies_said, "a whole number above 0");
  const bool whole = shard == 1 && reading_.size_or_one("cp") == 1;
  std::int64_t stage = whole ? 0 : 3;
  if (again != nullptr) {
    const std::string policy = one_of(*again, {"default", "always", "never"});
    // Beside a pipeline either gathers a stage's parameters once a step.
    if (policy == "never" && !whole && reading_.size_or_one("pp") == 1) stage = 2;
    reading_.part_of(*again, "zero");
  }
  if (shard_said != nullptr)
    reading_.set(*shard_said, "zero", stage);
  else
    reading_.assume("parallelism.data_parallel_shard_degree", "zero", stage,
                    "all ranks that are left shard; torchtitan-job-config");
  if (copies_said == nullptr) return;
  if (copies > 1 && shard != 1) {
    const auto ranks = s_.data_ranks();
    const std::int64_t group = shard > 0 ? shard : ranks ? *ranks / copies : 0;
    if (group > 0)
      return reading_.set(*copies_said, "shard_group", group * reading_.size_or_one("cp"));
    return reading_.not_understood(*copies_said,
                                   "the ranks that shard follow from gpus, which are "
                                   "not said");
  }
  reading_.part_of(*copies_said, "dp");
}

void Titan::settle_stages(const Model* model) {
  const std::string prefix = "parallelism.";
  const Said* each = s_.kept(prefix + "pipeline_parallel_layers_per_stage");
  const Said* first = s_.kept(prefix + "pipeline_parallel_first_stage_less_layers");
  const Said* last = s_.kept(prefix + "pipeline_parallel_last_stage_less_layers");
  const Said* parts = s_.kept(prefix + "module_fqns_per_model_part");
  const std::int64_t pp = reading_.size_or_one("pp");
  const auto unused = [&](const std::string& why) {
    for (const Said* said : {each, first, last, parts})
      if (said != nullptr) reading_.without_effect(*said, why);
  };
  if (pp == 1) return unused("there is one stage");
  if (parts != nullptr && !is_nothing(*parts) && parts->value.size() > 0) {
    std::vector<std::int64_t> layers;
    if (!parts->value.is_array()) fail(*parts, "a list of parts, each a list of modules");
    for (const SortedJson& part : parts->value) {
      if (!part.is_array()) fail(*parts, "a list of parts, each a list of modules");
      layers.push_back(std::count_if(part.begin(), part.end(), [](const SortedJson& module) {
        return value_text(module).starts_with("layers.");
      }));
    }
    const auto positions = static_cast<std::int64_t>(layers.size());
    if (positions % pp != 0) fail(*parts, fmt::format("a multiple of {} parts, the stages", pp));
    reading_.set(*parts, "stage_layers", SortedJson(layers));
    reading_.follow("vpp", positions / pp);
    return;
  }
  const std::string schedule = reading_.text("schedule").value_or("");
  if (each == nullptr) {
    if (has_two_chunks(schedule))
      reading_.assume(prefix + "pipeline_parallel_layers_per_stage", "vpp", 2,
                      "two stages a rank of looped schedules; torchtitan-job-config");
    return unused("stages are as even as they can be");
  }
  const std::int64_t begin = first != nullptr ? whole_of(*first, 0) : 1;
  const std::int64_t end = last != nullptr ? whole_of(*last, 0) : 1;
  const std::int64_t size = whole_of(*each);
  for (const Said* said : {first, last})
    if (said != nullptr) reading_.part_of(*said, "vpp");
  if (model == nullptr) return reading_.not_understood(*each, "the model's layers are not said");
  const std::int64_t count = (model->layer_count() + begin + end + size - 1) / size;
  if (count % pp != 0)
    fail(*each, fmt::format("stages in a multiple of {}; {} layers give {}", pp,
                            model->layer_count(), count));
  reading_.set(*each, "vpp", count / pp);
}

void Titan::settle_batch() {
  const Said* global = s_.kept("training.global_batch_size");
  const Said* local = s_.kept("training.local_batch_size");
  const Said* pieces = s_.kept("parallelism.pipeline_parallel_microbatch_size");
  const bool staged = reading_.size_or_one("pp") > 1;
  const std::int64_t each = local != nullptr ? whole_of(*local) : 8;
  if (staged && pieces != nullptr)
    reading_.set(*pieces, "micro_batch", whole_of(*pieces));
  else if (staged)
    reading_.assume("parallelism.pipeline_parallel_microbatch_size", "micro_batch", 1,
                    "1; torchtitan-job-config");
  else if (pieces != nullptr)
    reading_.without_effect(*pieces, "there is one stage");
  if (!staged && local != nullptr)
    reading_.set(*local, "micro_batch", each);
  else if (!staged)
    reading_.assume("training.local_batch_size", "micro_batch", each, "8; torchtitan-job-config");
  if (global != nullptr && whole_of(*global, -1) > 0) {
    reading_.set(*global, "global_batch", whole_of(*global));
    if (staged && local != nullptr) reading_.part_of(*local, "micro_batch");
    return;
  }
  if (global != nullptr) reading_.part_of(*global, "global_batch");
  s_.batch_of_ranks(staged ? local : nullptr, each);
}

void Titan::settle_precision() {
  const Said* converters = s_.kept("model.converters");
  const Said* format = s_.kept("training.mixed_precision_param");
  std::string precision;
  if (converters != nullptr && !(converters->value.is_array() && converters->value.empty())) {
    const std::string text = value_text(converters->value);
    const Said* recipe = nullptr;
    for (const char* name : {"quantize.linear.float8.recipe_name", "float8.recipe_name"})
      if (s_.kept(name) != nullptr) recipe = s_.kept(name);
    if (text.find("float8") != std::string::npos) precision = "fp8-current";
    if (text.find("mx") != std::string::npos) precision = "mxfp8";
    if (recipe != nullptr && text_of(*recipe) != "tensorwise")
      reading_.not_understood(*recipe, "scales of rows: predicted with one scale a tensor");
    if (precision.empty())
      reading_.not_understood(*converters, "a converter that is not predicted");
    else
      reading_.set(*converters, "precision", precision);
  } else if (converters != nullptr) {
    reading_.without_effect(*converters, "none is named");
  }
  for (const char* name : {"mx.recipe_name", "quantize.linear.mx.recipe_name"})
    if (const Said* said = s_.kept(name)) {
      if (precision == "mxfp8")
        reading_.part_of(*said, "precision");
      else
        reading_.without_effect(*said);
    }
  if (const Said* type = s_.kept("training.dtype")) reading_.without_effect(*type);
  if (format == nullptr) return;
  const std::string type = one_of(*format, {"bfloat16", "float32", "float16"});
  if (!precision.empty())
    reading_.part_of(*format, "precision");
  else if (type == "float32")
    reading_.not_understood(*format, "FP32 is not predicted: bf16 is");
  else
    reading_.set(*format, "precision", type == "float16" ? "fp16" : "bf16");
}

void Titan::settle_memory() {
  const Said* mode = s_.kept("activation_checkpoint.mode");
  const Said* option = s_.kept("activation_checkpoint.selective_ac_option");
  if (mode != nullptr) {
    const std::string kind = one_of(*mode, {"none", "selective", "full", "memory_budget"});
    if (kind == "memory_budget")
      reading_.not_understood(*mode, "a budget of memory: predicted without recompute");
    else
      reading_.set(*mode, "recompute", kind);
    const bool layers = option != nullptr && value_text(option->value) != "op";
    if (option != nullptr && kind == "selective" && layers)
      reading_.not_understood(*option, "every second layer or so: predicted as op");
    else if (option != nullptr)
      reading_.part_of(*option, "recompute");
  }
  if (const Said* offload = s_.kept("training.enable_cpu_offload")) {
    if (truth_of(*offload))
      reading_.set(*offload, "offload", SortedJson::array({"weights", "optimizer"}));
    else
      reading_.without_effect(*offload, "it is the default");
  }
  if (const Said* optimizer = s_.kept("optimizer.name")) {
    if (value_text(optimizer->value).starts_with("Adam"))
      reading_.part_of(*optimizer, "optimizer");
    else
      reading_.not_understood(*optimizer, "an optimizer that is not predicted: Adam is");
  }
  if (const Said* method = s_.kept("parallelism.context_parallel_rotate_method")) {
    const std::string kind = one_of(*method, {"allgather", "alltoall"});
    reading_.set(*method, "context_parallel", kind == "allgather" ? "all-gather" : "ring");
  }
}

}  // namespace

void read_titan(GivenReading& reading, const GivenWords& given) { Titan(reading).read(given); }

}  // namespace orrery
