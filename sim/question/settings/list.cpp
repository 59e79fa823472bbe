// SPDX-License-Identifier: Apache-2.0
// Lists the settings of advise and simulate.
#include <algorithm>
#include <type_traits>
#include <utility>

#include "sim/question/settings/settings.h"
#include "sim/question/settings/what_if.h"
#include "workloads/layout/decisions.h"

namespace orrery {
namespace {

constexpr const char* job_part = "Job";
constexpr const char* machine = "Machine and software";
constexpr const char* inference = "Inference";
constexpr const char* layout_part = "Layout: who computes what";
constexpr const char* memory = "Layout: what memory holds";
constexpr const char* network = "Network and faults";
constexpr const char* hypothetical = "Hypothetical machine";
constexpr const char* search = "Search";
constexpr const char* output = "Output";

}  // namespace

std::string flag_of(const std::string& key) {
  std::string text = "--" + key;
  std::replace(text.begin(), text.end(), '_', '-');
  return text;
}

std::string Setting::flag() const { return flag_of(key); }

namespace {

template <class T>
constexpr SettingKind kind_of() {
  using enum SettingKind;
  if (std::is_same_v<T, bool>) return on_off;
  if (std::is_integral_v<T>) return integer;
  if (std::is_floating_point_v<T>) return number;
  const bool several = std::is_same_v<T, Offload> || std::is_same_v<T, std::vector<std::int64_t>>;
  return several ? list : text;
}

void add_layout(std::vector<Setting>& all, LayoutGroup group) {
  const char* heading = group == LayoutGroup::work     ? layout_part
                        : group == LayoutGroup::memory ? memory
                                                       : machine;
  visit_layout([&](const LayoutField& field, const auto& member) {
    if (field.group != group) return;
    using T = std::decay_t<decltype(member.of(std::declval<const Layout&>()))>;
    all.push_back({field.key, kind_of<T>(), heading, field.help, SettingOf::both, field.words});
  });
}

// Of the job and its layout: what a layout that runs now is told by, too.
std::vector<Setting> settings_of_runs() {
  using enum SettingKind;
  using enum SettingOf;
  std::vector<Setting> all = {
      {"model", text, job_part, "model name, file, Hugging Face config.json or its folder, or -",
       both, "catalog model"},
      {"cluster", text, machine, "cluster name or file; advise: also several, or all", both,
       "catalog cluster"},
      {"gpus", integer, machine, "accelerators in use"},
      {"seq", integer, job_part, "tokens per sequence (prefill: per prompt)"},
      {"global_batch", integer, job_part, "sequences per step"},
      {"stack", text, machine, "software stack, name or name@release", both, "catalog stack"},
  };
  add_layout(all, LayoutGroup::software);
  const std::vector<Setting> inferences = {
      {"task", text, job_part, "pretrain, sft or lora", both, "pretrain sft lora"},
      {"phase", text, inference, "one inference step: prefill or decode", simulate,
       "prefill decode"},
      {"batch", integer, inference, "inference: sequences per replica", simulate},
      {"context", integer, inference, "decode: tokens of history per sequence", simulate},
  };
  all.insert(all.end(), inferences.begin(), inferences.end());
  add_layout(all, LayoutGroup::work);
  add_layout(all, LayoutGroup::memory);
  const std::vector<Setting> rest = {
      {"launch", text, machine, "eager or graph", simulate, "eager graph"},
      {"mean_document", integer, job_part, "packed fine-tuning: mean tokens of a document"},
      {"lora_rank", integer, job_part, "rank of LoRA adapters"},
      {"attention_dropout", number, job_part, "rate at which attention drops scores"},
      {"hidden_dropout", number, job_part, "the same of what is added to the residual"},
      {"mtp", on_off, job_part, "train the model's multi-token prediction modules too"},
      {"expert_imbalance", number, job_part, "busiest expert rank's tokens over the mean"},
      {"experts_in_turn", on_off, job_part,
       "a benchmark's gate: each token takes the experts after the last"},
  };
  all.insert(all.end(), rest.begin(), rest.end());
  return all;
}

// Of what is asked about them, and how it is answered.
std::vector<Setting> settings_of_questions() {
  using enum SettingKind;
  using enum SettingOf;
  return {
      {"gpu_hour_price", number, machine, "USD per accelerator and hour"},
      {"network", text, network, "ideal, or flow: shared links, routing, faults", simulate,
       "ideal flow"},
      {"faults", json, network, "flow: JSON list of broken links (docs/network.md)", simulate},
      {"slow_gpus", json, network, "JSON list of {gpu, speed}", simulate},
      {"background", json, network, "flow: JSON list of other traffic", simulate},
      {"objective", text, search, "time, cost or energy", advise, "time cost energy"},
      {"top", integer, search, "layouts to list (default 10)", advise},
      {"memory_reserve", number, search, "share of memory to leave free, 0 to 0.9 (default 0.05)",
       advise},
      {"variants", on_off, search, "list every setting of a shape, not only its best", advise},
      {"like", SettingKind::settings, search,
       "what runs now: settings of its layout_part, or a scenario", advise, "file"},
      {"changes", integer, search, "with --like: the best with 1, 2, ... so many changed decisions",
       advise},
      {"pareto", text, search, "also a front: time,memory or time,energy", advise,
       "time,memory time,energy"},
      {"time_limit", number, search, "seconds to search; then the best so far and the proven gap",
       advise},
      {"ranges", on_off, output, "false: no range and no values behind it, 5 to 50 times faster",
       simulate},
      {"reasons", on_off, output, "false: no limits, levers, traps and launch flags", simulate},
      {"timeline", on_off, output,
       "true: also when each pass of the pipeline runs, which a chart shows; --html and --plots "
       "ask "
       "for it",
       simulate},
      {"trace_out", file, output, "write a trace for Perfetto to this file", simulate, "file"},
      {"chakra_out", file, output,
       "write an execution trace (Chakra) of each rank into this folder", simulate, "folder"},
  };
}

std::vector<Setting> all_settings() {
  std::vector<Setting> all = settings_of_runs();
  for (const WhatIfKey& what : what_if_keys())
    all.push_back({what.key, SettingKind::quantity, hypothetical, what.help});
  for (const Setting& setting : settings_of_questions()) all.push_back(setting);
  return all;
}

}  // namespace

const std::vector<Setting>& settings() {
  static const std::vector<Setting> all = all_settings();
  return all;
}

}  // namespace orrery
