// SPDX-License-Identifier: Apache-2.0
// Reads stacks: base settings, releases in order of date, and settings that hold under conditions.
#include "workloads/stack/stack.h"

#include <algorithm>
#include <functional>

#include <fmt/format.h>

namespace orrery {
namespace {

constexpr auto shard_storage_text =
    enum_names<ShardStorage>({"in-place", "flat", "parts", "bucketed"});
constexpr auto adapter_sites_text = enum_names<AdapterSites>({"every-linear", "query-key-value"});
constexpr auto split_text = enum_names<Split>({"none", "tp", "pp", "cp", "ep"});

Library read_library(const JsonValue& at) { return library_text.from(at); }
Format read_format(const JsonValue& at) { return format_text.from(at); }
CollectiveLibrary read_collective_library(const JsonValue& at) {
  return collective_library_text.from(at);
}
Split split_from(const JsonValue& at) { return split_text.from(at); }
Recompute recompute_kind_from(const JsonValue& at) { return recompute_kind_text.from(at); }

bool switch_from(const JsonValue& at) { return at.boolean(); }

int zero_stage_from(const JsonValue& at) { return static_cast<int>(at.integer(0, 3)); }

template <class T>
void read_list(const JsonValue& at, T (*read)(const JsonValue&), std::vector<T>& list) {
  list.clear();
  for (const JsonValue& item : at.items()) list.push_back(read(item));
}

// Settings that are plain choices.
struct Choice {
  std::string_view name;
  void (*apply)(Stack& s, const JsonValue& value);
};
constexpr Choice choices[] = {
    {"attention", [](Stack& s, const JsonValue& v) { s.attention = read_library(v); }},
    {"latent_attention",
     [](Stack& s, const JsonValue& v) { s.latent_attention = read_library(v); }},
    {"inference_all_reduce",
     [](Stack& s, const JsonValue& v) { s.inference_all_reduce = read_collective_library(v); }},
    {"attention_format", [](Stack& s, const JsonValue& v) { s.attention_format = read_format(v); }},
    {"gemm", [](Stack& s, const JsonValue& v) { s.gemm = read_library(v); }},
    {"grouped_gemm", [](Stack& s, const JsonValue& v) { s.grouped_gemm = read_library(v); }},
    {"memory_bound", [](Stack& s, const JsonValue& v) { s.memory_bound = read_library(v); }},
    {"counted_in", [](Stack& s, const JsonValue& v) { s.counted_in = read_library(v); }},
    {"launcher", [](Stack& s, const JsonValue& v) { s.launcher = launcher_from(v); }},
    {"flags_release", [](Stack& s, const JsonValue& v) { s.flags_release = v.text(); }},
    {"launch_note", [](Stack& s, const JsonValue& v) { s.launch_note = v.text(); }},
    {"platforms",
     [](Stack& s, const JsonValue& v) {
       s.platforms.clear();
       for (const JsonValue& item : v.items()) s.platforms.push_back(item.text());
     }},
    {"launch", [](Stack& s, const JsonValue& v) { s.launch = launch_mode_text.from(v); }},
    {"gradient_format", [](Stack& s, const JsonValue& v) { s.gradient_format = read_format(v); }},
    {"gradient_storage", [](Stack& s, const JsonValue& v) { s.gradient_storage = read_format(v); }},
    {"parameter_gather_format",
     [](Stack& s, const JsonValue& v) { s.parameter_gather_format = read_format(v); }},
    {"adapter_sites",
     [](Stack& s, const JsonValue& v) { s.adapter_sites = adapter_sites_text.from(v); }},
    {"vocabulary_multiple",
     [](Stack& s, const JsonValue& v) { s.vocabulary_multiple = v.integer(0, 1 << 20); }},
    {"shard_storage",
     [](Stack& s, const JsonValue& v) { s.shard_storage = shard_storage_text.from(v); }},
    {"expert_library",
     [](Stack& s, const JsonValue& v) { s.expert_library = read_collective_library(v); }},
    {"partition", [](Stack& s, const JsonValue& v) { s.partition = partition_text.from(v); }},
    {"default_recompute",
     [](Stack& s, const JsonValue& v) { s.defaults.recompute = recompute_from(v); }},
    {"default_schedule",
     [](Stack& s, const JsonValue& v) { s.defaults.schedule = schedule_from(v); }},
    {"schedules",
     [](Stack& s, const JsonValue& v) { read_list(v, schedule_from, s.choices.schedules); }},
    {"splits", [](Stack& s, const JsonValue& v) { read_list(v, split_from, s.choices.splits); }},
    {"precisions",
     [](Stack& s, const JsonValue& v) { read_list(v, precision_from, s.choices.precisions); }},
    {"optimizers",
     [](Stack& s, const JsonValue& v) { read_list(v, optimizer_from, s.choices.optimizers); }},
    {"recomputes",
     [](Stack& s, const JsonValue& v) { read_list(v, recompute_kind_from, s.choices.recomputes); }},
    {"sequence_parallel",
     [](Stack& s, const JsonValue& v) { read_list(v, switch_from, s.choices.sequence_parallel); }},
    {"split_experts",
     [](Stack& s, const JsonValue& v) { read_list(v, switch_from, s.choices.split_experts); }},
    {"zero_stages",
     [](Stack& s, const JsonValue& v) { read_list(v, zero_stage_from, s.choices.zero_stages); }},
    {"recompute_modules",
     [](Stack& s, const JsonValue& v) {
       read_list(v, recompute_module_from, s.choices.recompute_modules);
     }},
    {"graphs_refuse",
     [](Stack& s, const JsonValue& v) { read_list(v, recompute_module_from, s.graphs_refuse); }},
    {"pipeline_zero_stage",
     [](Stack& s, const JsonValue& v) { s.choices.pipeline_zero_stage = zero_stage_from(v); }},
    {"rank_orders",
     [](Stack& s, const JsonValue& v) { read_list(v, rank_order_from, s.choices.rank_orders); }},
    {"contexts",
     [](Stack& s, const JsonValue& v) { read_list(v, context_kind_from, s.choices.contexts); }},
    {"default_optimizer",
     [](Stack& s, const JsonValue& v) { s.defaults.optimizer = optimizer_from(v); }},
    {"default_context",
     [](Stack& s, const JsonValue& v) { s.defaults.context = context_kind_from(v); }},
    {"schedule_microbatches",
     [](Stack& s, const JsonValue& v) { s.schedule_microbatches = v.integer(0, 1 << 20); }},
    {"default_zero_stage",
     [](Stack& s, const JsonValue& v) {
       s.defaults.zero_stage = static_cast<int>(v.integer(0, 3));
     }},
    {"fp8_recipe", [](Stack& s, const JsonValue& v) { s.defaults.fp8 = precision_from(v); }},
};

// Settings that are on or off.
struct Switch {
  std::string_view name;
  bool& (*target)(Stack& s);
};
constexpr Switch switches[] = {
    {"fused_gradient_accumulation",
     [](Stack& s) -> bool& { return s.fused_gradient_accumulation; }},
    {"attention_recompute_selective",
     [](Stack& s) -> bool& { return s.attention_recompute_selective; }},
    {"recompute_by_operation", [](Stack& s) -> bool& { return s.recompute_by_operation; }},
    {"offloads_weights", [](Stack& s) -> bool& { return s.choices.offload_weights; }},
    {"offloads_optimizer", [](Stack& s) -> bool& { return s.choices.offload_optimizer; }},
    {"offloads_activations", [](Stack& s) -> bool& { return s.choices.offload_activations; }},
    {"offloads_activations_alone",
     [](Stack& s) -> bool& { return s.choices.offload_activations_alone; }},
    {"graphs_refuse_shards", [](Stack& s) -> bool& { return s.graphs_refuse_shards; }},
    {"offload_whole_weights", [](Stack& s) -> bool& { return s.choices.offload_whole_weights; }},
    {"offloads_part_of_optimizer", [](Stack& s) -> bool& { return s.choices.offload_part; }},
    {"offloads_any_optimizer", [](Stack& s) -> bool& { return s.choices.offload_any_optimizer; }},
    {"uneven_stages", [](Stack& s) -> bool& { return s.choices.uneven_stages; }},
    {"uneven_chunks", [](Stack& s) -> bool& { return s.choices.uneven_chunks; }},
    {"hybrid_chunks", [](Stack& s) -> bool& { return s.choices.hybrid_chunks; }},
    {"recompute_part", [](Stack& s) -> bool& { return s.choices.recompute_part; }},
    {"bucket_size", [](Stack& s) -> bool& { return s.choices.bucket_size; }},
    {"transposed_copies", [](Stack& s) -> bool& { return s.transposed_copies; }},
    {"fused_norms", [](Stack& s) -> bool& { return s.fused_norms; }},
    {"default_interleaved", [](Stack& s) -> bool& { return s.defaults.interleaved; }},
    {"fused_expert_mlp", [](Stack& s) -> bool& { return s.fused_expert_mlp; }},
    {"fp8_dispatch", [](Stack& s) -> bool& { return s.fp8_dispatch; }},
    {"gradient_overlap", [](Stack& s) -> bool& { return s.gradient_overlap; }},
    {"parameter_overlap", [](Stack& s) -> bool& { return s.parameter_overlap; }},
    {"muon_overlap", [](Stack& s) -> bool& { return s.muon_overlap; }},
    {"recompute_stops_early", [](Stack& s) -> bool& { return s.recompute_stops_early; }},
    {"reshard_after_forward", [](Stack& s) -> bool& { return s.reshard_after_forward; }},
    {"reduce_each_microbatch", [](Stack& s) -> bool& { return s.reduce_each_microbatch; }},
    {"reshard_after_backward", [](Stack& s) -> bool& { return s.reshard_after_backward; }},
    {"pipeline_sends_block", [](Stack& s) -> bool& { return s.pipeline_sends_block; }},
    {"interleaved_sends_block", [](Stack& s) -> bool& { return s.interleaved_sends_block; }},
    {"host_runs_ahead", [](Stack& s) -> bool& { return s.host_runs_ahead; }},
    {"sharded_at_once", [](Stack& s) -> bool& { return s.sharded_at_once; }},
    {"scatter_gather_sends", [](Stack& s) -> bool& { return s.scatter_gather_sends; }},
    {"splits_gradient_sends", [](Stack& s) -> bool& { return s.splits_gradient_sends; }},
    {"blocking_launches", [](Stack& s) -> bool& { return s.blocking_launches; }},
    {"tensor_overlap_needs_rows", [](Stack& s) -> bool& { return s.tensor_overlap_needs_rows; }},
    {"exchange_beside_passes", [](Stack& s) -> bool& { return s.exchange_beside_passes; }},
    {"expert_deduplicated", [](Stack& s) -> bool& { return s.expert_deduplicated; }},
    {"loss_in_fp32", [](Stack& s) -> bool& { return s.memory.loss_in_fp32; }},
    {"fused_loss", [](Stack& s) -> bool& { return s.memory.fused_loss; }},
    {"gradient_bucket_copies", [](Stack& s) -> bool& { return s.memory.gradient_bucket_copies; }},
    {"gradient_sums_beside_buckets",
     [](Stack& s) -> bool& { return s.memory.gradient_sums_beside_buckets; }},
    {"splits_vocabulary", [](Stack& s) -> bool& { return s.splits_vocabulary; }},
    {"keeps_pipeline_outputs", [](Stack& s) -> bool& { return s.memory.keeps_pipeline_outputs; }},
    {"default_mtp", [](Stack& s) -> bool& { return s.defaults.mtp; }},
    {"recompute_known", [](Stack& s) -> bool& { return s.defaults.recompute_known; }},
    {"default_sequence_parallel", [](Stack& s) -> bool& { return s.defaults.sequence_parallel; }},
    {"compact_activations", [](Stack& s) -> bool& { return s.memory.compact_activations; }},
    {"inputs_in_16_bits", [](Stack& s) -> bool& { return s.memory.inputs_in_16_bits; }},
    {"gathers_16_bit_shard", [](Stack& s) -> bool& { return s.memory.gathers_16_bit_shard; }},
    {"master_remainders", [](Stack& s) -> bool& { return s.memory.master_remainders; }},
};

// Applies the setting of a table that has the key. False when none has.
bool apply_named(Stack& s, const std::string& key, const JsonValue& value) {
  for (const Choice& choice : choices)
    if (key == choice.name) {
      choice.apply(s, value);
      return true;
    }
  for (const Switch& named : switches)
    if (key == named.name) {
      named.target(s) = value.boolean();
      return true;
    }
  return false;
}

template <class T>
void assign_sourced(Sourced<T>& target, const JsonValue& at) {
  target = read_sourced<T>(at);
}

// Settings with evidence, addressed by their path. False when there is none at `path`.
bool apply_value(Stack& s, const std::string& path, const JsonValue& value) {
  bool found = false;
  visit_stack_values(s, [&](std::string_view name, auto& sourced) {
    if (name != path) return;
    assign_sourced(sourced, value);
    found = true;
  });
  return found;
}

std::vector<std::string> setting_names(Stack& s) {
  std::vector<std::string> names;
  for (const Choice& choice : choices) names.emplace_back(choice.name);
  for (const Switch& named : switches) names.emplace_back(named.name);
  visit_stack_values(s, [&](std::string_view name, auto&) { names.emplace_back(name); });
  return names;
}

void apply_settings(Stack& s, const JsonValue& settings) {
  for (const auto& [key, value] : settings.members()) {
    if (apply_named(s, key, value)) continue;
    if (key == "operations") {
      for (const auto& [name, leaf] : value.members())
        if (!apply_value(s, "operations." + name, leaf))
          leaf.fail(
              "one of layer_forward, layer_backward, moe_forward, moe_backward, "
              "expert_forward, expert_backward, head, collective",
              name);
      continue;
    }
    if (apply_value(s, key, value)) continue;
    const std::string near = nearest_name(key, setting_names(s));
    throw Error({.file = value.file(),
                 .path = value.path(),
                 .found = "unknown setting",
                 .expected = "a setting of a stack",
                 .nearest = near});
  }
}

bool matches(const JsonValue& condition, const StackContext& context) {
  const auto is_one = [](const JsonValue& wanted, std::string_view actual) {
    if (!wanted.is_array()) return wanted.text() == actual;
    const auto items = wanted.items();
    return std::any_of(items.begin(), items.end(),
                       [&](const JsonValue& item) { return item.text() == actual; });
  };
  if (auto v = condition.find("architecture"); v && !is_one(*v, context.architecture)) return false;
  if (auto v = condition.find("device"); v && !is_one(*v, context.device)) return false;
  if (auto v = condition.find("model"); v && !is_one(*v, context.model)) return false;
  if (auto v = condition.find("family"); v && !is_one(*v, context.family)) return false;
  if (auto v = condition.find("precision"); v && !is_one(*v, to_text(context.precision)))
    return false;
  if (auto v = condition.find("task"); v && !is_one(*v, to_text(context.task))) return false;
  if (auto v = condition.find("moe"); v && v->boolean() != context.moe) return false;
  return true;
}

// Settings that hold under conditions: {"set": {...}}, or by name {"use": "scoped-graphs"} where
// the file's "parts" give names to settings that many recipes share.
void apply_conditions(Stack& s, const JsonValue& object, const JsonValue& file,
                      const StackContext& context) {
  const auto list = object.find("when");
  if (!list) return;
  for (const JsonValue& condition : list->items()) {
    condition.expect_only(
        {"architecture", "device", "model", "family", "precision", "moe", "task", "use", "set"});
    const bool holds = matches(condition, context);
    if (const auto names = condition.find("use"))
      for (const JsonValue& name : names->items()) {
        const JsonValue part = file.at("parts").at(name.text());  // fails on an unknown name
        if (holds) apply_settings(s, part);
      }
    if (const auto set = condition.find("set"); set && holds) apply_settings(s, *set);
  }
}

struct StackName {
  std::string name, release;
};
StackName split_name(const std::string& text) {
  if (is_inline_entry(text)) return {text, ""};
  const auto at = text.find('@');
  if (at == std::string::npos) return {text, ""};
  return {text.substr(0, at), text.substr(at + 1)};
}

// Releases are compared part by part as numbers ("26.02" < "26.02.01" < "26.04"; "2023-02").
std::vector<long> release_parts(const std::string& release) {
  std::vector<long> parts;
  long value = 0;
  bool open = false;
  for (char c : release + ".") {
    if (c >= '0' && c <= '9') {
      value = std::min(value * 10 + (c - '0'), 1'000'000'000L);
      open = true;
    } else if (open) {
      parts.push_back(value);
      value = 0;
      open = false;
    }
  }
  return parts;
}

JsonValue load_stack_file(const std::string& name, const std::filesystem::path& folder) {
  if (is_inline_entry(name)) return JsonValue::parse(name, "stack");
  const bool is_path = name.find('/') != std::string::npos || name.ends_with(".json");
  const std::filesystem::path file =
      is_path ? std::filesystem::path(name) : folder / (name + ".json");
  std::error_code unnameable;  // a name may be longer than a file's can be
  if (!is_path && !std::filesystem::exists(file, unnameable)) {
    throw Error({.file = "--stack",
                 .path = "",
                 .found = in_quotes(name),
                 .expected = "a stack of the catalogue",
                 .nearest = nearest_name(name, stack_names(folder))});
  }
  return JsonValue::load(file);
}

void require_complete(Stack& s, const JsonValue& file) {
  visit_stack_values(s, [&](std::string_view name, auto& sourced) {
    if (!sourced.known())
      throw Error({.file = file.file(),
                   .path = fmt::format("base.{}", name),
                   .found = "nothing",
                   .expected = "a value with evidence",
                   .nearest = ""});
  });
}

// Whether the stack is based on another: it inherits what the file does not say.
bool read_names(const JsonValue& file, Stack& s) {
  const bool based = !s.name.empty();
  s.name = file.at("name").text();
  const auto title = based ? file.find("title") : file.at("title");
  s.title = title ? title->text() : fmt::format("{} ({})", s.name, s.title);
  const auto framework = based ? file.find("framework") : file.at("framework");
  if (framework) s.framework = framework->text();
  return based;
}

// A stack on `depth` others that are based on it: a circle has no end. `each` is told of the stack
// at every release on the way.
Stack load_based(const std::string& name, const StackContext& context,
                 const std::filesystem::path& catalog_folder, int depth,
                 const std::function<void(const Stack&)>& each) {
  const StackName wanted = split_name(name);
  JsonValue file = load_stack_file(wanted.name, catalog_folder);
  if (depth > 8)
    throw Error({.file = file.file(),
                 .path = "based_on",
                 .found = "a chain of more than 8 stacks",
                 .expected = "one that ends at a stack without based_on",
                 .nearest = ""});
  file.expect_only({"name", "title", "framework", "based_on", "base", "parts", "when", "releases"});
  Stack s;
  if (auto based_on = file.find("based_on"))
    s = load_based(based_on->reference(), context, catalog_folder, depth + 1, [](const Stack&) {});
  const bool based = read_names(file, s);
  const auto own = based ? file.find("base") : file.at("base");
  if (own) apply_settings(s, *own);
  apply_conditions(s, file, file, context);
  const bool own_launcher = own && own->has("launcher");
  const bool own_flags = own && own->has("flags_release");
  const auto limit = release_parts(wanted.release);
  bool first = true, later = true;
  // Who asks for a release needs some to choose from.
  const bool inherits = based && wanted.release.empty();
  const auto releases = inherits ? file.find("releases") : file.at("releases");
  for (const JsonValue& release : releases ? releases->items() : std::vector<JsonValue>{}) {
    release.expect_only({"release", "date", "changes", "set", "when"});
    const std::string label = release.at("release").text();
    // A release before the first listed one still runs that first one.
    later = release_parts(label) < limit;
    if (!first && !wanted.release.empty() && release_parts(label) > limit) break;
    first = false;
    s.release = label;
    s.date = release.at("date").text();
    if (own_launcher && !own_flags) s.flags_release = label;
    for (const JsonValue& change : release.at("changes").items())
      s.changes.push_back(change.text());
    if (auto set = release.find("set")) apply_settings(s, *set);
    apply_conditions(s, release, file, context);
    each(s);
  }
  require_complete(s, file);
  if (!releases) {  // of what it is based on
    each(s);
    return s;
  }
  s.asked = release_parts(s.release) == limit ? "" : wanted.release;
  s.asked_is_later = later && !s.asked.empty();
  return s;
}

}  // namespace

Stack load_stack(const std::string& name, const StackContext& context,
                 const std::filesystem::path& catalog_folder) {
  return load_based(name, context, catalog_folder, 0, [](const Stack&) {});
}

std::vector<Stack> load_releases(const std::string& name, const StackContext& context,
                                 const std::filesystem::path& catalog_folder) {
  std::vector<Stack> releases;
  load_based(name, context, catalog_folder, 0,
             [&](const Stack& release) { releases.push_back(release); });
  return releases;
}

std::vector<std::string> stack_names(const std::filesystem::path& catalog_folder) {
  std::vector<std::string> names;
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator(catalog_folder, ignored))
    if (entry.path().extension() == ".json") names.push_back(entry.path().stem().string());
  std::sort(names.begin(), names.end());
  return names;
}

std::vector<std::string> stack_releases(const std::string& name,
                                        const std::filesystem::path& catalog_folder) {
  std::vector<std::string> releases;
  const JsonValue file = load_stack_file(split_name(name).name, catalog_folder);
  for (const JsonValue& release : file.at("releases").items())
    releases.push_back(release.at("release").text());
  return releases;
}

std::string known_release(const std::string& name, const std::filesystem::path& catalog_folder) {
  const StackName wanted = split_name(name);
  const auto limit = release_parts(wanted.release);
  std::string known;
  for (const std::string& release : stack_releases(wanted.name, catalog_folder))
    if (wanted.release.empty() || release_parts(release) <= limit) known = release;
  return known;
}

}  // namespace orrery
