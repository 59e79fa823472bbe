// SPDX-License-Identifier: Apache-2.0
// Describes one measured operating point of a serving engine: deployment, load and figures.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/base/text/enum_names.h"
#include "workloads/inference/engine_layout.h"
#include "workloads/stack/serving.h"

namespace orrery {

enum class ServingSpeculation : std::uint8_t { none, mtp, unknown };
inline constexpr auto serving_speculation_text =
    enum_names<ServingSpeculation>({"none", "mtp", "unknown"});
// What a table prints of the latencies of a run's requests. Splitwise prints those of one batch.
enum class ServingStatistic : std::uint8_t { mean, median, trial };
inline constexpr auto serving_statistic_text =
    enum_names<ServingStatistic>({"mean", "median", "trial"});

// Settings of one attention-DP rank by the recipe that ran it, else by default of its engine; those
// that its kind does not have are absent.
struct ServingLimits {
  std::optional<std::int64_t> token_budget;      // of a step, prompts and decodes together
  std::optional<std::int64_t> chunk;             // tokens of prompts in a step of their own
  std::optional<std::int64_t> max_sequences;     // that run at once
  std::optional<std::int64_t> stream_interval;   // tokens of a request handed out at once
  std::optional<std::int64_t> receive_interval;  // steps between two looks for new requests
  std::optional<std::int64_t> balance_steps;     // that prompts wait for those of other ranks
  std::optional<std::int64_t> batch_wait_steps;  // that prompts wait for more of them
  double batch_wait_tokens = 0;                  // the share of the budget that is enough
  std::optional<std::int64_t> mixed_graph_rows;  // steps with prompts of so many run in graphs
  std::optional<double> memory_share;            // for weights and cache, as the engine means it
  std::vector<GraphSizes> graphs;                // captured; empty: the engine's own
  std::optional<Frontend> frontend;
  bool eager = false;                   // neither graphs nor a compiler
  bool prefix_cache = false;            // prompts are random: no two begin alike
  std::optional<Library> grouped_gemm;  // of experts, where it is not the engine's own
};
// Engines of one kind: all of an aggregated deployment, or those of one role.
struct ServingWorkers {
  std::int64_t count = 1;
  EngineLayout layout;
  ServingLimits limits;
  std::int64_t gpus() const { return count * layout.gpus(); }
};

struct ServingSoftware {
  std::string framework, release;  // as the table has them
  std::string stack;               // "vllm@0.16", of the catalogue
  ServingSpeculation speculation = ServingSpeculation::unknown;
  std::string speculation_from;  // how that is known
  std::int64_t drafts = 0;       // tokens that are guessed a step
  std::string accept;            // of which text they are right as often as measured; empty: any
  std::optional<bool> guesses_ahead = {};  // ServingHost, where it is not the engine's own
  std::optional<Library> gemm = {};        // of products, likewise
};

// A closed loop of `concurrency` users who send `prompts` requests in all. Lengths are uniform
// between `shortest` of the nominal ones and the nominal ones.
struct ServingLoad {
  double prompt_tokens = 0, output_tokens = 0;  // nominal
  double shortest = 1;
  std::optional<double> concurrency;  // absent: not told, or as many as fit
  double prompts = 0;                 // requests; 0: not told
  bool warmed = false;                // by requests before them that do not count
  double mean_share() const { return (1 + shortest) / 2; }
};

struct ServingFigures {
  ServingStatistic statistic = ServingStatistic::mean;
  std::optional<double> ttft, tpot;    // seconds
  std::optional<double> tokens_s_gpu;  // output tokens, of all GPUs of the deployment
  bool tokens_derived = false;         // from the two latencies: the table prints none
  std::string ttft_skipped;            // why TTFT is not scored; empty: it is, where there is one
};

struct ServingRow {
  std::string id, file, source, campaign, date;
  std::string gpu, accelerator, cluster;  // "b200" of "b200_sxm"; of the catalogue, empty: none
  std::string model_told, model, family;  // as told; of the catalogue, empty: none
  std::string precision;                  // as told: "fp8"
  std::string group;                      // "family x engine@gpu/campaign"
  ServingSoftware software;
  bool disaggregated = false;
  ServingWorkers engine;   // of a disaggregated deployment those that decode
  ServingWorkers prefill;  // disaggregated
  ServingLoad load;
  ServingFigures measured;
  std::string rule;     // that left it out: "R7"; empty: none, though it may be skipped
  std::string skipped;  // why nothing is predicted, one sentence; empty: it is
  std::vector<std::string> assumed;
  std::int64_t gpus() const { return engine.gpus() + (disaggregated ? prefill.gpus() : 0); }
};

}  // namespace orrery
