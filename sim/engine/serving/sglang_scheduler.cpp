// SPDX-License-Identifier: Apache-2.0
// Schedules as SGLang does: prompts before tokens, in steps of their own.
//
// python/sglang/srt/managers/scheduler.py (get_new_batch_prefill, update_running_batch) and
// schedule_policy.py (PrefillAdder): a request is admitted while its prompt and its new tokens are
// fewer than the free tokens less a share of those that running requests may still emit; where ends
// are known, while its prompt is and all fit until they end. One prompt at a time is cut, where the
// step's chunk ends. After a refusal none is tried until a request has ended. schedule_batch.py
// (retract_decode): where decodes find no room, those that emitted least go back to the end of the
// queue until there is room for some steps.
#include <algorithm>
#include <optional>
#include <tuple>
#include <utility>
#include <vector>

#include "sim/engine/serving/known_ends.h"
#include "sim/engine/serving/scheduler.h"

namespace orrery {
namespace {

constexpr std::int64_t whole = std::int64_t{1} << 40U;  // of Rank::Kept.share

// While it decodes it looks for requests every so many steps, and after prompts; those that a look
// left are tried again at every step.
bool looks(Rank& rank) {
  Rank::Kept& state = rank.kept;
  const bool now = state.left || state.since_look >= rank.run().policy.receive_interval;
  if (now) state.since_look = 0;
  return now;
}

// The next look ends the steps that follow each other.
void end_at_look(Rank& rank) {
  Rank::Kept& state = rank.kept;
  if (state.since_look == 0) state.left = !rank.queue().empty();
  RankPlan& plan = rank.plan();
  const std::int64_t left = rank.run().policy.receive_interval - state.since_look;
  plan.most_steps = std::min(plan.most_steps, std::max<std::int64_t>(left, 1));
}

std::int64_t emitted(const Rank& rank, std::uint32_t s) {
  const Slot& slot = rank.slot(s);
  if (slot.phase != Slot::Phase::decode) return slot.emitted;
  return rank.run().requests.requests[slot.request].output - rank.decodes().remaining(s);
}
std::int64_t new_tokens(const Rank& rank, const Request& request, std::int64_t emitted) {
  return std::min<std::int64_t>(rank.outputs(request) - emitted, rank.run().policy.new_tokens.clip);
}

// Blocks that are kept for what running requests may still emit.
std::int64_t reserved(const Rank& rank) {
  __int128 sum = 0;
  for (std::uint32_t s = rank.last(); s != UnitMap::none; s = rank.slot(s).before)
    sum += new_tokens(rank, rank.run().requests.requests[rank.slot(s).request], emitted(rank, s));
  return rank.blocks_for(static_cast<std::int64_t>(sum * rank.kept.share / whole));
}

KnownEnds::Running known_end(const Rank& rank, const Request& request, std::int64_t emitted) {
  return {.left = rank.outputs(request) - emitted, .held = request.prompt + emitted};
}

// Of all that runs, where requests start by their ends; else nothing.
std::optional<KnownEnds> known_ends(const Rank& rank) {
  const EnginePolicy& policy = rank.run().policy;
  if (!policy.new_tokens.known_ends || policy.prefix_cache) return std::nullopt;
  std::vector<KnownEnds::Running> all;
  for (std::uint32_t s = rank.last(); s != UnitMap::none; s = rank.slot(s).before)
    all.push_back(
        known_end(rank, rank.run().requests.requests[rank.slot(s).request], emitted(rank, s)));
  return KnownEnds(std::move(all));
}

class SglangScheduler : public Scheduler {
 public:
  RankPlan& plan(Rank& rank, Ticks now) const override {
    const EnginePolicy& policy = rank.run().policy;
    rank.begin_plan(now);
    bool made_room = false;
    if (policy.mixed_steps && rank.spare() < 0) made_room = retract(rank);
    const bool waits = policy.receive_interval > 1 && rank.decodes().count() > 0;
    bool open = !waits && add_prompts(rank);
    if (waits && looks(rank)) add_prompts(rank);
    if (!rank.plan().parts.empty()) rank.kept.since_look = policy.receive_interval;
    if (!rank.plan().parts.empty() && !policy.mixed_steps) return rank.end_plan(false, open, false);
    if (rank.spare() < 0) made_room = retract(rank) || made_room;
    if (rank.plan().parts.empty() && rank.decodes().count() == 0) {
      // What was taken back may have been all that ran, or kept a cut prompt from going on.
      if (rank.prefills().empty())
        open = add_prompts(rank);
      else
        make_way(rank);
    }
    RankPlan& plan = rank.end_plan(made_room, open, true);
    if (waits) end_at_look(rank);
    return plan;
  }

  // The share falls with each step of decodes alone.
  void stepped(Rank& rank, std::int64_t steps) const override {
    rank.kept.since_look += steps;
    const NewTokenRatio& ratio = rank.run().policy.new_tokens;
    const auto lowest = static_cast<std::int64_t>(ratio.lowest * static_cast<double>(whole));
    const auto fall =
        static_cast<std::int64_t>((ratio.initial - ratio.lowest) * static_cast<double>(whole)) /
        ratio.decay_steps;
    rank.kept.share = std::max(rank.kept.share - fall * steps, std::min(lowest, rank.kept.share));
  }

 private:
  // Whether a request that arrives could start before any other ends.
  static bool add_prompts(Rank& rank) {
    const EnginePolicy& policy = rank.run().policy;
    const std::int64_t mixed =
        policy.mixed_steps ? rank.decodes().count() * (1 + rank.run().shape.speculation.drafts) : 0;
    const bool cut = policy.chunked_prefill && policy.chunk > 0;
    std::int64_t left =
        (cut ? std::min(policy.chunk, policy.token_budget) : policy.token_budget) - mixed;
    for (std::size_t i = 0; i < rank.prefills().size() && left > 0; ++i) {
      const Slot& slot = rank.slot(rank.prefills()[i]);
      const std::int64_t tokens = std::min<std::int64_t>(slot.target - slot.computed, left);
      if (rank.extend(rank.prefills()[i], tokens)) left -= tokens;
    }
    if (rank.queue().empty() || rank.kept.full)
      return !rank.kept.full && rank.running() < policy.max_sequences;
    std::int64_t keep = reserved(rank);
    std::optional<KnownEnds> ends = known_ends(rank);
    while (!rank.queue().empty() && left > 0) {
      const Waiting front = rank.queue().front();
      const Request& request = rank.run().requests.requests[front.request];
      const std::int64_t more = new_tokens(rank, request, front.emitted);
      const std::int64_t beside = std::max<std::int64_t>(keep - rank.decodes().blocks_needed(1), 0);
      const std::int64_t prompt = std::int64_t{request.prompt} + front.emitted;
      if (ends) ends->add(known_end(rank, request, front.emitted));
      const std::int64_t free = rank.pool().available() * policy.block_tokens - prompt;
      std::int64_t planned = 0;
      const NotAdmitted refusal =
          ends && rank.running() > 0 && !ends->fit(free)
              ? NotAdmitted::blocks
              : rank.admit(left, ends ? prompt : prompt + more + 1, beside, planned);
      if (refusal == NotAdmitted::budget) break;
      if (refusal != NotAdmitted::none) {
        rank.kept.full = true;
        break;
      }
      left -= planned;
      keep += rank.blocks_for(more);
    }
    return !rank.kept.full && rank.running() < policy.max_sequences;
  }

  // Prompts that came from a tier may hold blocks that an earlier one needs: the last goes first.
  static void make_way(Rank& rank) {
    const std::uint32_t first = rank.prefills().front();
    const Slot& slot = rank.slot(first);
    const std::int64_t tokens =
        std::min<std::int64_t>(slot.target - slot.computed, rank.run().policy.token_budget);
    while (!rank.extend(first, tokens)) {
      const std::uint32_t last = rank.last();
      rank.preempt(last, false);
      if (last == first) return;
    }
  }

  // Takes requests back until the others have room for some steps.
  static bool retract(Rank& rank) {
    const NewTokenRatio& ratio = rank.run().policy.new_tokens;
    std::vector<std::uint32_t> order;
    for (std::uint32_t s = rank.last(); s != UnitMap::none; s = rank.slot(s).before)
      if (rank.slot(s).phase == Slot::Phase::decode) order.push_back(s);
    const auto request = [&](std::uint32_t s) -> const Request& {
      return rank.run().requests.requests[rank.slot(s).request];
    };
    // The last in this order goes first: the fewest tokens, of those the longest prompt.
    const auto key = [&](std::uint32_t s) {
      return std::tuple(-emitted(rank, s), request(s).prompt, rank.slot(s).serial);
    };
    std::sort(order.begin(), order.end(),
              [&](std::uint32_t a, std::uint32_t b) { return key(a) < key(b); });
    bool taken = false;
    while (!order.empty()) {
      const std::int64_t room =
          rank.pool().available() -
          rank.decodes().blocks_needed(std::max<std::int64_t>(ratio.retract_steps, 1));
      if (taken && (room >= 0 || (order.size() == 1 && rank.spare() >= 0))) break;
      rank.preempt(order.back(), false);
      order.pop_back();
      taken = true;
    }
    double spoken = 0, all = 0;
    for (const std::uint32_t s : order) {
      spoken += static_cast<double>(emitted(rank, s) + ratio.retract_steps);
      all += request(s).output;
    }
    if (all > 0)
      rank.kept.share =
          static_cast<std::int64_t>(std::min(spoken / all, 1.0) * static_cast<double>(whole));
    return true;
  }
};

}  // namespace

std::unique_ptr<Scheduler> make_sglang_scheduler() { return std::make_unique<SglangScheduler>(); }

}  // namespace orrery
