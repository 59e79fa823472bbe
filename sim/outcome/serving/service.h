// SPDX-License-Identifier: Apache-2.0
// Predicts what a deployment of serving engines does with its traffic.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "sim/engine/prices/engine_prices.h"
#include "sim/engine/serving/fleet.h"
#include "sim/outcome/serving/engine_memory.h"
#include "workloads/inference/acceptance.h"
#include "workloads/traffic/traffic.h"

namespace orrery {

// Equal engines.
struct EngineGroup {
  EngineLayout layout;
  std::int64_t replicas = 1;
  std::optional<EnginePolicy> policy = {};  // where it is not the stack's
  bool eager = false;  // Python launches all kernels: no graphs, and nothing is compiled
  std::int64_t gpus() const { return replicas * layout.gpus(); }
};

// Tokens guessed ahead: by what, and how many of them are right.
struct Guessing {
  Drafter drafter;
  Acceptance acceptance;
};

// workloads/catalog/acceptance.json, read once.
const std::vector<MeasuredAcceptance>& catalogue_acceptance();

// One deployment under one traffic. With `decode` the first group computes prompts alone and sends
// their keys and values on.
struct ServiceCase {
  Cluster cluster;
  Model model;
  Stack stack;
  EngineGroup engines;
  std::optional<EngineGroup> decode;
  std::optional<Guessing> guessing;
  RouterPolicy router;
  Traffic traffic;
  ServiceTarget target;
  std::uint64_t seed = 1;
  std::int64_t longest = 0;  // tokens of a request, prompt and output; longer are rejected; 0: any
  // Where not all of the policy's sequences can have states at once: refused; else fewer run.
  bool needs_all_sequences = false;
  std::int64_t offered = 0;                     // GPUs that there are, where the question says so
  std::optional<DollarsPerSecond> rental = {};  // of a GPU, where it is not the device's
  std::int64_t gpus() const { return engines.gpus() + (decode ? decode->gpus() : 0); }
};

struct ServiceOptions {
  int threads = 1;
  const std::atomic<bool>* stop = nullptr;
  std::function<void(std::int64_t done)> progress = {};
  StepLog* log = nullptr;  // takes the steps
};

// Requests that no engine took, by why.
struct Rejections {
  std::int64_t context = 0;  // longer than ServiceCase::longest
  std::int64_t cache = 0;    // than all blocks of a rank
  std::int64_t step = 0;     // than a step, where prompts are not cut
  std::int64_t queue = 0;    // too many waited
};

// Dollars a million tokens, each kind by the time that it takes; absent: no price, or none of them.
// Watts are of a GPU with its board, energy of all GPUs.
struct ServiceCost {
  std::optional<double> input, cached, output;
  std::optional<double> promised;  // output tokens of requests that keep all promises pay for all
  Watts prompts, decodes, mean;    // in their steps; over all the time
  Joules per_output;               // a token
};

// Mean time of a request by where it goes, from its arrival to its last token.
struct RequestTime {
  Seconds server;            // before the engine has it
  Seconds waiting;           // from there to its first step
  Seconds prefill;           // from there to the end of its prompt
  Seconds on_the_way;        // of its keys and values to another engine
  Seconds waiting_there;     // for its first step on that
  Seconds decoding;          // from there, or from its first token, to the last
  bool first_there = false;  // the other engine hands out the first token too

  Seconds total() const;
  // The share of its time to the first token that it waits for a place in a step.
  double waits() const;
};

// Latencies of a request of mean lengths that is alone: under a load they are no less.
struct LoneRequest {
  Seconds ttft, tpot;
};

struct ServicePrediction {
  EngineMemory memory;
  std::optional<EngineMemory> decode_memory;
  std::string refusal;  // then nothing was served
  RequestList requests;
  ServiceTimeline timeline;
  RequestCounts counts;
  ServiceSummary summary;
  std::vector<ServiceSummary> classes;  // of each kind of requests, where there are several
  TargetResult target;
  RequestTime request;
  double batch = 0;           // mean sequences that get a token in a step
  StepShape shape;            // of a step of that batch at its mean context
  StepParts step;             // what takes its time
  double tokens_per_gpu = 0;  // output tokens a second and GPU
  DollarsPerSecond rental;    // of a GPU; 0: no price known
  std::string bottleneck;     // a sentence
  LoneRequest lone;
  Rejections rejections;
  ServiceCost cost;
};

// Why no request was served, where all were rejected; else empty.
std::string why_all_rejected(const ServicePrediction& found, const ServiceCase& asked);

ServicePrediction predict_service(const ServiceCase& asked, const ServiceOptions& options);

}  // namespace orrery
