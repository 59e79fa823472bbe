// SPDX-License-Identifier: Apache-2.0
// Makes pods of serving engines.
#include "sim/launch/serving/pods.h"

#include <fmt/format.h>

#include "sim/launch/serving/script_parts.h"
#include "sim/launch/serving/yaml.h"

namespace orrery {
namespace {

constexpr const char* file_folder = "/etc/engine";
constexpr const char* file_name = "engine.yaml";
constexpr const char* cache_folder = "/checkpoints";

// The network that guesses, where a container has no variable for it.
std::string with_draft(std::string text, const ServedDeployment& d) {
  constexpr std::string_view variable = "$DRAFT_MODEL";
  const std::string is = d.guessing && d.guessing->guesser.find('/') != std::string::npos
                             ? d.guessing->guesser
                             : "DRAFT_MODEL";
  for (std::size_t at = text.find(variable); at != text.npos; at = text.find(variable, at))
    text.replace(at, variable.size(), is);
  return text;
}

Json secret_variable(const std::string& name, const std::string& secret) {
  Json reference = Json::object();
  reference["name"] = secret;
  reference["key"] = name;
  reference["optional"] = true;
  Json variable = Json::object();
  variable["name"] = name;
  variable["valueFrom"]["secretKeyRef"] = reference;
  return variable;
}

Json variable(const std::string& name, const std::string& value) {
  Json json = Json::object();
  json["name"] = name;
  json["value"] = value;
  return json;
}

Json mount(const std::string& name, const std::string& path) {
  Json json = Json::object();
  json["name"] = name;
  json["mountPath"] = path;
  return json;
}

Json empty_volume(const std::string& name, bool memory) {
  Json json = Json::object();
  json["name"] = name;
  json["emptyDir"] = Json::object();
  if (memory) json["emptyDir"]["medium"] = "Memory";
  return json;
}

Json probe(int port, int period, int failures) {
  Json json = Json::object();
  json["httpGet"]["path"] = "/health";
  json["httpGet"]["port"] = port;
  json["periodSeconds"] = period;
  json["failureThreshold"] = failures;
  return json;
}

}  // namespace

Json to_json(const Labels& labels) {
  Json json = Json::object();
  for (const auto& [name, value] : labels) json[name] = value;
  return json;
}

ManifestParts manifest_parts(const ServedDeployment& d, EngineDialect dialect) {
  ManifestParts parts{.deployment = &d,
                      .program = engine_program(d, dialect),
                      .name = deployment_name(d),
                      .model = d.checkpoint.empty() ? "MODEL" : d.checkpoint};
  for (const ServedEngine& e : d.engines) {
    parts.commands.push_back(engine_command(d, e, dialect));
    parts.hosts.push_back(engine_hosts(d, e));
  }
  return parts;
}

std::string engine_object(const ManifestParts& parts, std::size_t engine) {
  const EngineRole role = parts.deployment->engines[engine].role;
  return role == EngineRole::whole ? parts.name : fmt::format("{}-{}", parts.name, to_text(role));
}

std::vector<std::string> pod_words(const ManifestParts& parts, std::size_t engine) {
  std::vector<std::string> words = command_words(parts.program, parts.commands[engine], parts.model,
                                                 fmt::format("{}/{}", file_folder, file_name));
  for (std::string& word : words) word = with_draft(word, *parts.deployment);
  return words;
}

Json engine_container(const ManifestParts& parts, std::size_t engine, const std::string& image,
                      const Json& command, const Json& args) {
  Json container = Json::object();
  container["name"] = "main";
  container["image"] = image;
  container["command"] = command;
  container["args"] = args;
  container["env"].push_back(secret_variable("HF_TOKEN", "hf-token"));
  container["env"].push_back(variable("HF_HOME", cache_folder));
  for (const LaunchFlag& said : parts.commands[engine].environment)
    container["env"].push_back(variable(said.name, said.value));
  container["resources"]["limits"][parts.deployment->resource] =
      std::to_string(parts.hosts[engine].gpus);
  Json& mounts = container["volumeMounts"];
  mounts.push_back(mount("shared-memory", "/dev/shm"));
  mounts.push_back(mount("checkpoints", cache_folder));
  if (!parts.commands[engine].file.is_null()) mounts.push_back(mount("settings", file_folder));
  return container;
}

void add_probes(Json& container, int port) {
  Json named = Json::object();
  named["name"] = "http";
  named["containerPort"] = port;
  container["ports"].push_back(named);
  // Checkpoints are loaded and graphs captured before it answers: an hour at most.
  container["startupProbe"] = probe(port, 10, 360);
  container["readinessProbe"] = probe(port, 10, 3);
  container["livenessProbe"] = probe(port, 30, 3);
}

Json engine_volumes(const ManifestParts& parts, std::size_t engine) {
  Json volumes = Json::array();
  volumes.push_back(empty_volume("shared-memory", true));
  volumes.push_back(empty_volume("checkpoints", false));
  if (!parts.commands[engine].file.is_null()) {
    Json settings = Json::object();
    settings["name"] = "settings";
    settings["configMap"]["name"] = engine_object(parts, engine);
    volumes.push_back(settings);
  }
  return volumes;
}

Json object_of(const std::string& version, const std::string& kind, const std::string& name,
               const Labels& labels) {
  Json json = Json::object();
  json["apiVersion"] = version;
  json["kind"] = kind;
  json["metadata"]["name"] = name;
  if (!labels.empty()) json["metadata"]["labels"] = to_json(labels);
  return json;
}

std::vector<Json> config_maps(const ManifestParts& parts) {
  std::vector<Json> all;
  for (std::size_t i = 0; i < parts.commands.size(); ++i) {
    if (parts.commands[i].file.is_null()) continue;
    Json json = object_of("v1", "ConfigMap", engine_object(parts, i), {});
    json["data"][file_name] = with_draft(to_yaml(parts.commands[i].file), *parts.deployment);
    all.push_back(std::move(json));
  }
  return all;
}

std::string manifest_comment(const ManifestParts& parts, const std::vector<std::string>& more) {
  std::vector<std::string> notes = deployment_notes(*parts.deployment, parts.commands);
  notes.emplace_back(
      "HF_TOKEN comes from the secret hf-token, if there is one. Checkpoints are fetched anew by "
      "every pod: put a volume that they share in place of the empty one.");
  notes.insert(notes.end(), more.begin(), more.end());
  return as_comment(notes);
}

}  // namespace orrery
