// SPDX-License-Identifier: Apache-2.0
// Schedules mixed steps: sequences that run get their token, chunks of prompts get the rest.
//
// vLLM V1 (vllm/v1/core/sched/scheduler.py, Scheduler.schedule): running requests first, in the
// order of their admission, then waiting ones, within one budget of tokens. A request for which no
// block is free makes the one that was admitted last start again, from the front of the queue; in
// such a step none is admitted. A waiting request needs blocks for its next chunk alone. At any
// time all that decode get their token: what was admitted behind them got what they left over.
//
// TensorRT-LLM (cpp/tensorrt_llm/batch_manager/capacityScheduler.cpp): the same, but a request is
// admitted when all blocks that it and those that run may ever need are there (guaranteed no
// evict), or those of its prompt (max utilisation: then the last one started is paused for room).
// With batch wait (tensorrt_llm/_torch/pyexecutor/py_executor.py: _waiting_requests) the prompts
// that were chosen for a step wait while others decode, until there are enough of them or a number
// of steps has passed.
//
// Our own engine (validation/microbench/serve_scheduler.py; kind simple): the same, but no chunk of
// a prompt makes another request start again.
#include "sim/engine/serving/scheduler.h"

#include <algorithm>

namespace orrery {
namespace {

// Tokens of the prompts that a step of so many rows could have.
std::int64_t chosen_tokens(const Rank& rank, std::int64_t budget) {
  const EnginePolicy& policy = rank.run().policy;
  std::int64_t tokens = 0;
  for (const std::uint32_t s : rank.prefills()) tokens += rank.slot(s).target;
  const bool all = policy.capacity == CapacityPolicy::no_evict;
  std::int64_t room = rank.spare() - rank.watermark();
  if (all) room -= rank.promised() - rank.decodes().blocks_needed(1);
  std::int64_t sequences = policy.max_sequences - rank.running();
  rank.queue().visit([&](const Waiting& waiting) {
    const Request& request = rank.run().requests.requests[waiting.request];
    const std::int64_t prompt = std::int64_t{request.prompt} + waiting.emitted;
    room -= rank.blocks_for(all ? rank.most_tokens(request) : prompt) + rank.own_blocks(request);
    if (room < 0 || sequences-- == 0 || tokens >= budget) return false;
    tokens += prompt;
    return true;
  });
  return tokens;
}

// Whether the prompts that could start wait for more.
bool waits_for_batch(Rank& rank, std::int64_t rows) {
  const EnginePolicy& policy = rank.run().policy;
  const bool waits = policy.batch_wait.steps > 0 && policy.batch_wait.tokens > 0;
  if (!waits || policy.scheduler != SchedulerKind::trtllm) return false;
  if (rank.run().shape.ranks > 1 || rank.decodes().count() == 0) return false;
  if (!rank.queue().empty() && rank.queue().front().foreign) return false;  // no prompt is computed
  const std::int64_t decodes = rank.decodes().count() * rows;
  const std::int64_t prompts = chosen_tokens(rank, policy.token_budget - decodes);
  if (prompts == 0) return false;
  const double enough = policy.batch_wait.tokens * static_cast<double>(policy.token_budget);
  if (rank.kept.waited < policy.batch_wait.steps && static_cast<double>(prompts + decodes) < enough)
    return true;
  rank.kept.waited = 0;
  return false;
}

class MixedScheduler : public Scheduler {
 public:
  RankPlan& plan(Rank& rank, Ticks now) const override {
    const EnginePolicy& policy = rank.run().policy;
    const std::int64_t rows = 1 + rank.run().shape.speculation.drafts;
    rank.begin_plan(now);
    bool made_room = false;
    while (rank.spare() < 0) {
      rank.preempt(rank.last(), true);
      made_room = true;
    }
    if (rank.plan().holds_prompts) return rank.end_plan(made_room, true);
    rank.kept.waits = waits_for_batch(rank, rows);
    if (rank.kept.waits) return wait(rank, made_room);
    std::int64_t budget = policy.token_budget - rank.decodes().count() * rows;
    for (std::size_t i = 0; i < rank.prefills().size() && budget > 0; ++i) {
      const std::uint32_t s = rank.prefills()[i];
      const std::int64_t tokens =
          chunk(policy, rank.slot(s).target - rank.slot(s).computed, budget);
      if (policy.scheduler == SchedulerKind::simple && (rank.decodes().count() > 0 || i > 0)) {
        // A chunk runs whole or waits, with all behind it; where decodes made room, none runs.
        if (made_room || !rank.extend(s, tokens)) return rank.end_plan(made_room, made_room);
      } else if (!extend(rank, s, tokens, made_room)) {
        break;  // it went itself: it was the last
      }
      budget -= tokens;
    }
    const bool open = made_room || admit(rank, rows, budget);
    return rank.end_plan(made_room, open);
  }

  // Steps without prompts.
  void stepped(Rank& rank, std::int64_t steps) const override {
    if (rank.kept.waits) rank.kept.waited += steps;
  }

 private:
  static RankPlan& wait(Rank& rank, bool made_room) {
    RankPlan& plan = rank.end_plan(made_room, true);
    const EnginePolicy& policy = rank.run().policy;
    // Where blocks are not promised, decodes may take those of the prompts that wait.
    const std::int64_t left = policy.capacity == CapacityPolicy::no_evict
                                  ? policy.batch_wait.steps - rank.kept.waited
                                  : 1;
    plan.most_steps = std::min(plan.most_steps, left);
    return plan;
  }

  static std::int64_t chunk(const EnginePolicy& policy, std::int64_t left, std::int64_t budget) {
    const bool cut = policy.chunked_prefill && policy.long_prefill > 0;
    return std::min({left, cut ? policy.long_prefill : left, budget});
  }

  static bool extend(Rank& rank, std::uint32_t s, std::int64_t tokens, bool& made_room) {
    while (!rank.extend(s, tokens)) {
      const std::uint32_t last = rank.last();
      rank.preempt(last, true);
      made_room = true;
      if (last == s) return false;
    }
    return true;
  }

  // Whether a request that arrives could start before any other ends.
  static bool admit(Rank& rank, std::int64_t rows, std::int64_t budget) {
    const EnginePolicy& policy = rank.run().policy;
    while (!rank.queue().empty()) {
      if (budget <= 0) return rank.running() < policy.max_sequences;
      const Waiting& front = rank.queue().front();
      const Request& request = rank.run().requests.requests[front.request];
      std::int64_t reserve = 0, keep_free = rank.watermark();
      if (policy.scheduler == SchedulerKind::trtllm) {
        const bool all = policy.capacity == CapacityPolicy::no_evict;
        reserve = all ? rank.most_tokens(request) : std::int64_t{request.prompt} + front.emitted;
        if (all) keep_free += rank.promised() - rank.decodes().blocks_needed(1);
      }
      const std::int64_t before = rank.decodes().count();
      std::int64_t planned = 0;
      const NotAdmitted refusal =
          rank.admit(chunk(policy, budget, budget), reserve, keep_free, planned);
      if (refusal != NotAdmitted::none) return false;
      budget -= rank.decodes().count() > before ? rows : planned;
    }
    return rank.running() < policy.max_sequences;
  }
};

}  // namespace

std::unique_ptr<Scheduler> make_scheduler(const EnginePolicy& policy) {
  if (policy.scheduler == SchedulerKind::sglang) return make_sglang_scheduler();
  return std::make_unique<MixedScheduler>();
}

}  // namespace orrery
