// SPDX-License-Identifier: Apache-2.0
// Writes model servers of llm-d, the pool that its endpoint picker chooses from, and the route.
#include <algorithm>

#include <fmt/format.h>

#include "sim/base/errors/check.h"
#include "sim/launch/serving/pods.h"
#include "sim/launch/serving/script.h"

namespace orrery {
namespace {

// Of engines of decodes: the sidecar before them listens on engine_port.
constexpr int behind_sidecar = 8200;
constexpr const char* sidecar_image = "ghcr.io/llm-d/llm-d-router-disagg-sidecar:v0.9.0";
constexpr int picker_port = 9002;

bool is_sglang(const ManifestParts& parts) {
  return parts.deployment->kind() == SchedulerKind::sglang;
}

// Of an engine on several hosts: whether every host answers requests for its own ranks.
bool each_answers(const ManifestParts& parts, std::size_t engine) {
  const ServedEngine& e = parts.deployment->engines[engine];
  return e.policy.scheduler == SchedulerKind::vllm && e.layout.attention_dp > 1;
}

// Whether its first host answers for all, and the others merely compute.
bool leads(const ManifestParts& parts, std::size_t engine) {
  return parts.hosts[engine].hosts > 1 && !each_answers(parts, engine);
}

// What the pool chooses from: pods that answer requests.
Labels pool_labels(const ManifestParts& parts) {
  return {{"llm-d.ai/inference-serving", "true"}, {"llm-d.ai/model", parts.name}};
}

Labels engine_labels(const ManifestParts& parts, std::size_t engine, bool answers) {
  Labels labels = pool_labels(parts);
  if (!answers) labels.erase(labels.begin());
  const EngineRole role = parts.deployment->engines[engine].role;
  if (role != EngineRole::whole) labels.emplace_back("llm-d.ai/role", std::string(to_text(role)));
  return labels;
}

int port_of(const ManifestParts& parts, std::size_t engine) {
  return parts.deployment->engines[engine].role == EngineRole::decode ? behind_sidecar
                                                                      : engine_port;
}

// Takes requests for decodes, has their prompts computed elsewhere first.
Json sidecar(const ManifestParts& parts) {
  Json json = Json::object();
  json["name"] = "routing-proxy";
  json["image"] = sidecar_image;
  json["restartPolicy"] = "Always";
  json["args"].push_back(fmt::format("--port={}", engine_port));
  json["args"].push_back(fmt::format("--vllm-port={}", behind_sidecar));
  json["args"].push_back(fmt::format("--kv-connector={}",
                                     is_sglang(parts) ? engine_name(*parts.deployment) : "nixlv2"));
  json["args"].push_back("--secure-proxy=false");
  Json port = Json::object();
  port["name"] = "sidecar";
  port["containerPort"] = engine_port;
  json["ports"].push_back(port);
  json["securityContext"]["allowPrivilegeEscalation"] = false;
  json["securityContext"]["runAsNonRoot"] = true;
  return json;
}

// A host's address, to which others send keys and values.
void add_side_channel(Json& container, const ManifestParts& parts) {
  Json variable = Json::object();
  variable["name"] =
      is_sglang(parts) ? "SGLANG_NIXL_SIDE_CHANNEL_HOST" : "VLLM_NIXL_SIDE_CHANNEL_HOST";
  variable["valueFrom"]["fieldRef"]["fieldPath"] = "status.podIP";
  container["env"].push_back(variable);
}

// A shell's words, since hosts of a LeaderWorkerSet know each other by variables.
std::string group_script(const ManifestParts& parts, std::size_t engine, bool waits,
                         const std::string& flag) {
  const ServedEngine& e = parts.deployment->engines[engine];
  const HostFront front = each_answers(parts, engine) ? HostFront::each : HostFront::first;
  std::vector<std::string> words = pod_words(parts, engine);
  for (const char* word : {"--host", "0.0.0.0", "--port"}) words.emplace_back(word);
  words.push_back(std::to_string(port_of(parts, engine)));
  for (std::string& word : host_flags(*parts.deployment, e, front, flag))
    words.push_back(std::move(word));
  if (const std::string word = wait_flag(*parts.deployment, e, front); waits && !word.empty())
    words.push_back(word);
  std::string out = "HEAD=$LWS_LEADER_ADDRESS\nNODE_RANK=$LWS_WORKER_INDEX\nexec";
  const std::size_t plain = parts.program.start.size();
  for (std::size_t i = 0; i < words.size(); ++i)
    out += (i > plain && words[i].starts_with("--") ? " \\\n  " : " ") + expanded_word(words[i]);
  return out;
}

Json pod_template(const ManifestParts& parts, std::size_t engine, const Json& command,
                  const Json& args, bool answers) {
  const ServedEngine& e = parts.deployment->engines[engine];
  Json container = engine_container(parts, engine, parts.program.image, command, args);
  if (answers) add_probes(container, port_of(parts, engine));
  if (e.role != EngineRole::whole) add_side_channel(container, parts);
  Json json = Json::object();
  json["metadata"]["labels"] = to_json(engine_labels(parts, engine, answers));
  if (e.role == EngineRole::decode && answers)
    json["spec"]["initContainers"].push_back(sidecar(parts));
  json["spec"]["containers"].push_back(container);
  json["spec"]["volumes"] = engine_volumes(parts, engine);
  return json;
}

Json one_host(const ManifestParts& parts, std::size_t engine) {
  Json command = Json::array(), args = Json::array();
  const std::vector<std::string> words = pod_words(parts, engine);
  for (std::size_t i = 0; i < words.size(); ++i)
    (i < parts.program.start.size() ? command : args).push_back(words[i]);
  for (const char* word : {"--host", "0.0.0.0", "--port"}) args.push_back(word);
  args.push_back(std::to_string(port_of(parts, engine)));
  Json json = object_of("apps/v1", "Deployment", engine_object(parts, engine),
                        engine_labels(parts, engine, true));
  json["spec"]["replicas"] = parts.deployment->engines[engine].replicas;
  json["spec"]["selector"]["matchLabels"] = to_json(engine_labels(parts, engine, true));
  json["spec"]["template"] = pod_template(parts, engine, command, args, true);
  return json;
}

Json several_hosts(const ManifestParts& parts, std::size_t engine, const std::string& flag) {
  const ServedEngine& e = parts.deployment->engines[engine];
  const bool first_answers = leads(parts, engine);
  const auto pod = [&](bool waiting) {
    Json command = Json::array(), args = Json::array();
    command.push_back("/bin/bash");
    command.push_back("-c");
    args.push_back(group_script(parts, engine, waiting, flag));
    return pod_template(parts, engine, command, args, !waiting);
  };
  Json json = object_of("leaderworkerset.x-k8s.io/v1", "LeaderWorkerSet",
                        engine_object(parts, engine), engine_labels(parts, engine, true));
  json["spec"]["replicas"] = e.replicas;
  Json& group = json["spec"]["leaderWorkerTemplate"];
  group["size"] = parts.hosts[engine].hosts;
  group["restartPolicy"] = "RecreateGroupOnPodRestart";
  if (first_answers) group["leaderTemplate"] = pod(false);
  group["workerTemplate"] = pod(first_answers);
  return json;
}

Json pool(const ManifestParts& parts) {
  Json json = object_of("inference.networking.k8s.io/v1", "InferencePool", parts.name, {});
  json["spec"]["selector"]["matchLabels"] = to_json(pool_labels(parts));
  Json port = Json::object();
  port["number"] = engine_port;
  json["spec"]["targetPorts"].push_back(port);
  json["spec"]["endpointPickerRef"]["name"] = parts.name + "-epp";
  json["spec"]["endpointPickerRef"]["port"]["number"] = picker_port;
  return json;
}

Json route(const ManifestParts& parts) {
  Json json = object_of("gateway.networking.k8s.io/v1", "HTTPRoute", parts.name, {});
  Json parent = Json::object();
  parent["group"] = "gateway.networking.k8s.io";
  parent["kind"] = "Gateway";
  parent["name"] = "inference-gateway";
  json["spec"]["parentRefs"].push_back(parent);
  Json backend = Json::object();
  backend["group"] = "inference.networking.k8s.io";
  backend["kind"] = "InferencePool";
  backend["name"] = parts.name;
  Json rule = Json::object();
  rule["backendRefs"].push_back(backend);
  json["spec"]["rules"].push_back(rule);
  return json;
}

}  // namespace

std::vector<std::string> llm_d_notes(const ManifestParts& parts) {
  std::vector<std::string> notes = {
      fmt::format("The endpoint picker of llm-d is yours to install as the Service {}-epp, and the "
                  "Gateway inference-gateway; a picker's configuration stands for the prediction's "
                  "router, {}.",
                  parts.name, to_text(parts.deployment->router))};
  std::size_t spanning = 0;
  for (const EngineHosts& hosts : parts.hosts) spanning += hosts.hosts > 1 ? 1 : 0;
  if (spanning > 0 && parts.deployment->gpus_per_domain > parts.deployment->gpus_per_host)
    notes.emplace_back(
        "Hosts that share NVLink need a ComputeDomain of NVIDIA's driver for dynamic "
        "resources, and its claim in the pods: without it they use the network.");
  return notes;
}

std::vector<Json> llm_d_objects(const ManifestParts& parts, const std::string& flag) {
  const ServedDeployment& d = *parts.deployment;
  if (d.kind() == SchedulerKind::trtllm)
    throw Error({.file = flag,
                 .path = "",
                 .found = std::string(to_text(ManifestForm::llm_d)),
                 .expected = fmt::format("dynamo: llm-d serves vLLM and SGLang, not {}",
                                         d.stack.framework)});
  std::vector<Json> objects = config_maps(parts);
  for (std::size_t i = 0; i < d.engines.size(); ++i)
    objects.push_back(parts.hosts[i].hosts > 1 ? several_hosts(parts, i, flag)
                                               : one_host(parts, i));
  objects.push_back(pool(parts));
  objects.push_back(route(parts));
  return objects;
}

}  // namespace orrery
