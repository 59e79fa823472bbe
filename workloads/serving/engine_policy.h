// SPDX-License-Identifier: Apache-2.0
// Says how a serving engine chooses what its next step computes, and what it keeps in its caches.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "sim/base/text/enum_names.h"
#include "sim/base/units/ticks.h"
#include "sim/base/units/units.h"

namespace orrery {

// `simple`: first come, first served; running sequences get their token first, what the budget
// leaves goes to chunks of prompts in order of arrival.
enum class SchedulerKind { vllm, sglang, trtllm, simple };
inline constexpr auto scheduler_kind_text =
    enum_names<SchedulerKind>({"vllm", "sglang", "trtllm", "simple"});
constexpr std::string_view to_text(SchedulerKind k) { return scheduler_kind_text[k]; }

// TensorRT-LLM: a request starts when all that it may ever need is free, or when its prompt fits.
enum class CapacityPolicy { no_evict, max_utilisation };
inline constexpr auto capacity_policy_text =
    enum_names<CapacityPolicy>({"no-evict", "max-utilisation"});
constexpr std::string_view to_text(CapacityPolicy c) { return capacity_policy_text[c]; }

// What becomes of the keys and values of a request that must make room.
enum class Preemption { recompute, swap };
inline constexpr auto preemption_text = enum_names<Preemption>({"recompute", "swap"});
constexpr std::string_view to_text(Preemption p) { return preemption_text[p]; }

// Which rank of an engine with data-parallel attention takes a request.
enum class RankChoice { round_robin, least_requests };
inline constexpr auto rank_choice_text = enum_names<RankChoice>({"round-robin", "least-requests"});
constexpr std::string_view to_text(RankChoice r) { return rank_choice_text[r]; }

// Where blocks go that the device's memory evicts: host memory, NVMe, a remote pool.
struct CacheTier {
  std::string name;
  Bytes capacity;
  BytesPerSecond bandwidth;
};

// SGLang reserves for each running request this share of the tokens that it may still emit. The
// share falls with each decode step and is set anew when requests had to be taken back.
struct NewTokenRatio {
  double initial = 0.7, lowest = 0.098;
  std::int64_t decay_steps = 600;   // from initial to lowest
  std::int64_t clip = 4096;         // a request counts for no more new tokens
  std::int64_t retract_steps = 20;  // steps for which there is room after taking back
  // Clients take no end of text for an answer (ignore_eos), as benchmarks do: without a prefix
  // cache it then starts what finds room until its end.
  bool known_ends = false;
};

// TensorRT-LLM, without attention DP: while others decode, prompts wait for so many steps, or until
// a step has this share of the budget. Either 0: none waits.
struct BatchWait {
  std::int64_t steps = 0;
  double tokens = 0;
};

struct EnginePolicy {
  SchedulerKind scheduler = SchedulerKind::vllm;
  std::int64_t token_budget = 8192;  // of a step
  std::int64_t max_sequences = 256;  // on a rank
  bool chunked_prefill = true;
  std::int64_t chunk = 0;         // SGLang's chunked prefill size; 0: the budget
  std::int64_t long_prefill = 0;  // vLLM: no prompt gets more of a step than this; 0: no such rule
  bool mixed_steps = false;       // SGLang: decodes join the steps of prompts
  std::int64_t block_tokens = 16;
  bool prefix_cache = true;
  double watermark = 0;  // share of the blocks that admissions leave free
  std::vector<CacheTier> tiers;
  Preemption preemption = Preemption::recompute;
  CapacityPolicy capacity = CapacityPolicy::no_evict;
  NewTokenRatio new_tokens;
  RankChoice rank_choice = RankChoice::round_robin;
  // SGLang: decode steps between two looks for requests that arrived. After prompts, and when it
  // has nothing to do, it looks at once (scheduler_recv_interval,
  // managers/scheduler_recv_skipper.py).
  std::int64_t receive_interval = 1;
  std::int64_t stream_interval = 1;  // tokens of a request that are handed out at once
  // TensorRT-LLM's balance of attention data parallelism: while every rank decodes, prompts wait
  // until each rank has one and room for it, so that no rank's prompt holds the others up alone; at
  // most so many steps, counted on. 0: none waits.
  std::int64_t balance_steps = 0;
  BatchWait batch_wait;
  std::int64_t queue_limit = 0;          // waiting requests of a rank; more are rejected; 0: none
  std::vector<std::int32_t> priorities;  // by class, the lowest first; empty: all alike
  // Where prompts and decodes are apart: the engine that decodes computes a prompt's last token
  // again and hands out what follows from it; else it hands out what the other engine found.
  bool first_token_anew = false;
  // Before the engine sees a request: HTTP, and the tokeniser for each token of the prompt.
  Ticks front, front_token;
  Ticks first_prompts;  // more of an engine's first step with prompts, where it has just started
  Ticks front_of(std::int64_t prompt) const { return front + Ticks{front_token.ps * prompt}; }
};

// Error at `file` for the first number that cannot be: a budget below the sequences, chunks without
// a token, blocks of no tokens, a watermark outside [0, 1), a ratio outside [0, 1], tiers without
// bandwidth.
void check_policy(const EnginePolicy& policy, const std::string& file);

}  // namespace orrery
