// SPDX-License-Identifier: Apache-2.0
// Knows what a serving engine's own program is told, so that it runs as it was predicted.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/base/json/tree.h"
#include "sim/base/text/enum_names.h"
#include "sim/engine/serving/router.h"
#include "sim/launch/flags.h"
#include "workloads/inference/drafter.h"
#include "workloads/inference/engine_layout.h"
#include "workloads/serving/engine_policy.h"
#include "workloads/stack/stack.h"

namespace orrery {

// whole: an engine does prompts and decodes.
enum class EngineRole : std::uint8_t { whole, prefill, decode };
inline constexpr auto engine_role_text = enum_names<EngineRole>({"serve", "prefill", "decode"});
constexpr std::string_view to_text(EngineRole role) { return engine_role_text[role]; }

// Equal engines of a deployment.
struct ServedEngine {
  EngineRole role = EngineRole::whole;
  EngineLayout layout;
  EnginePolicy policy;
  std::int64_t replicas = 1;
  bool eager = false;  // neither graphs nor a compiler
};

struct GuessedAhead {
  DraftKind kind = DraftKind::ngram;
  std::int64_t drafts = 0;
  std::string guesser;  // of kind draft: its checkpoint, or what it is called
};

// What a prediction of a served model was of.
struct ServedDeployment {
  std::string name, title;   // of the model: "llama3.3-70b", "Llama 3.3 70B"
  std::string checkpoint;    // its name on the hub; empty: not known
  std::int64_t experts = 0;  // of a layer that has them; 0: none has
  bool dense = false;        // some layer has a feed-forward without
  std::int64_t context = 0;  // tokens that the model takes
  std::int64_t longest = 0;  // tokens of a request at most
  std::string machine;       // "dgx-h100 (NVIDIA H100 SXM5 80 GB)"
  std::string resource;      // what Kubernetes calls its accelerators: "nvidia.com/gpu"
  std::int64_t gpus_per_host = 8, gpus_per_domain = 8;
  Stack stack;
  RouterKind router = RouterKind::round_robin;
  std::optional<GuessedAhead> guessing;
  std::vector<ServedEngine> engines;  // one kind, or prefill and decode

  bool apart() const { return engines.size() > 1; }
  SchedulerKind kind() const { return engines.front().policy.scheduler; }
};

// Dynamo's workers around engines spell some settings in their own way.
enum class EngineDialect : std::uint8_t { own, dynamo };

struct EngineCommand {
  std::string program;            // "vLLM 0.14"
  std::vector<LaunchFlag> flags;  // `key`: of engine_settings; a value may be a shell variable
  Json file;                      // settings of a YAML file that it reads; null: it needs none
  std::vector<LaunchFlag> environment;  // variables, as flags
  std::vector<FlagNote> missing, implied;
  std::vector<std::string> advice;   // sentences to whoever starts it
  std::vector<std::string> sources;  // ids of hw_models/catalog/sources
};

// Sequences of the largest graph that an engine captures; 0: it captures none.
std::int64_t largest_captured(const ServedDeployment& deployment, const ServedEngine& engine);

// Settings of the engine by key, as JSON: the axes of its layout, formats, limits, policy.
SortedJson engine_settings(const ServedDeployment& deployment, const ServedEngine& engine);

// Every setting that differs from that of a plain engine is said by a flag or in the file, or named
// in `missing` or `implied`. Error: an engine that nobody but us can start.
EngineCommand engine_command(const ServedDeployment& deployment, const ServedEngine& engine,
                             EngineDialect dialect = EngineDialect::own);

}  // namespace orrery
