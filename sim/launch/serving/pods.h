// SPDX-License-Identifier: Apache-2.0
// Knows pods of serving engines: containers, probes, volumes, files of settings.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "sim/launch/serving/hosts.h"
#include "sim/launch/serving/manifest.h"
#include "sim/launch/serving/program.h"

namespace orrery {

// What all manifests of a deployment share, and its engines' commands.
struct ManifestParts {
  const ServedDeployment* deployment = nullptr;
  EngineProgram program;
  std::vector<EngineCommand> commands;  // of each kind of engine
  std::vector<EngineHosts> hosts;
  std::string name;   // of the objects
  std::string model;  // checkpoint, or MODEL
};
ManifestParts manifest_parts(const ServedDeployment& deployment, EngineDialect dialect);

// The name of what belongs to one kind of engine: "NAME", "NAME-prefill".
std::string engine_object(const ManifestParts& parts, std::size_t engine);

// Words of the command of a kind of engine, without a shell: what stands for variables is said.
std::vector<std::string> pod_words(const ManifestParts& parts, std::size_t engine);

using Labels = std::vector<std::pair<std::string, std::string>>;
Json to_json(const Labels& labels);

// A container of so many GPUs, with shared memory and a cache of checkpoints. `probes`: on /health
// of the port.
Json engine_container(const ManifestParts& parts, std::size_t engine, const std::string& image,
                      const Json& command, const Json& args);
void add_probes(Json& container, int port);
// The pod's volumes for it.
Json engine_volumes(const ManifestParts& parts, std::size_t engine);
// ConfigMaps with files of settings, where engines read some.
std::vector<Json> config_maps(const ManifestParts& parts);

Json object_of(const std::string& version, const std::string& kind, const std::string& name,
               const Labels& labels);

// The comment at the top, with sentences of the form after those of the deployment.
std::string manifest_comment(const ManifestParts& parts, const std::vector<std::string>& more);

std::vector<Json> plain_objects(const ManifestParts& parts, const std::string& flag);
std::vector<Json> dynamo_objects(const ManifestParts& parts);
std::vector<Json> llm_d_objects(const ManifestParts& parts, const std::string& flag);

// Sentences that are of a form alone.
std::vector<std::string> dynamo_notes(const ManifestParts& parts);
std::vector<std::string> llm_d_notes(const ManifestParts& parts);

}  // namespace orrery
