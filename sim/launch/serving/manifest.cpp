// SPDX-License-Identifier: Apache-2.0
// Writes Deployments of engines, and finds the form that holds a deployment.
#include "sim/launch/serving/manifest.h"

#include <algorithm>

#include <fmt/format.h>

#include "sim/base/errors/check.h"
#include "sim/launch/serving/pods.h"
#include "sim/launch/serving/yaml.h"

namespace orrery {
namespace {

bool fits_a_host(const ServedDeployment& d) {
  return !d.apart() && engine_hosts(d, d.engines.front()).hosts == 1;
}

// Words of a command apart from those after them.
std::pair<Json, Json> command_and_args(const ManifestParts& parts, std::size_t engine) {
  const std::vector<std::string> words = pod_words(parts, engine);
  std::pair<Json, Json> both = {Json::array(), Json::array()};
  for (std::size_t i = 0; i < words.size(); ++i)
    (i < parts.program.start.size() ? both.first : both.second).push_back(words[i]);
  return both;
}

std::vector<std::string> plain_notes(const ManifestParts& parts) {
  const ServedDeployment& d = *parts.deployment;
  if (d.engines.front().replicas == 1) return {};
  return {
      fmt::format("The Service hands connections to pods at random; the prediction's router is "
                  "{}.",
                  to_text(d.router))};
}

}  // namespace

ManifestForm plainest_form(const ServedDeployment& d) {
  return fits_a_host(d) ? ManifestForm::deployment : ManifestForm::dynamo;
}

std::vector<Json> plain_objects(const ManifestParts& parts, const std::string& flag) {
  const ServedDeployment& d = *parts.deployment;
  if (!fits_a_host(d))
    throw Error({.file = flag,
                 .path = "",
                 .found = std::string(to_text(ManifestForm::deployment)),
                 .expected = d.apart() ? "dynamo or llm-d: prompts and decodes are apart"
                                       : "dynamo or llm-d: an engine spans hosts"});
  const Labels labels = {{"app.kubernetes.io/name", parts.name}};
  auto [command, args] = command_and_args(parts, 0);
  for (const char* word : {"--host", "0.0.0.0", "--port"}) args.push_back(word);
  args.push_back(std::to_string(engine_port));
  Json container = engine_container(parts, 0, parts.program.image, command, args);
  add_probes(container, engine_port);

  Json workload = object_of("apps/v1", "Deployment", parts.name, labels);
  Json& spec = workload["spec"];
  spec["replicas"] = d.engines.front().replicas;
  spec["selector"]["matchLabels"] = to_json(labels);
  spec["template"]["metadata"]["labels"] = to_json(labels);
  spec["template"]["spec"]["containers"].push_back(container);
  spec["template"]["spec"]["volumes"] = engine_volumes(parts, 0);

  Json service = object_of("v1", "Service", parts.name, labels);
  Json port = Json::object();
  port["name"] = "http";
  port["port"] = engine_port;
  port["targetPort"] = "http";
  service["spec"]["selector"] = to_json(labels);
  service["spec"]["ports"].push_back(port);

  std::vector<Json> objects = config_maps(parts);
  objects.push_back(std::move(workload));
  objects.push_back(std::move(service));
  return objects;
}

std::string manifest(const ServedDeployment& d, ManifestForm form, const std::string& flag) {
  const EngineDialect dialect =
      form == ManifestForm::dynamo ? EngineDialect::dynamo : EngineDialect::own;
  const ManifestParts parts = manifest_parts(d, dialect);
  switch (form) {
    case ManifestForm::deployment: {
      const std::vector<Json> objects = plain_objects(parts, flag);
      return to_yaml(manifest_comment(parts, plain_notes(parts)), objects);
    }
    case ManifestForm::dynamo:
      return to_yaml(manifest_comment(parts, dynamo_notes(parts)), dynamo_objects(parts));
    case ManifestForm::llm_d: {
      const std::vector<Json> objects = llm_d_objects(parts, flag);
      return to_yaml(manifest_comment(parts, llm_d_notes(parts)), objects);
    }
  }
  return {};
}

}  // namespace orrery
