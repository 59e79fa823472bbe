// SPDX-License-Identifier: Apache-2.0
// Knows what tables of serving runs do not tell: their names, formats, protocols and recipes.
#pragma once

#include <cstdint>
#include <filesystem>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "sim/base/names.h"
#include "sim/validate/serving/offline_bench.h"
#include "workloads/layout/layout.h"

namespace orrery {

// What of a row conditions look at. `role` is "" for an aggregated engine, "prefill" or "decode".
struct ServingFacts {
  std::string engine, accelerator, family, model, owner, precision, campaign;
  std::string mode, role, speculation, date;  // date: "2026-03-25", or empty
  std::string release;                        // as the table has it
  bool attention_dp = false;
  std::int64_t tp = 1;
  double isl = 0, osl = 0, concurrency = 0;
};

// What must hold of a row; all that is left out holds.
struct ServingWhen {
  std::vector<std::string> engines, accelerators, families, models, precisions, campaigns;
  std::vector<std::string> owners;                // of the checkpoint: "nvidia" of "nvidia/..."
  std::vector<std::string> releases;              // how they begin
  std::string mode, role, speculation, from, to;  // dates, both included
  std::optional<bool> attention_dp;
  std::optional<std::int64_t> tp, isl, osl;
  double concurrency_from = 0;
  double concurrency_to = std::numeric_limits<double>::infinity();
  bool holds(const ServingFacts& facts) const;
};

// A number that may grow with the sequences of a rank (with their drafts) and the prompt. `shared`:
// it is of all attention-DP ranks of an engine, each of which has its part.
struct ServingNumber {
  double plus = 0, per_sequence = 0, per_prompt_token = 0, multiple = 1, least = 1;
  bool with_drafts = false, shared = false;
  std::int64_t at(double sequences, double prompt_tokens, std::int64_t drafts) const;
};

struct ServingSettings {
  std::optional<Format> cache;
  std::optional<Library> gemm, grouped_gemm;
  std::optional<Frontend> frontend;
  std::optional<ServingNumber> token_budget, chunk, max_sequences, receive_interval,
      stream_interval, drafts, waves, balance_steps, batch_wait_steps, mixed_graph_rows;
  double batch_wait_tokens = 0;        // EnginePolicy
  std::string accept;                  // label of the text of which guessed tokens were counted
  std::optional<bool> guesses_ahead;   // ServingHost
  bool gathers_rows = false;           // EngineLayout
  bool eager = false;                  // EngineGroup
  bool prefix_cache = false;           // EnginePolicy
  std::vector<GraphSizes> graphs;      // captured; empty: the engine's own
  std::optional<double> memory_share;  // ServingMemory
};

// An engine by the names that tables use.
struct ServingEngine {
  std::vector<std::string> told;
  std::string stack;
  bool expert_groups_as_tp = false;           // its tables write wide EP as moe_tp
  std::vector<std::string> foreign_releases;  // how releases of another program begin
  std::string foreign;                        // that program
};
// The protocol of rows whose source begins so.
struct ServingCampaign {
  std::string source, campaign;
  double shortest = 1, waves = 10;  // least length over the nominal one; prompts over concurrency
  bool analysed = false;            // made to compare with predictions
  // Requests that do not count come first: in all runs, from a date on (dates that are not told are
  // later), or where prompts and decodes are apart.
  bool warmed = false, warmed_apart = false;
  std::string warmed_from;
  bool warms(bool disaggregated, const std::string& date) const;
};
// What tables of a kind leave out.
struct ServingTableFacts {
  std::string engine, release, gpu, precision, campaign, why;
  std::int64_t drafts = 0;
  OfflineBench bench;  // empty: no such run
  std::string bench_citation;
};
struct ServingModelName {
  std::vector<std::string> told;  // without owner and format
  std::string family, model, speculation, why;
};
struct ServingPrecision {
  std::vector<std::string> told;
  ServingWhen when;
  std::optional<PrecisionRecipe> recipe;
  std::string skipped, why;
};
struct ServingRecipe {
  ServingWhen when;
  ServingSettings set;
  std::string citation;  // "repository path"
};
// Deployments of a time when their table told tensor parallelism alone, and whose ranks had experts
// of their own; with `attention_dp` requests of their own as well. With a role, engines of that
// role whose label the file that launched them contradicts; `expert_tp`: experts are cut.
struct ServingLayout {
  ServingWhen when;
  bool attention_dp = false, expert_tp = false;
  std::string citation;
};
// A deployment with prompts and decodes apart, as the name of its file tells it.
struct ServingDeployment {
  std::string gpu, precision;            // "gb200", "fp4"
  std::int64_t isl = 0, osl = 0;         // tokens
  bool guesses = false;                  // tokens by a prediction module
  std::int64_t prefill = 0, decode = 0;  // engines
  bool attention_dp = false;             // of those that decode
  std::int64_t gpus = 0, batch = 0;      // of an engine that decodes; sequences of a rank at most
  std::int64_t expert_places = 0;        // on all ranks that decode, evened out; 0: not so
  std::int64_t clients = 0;              // 0: not told
  std::int64_t slots() const { return decode * batch * (attention_dp ? gpus : 1); }
};
struct ServingDeployments {
  std::string engine, family, citation;
  std::vector<ServingDeployment> all;
  // The one that ran so many clients: that which names them, else the smallest whose slots they
  // exceed by half at most, as the named ones do. nullptr: none is like `asked`, whose batch does
  // not count.
  const ServingDeployment* find(const ServingDeployment& asked, std::int64_t clients) const;
};
// What is known of rows from a table that does not ship.
struct KnownOfServing {
  std::string rule, sentence;
  ServingWhen when;
  bool ttft_only = false;
};
// Rows whose prompts had so many times the tokens that the table tells, and so many more.
struct LongerPrompts {
  double times = 1, plus = 0;
  std::string sentence;
  ServingWhen when;
};

// validation/serving_recipes.json; validation/measurements/serving/README.md documents it.
struct ServingRecipes {
  std::vector<ServingEngine> engines;
  std::vector<ServingCampaign> campaigns;
  std::map<std::string, ServingTableFacts> tables;
  std::vector<ServingModelName> names;
  std::vector<ServingPrecision> precisions;
  std::vector<ServingRecipe> recipes, defaults;
  std::vector<ServingLayout> layouts;
  std::vector<ServingDeployments> deployments;  // one an engine and family
  std::vector<KnownOfServing> known;
  std::vector<LongerPrompts> longer_prompts;

  const ServingEngine* engine(const std::string& told) const;   // nullptr: unknown
  const ServingModelName* name(const std::string& told) const;  // the same
  const ServingCampaign& campaign(const std::string& source) const;
};

ServingRecipes load_serving_recipes(const std::filesystem::path& file);

bool starts_with_any(const std::string& text, const std::vector<std::string>& starts);

// A model's name without owner, format and variant, small: "deepseek-r1" of
// "nvidia/DeepSeek-R1-NVFP4".
std::string plain_model_name(const std::string& told);

}  // namespace orrery
