// SPDX-License-Identifier: Apache-2.0
// Reads settings from flags and files and makes scenarios and questions of them.
#include "sim/question/settings/settings.h"
#include "sim/base/json/tree.h"

#include <algorithm>
#include <cmath>
#include <iostream>
#include <iterator>

#include <fmt/format.h>

#include "hw_models/catalog.h"
#include "sim/base/text/lines.h"
#include "sim/base/text/words.h"
#include "sim/engine/capability.h"
#include "sim/question/settings/conditions.h"
#include "sim/question/settings/counts.h"
#include "sim/question/settings/given_file.h"
#include "sim/question/settings/job.h"
#include "sim/question/settings/what_if.h"
#include "topologies/clos.h"
#include "workloads/layout/decisions.h"

namespace orrery {
namespace {

constexpr std::int64_t most_changes = 5;  // beyond that a search of everything is as good

// What people run on the device, as its catalogue entry says.
std::string default_stack(const JsonValue& s, const Cluster& cluster, const Job& job) {
  std::string usual = usual_stack(cluster.device, job.task);
  if (usual.empty())
    throw Error({.file = s.file(),
                 .path = "stack",
                 .found = fmt::format("nothing, and {} names no stack that people run on it",
                                      cluster.device.name),
                 .expected = "a software stack, name or name@release"});
  return usual;
}

std::string stack_name(const JsonValue& s, const Cluster& cluster, const Job& job,
                       Catalogues& catalogues) {
  const auto v = s.find("stack");
  return v ? stack_reference(*v, catalogues) : default_stack(s, cluster, job);
}

Stack read_stack(const std::string& name, const Scenario& scenario, PrecisionRecipe precision,
                 Catalogues& catalogues) {
  return catalogues.stack(name,
                          stack_context(scenario.cluster, scenario.model, scenario.job, precision));
}

// A serving engine runs steps of inference.
void check_trains(const JsonValue& s, const Stack& stack, Task task) {
  if (!is_training(task) || !stack.serving.engine) return;
  s.at("stack").fail(
      fmt::format("a program that trains: {} serves models (orrery serve)", stack.title));
}

// Plain "fp8" is what the stack's release means by it.
PrecisionRecipe read_precision(const JsonValue& s, const std::string& stack,
                               const Scenario& scenario, Catalogues& catalogues) {
  const auto v = s.find("precision");
  if (!v) return PrecisionRecipe::bf16;
  const PrecisionRecipe named = precision_from(*v);
  return v->text() == "fp8" ? read_stack(stack, scenario, named, catalogues).defaults.fp8 : named;
}

// Those of the device; FP16 only where it stands in for BF16.
std::vector<PrecisionRecipe> any_precision(const Device& device) {
  std::vector<PrecisionRecipe> all = device_precisions(device);
  if (std::find(all.begin(), all.end(), PrecisionRecipe::bf16) != all.end())
    std::erase(all, PrecisionRecipe::fp16);
  return all;
}

// The settings with one value in place of several.
JsonValue with(const JsonValue& s, const char* key, const std::string& value) {
  SortedJson one = s.raw();
  one[key] = value;
  return JsonValue::from(one, s.file());
}

// What advise searches side by side: one, several with commas or in a list, or "any".
std::vector<PrecisionRecipe> read_precisions(const JsonValue& s, const std::string& stack,
                                             const Scenario& scenario, Catalogues& catalogues) {
  const auto v = s.find("precision");
  if (!v) return {PrecisionRecipe::bf16};
  if (v->is_string() && v->text() == "any") {
    std::vector<PrecisionRecipe> any = any_precision(scenario.cluster.device);
    const StackChoices choices =
        read_stack(stack, scenario, PrecisionRecipe::bf16, catalogues).choices;
    std::erase_if(any,
                  [&](PrecisionRecipe p) { return !StackChoices::allows(choices.precisions, p); });
    return any;
  }
  std::vector<PrecisionRecipe> all;
  for (const JsonValue& part : v->listed()) {
    static_cast<void>(precision_from(part));
    all.push_back(read_precision(with(s, "precision", part.text()), stack, scenario, catalogues));
  }
  if (all.empty()) v->fail("a precision, several with commas, or any");
  return all;
}

std::vector<Optimizer> read_optimizers(const JsonValue& s, const std::string& stack,
                                       const Scenario& scenario, Catalogues& catalogues) {
  const auto v = s.find("optimizer");
  if (!v) return {};
  std::vector<Optimizer> all;
  if (v->is_string() && v->text() == "any") {
    const StackChoices choices =
        read_stack(stack, scenario, PrecisionRecipe::bf16, catalogues).choices;
    for (int o = 0; o < enumerator_count<Optimizer>(); ++o)
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
  if (!is_training(job.task)) stack.host.launch = LaunchMode::full_graph;
  if (const auto v = s.find("launch"))
    stack.host.launch =
        v->one_of({"eager", "graph"}) == "eager" ? LaunchMode::eager : LaunchMode::full_graph;
}

Objective read_objective(const JsonValue& s) {
  const auto v = s.find("objective");
  return v ? objective_text.from(*v) : Objective::time;
}

// Model, cluster and job, read in the order in which a person thinks of them.
Scenario read_subject(const JsonValue& s, Catalogues& catalogues) {
  check_complete(s);
  Model model = catalogues.model(s.at("model").reference());
  const std::int64_t gpus = s.at("gpus").integer(1, most_of_a_count);
  Scenario scenario{.cluster = catalogues.cluster(s.at("cluster").reference(), gpus),
                    .model = std::move(model)};
  check_whole_hosts(s.at("gpus"), scenario.cluster);
  scenario.cluster = with_what_if(std::move(scenario.cluster), s);
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

// Modules that a release trains with the model unless told otherwise, and what it drops.
void apply_default_modules(const JsonValue& s, const Model& model, const Stack& stack, Job& job) {
  if (!s.find("attention_dropout") && is_training(job.task))
    job.attention_dropout = stack.defaults.attention_dropout;
  if (!s.find("hidden_dropout") && is_training(job.task))
    job.hidden_dropout = stack.defaults.hidden_dropout;
  if (!s.find("mtp") && is_training(job.task) && model.mtp_layers > 0) job.mtp = stack.defaults.mtp;
}

}  // namespace

std::string stack_reference(const JsonValue& stack, Catalogues& catalogues) {
  std::string name = stack.reference();
  if (is_inline_entry(name)) return name;
  const std::size_t at = name.find('@');
  if (at == std::string::npos) return name;
  const std::string release = name.substr(at + 1);
  if (release.empty() || release[0] < '0' || release[0] > '9')
    stack.fail("name@release, where a release begins with a digit", in_quotes(name));
  const std::filesystem::path folder = data_root() / "workloads/catalog/stacks";
  if (catalogues.known_release(name).empty())
    stack.fail(fmt::format("one of its releases ({}), or a later one",
                           joined(stack_releases(name.substr(0, at), folder), ", ")),
               in_quotes(name));
  return name;
}

std::int64_t whole_number(const std::string& flag, const std::string& text, std::int64_t low,
                          std::int64_t high) {
  const auto value = whole_in(text);
  if (!value || *value < low || *value > high)
    throw Error({.file = flag,
                 .found = in_quotes(text),
                 .expected = fmt::format("a whole number from {} to {}", low, high)});
  return *value;
}

namespace {

std::optional<double> number_in(const std::string& text) {
  char* end = nullptr;
  const double value = std::strtod(text.c_str(), &end);
  const bool decimal = text.find_first_of("xX") == std::string::npos;
  if (text.empty() || *end != '\0' || !std::isfinite(value) || !decimal) return std::nullopt;
  return value;
}

}  // namespace

SortedJson setting_value(const Setting& setting, const std::string& text) {
  const auto fail = [&](const std::string& expected) {
    throw Error({.file = setting.flag(), .found = in_quotes(text), .expected = expected});
  };
  switch (setting.kind) {
    case SettingKind::file:
      if (text.empty()) fail("a file");
      return text;
    case SettingKind::text:
      return is_inline_entry(text) ? JsonValue::parse(text, setting.flag()).raw()
                                   : SortedJson(text);
    case SettingKind::integer:
      return count_in(setting.key, text, setting.flag());
    case SettingKind::number:
      if (const auto value = number_in(text)) return *value;
      fail("a number");
      break;
    case SettingKind::quantity:
      if (text.empty()) fail("a factor, or a value with its unit");
      if (const auto value = number_in(text)) return *value;
      return text;
    case SettingKind::on_off:
      if (text != "true" && text != "false") fail("true or false");
      return text == "true";
    case SettingKind::settings:
      if (text.empty()) fail("a file or JSON");
      return text.front() == '{' || text.front() == '['
                 ? JsonValue::parse(text, setting.flag()).raw()
                 : SortedJson(text);
    case SettingKind::json:
      if (text.empty()) fail("JSON");
      return JsonValue::parse(text, setting.flag()).raw();
    case SettingKind::list: {
      SortedJson list = SortedJson::array();
      for (const std::string_view field : fields_of(text, ',')) {
        const std::string item(field);
        if (item.empty()) fail("a comma-separated list");
        if (std::string(setting.key) == "stage_layers")
          list.push_back(count_in(setting.key, item, setting.flag()));
        else
          list.push_back(item);
      }
      return list;
    }
  }
  return {};
}

SortedJson without_nulls(const SortedJson& object) {
  if (!object.is_object()) return object;
  SortedJson kept = SortedJson::object();
  for (const auto& [key, value] : object.items())
    if (!value.is_null()) kept[key] = value;
  return kept;
}

namespace {

// What a document of settings says, if it says nothing else.
SortedJson settings_in(const JsonValue& document) {
  std::vector<std::string> keys;
  for (const Setting& s : settings()) keys.emplace_back(s.key);
  keys.emplace_back(read_from_key);
  if (const auto before = document.find("trace")) before->fail("its new name, trace_out", "trace");
  document.expect_only(keys, "a setting");
  return document.raw();
}

}  // namespace

// A model on standard input stands in the question itself, which can so be asked again.
static SortedJson with_input_model(SortedJson settings) {
  const auto model = settings.find("model");
  if (model == settings.end() || *model != "-") return settings;
  const std::string text{std::istreambuf_iterator<char>(std::cin), {}};
  *model = JsonValue::parse(text, "standard input").raw();
  if (model->is_object() && !model->contains("name")) (*model)["name"] = "standard-input";
  return settings;
}

JsonValue merge_settings(const std::string& file, const SortedJson& flags) {
  SortedJson merged = SortedJson::object();
  if (!file.empty()) {
    const auto read = settings_of_configuration(file, flags, GivenFor::step);
    merged = read ? *read : settings_in(JsonValue::load(file));
  }
  merged.update(flags);
  const std::string place = file.empty() ? command_line_place : file;
  return JsonValue::from(with_counts(with_input_model(without_nulls(merged)), place), place);
}

JsonValue merge_line(const JsonValue& line, const SortedJson& flags,
                     const std::vector<std::string>& refused, const SortedJson& otherwise) {
  SortedJson merged = otherwise.is_object() ? otherwise : SortedJson::object();
  merged.update(without_nulls(settings_in(line)));
  merged.update(flags);
  JsonValue settings =
      JsonValue::from(with_counts(without_nulls(merged), line.file()), line.file());
  for (const std::string& key : refused)
    if (const auto v = settings.find(key)) v->fail("nothing: many questions share the output");
  return settings;
}

Error named_by_flag(const Error& error, const std::string& file, const SortedJson& flags,
                    const std::vector<Setting>& known) {
  ErrorInfo info = error.info();
  if (info.file != (file.empty() ? command_line_place : file)) return error;
  const std::size_t end = std::min(info.path.find_first_of(".["), info.path.size());
  const std::string key = info.path.substr(0, end);
  for (const Setting& setting : known) {
    if (key != setting.key || (!file.empty() && !flags.contains(key))) continue;
    info.file = setting.flag();
    info.path = info.path.substr(end);
    if (!flags.contains(key)) info.expected = setting.help;  // missing
    return Error(info);
  }
  return error;
}

void check_whole_hosts(const JsonValue& gpus, const Cluster& cluster) {
  const std::int64_t host = cluster.gpus_per_host;
  if (cluster.gpus > host && cluster.gpus % host != 0)
    gpus.fail(fmt::format("a multiple of {}, the accelerators of a host of {}, or fewer than that",
                          host, cluster.name));
}

void check_wiring(const Cluster& cluster) {
  if (cluster.gpus > cluster.fabric.scale_up.domain) clos_shape(cluster.fabric, cluster.gpus);
}

Scenario read_scenario(const JsonValue& s) {
  Catalogues catalogues;
  return read_scenario(s, catalogues);
}

Scenario read_scenario(const JsonValue& s, Catalogues& catalogues) {
  Scenario scenario = read_subject(s, catalogues);
  check_wiring(scenario.cluster);
  read_objective(s);  // a file may hold it for advise
  scenario.network = read_network(s);
  scenario.conditions = read_conditions(s, scenario.cluster);
  const std::string name = stack_name(s, scenario.cluster, scenario.job, catalogues);
  const PrecisionRecipe precision = read_precision(s, name, scenario, catalogues);
  scenario.stack = read_stack(name, scenario, precision, catalogues);
  check_trains(s, scenario.stack, scenario.job.task);
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
  if (const auto v = s.find("ranges")) options.with_assumptions = v->boolean();
  if (const auto v = s.find("gpu_hour_price")) {
    options.rental_per_gpu_hour = v->number();
    if (options.rental_per_gpu_hour <= 0 || options.rental_per_gpu_hour > 1e6)
      v->fail("a price above 0 and up to 1e6 USD");
  }
  return options;
}

Question read_question(const JsonValue& s) {
  Catalogues catalogues;
  return read_question(s, catalogues);
}

Question read_question(const JsonValue& s, Catalogues& catalogues) {
  constexpr const char* trains = "pretrain, sft or lora: one inference step is timed by simulate";
  if (const auto phase = s.find("phase")) phase->fail(trains);
  Scenario subject = read_subject(s, catalogues);
  if (!is_training(subject.job.task)) s.at("task").fail(trains);
  for (const char* key : {"launch", "faults", "slow_gpus", "background"})
    if (const auto v = s.find(key)) v->fail("nothing: advise does not search it, simulate has it");
  if (read_network(s) == NetworkMode::flow)
    s.at("network").fail("ideal: advise ranks on it; check a layout with simulate --network flow");
  const std::string name = stack_name(s, subject.cluster, subject.job, catalogues);
  Question q{.precisions = read_precisions(s, name, subject, catalogues),
             .optimizers = read_optimizers(s, name, subject, catalogues)};
  const Stack stack = read_stack(name, subject, q.precisions.front(), catalogues);
  check_trains(s, stack, subject.job.task);
  if (subject.model.mtp_layers > 0) apply_default_modules(s, subject.model, stack, subject.job);
  SortedJson sizes = s.raw();
  sizes.erase("precision");
  sizes.erase("optimizer");
  const Layout fixed = read_layout_over(JsonValue::from(sizes, s.file()), {});
  q.cluster = std::move(subject.cluster);
  q.model = std::move(subject.model);
  q.job = subject.job;
  q.stack_name = name;
  q.objective = read_objective(s);
  visit_layout([&](const LayoutField& field, const auto& member) {
    if constexpr (std::decay_t<decltype(member)>::searched)
      if (s.find(field.key)) member.limit(q.limits) = member.of(fixed);
  });
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
