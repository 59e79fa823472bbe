// Reads settings from flags and files and makes scenarios and questions of them.
#include "sim/app/settings.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>

#include <fmt/format.h>

#include "hw_models/catalog.h"
#include "sim/app/conditions.h"
#include "sim/app/settings_job.h"
#include "topologies/clos.h"
#include "workloads/model_catalog.h"

namespace orrery {
namespace {

constexpr std::int64_t most_changes = 5;  // beyond that a search of everything is as good
constexpr const char* command_line = "command line";

// Inference runs with a serving engine's kernels unless told otherwise, training on Megatron-Core:
// where there are no CUDA kernels at the release that vendors' forks of it are taken for
// (validation's rows of AMD and Intel). TPUs run MaxText.
std::string default_stack(const Cluster& cluster, const Job& job) {
  if (cluster.device.vendor == "Google") return "maxtext";
  if (!is_training(job.task)) return "serving-kernels";
  return cluster.device.resolved().tile_model ? "megatron-core" : "megatron-core@0.8";
}

// A release may be later than every one that is known, not earlier, and has to look like one.
std::string stack_name(const JsonValue& s, const Cluster& cluster, const Job& job) {
  const auto v = s.find("stack");
  if (!v) return default_stack(cluster, job);
  const std::string name = v->text();
  const std::size_t at = name.find('@');
  if (at == std::string::npos) return name;
  const std::string release = name.substr(at + 1);
  if (release.empty() || release[0] < '0' || release[0] > '9')
    v->fail(fmt::format("name@release, where a release begins with a digit"), in_quotes(name));
  const std::filesystem::path folder = data_root() / "workloads/catalog/stacks";
  if (known_release(name, folder).empty())
    v->fail(fmt::format("one of its releases ({}), or a later one",
                        fmt::join(stack_releases(name.substr(0, at), folder), ", ")),
            in_quotes(name));
  return name;
}

Stack read_stack(const std::string& name, const Scenario& scenario, PrecisionRecipe precision) {
  return catalogue_stack(name, scenario.cluster, scenario.model, scenario.job, precision);
}

// Plain "fp8" is what the stack's release means by it.
PrecisionRecipe read_precision(const JsonValue& s, const std::string& stack,
                               const Scenario& scenario) {
  const auto v = s.find("precision");
  if (!v) return PrecisionRecipe::bf16;
  const PrecisionRecipe named = precision_from(*v);
  return v->text() == "fp8" ? read_stack(stack, scenario, named).defaults.fp8 : named;
}

// Recipes that the accelerator has units for; scales by blocks of 32 and 16 came with Blackwell.
std::vector<PrecisionRecipe> any_precision(const Device& device) {
  using enum PrecisionRecipe;
  const ResolvedDevice d = device.resolved();
  const auto has = [&](Format f) {
    return d.tensor_rate[static_cast<std::size_t>(f)] > FlopPerSecond(0);
  };
  std::vector<PrecisionRecipe> all;
  if (has(Format::bf16)) all.push_back(bf16);
  if (!has(Format::fp8)) return all;
  all.insert(all.end(), {fp8_delayed, fp8_current, fp8_blockwise});
  if (d.architecture < Architecture::blackwell || d.architecture > Architecture::feynman)
    return all;
  all.push_back(mxfp8);
  if (has(Format::fp4)) all.push_back(nvfp4);
  return all;
}

// The settings with one value in place of several.
JsonValue with(const JsonValue& s, const char* key, const std::string& value) {
  nlohmann::json one = s.raw();
  one[key] = value;
  return JsonValue::from(one, s.file());
}

// What advise searches side by side: one, several with commas or in a list, or "any".
std::vector<PrecisionRecipe> read_precisions(const JsonValue& s, const std::string& stack,
                                             const Scenario& scenario) {
  const auto v = s.find("precision");
  if (!v) return {PrecisionRecipe::bf16};
  if (v->is_string() && v->text() == "any") {
    std::vector<PrecisionRecipe> any = any_precision(scenario.cluster.device);
    const StackChoices choices = read_stack(stack, scenario, PrecisionRecipe::bf16).choices;
    std::erase_if(any,
                  [&](PrecisionRecipe p) { return !StackChoices::allows(choices.precisions, p); });
    return any;
  }
  std::vector<PrecisionRecipe> all;
  for (const JsonValue& part : v->listed()) {
    static_cast<void>(precision_from(part));
    all.push_back(read_precision(with(s, "precision", part.text()), stack, scenario));
  }
  if (all.empty()) v->fail("a precision, several with commas, or any");
  return all;
}

std::vector<Optimizer> read_optimizers(const JsonValue& s, const std::string& stack,
                                       const Scenario& scenario) {
  const auto v = s.find("optimizer");
  if (!v) return {};
  std::vector<Optimizer> all;
  if (v->is_string() && v->text() == "any") {
    const StackChoices choices = read_stack(stack, scenario, PrecisionRecipe::bf16).choices;
    for (int o = 0; o <= static_cast<int>(Optimizer::rotating_adam); ++o)
      if (StackChoices::allows(choices.optimizers, static_cast<Optimizer>(o)))
        all.push_back(static_cast<Optimizer>(o));
    return all;
  }
  for (const JsonValue& part : v->listed()) all.push_back(optimizer_from(part));
  if (all.empty()) v->fail("an optimizer, several with commas, or any");
  return all;
}

// Decoding is replayed from CUDA graphs by every serving engine. Of prompts, engines capture short
// ones in pieces with attention between and run long ones without graphs; both are nearer to one
// graph than to the alternative here, which is the host of a training program under autograd: its
// 14 ms for 32 layers would be the time of every short prompt, and of a long one the host hides
// (2,048 tokens of Llama 8B on an H100 gain 0.6% from the graph). --launch eager says otherwise.
void apply_launch(const JsonValue& s, const Job& job, Stack& stack) {
  if (!is_training(job.task)) stack.launch = LaunchMode::full_graph;
  if (const auto v = s.find("launch"))
    stack.launch =
        v->one_of({"eager", "graph"}) == "eager" ? LaunchMode::eager : LaunchMode::full_graph;
}

Objective read_objective(const JsonValue& s) {
  const auto v = s.find("objective");
  if (!v) return Objective::time;
  const std::string name = v->one_of({"time", "cost", "energy"});
  if (name == "cost") return Objective::cost;
  return name == "energy" ? Objective::energy : Objective::time;
}

// Model, cluster and job, read in the order in which a person thinks of them.
Scenario read_subject(const JsonValue& s) {
  Model model = load_model(s.at("model").text(), data_root() / "workloads/catalog/models");
  const std::int64_t gpus = s.at("gpus").integer(1, most_of_a_count);
  Scenario scenario{.cluster = load_cluster(s.at("cluster").text(), gpus),
                    .model = std::move(model)};
  scenario.job = read_job(s, scenario.model);
  return scenario;
}

// What the release does where the settings are silent.
void apply_stack_defaults(const JsonValue& s, const Scenario& scenario, Layout& layout) {
  const Stack& stack = scenario.stack;
  if (!s.find("recompute") && is_training(scenario.job.task)) layout.set(stack.defaults.recompute);
  if (!s.find("zero")) layout.zero_stage = stack.defaults.zero_stage;
  if (!s.find("schedule") && layout.vpp == 1 && layout.pp > 1)
    layout.schedule = stack.defaults.schedule;
  if (!s.find("sequence_parallel")) layout.sequence_parallel = stack.defaults.sequence_parallel;
  if (!s.find("optimizer")) layout.optimizer = stack.defaults.optimizer;
  if (!s.find("context_parallel")) layout.context = stack.defaults.context;
}

// Modules that a release trains with the model unless told otherwise.
void apply_default_modules(const JsonValue& s, const Model& model, const Stack& stack, Job& job) {
  if (!s.find("mtp") && is_training(job.task) && model.mtp_layers > 0) job.mtp = stack.defaults.mtp;
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
      {"precision", text, "bf16 fp16 fp8[-delayed,-current,-blockwise] mxfp8 nvfp4; advise: any"},
      {"task", text, "pretrain, sft or lora"},
      {"phase", text, "one inference step: prefill or decode"},
      {"batch", integer, "inference: sequences per replica"},
      {"context", integer, "decode: tokens of history per sequence"},
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
      {"schedule", text, "gpipe 1f1b interleaved zero-bubble zb-v dualpipe dualpipe-v"},
      {"recompute", text, "none, selective, full or modules (\"moe_act,layernorm\")"},
      {"recompute_layers", integer, "full recompute of this many layers a stage"},
      {"sequence_parallel", on_off, "default: as the stack does"},
      {"optimizer", text, "adam, adam-bf16, adam-8bit, muon, ...; advise: also several, or any"},
      {"context_parallel", text, "ring, all-gather, all-to-all or hierarchical"},
      {"context_inner", integer, "hierarchical: ranks that trade rows for heads"},
      {"offload", list, "to host memory: weights,optimizer,activations"},
      {"optimizer_offload_fraction", number, "of an offloaded optimizer (default 1)"},
      {"stage_layers", list, "layers of each pipeline position"},
      {"rank_order", text, "innermost first (default tp-cp-dp-pp)"},
      {"per_domain", integer, "accelerators used of a scale-up domain (64 of 72)"},
      {"bucket", text, "gradients that are reduced together (\"40 MB\")"},
      {"launch", text, "eager or graph"},
      {"mean_document", integer, "packed fine-tuning: mean tokens of a document"},
      {"lora_rank", integer, "rank of LoRA adapters"},
      {"mtp", on_off, "train the model's multi-token prediction modules too"},
      {"expert_imbalance", number, "busiest expert rank's tokens over the mean"},
      {"experts_in_turn", on_off,
       "a benchmark's gate: each token takes the experts after the last"},
      {"gpu_hour_price", number, "USD per accelerator and hour"},
      {"network", text, "ideal, or flow: shared links, routing, faults"},
      {"faults", json, "flow: JSON list of broken links (README)", SettingOf::simulate},
      {"slow_gpus", json, "JSON list of {gpu, speed}", SettingOf::simulate},
      {"background", json, "flow: JSON list of other traffic", SettingOf::simulate},
      {"objective", text, "time, cost or energy", SettingOf::advise},
      {"top", integer, "layouts to list (default 10)", SettingOf::advise},
      {"memory_reserve", number, "share of memory to leave free, 0 to 0.9 (default 0.05)",
       SettingOf::advise},
      {"variants", on_off, "list every setting of a shape, not only its best", SettingOf::advise},
      {"like", SettingKind::settings, "what runs now: settings of its layout, or a scenario",
       SettingOf::advise},
      {"changes", integer, "with --like: the best with 1, 2, ... so many changed decisions",
       SettingOf::advise},
      {"pareto", text, "also a front: time,memory or time,energy", SettingOf::advise},
      {"time_limit", number, "seconds to search; then the best so far and the proven gap",
       SettingOf::advise},
      {"trace", file, "write a trace for Perfetto to this file", SettingOf::simulate},
  };
  return all;
}

std::int64_t whole_number(const std::string& flag, const std::string& text, std::int64_t low,
                          std::int64_t high) {
  std::int64_t value = 0;
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (code != std::errc() || end != text.data() + text.size() || value < low || value > high)
    throw Error({.file = flag,
                 .found = in_quotes(text),
                 .expected = fmt::format("a whole number from {} to {}", low, high)});
  return value;
}

nlohmann::json setting_value(const Setting& setting, const std::string& text) {
  const auto fail = [&](const std::string& expected) {
    throw Error({.file = setting.flag(), .found = in_quotes(text), .expected = expected});
  };
  const auto integer = [&](const std::string& digits) {
    constexpr std::int64_t any = std::numeric_limits<std::int64_t>::max();
    std::int64_t value = 0;
    const auto [end, code] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
    if (code != std::errc() || end != digits.data() + digits.size() || value == any)
      fail("a whole number");
    return value;
  };
  switch (setting.kind) {
    case SettingKind::file:
      if (text.empty()) fail("a file");
      return text;
    case SettingKind::text:
      return text;
    case SettingKind::integer:
      return integer(text);
    case SettingKind::number: {
      char* end = nullptr;
      const double value = std::strtod(text.c_str(), &end);
      if (text.empty() || *end != '\0' || !std::isfinite(value)) fail("a number");
      return value;
    }
    case SettingKind::on_off:
      if (text != "true" && text != "false") fail("true or false");
      return text == "true";
    case SettingKind::settings:
      if (text.empty()) fail("a file or JSON");
      return text.front() == '{' ? JsonValue::parse(text, setting.flag()).raw()
                                 : nlohmann::json(text);
    case SettingKind::json:
      if (text.empty()) fail("JSON");
      return JsonValue::parse(text, setting.flag()).raw();
    case SettingKind::list: {
      nlohmann::json list = nlohmann::json::array();
      std::size_t start = 0;
      while (start <= text.size()) {
        const std::size_t comma = std::min(text.find(',', start), text.size());
        const std::string item = text.substr(start, comma - start);
        if (item.empty()) fail("a comma-separated list");
        if (std::string(setting.key) == "stage_layers")
          list.push_back(integer(item));
        else
          list.push_back(item);
        start = comma + 1;
      }
      return list;
    }
  }
  return {};
}

nlohmann::json without_nulls(const nlohmann::json& object) {
  if (!object.is_object()) return object;
  nlohmann::json kept = nlohmann::json::object();
  for (const auto& [key, value] : object.items())
    if (!value.is_null()) kept[key] = value;
  return kept;
}

JsonValue merge_settings(const std::string& file, const nlohmann::json& flags) {
  std::vector<std::string> keys;
  for (const Setting& s : settings()) keys.emplace_back(s.key);
  nlohmann::json merged = nlohmann::json::object();
  if (!file.empty()) {
    const JsonValue document = JsonValue::load(file);
    document.expect_only(keys, "a setting");
    merged = document.raw();
  }
  merged.update(flags);
  return JsonValue::from(without_nulls(merged), file.empty() ? command_line : file);
}

Error named_by_flag(const Error& error, const std::string& file, const nlohmann::json& flags) {
  ErrorInfo info = error.info();
  if (info.file != (file.empty() ? command_line : file)) return error;
  const std::size_t end = std::min(info.path.find_first_of(".["), info.path.size());
  const std::string key = info.path.substr(0, end);
  for (const Setting& setting : settings()) {
    if (key != setting.key || (!file.empty() && !flags.contains(key))) continue;
    info.file = setting.flag();
    info.path = info.path.substr(end);
    if (!flags.contains(key)) info.expected = setting.help;  // missing
    return Error(info);
  }
  return error;
}

void check_wiring(const Cluster& cluster) {
  if (cluster.gpus > cluster.fabric.scale_up.domain) clos_shape(cluster.fabric, cluster.gpus);
}

Scenario read_scenario(const JsonValue& s) {
  Scenario scenario = read_subject(s);
  check_wiring(scenario.cluster);
  read_objective(s);  // a file may hold it for advise
  scenario.network = read_network(s);
  scenario.conditions = read_conditions(s, scenario.cluster);
  const std::string name = stack_name(s, scenario.cluster, scenario.job);
  const PrecisionRecipe precision = read_precision(s, name, scenario);
  scenario.stack = read_stack(name, scenario, precision);
  apply_launch(s, scenario.job, scenario.stack);
  apply_default_modules(s, scenario.model, scenario.stack, scenario.job);
  Layout& layout = scenario.layout;
  layout = read_layout_over(s, {});
  layout.precision = precision;
  apply_stack_defaults(s, scenario, layout);
  if (!s.find("dp")) {
    const double others = static_cast<double>(layout.tp) * static_cast<double>(layout.pp) *
                          static_cast<double>(layout.cp);
    const std::int64_t gpus = scenario.cluster.gpus;
    if (others > static_cast<double>(gpus) || gpus % (layout.tp * layout.pp * layout.cp) != 0)
      s.at("gpus").fail(
          fmt::format("a multiple of tp {} * pp {} * cp {}", layout.tp, layout.pp, layout.cp));
    layout.dp = gpus / (layout.tp * layout.pp * layout.cp);
  }
  return scenario;
}

SimulateOptions read_simulate_options(const JsonValue& s) {
  SimulateOptions options;
  if (const auto v = s.find("gpu_hour_price")) {
    options.rental_per_gpu_hour = v->number();
    if (options.rental_per_gpu_hour <= 0 || options.rental_per_gpu_hour > 1e6)
      v->fail("a price above 0 and up to 1e6 USD");
  }
  return options;
}

Question read_question(const JsonValue& s) {
  Scenario subject = read_subject(s);
  if (!is_training(subject.job.task))
    s.at(s.find("phase") ? "phase" : "task")
        .fail("pretrain, sft or lora: one inference step is timed by simulate");
  for (const char* key : {"launch", "faults", "slow_gpus", "background"})
    if (const auto v = s.find(key)) v->fail("nothing: advise does not search it, simulate has it");
  if (read_network(s) == NetworkMode::flow)
    s.at("network").fail("ideal: advise ranks on it; check a layout with simulate --network flow");
  const std::string name = stack_name(s, subject.cluster, subject.job);
  Question q{.precisions = read_precisions(s, name, subject),
             .optimizers = read_optimizers(s, name, subject)};
  if (subject.model.mtp_layers > 0)
    apply_default_modules(s, subject.model, read_stack(name, subject, q.precisions.front()),
                          subject.job);
  nlohmann::json sizes = s.raw();
  sizes.erase("precision");
  sizes.erase("optimizer");
  const Layout fixed = read_layout_over(JsonValue::from(sizes, s.file()), {});
  q.cluster = std::move(subject.cluster);
  q.model = std::move(subject.model);
  q.job = subject.job;
  q.stack_name = name;
  q.objective = read_objective(s);
  SearchLimits& limits = q.limits;
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
  fix("shard_group", limits.shard_group, fixed.shard_group);
  fix("context_parallel", limits.context, fixed.context);
  fix("context_inner", limits.context_inner, fixed.context_inner);
  fix("schedule", limits.schedule, fixed.schedule);
  fix("recompute", limits.recompute, fixed.recompute_choice());
  fix("recompute_layers", limits.recompute_layers, fixed.recompute_layers);
  fix("sequence_parallel", limits.sequence_parallel, fixed.sequence_parallel);
  fix("stage_layers", limits.stage_layers, fixed.stage_layers);
  fix("rank_order", limits.rank_order, fixed.rank_order);
  fix("per_domain", limits.per_domain, fixed.per_domain);
  fix("bucket", limits.bucket, fixed.bucket);
  fix("offload", limits.offload, offload_of(fixed));
  return q;
}

double read_memory_reserve(const JsonValue& s) {
  const auto v = s.find("memory_reserve");
  if (!v) return usual_memory_reserve;
  const double share = v->number();
  if (share < 0 || share > 0.9) v->fail("a share from 0 to 0.9");
  return share;
}

AdviseOptions read_advise_options(const JsonValue& s) {
  AdviseOptions options;
  if (const auto v = s.find("top")) options.top = static_cast<int>(v->integer(1, 1000));
  if (const auto v = s.find("variants")) options.variants = v->boolean();
  if (const auto v = s.find("pareto"))
    options.pareto = v->one_of({"time,memory", "time,energy"}) == "time,memory"
                         ? Front::Axis::memory
                         : Front::Axis::energy;
  if (const auto v = s.find("time_limit")) {
    options.time_limit = Seconds(v->number());
    if (options.time_limit <= Seconds(0) || options.time_limit > Seconds(1e6))
      v->fail("a number of seconds above 0");
  }
  options.memory_reserve = read_memory_reserve(s);
  if (const auto v = s.find("changes")) {
    options.changes = static_cast<int>(v->integer(1, most_changes));
    if (!s.find("like")) v->fail("nothing without --like, the layout to change");
  }
  options.tie = tie_tolerance;
  options.rental_per_gpu_hour = read_simulate_options(s).rental_per_gpu_hour;
  return options;
}

}  // namespace orrery
