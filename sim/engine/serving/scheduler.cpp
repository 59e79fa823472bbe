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
//
// Our own engine (validation/microbench/serve_scheduler.py; kind simple): the same, but no chunk of
// a prompt makes another request start again.
#include "sim/engine/serving/scheduler.h"

#include <algorithm>

namespace orrery {
namespace {

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

 private:
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
    const auto watermark =
        static_cast<std::int64_t>(policy.watermark * static_cast<double>(rank.pool().blocks()));
    while (!rank.queue().empty()) {
      if (budget <= 0) return rank.running() < policy.max_sequences;
      const Waiting& front = rank.queue().front();
      const Request& request = rank.run().requests.requests[front.request];
      std::int64_t reserve = 0, keep_free = watermark;
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
