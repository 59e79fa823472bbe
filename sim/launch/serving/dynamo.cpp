// SPDX-License-Identifier: Apache-2.0
// Writes DynamoGraphDeployments: a front with its router, and components of engines behind it.
#include <algorithm>

#include <fmt/format.h>

#include "sim/launch/serving/pods.h"

namespace orrery {
namespace {

// What Dynamo's front calls a router; empty: it has none such.
std::string router_mode(RouterKind kind) {
  switch (kind) {
    case RouterKind::round_robin:
      return "round-robin";
    case RouterKind::random:
      return "random";
    case RouterKind::power_of_two:
      return "power-of-two";
    case RouterKind::least_requests:
      return "least-loaded";
    case RouterKind::prefix:
      return "kv";
    default:
      return "";
  }
}

Json component(const std::string& name, const std::string& type, std::int64_t replicas,
               const Json& pod) {
  Json json = Json::object();
  json["name"] = name;
  json["type"] = type;
  json["replicas"] = replicas;
  json["podTemplate"]["spec"] = pod;
  return json;
}

Json front(const ManifestParts& parts) {
  const std::string mode = router_mode(parts.deployment->router);
  Json container = Json::object();
  container["name"] = "main";
  container["image"] = parts.program.image;
  for (const char* word : {"python3", "-m", "dynamo.frontend"})
    container["command"].push_back(word);
  container["args"].push_back("--router-mode");
  container["args"].push_back(mode.empty() ? "round-robin" : mode);
  Json pod = Json::object();
  pod["containers"].push_back(container);
  return component("Frontend", "frontend", 1, pod);
}

Json engines(const ManifestParts& parts, std::size_t engine) {
  const ServedEngine& e = parts.deployment->engines[engine];
  Json command = Json::array(), args = Json::array();
  const std::vector<std::string> words = pod_words(parts, engine);
  for (std::size_t i = 0; i < words.size(); ++i)
    (i < parts.program.start.size() ? command : args).push_back(words[i]);
  // SGLang's side channel for keys and values listens on the pod's address only if told so.
  if (e.role != EngineRole::whole && e.policy.scheduler == SchedulerKind::sglang) {
    args.push_back("--host");
    args.push_back("0.0.0.0");
  }
  Json pod = Json::object();
  pod["containers"].push_back(engine_container(parts, engine, parts.program.image, command, args));
  // The operator mounts shared memory itself.
  Json& mounts = pod["containers"][0]["volumeMounts"];
  auto& list = mounts.elements();
  std::erase_if(list, [](const Json& one) { return one.at("name").text() == "shared-memory"; });
  pod["volumes"] = engine_volumes(parts, engine);
  std::erase_if(pod["volumes"].elements(),
                [](const Json& one) { return one.at("name").text() == "shared-memory"; });
  const std::string type = e.role == EngineRole::whole ? "worker" : std::string(to_text(e.role));
  Json json = component(type, type, e.replicas, pod);
  if (parts.hosts[engine].hosts > 1) json["multinode"]["nodeCount"] = parts.hosts[engine].hosts;
  return json;
}

}  // namespace

std::vector<std::string> dynamo_notes(const ManifestParts& parts) {
  const ServedDeployment& d = *parts.deployment;
  std::vector<std::string> notes = {fmt::format(
      "For the operator of Dynamo {}, whose image has an engine of its own release: it may be "
      "newer than {}.",
      dynamo_release, parts.commands.front().program)};
  if (router_mode(d.router).empty())
    notes.push_back(
        fmt::format("Not said: Dynamo's front has no router like {}: round-robin "
                    "stands in its place.",
                    to_text(d.router)));
  const bool several = std::any_of(parts.hosts.begin(), parts.hosts.end(),
                                   [](const EngineHosts& hosts) { return hosts.hosts > 1; });
  if (several) {
    notes.emplace_back(
        "Engines on several hosts need Grove or LeaderWorkerSet beside the operator, "
        "which adds the flags that join their processes.");
    if (d.gpus_per_domain > d.gpus_per_host)
      notes.emplace_back(
          "Hosts that share NVLink need a ComputeDomain of NVIDIA's driver for "
          "dynamic resources, and its claim in the pods: without it they use the "
          "network.");
  }
  return notes;
}

std::vector<Json> dynamo_objects(const ManifestParts& parts) {
  const ServedDeployment& d = *parts.deployment;
  Json graph = object_of("nvidia.com/v1beta1", "DynamoGraphDeployment", parts.name, {});
  graph["spec"]["backendFramework"] = engine_name(d);
  Json& components = graph["spec"]["components"];
  components.push_back(front(parts));
  for (std::size_t i = 0; i < d.engines.size(); ++i) components.push_back(engines(parts, i));
  std::vector<Json> objects = config_maps(parts);
  objects.push_back(std::move(graph));
  return objects;
}

}  // namespace orrery
