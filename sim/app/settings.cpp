// Reads settings from flags and files and makes scenarios and questions of them.
#include "sim/app/settings.h"

#include <algorithm>
#include <charconv>
#include <cmath>

#include <fmt/format.h>

#include "hw_models/catalog.h"
#include "workloads/model_catalog.h"

namespace orrery {
namespace {

const std::vector<std::string> layout_keys = {
    "tp", "pp", "vpp", "dp", "cp", "ep", "etp", "micro_batch", "sequence_parallel", "zero",
    "shard_group", "schedule", "recompute", "recompute_layers", "precision", "optimizer",
    "context_parallel", "offload", "stage_layers"};

constexpr std::int64_t most = 1'000'000'000;

std::int64_t count(const JsonValue& s, std::string_view key) { return s.at(key).integer(1, most); }

std::int64_t count_or(const JsonValue& s, std::string_view key, std::int64_t fallback) {
  const auto v = s.find(key);
  return v ? v->integer(1, most) : fallback;
}

Task read_task(const JsonValue& s) {
  const auto phase = s.find("phase");
  const auto task = s.find("task");
  if (phase && task) phase->fail("either a task or a phase, not both");
  if (phase) return *task_from(phase->one_of({"prefill", "decode"}));
  return task ? *task_from(task->one_of({"pretrain", "sft", "lora", "prefill", "decode"}))
              : Task::pretrain;
}

Job read_job(const JsonValue& s) {
  Job job{.task = read_task(s)};
  if (is_training(job.task)) {
    job.sequence = count(s, "seq");
    job.global_batch = count(s, "global_batch");
  } else {
    job.batch = count(s, "batch");
    if (job.task == Task::prefill) job.sequence = count(s, "seq");
    else job.context = count(s, "context");
  }
  job.mean_document = count_or(s, "mean_document", 0);
  job.lora_rank = count_or(s, "lora_rank", job.lora_rank);
  if (const auto v = s.find("mtp")) job.mtp = v->boolean();
  if (const auto v = s.find("expert_imbalance")) {
    job.expert_imbalance = v->number();
    if (job.expert_imbalance < 1 || job.expert_imbalance > 1000)
      v->fail("a number from 1 (balanced) to 1000");
  }
  return job;
}

// The part of the settings that read_layout knows.
JsonValue layout_settings(const JsonValue& s) {
  nlohmann::json object = nlohmann::json::object();
  for (const std::string& key : layout_keys)
    if (const auto v = s.find(key)) object[key] = v->raw();
  return JsonValue::from(object, s.file());
}

PrecisionRecipe read_precision(const JsonValue& s) {
  const auto v = s.find("precision");
  return v ? precision_from(*v) : PrecisionRecipe::bf16;
}

// Inference runs on the compiler's stack unless told otherwise, training on Megatron-Core where there
// are CUDA kernels and on MaxText elsewhere.
std::string default_stack(const Cluster& cluster, const Job& job) {
  if (!cluster.device.resolved().tile_model) return "maxtext";
  return is_training(job.task) ? "megatron-core" : "pytorch";
}

std::string stack_name(const JsonValue& s, const Cluster& cluster, const Job& job) {
  const auto v = s.find("stack");
  return v ? v->text() : default_stack(cluster, job);
}

// Decoding is replayed from CUDA graphs by every serving engine; --launch eager says otherwise.
void apply_launch(const JsonValue& s, const Job& job, Stack& stack) {
  if (!is_training(job.task)) stack.launch = LaunchMode::full_graph;
  if (const auto v = s.find("launch"))
    stack.launch = v->one_of({"eager", "graph"}) == "eager" ? LaunchMode::eager
                                                            : LaunchMode::full_graph;
}

Model read_model_setting(const JsonValue& s) {
  return load_model(s.at("model").text(), data_root() / "workloads/catalog/models");
}

}  // namespace

std::string Setting::flag() const {
  std::string text = "--" + std::string(key);
  std::replace(text.begin(), text.end(), '_', '-');
  return text;
}

const std::vector<Setting>& settings() {
  using enum SettingKind;
  static const std::vector<Setting> all = {
      {"model", text, "model name, catalogue file or Hugging Face config.json"},
      {"cluster", text, "cluster name or file"},
      {"gpus", integer, "accelerators in use"},
      {"seq", integer, "tokens per sequence (prefill: per prompt)"},
      {"global_batch", integer, "sequences per step"},
      {"stack", text, "software stack, name or name@release"},
      {"task", text, "pretrain, sft or lora"},
      {"phase", text, "one inference step: prefill or decode"},
      {"batch", integer, "inference: sequences per replica"},
      {"context", integer, "decode: tokens of history per sequence"},
      {"precision", text, "bf16, fp16, fp8-delayed, fp8-current, fp8-blockwise, mxfp8, nvfp4"},
      {"tp", integer, "tensor parallel ranks"},
      {"pp", integer, "pipeline stages"},
      {"vpp", integer, "chunks per stage (interleaved schedule)"},
      {"dp", integer, "data parallel ranks (default: what is left)"},
      {"cp", integer, "context parallel ranks"},
      {"ep", integer, "expert parallel ranks"},
      {"etp", integer, "tensor parallel ranks inside experts"},
      {"micro_batch", integer, "sequences per microbatch"},
      {"zero", integer, "ZeRO stage 0 to 3 (3: FSDP)"},
      {"shard_group", integer, "hybrid sharding: ranks that shard"},
      {"schedule", text, "gpipe, 1f1b, interleaved, zero-bubble, dualpipe"},
      {"recompute", text, "none, selective or full"},
      {"recompute_layers", integer, "full recompute of this many layers a stage"},
      {"sequence_parallel", on_off, "true or false (default true)"},
      {"optimizer", text, "adam, adam-bf16, adam-8bit, muon, ..."},
      {"context_parallel", text, "ring or all-gather"},
      {"offload", list, "to host memory: weights,optimizer,activations"},
      {"stage_layers", list, "layers of each pipeline position"},
      {"launch", text, "eager or graph"},
      {"mean_document", integer, "packed fine-tuning: mean tokens of a document"},
      {"lora_rank", integer, "rank of LoRA adapters"},
      {"mtp", on_off, "train the model's multi-token prediction modules too"},
      {"expert_imbalance", number, "busiest expert rank's tokens over the mean"},
      {"gpu_hour_price", number, "USD per accelerator and hour"},
      {"objective", text, "advise: time, cost or energy"},
      {"network", text, "ideal (flow comes with the network release)"},
  };
  return all;
}

nlohmann::json setting_value(const Setting& setting, const std::string& text) {
  const auto fail = [&](const std::string& expected) {
    throw Error({.file = setting.flag(), .path = "", .found = '"' + text + '"',
                 .expected = expected, .nearest = ""});
  };
  const auto integer = [&](const std::string& digits) {
    std::int64_t value = 0;
    const auto [end, code] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
    if (code != std::errc() || end != digits.data() + digits.size()) fail("a whole number");
    return value;
  };
  switch (setting.kind) {
    case SettingKind::text: return text;
    case SettingKind::integer: return integer(text);
    case SettingKind::number: {
      char* end = nullptr;
      const double value = std::strtod(text.c_str(), &end);
      if (text.empty() || *end != '\0' || !std::isfinite(value)) fail("a number");
      return value;
    }
    case SettingKind::on_off:
      if (text != "true" && text != "false") fail("true or false");
      return text == "true";
    case SettingKind::list: {
      nlohmann::json list = nlohmann::json::array();
      std::size_t start = 0;
      while (start <= text.size()) {
        const std::size_t comma = std::min(text.find(',', start), text.size());
        const std::string item = text.substr(start, comma - start);
        if (item.empty()) fail("a comma-separated list");
        if (std::string(setting.key) == "stage_layers") list.push_back(integer(item));
        else list.push_back(item);
        start = comma + 1;
      }
      return list;
    }
  }
  return {};
}

JsonValue merge_settings(const std::string& file, const nlohmann::json& flags) {
  std::vector<std::string> keys;
  for (const Setting& s : settings()) keys.emplace_back(s.key);
  nlohmann::json merged = nlohmann::json::object();
  if (!file.empty()) {
    const JsonValue document = JsonValue::load(file);
    for (const auto& [key, value] : document.members()) {
      if (std::find(keys.begin(), keys.end(), key) == keys.end())
        throw Error({.file = file, .path = key, .found = "unknown key", .expected = "a setting",
                     .nearest = nearest_name(key, keys)});
      merged[key] = value.raw();
    }
  }
  merged.update(flags);
  return JsonValue::from(merged, file.empty() ? "command line" : file);
}

Stack read_stack(const std::string& name, const Cluster& cluster, const Model& model,
                 const Job& job, PrecisionRecipe precision) {
  return load_stack(name,
                    {.architecture = std::string(to_text(cluster.device.architecture)),
                     .precision = precision, .moe = model.has_experts(), .task = job.task},
                    data_root() / "workloads/catalog/stacks");
}

Scenario read_scenario(const JsonValue& s) {
  if (const auto v = s.find("network")) {
    if (v->one_of({"ideal", "flow"}) == "flow")
      v->fail("ideal: the flow network is not part of this version");
  }
  Scenario scenario{.cluster = load_cluster(s.at("cluster").text(), count(s, "gpus")),
                    .model = read_model_setting(s)};
  scenario.job = read_job(s);
  scenario.stack = read_stack(stack_name(s, scenario.cluster, scenario.job), scenario.cluster,
                              scenario.model, scenario.job, read_precision(s));
  apply_launch(s, scenario.job, scenario.stack);
  Layout& layout = scenario.layout;
  layout = read_layout(layout_settings(s));
  if (!s.find("recompute") && is_training(scenario.job.task))
    layout.recompute = scenario.stack.default_recompute;
  if (!s.find("zero")) layout.zero_stage = scenario.stack.default_zero_stage;
  if (!s.find("schedule") && layout.vpp > 1) layout.schedule = Schedule::interleaved;
  if (!s.find("sequence_parallel"))
    layout.sequence_parallel = scenario.stack.default_sequence_parallel;
  if (!s.find("dp")) {
    const std::int64_t others = layout.tp * layout.pp * layout.cp;
    if (scenario.cluster.gpus % others != 0)
      throw Error({.file = s.file(), .path = "gpus", .found = std::to_string(scenario.cluster.gpus),
                   .expected = fmt::format("a multiple of tp * pp * cp = {}", others),
                   .nearest = ""});
    layout.dp = scenario.cluster.gpus / others;
  }
  return scenario;
}

SimulateOptions read_simulate_options(const JsonValue& s) {
  SimulateOptions options;
  if (const auto v = s.find("gpu_hour_price")) {
    options.rental_per_gpu_hour = v->number();
    if (options.rental_per_gpu_hour <= 0 || options.rental_per_gpu_hour > 1e6)
      v->fail("a price above 0 USD");
  }
  return options;
}

Question read_question(const JsonValue& s) {
  Question q{.cluster = load_cluster(s.at("cluster").text(), count(s, "gpus")),
             .model = read_model_setting(s)};
  q.job = read_job(s);
  if (!is_training(q.job.task))
    s.fail("a training job: inference layouts are timed with simulate --phase");
  q.stack_name = stack_name(s, q.cluster, q.job);
  if (const auto v = s.find("objective")) {
    const std::string name = v->one_of({"time", "cost", "energy"});
    q.objective = name == "time"   ? Objective::time
                  : name == "cost" ? Objective::cost
                                   : Objective::energy;
  }
  const Layout fixed = read_layout(layout_settings(s));
  SearchLimits& limits = q.limits;
  limits.precision = fixed.precision;
  limits.optimizer = fixed.optimizer;
  const auto fix = [&](const char* key, auto& limit, auto value) {
    if (s.find(key)) limit = value;
  };
  fix("tp", limits.tp, fixed.tp);
  fix("pp", limits.pp, fixed.pp);
  fix("vpp", limits.vpp, fixed.vpp);
  fix("dp", limits.dp, fixed.dp);
  fix("cp", limits.cp, fixed.cp);
  fix("ep", limits.ep, fixed.ep);
  fix("etp", limits.etp, fixed.etp);
  fix("micro_batch", limits.micro_batch, fixed.micro_batch);
  fix("zero", limits.zero_stage, fixed.zero_stage);
  fix("schedule", limits.schedule, fixed.schedule);
  fix("recompute", limits.recompute, fixed.recompute);
  fix("sequence_parallel", limits.sequence_parallel, fixed.sequence_parallel);
  return q;
}

}  // namespace orrery
