// SPDX-License-Identifier: Apache-2.0
// Writes scripts and manifests of a predicted deployment.
#include "sim/app/serve/engine_files.h"

#include <algorithm>
#include <cstdio>

#include <fmt/format.h>

#include "hw_models/catalog_names.h"
#include "sim/base/output_file.h"
#include "sim/launch/serving/manifest.h"
#include "sim/launch/serving/script.h"
#include "sim/question/serve/points.h"

namespace orrery {
namespace {

constexpr const char *commands_flag = "--commands", *slurm_flag = "--slurm",
                     *kubernetes_flag = "--kubernetes", *form_flag = "--kubernetes-as";
constexpr const char* models = "workloads/catalog/models";

std::vector<const char*> given_flags(const Given& given) {
  std::vector<const char*> flags;
  for (const char* flag : {commands_flag, slurm_flag, kubernetes_flag})
    if (given.has(flag)) flags.push_back(flag);
  return flags;
}

// The name on the hub by which the catalogue knows a model: of several the first.
std::string checkpoint_of(const std::string& model) {
  const auto entry = known_as(models, model);
  if (!entry) return "";
  for (const std::string& alias : aliases_of(models, *entry))
    if (alias.find('/') != alias.npos) return alias;
  return "";
}

std::optional<ManifestForm> form_of(const Given& given) {
  if (!given.has(form_flag)) return std::nullopt;
  const std::string text = given.text(form_flag);
  if (const auto form = manifest_form_text.find(text)) return *form;
  throw Error({.file = form_flag,
               .path = "",
               .found = in_quotes(text),
               .expected = "deployment, dynamo or llm-d",
               .nearest = nearest_name(text, {"deployment", "dynamo", "llm-d"})});
}

ServedEngine engine_of(const ServiceCase& c, const EngineGroup& group, EngineRole role) {
  return {.role = role,
          .layout = group.layout,
          .policy = group.policy ? *group.policy : c.stack.serving.policy,
          .replicas = group.replicas,
          .eager = group.eager};
}

ServedDeployment deployment_of(const ServiceCase& c) {
  ServedDeployment d{.name = c.model.name,
                     .title = c.model.title,
                     .checkpoint = checkpoint_of(c.model.name),
                     .experts = c.model.max_experts(),
                     .context = c.model.max_context,
                     .longest = c.longest,
                     .machine = fmt::format("{} ({})", c.cluster.name, c.cluster.device.title),
                     .resource = "nvidia.com/gpu",
                     .gpus_per_host = c.cluster.gpus_per_host,
                     .gpus_per_domain = c.cluster.fabric.scale_up.domain,
                     .stack = c.stack,
                     .router = c.router.kind};
  if (const auto& software = c.cluster.device.software; software && software->scheduled_as)
    d.resource = software->scheduled_as->kubernetes;
  for (const LayerClass& layer : c.model.classes)
    d.dense = d.dense || layer.ffn.kind == FfnKind::dense;
  if (c.guessing) {
    const Drafter& drafter = c.guessing->drafter;
    d.guessing = {.kind = drafter.kind, .drafts = drafter.drafts, .guesser = ""};
    if (drafter.kind == DraftKind::draft && drafter.network) {
      const std::string known = checkpoint_of(drafter.network->name);
      d.guessing->guesser = known.empty() ? drafter.network->title : known;
    }
  }
  d.engines.push_back(engine_of(c, c.engines, c.decode ? EngineRole::prefill : EngineRole::whole));
  if (c.decode) d.engines.push_back(engine_of(c, *c.decode, EngineRole::decode));
  return d;
}

// The deployment that was asked about; none: no point serves, or none bears the load.
const ServedPoint* wanted_point(const Served& served) {
  if (served.chosen) return &served.points[*served.chosen];
  if (served.load || served.points.size() != 1) return nullptr;
  const ServedPoint& point = served.points.front();
  return point.prediction.refusal.empty() ? &point : nullptr;
}

std::string text_of(const char* flag, const ServedDeployment& d, const Given& given) {
  if (flag == commands_flag) return commands_script(d, flag);
  if (flag == slurm_flag) return slurm_script(d, flag);
  const auto form = form_of(given);
  return manifest(d, form ? *form : plainest_form(d), form ? form_flag : kubernetes_flag);
}

}  // namespace

std::vector<Flag> engine_file_flags() {
  return {
      {commands_flag, "FILE", output_group,
       "write a shell script that starts the engines, each where it is called", "file"},
      {slurm_flag, "FILE", output_group, "write a job for sbatch that starts all engines", "file"},
      {kubernetes_flag, "FILE", output_group, "write a manifest that starts all engines", "file"},
      {form_flag, "FORM", output_group,
       "what --kubernetes writes: deployment, dynamo or llm-d; default: deployment where "
       "engines do all and fit a host, else dynamo",
       "deployment dynamo llm-d"}};
}

void check_engine_files(const JsonValue& settings, const Given& given) {
  const std::vector<const char*> flags = given_flags(given);
  if (form_of(given) && !given.has(kubernetes_flag))
    throw Error({.file = form_flag,
                 .path = "",
                 .found = given.text(form_flag),
                 .expected = "--kubernetes FILE beside it, which is written so"});
  for (const char* flag : flags) check_writable_file(given.place(flag));
  if (flags.empty() || settings.has("for")) return;
  if (const std::size_t points = points_of(settings).size(); points > 1)
    throw Error({.file = flags.front(),
                 .path = "",
                 .found = fmt::format("{} points", points),
                 .expected = "one deployment: one value of each setting, or --for LOAD, which "
                             "chooses the point with the least GPUs that bears it"});
}

void write_engine_files(const Served& served, const Given& given, bool quiet) {
  const std::vector<const char*> flags = given_flags(given);
  if (flags.empty()) return;
  const ServedPoint* const point = wanted_point(served);
  if (point == nullptr) {
    if (!quiet)
      std::fprintf(stderr, "orrery: %s: nothing is written: no deployment serves %s\n",
                   flags.front(), served.load ? "the load" : "this traffic");
    return;
  }
  const ServedDeployment deployment = deployment_of(point->asked);
  // All of them are made before the first is written.
  std::vector<std::string> texts;
  for (const char* flag : flags) texts.push_back(text_of(flag, deployment, given));
  for (std::size_t i = 0; i < flags.size(); ++i) write_file(given.place(flags[i]), texts[i]);
}

}  // namespace orrery
