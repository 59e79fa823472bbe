// SPDX-License-Identifier: Apache-2.0
// Moves requests of a rank from its queue through prompts and decodes to their end.
#include "sim/engine/serving/rank.h"

#include <algorithm>
#include <limits>

#include "sim/base/errors/check.h"

namespace orrery {
namespace {

PoolShape pool_shape(const ServingRun& run) {
  PoolShape shape{.blocks = run.shape.blocks};
  const std::int64_t unit = run.requests.hash_tokens;
  if (!run.policy.prefix_cache || unit == 0) return shape;
  shape.unit_blocks = unit / run.policy.block_tokens;
  const double unit_bytes = run.shape.token.si() * static_cast<double>(unit);
  for (const CacheTier& tier : run.policy.tiers)
    shape.tier_units.push_back(
        unit_bytes > 0 ? static_cast<std::int64_t>(tier.capacity.si() / unit_bytes) : 0);
  return shape;
}

}  // namespace

Rank::Rank(const ServingRun& run, ServingLedger& ledger)
    : kept{static_cast<std::int64_t>(run.policy.new_tokens.initial * 0x1p40)},
      run_(run),
      ledger_(ledger),
      pool_(pool_shape(run)),
      decodes_(run.policy.block_tokens, run.shape.speculation.drafts),
      queue_(run.policy.priorities),
      unit_tokens_(pool_.unit_blocks() * run.policy.block_tokens) {}

std::int64_t Rank::blocks_for(std::int64_t tokens) const {
  return (tokens + run_.policy.block_tokens - 1) / run_.policy.block_tokens;
}

std::int64_t Rank::watermark() const {
  return static_cast<std::int64_t>(run_.policy.watermark * static_cast<double>(pool_.blocks()));
}

bool Rank::fits(const Request& r) const {
  const EnginePolicy& policy = run_.policy;
  const std::int64_t tokens = std::int64_t{r.prompt} + outputs(r);
  if (run_.shape.longest > 0 && std::int64_t{r.prompt} + r.output > run_.shape.longest)
    return false;
  // A request that may be preempted is computed again with what it has emitted.
  const bool stays =
      policy.scheduler == SchedulerKind::trtllm && policy.capacity == CapacityPolicy::no_evict;
  const std::int64_t at_once = stays ? std::int64_t{r.prompt} : tokens;
  if (!policy.chunked_prefill && at_once > policy.token_budget) return false;
  // SGLang wants a token more than there are (srt/managers/schedule_policy.py: total < remaining).
  return blocks_for(most_tokens(r) + 2) + own_blocks(r) + watermark() <= pool_.blocks();
}

std::size_t Rank::level(const Waiting& waiting) const {
  return queue_.level(run_.requests.requests[waiting.request].class_index);
}

void Rank::arrived(Ticks now, const Waiting& waiting) {
  queued_gauge_.change(now, 1);
  ledger_.records[waiting.request].state = RequestState::queued;
}

bool Rank::matters(const Waiting& waiting, bool open) const {
  const bool first = !queue_.empty() && level(waiting) < queue_.first_level();
  return open || (first && running_ < run_.policy.max_sequences);
}

void Rank::enqueue(const Waiting& waiting) { queue_.push_back(level(waiting), waiting); }

std::uint32_t Rank::new_slot(const Waiting& waiting) {
  std::uint32_t s = static_cast<std::uint32_t>(slots_.size());
  if (free_slots_.empty()) {
    slots_.emplace_back();
  } else {
    s = free_slots_.back();
    free_slots_.pop_back();
  }
  const Request& request = run_.requests.requests[waiting.request];
  slots_[s] = {.request = waiting.request,
               .emitted = waiting.emitted,
               .target = request.prompt + waiting.emitted,
               .before = last_,
               .serial = serial_++};
  if (last_ != UnitMap::none) slots_[last_].behind = s;
  last_ = s;
  ++running_;
  full_ += blocks_for(most_tokens(request));
  return s;
}

void Rank::unlink(std::uint32_t s) {
  Slot& slot = slots_[s];
  if (slot.before != UnitMap::none) slots_[slot.before].behind = slot.behind;
  (slot.behind == UnitMap::none ? last_ : slots_[slot.behind].before) = slot.before;
  const Request& request = run_.requests.requests[slot.request];
  full_ -= blocks_for(most_tokens(request));
  slot.phase = Slot::Phase::none;
  kept.full = false;
  free_slots_.push_back(s);
  --running_;
}

void Rank::begin_plan(Ticks now) {
  now_ = now;
  plan_.shape.chunks.clear();
  plan_.parts.clear();
  plan_.taken = 0;
  plan_.evictable = false;
  plan_.shape.sampled = 0;
  link_free_ = max(link_free_, now);
  if (loading_.empty()) return;
  std::erase_if(loading_, [&](std::uint32_t s) {
    Slot& slot = slots_[s];
    if (slot.ready > now) return false;
    if (slot.emitted > 0 && slot.target - slot.computed == 1) {
      ++ledger_.totals.restored;
      join(s, ledger_.records[slot.request].last);
    } else {
      slot.phase = Slot::Phase::prefill;
      // In the order of admission: who makes room is behind all that were planned.
      prefills_.insert(
          std::find_if(prefills_.begin(), prefills_.end(),
                       [&](std::uint32_t o) { return slots_[o].serial > slot.serial; }),
          s);
    }
    return true;
  });
}

Ticks Rank::load_time(const PoolMatch& match, std::int64_t swapped) const {
  double seconds = 0;
  const double token = run_.shape.token.si();
  for (std::size_t tier = 1; tier <= run_.policy.tiers.size() && tier < most_tiers; ++tier)
    seconds += static_cast<double>(match.in_tier[tier] * unit_tokens_) * token /
               run_.policy.tiers[tier - 1].bandwidth.si();
  if (swapped > 0)
    seconds += static_cast<double>(swapped) * token / run_.policy.tiers.front().bandwidth.si();
  return to_ticks(Seconds(seconds));
}

NotAdmitted Rank::admit(std::int64_t limit, std::int64_t reserve, std::int64_t keep_free,
                        std::int64_t& planned) {
  if (running_ >= run_.policy.max_sequences) return NotAdmitted::sequences;
  const Waiting waiting = queue_.front();
  const Request& request = run_.requests.requests[waiting.request];
  const std::int64_t target = std::int64_t{request.prompt} + waiting.emitted;
  std::span<const std::uint32_t> text;
  PoolMatch match;
  if (unit_tokens_ > 0 && waiting.saved == 0) {
    // The last token is computed always: its row gives the next one.
    text = run_.requests.hashes_of(request);
    const auto whole = static_cast<std::size_t>((target - 1) / unit_tokens_);
    text = text.first(std::min(whole, text.size()));
    match = pool_.match(text);
  }
  const std::int64_t found = waiting.saved > 0 ? waiting.saved : match.units * unit_tokens_;
  const std::int64_t left = target - found;
  const bool decodes = waiting.emitted > 0 && left == 1;
  if (!run_.policy.chunked_prefill && left > limit) return NotAdmitted::budget;
  planned = std::min(left, limit);
  const std::int64_t ahead = decodes ? run_.shape.speculation.drafts : 0;
  const std::int64_t wanted = blocks_for(std::max(reserve, found + planned + ahead));
  const std::int64_t others = own_blocks(request) + keep_free;
  if (wanted + (match.idle - match.in_tier[0]) * pool_.unit_blocks() + others > spare()) {
    // With less of its text cached it needs fewer blocks at first.
    plan_.evictable = match.idle > 0 || match.below() > 0;
    return NotAdmitted::blocks;
  }

  queue_.pop();
  if (waiting.saved == 0 && !text.empty())
    pool_.hold(text.first(static_cast<std::size_t>(match.units)));
  start(waiting, match, found, planned);
  return NotAdmitted::none;
}

// Of a request that was taken off the queue and holds what was found of its text.
void Rank::start(const Waiting& waiting, const PoolMatch& match, std::int64_t found,
                 std::int64_t& planned) {
  const bool swapped = waiting.saved > 0 && !waiting.foreign;
  const std::uint32_t s = new_slot(waiting);
  Slot& slot = slots_[s];
  slot.own = own_blocks(run_.requests.requests[waiting.request]);
  RequestRecord& record = ledger_.records[waiting.request];
  ServiceTotals& totals = ledger_.totals;
  queued_gauge_.change(now_, -1);
  running_gauge_.change(now_, 1);
  totals.waited += (now_ - waiting.since).ps;
  if (waiting.foreign) totals.waited_there += (now_ - waiting.since).ps;
  record.state = RequestState::running;
  slot.units = static_cast<std::int32_t>(match.units);
  slot.computed = static_cast<std::int32_t>(found);
  const bool first = record.preemptions == 0 && !waiting.foreign;
  if (first) {
    record.scheduled = now_;
    record.cached = slot.computed;
    totals.prompts += slot.target;
    totals.cached += found;
    totals.from_tiers += match.below() * unit_tokens_;
  } else if (!waiting.foreign) {
    (swapped ? totals.restored : totals.found_again) += found;
  }
  const Ticks load = match.below() > 0 || swapped ? load_time(match, swapped ? found : 0) : Ticks{};
  const bool decodes = slot.emitted > 0 && slot.target - slot.computed == 1;
  const bool now = load == Ticks{};
  slot.blocks = blocks_for(found + (now && !decodes ? planned : 0));
  pool_.take(slot.blocks + slot.own - slot.units * pool_.unit_blocks());
  held_ += slot.blocks;
  if (!now) {
    link_free_ += load;
    slot.ready = link_free_;
    slot.phase = Slot::Phase::loading;
    loading_.push_back(s);
    planned = 0;
    return;
  }
  if (decodes) {
    // A resumed one's last token is decoded again, not computed with its prompt.
    totals.restored += waiting.foreign ? 0 : 1;
    // The engine that decodes hands out the first token too, once it has room for the request; that
    // of our own small engine comes from where its prompt was.
    const bool speaks = run_.policy.scheduler != SchedulerKind::simple;
    if (waiting.foreign && speaks) record.first = record.last = now_;
    join(s, record.last);
    return;
  }
  slot.phase = Slot::Phase::prefill;
  prefills_.push_back(s);
  plan_.shape.chunks.push_back({slot.computed, planned});
  plan_.parts.push_back({s, planned});
}

bool Rank::extend(std::uint32_t s, std::int64_t tokens) {
  Slot& slot = slots_[s];
  const std::int64_t more =
      std::max<std::int64_t>(blocks_for(slot.computed + tokens) - slot.blocks, 0);
  if (more > spare()) return false;
  pool_.take(more);
  slot.blocks += more;
  held_ += more;
  plan_.shape.chunks.push_back({slot.computed, tokens});
  plan_.parts.push_back({s, tokens});
  return true;
}

RankPlan& Rank::end_plan(bool made_room, bool open, bool with_decodes) {
  StepShape& shape = plan_.shape;
  shape.decodes = with_decodes ? decodes_.count() : 0;
  shape.contexts = with_decodes ? decodes_.tokens() + decodes_.count() : 0;
  shape.drafts = shape.decodes > 0 ? run_.shape.speculation.drafts : 0;
  shape.sampled = shape.decodes;
  for (const RankPlan::Part& part : plan_.parts) {
    const Slot& slot = slots_[part.slot];
    shape.sampled += slot.computed + part.tokens == slot.target ? 1 : 0;
  }
  plan_.open = open;
  plan_.most_steps = shape.decodes > 0 || !plan_.parts.empty() ? 1 : 0;
  if (shape.decodes == 0) return plan_;
  plan_.taken = decodes_.blocks_needed(1);
  CHECK_THAT(plan_.taken <= pool_.available(), "a scheduler left the decodes no blocks");
  if (run_.leaps && plan_.parts.empty() && prefills_.empty() && !made_room && shape.drafts == 0 &&
      (!open || queue_.empty())) {
    plan_.most_steps = decodes_.steps_within(pool_.available(), decodes_.steps_to_finish());
    if (plan_.evictable)
      plan_.most_steps =
          std::max<std::int64_t>(decodes_.steps_within(pool_.free(), plan_.most_steps), 1);
  }
  pool_.take(plan_.taken);
  return plan_;
}

// The work of a request on its way out becomes free; what is shared stays cached.
void Rank::free_blocks(const Slot& slot, std::int64_t blocks) {
  pool_.give_back(blocks + slot.own - slot.units * pool_.unit_blocks());
  if (slot.units == 0) return;
  const auto text = run_.requests.hashes_of(run_.requests.requests[slot.request]);
  pool_.release(text.first(static_cast<std::size_t>(slot.units)));
}

void Rank::keep_units(Slot& slot, std::int64_t computed) {
  if (unit_tokens_ == 0) return;
  const auto text = run_.requests.hashes_of(run_.requests.requests[slot.request]);
  const std::int64_t whole =
      std::min(computed / unit_tokens_, static_cast<std::int64_t>(text.size()));
  for (; slot.units < whole; ++slot.units) pool_.keep(text[static_cast<std::size_t>(slot.units)]);
}

// When a member of the decodes emitted its last token.
Ticks Rank::last_word(const Slot& slot) const {
  return slot.joined == decodes_.steps() ? slot.spoke : spoke_;
}

void Rank::forget_fresh(const Slot& slot) {
  if (slot.joined != decodes_.steps()) return;
  const auto group = std::find_if(fresh_.begin(), fresh_.end(),
                                  [&](const auto& g) { return g.first == slot.spoke; });
  if (group != fresh_.end() && slot.spoke != spoke_) --group->second;
}

void Rank::preempt(std::uint32_t s, bool to_front) {
  Slot& slot = slots_[s];
  const Request& request = run_.requests.requests[slot.request];
  RequestRecord& record = ledger_.records[slot.request];
  Waiting back{.request = slot.request, .emitted = slot.emitted, .since = now_};
  if (slot.phase == Slot::Phase::decode) {
    back.emitted = request.output - static_cast<std::int32_t>(decodes_.remaining(s));
    record.last = last_word(slot);
    if (run_.policy.preemption == Preemption::swap && !run_.policy.tiers.empty())
      back.saved = static_cast<std::int32_t>(decodes_.cached(s));
    forget_fresh(slot);
    free_blocks(slot, decodes_.blocks(s));
    decodes_.leave(s);
    ledger_.totals.recomputed += std::int64_t{request.prompt} + back.emitted;
  } else {
    ledger_.totals.recomputed += slot.computed;
    free_blocks(slot, slot.blocks);
    held_ -= slot.blocks;
    std::erase(slot.phase == Slot::Phase::prefill ? prefills_ : loading_, s);
  }
  ++record.preemptions;
  ++ledger_.totals.preemptions;
  record.state = RequestState::queued;
  unlink(s);
  const std::size_t level = queue_.level(request.class_index);
  to_front ? queue_.push_front(level, back) : queue_.push_back(level, back);
  queued_gauge_.change(now_, 1);
  running_gauge_.change(now_, -1);
}

// A sequence whose prompt is done, and which emitted its last token at `spoke`.
void Rank::join(std::uint32_t s, Ticks spoke) {
  Slot& slot = slots_[s];
  const Request& request = run_.requests.requests[slot.request];
  held_ -= slot.blocks;
  slot.phase = Slot::Phase::decode;
  slot.spoke = spoke;
  slot.joined = decodes_.steps();
  if (decodes_.count() == 0) {
    fresh_.clear();
    spoke_ = spoke;
  } else if (spoke != spoke_) {
    if (fresh_.empty() || fresh_.back().first != spoke) fresh_.emplace_back(spoke, 0);
    ++fresh_.back().second;
  }
  const std::int64_t cached =
      slot.computed == slot.target ? slot.target : slot.target - 1;  // without its last token
  decodes_.join(s, cached, request.output - slot.emitted, slot.serial);
}

// The prompt of a request is done: it emits a token.
void Rank::speak(std::uint32_t s, Ticks now, std::vector<std::uint32_t>& ended) {
  Slot& slot = slots_[s];
  const Request& request = run_.requests.requests[slot.request];
  RequestRecord& record = ledger_.records[slot.request];
  std::erase(prefills_, s);
  if (slot.emitted == 0) {
    record.first = now;
    scratch_.first_words.push_back(slot.request);
  } else {
    ledger_.gaps.add(now - record.last, 1);
  }
  record.last = now;
  ++slot.emitted;
  const bool more = slot.emitted < request.output;
  const bool dropped = run_.shape.prefill_only && more && run_.policy.first_token_anew;
  ledger_.totals.emitted += dropped ? 0 : 1;
  if (more && !run_.shape.prefill_only) {
    join(s, now);
    return;
  }
  held_ -= slot.blocks;
  if (more)
    sending_.push_back(slot);
  else
    free_blocks(slot, slot.blocks);
  finish(s, now, ended);
}

void Rank::delay_first_tokens(Ticks by) {
  for (const std::uint32_t request : scratch_.first_words) ledger_.records[request].first += by;
  ledger_.totals.read_late -= static_cast<std::int64_t>(scratch_.first_words.size()) * by.ps;
  scratch_.first_words.clear();
}

bool Rank::sent(std::uint32_t request) {
  const auto slot = std::find_if(sending_.begin(), sending_.end(),
                                 [&](const Slot& one) { return one.request == request; });
  if (slot == sending_.end()) return false;
  free_blocks(*slot, slot->blocks);
  sending_.erase(slot);
  kept.full = false;
  return true;
}

void Rank::finish(std::uint32_t s, Ticks now, std::vector<std::uint32_t>& ended) {
  const std::uint32_t request = slots_[s].request;
  ledger_.records[request].last = now;
  unlink(s);
  running_gauge_.change(now, -1);
  ended.push_back(request);
}

void Rank::count_gaps(const StepRun& made) {
  const Ticks spoken = made.after(1);
  std::int64_t old = decodes_.count();
  for (const auto& [since, members] : fresh_) {
    ledger_.gaps.add(spoken - since, members);
    old -= members;
  }
  fresh_.clear();
  ledger_.gaps.add(spoken - spoke_, old);
  ledger_.gaps.add_series(made.first + made.slope, made.slope, made.steps - 1, decodes_.count());
  spoke_ = made.end();
}

void Rank::settle_decodes(const StepRun& made, std::vector<std::uint32_t>& ended) {
  const std::int64_t members = decodes_.count();
  ServiceTotals& totals = ledger_.totals;
  count_gaps(made);
  totals.sequences += members * made.steps;
  scratch_.finished.clear();
  if (run_.shape.speculation.drafts == 0) {
    pool_.take(decodes_.blocks_needed(made.steps) - plan_.taken);
    decodes_.advance(made.steps, scratch_.finished);
    totals.emitted += members * made.steps;
  } else {
    const std::vector<double>& survival = run_.shape.speculation.survival;
    scratch_.accepted.clear();
    for (const std::uint32_t s : decodes_.members()) {
      // The draw of a request's token stays the same whatever else is in the batch.
      const RandomStream stream(run_.seed, slots_[s].request);
      const double u = static_cast<double>(
                           stream.bits(static_cast<std::uint64_t>(decodes_.remaining(s))) >> 11U) *
                       0x1.0p-53;
      std::int64_t accepted = 0;
      while (accepted < static_cast<std::int64_t>(survival.size()) &&
             u < survival[static_cast<std::size_t>(accepted)])
        ++accepted;
      scratch_.accepted.push_back(accepted);
    }
    const std::int64_t emitted = decodes_.advance_drawn(scratch_.accepted, scratch_.finished);
    totals.emitted += emitted;
    totals.drafted += members * run_.shape.speculation.drafts;
    totals.accepted += emitted - members;
    ledger_.gaps.add(Ticks{}, emitted - members);  // they come together
  }
  for (const std::uint32_t s : scratch_.finished) {
    // Its last token has no keys and values; a later turn finds the rest.
    Slot& slot = slots_[s];
    keep_units(slot, decodes_.cached(s));
    free_blocks(slot, decodes_.blocks(s));
    finish(s, made.end(), ended);
  }
}

void Rank::settle(const StepRun& made, std::vector<std::uint32_t>& ended) {
  scratch_.first_words.clear();
  if (plan_.shape.decodes > 0) settle_decodes(made, ended);
  for (const RankPlan::Part& part : plan_.parts) {
    Slot& slot = slots_[part.slot];
    slot.computed += static_cast<std::int32_t>(part.tokens);
    ledger_.totals.prefilled += part.tokens;
    keep_units(slot, slot.computed);
    if (slot.computed < slot.target) continue;
    ++ledger_.totals.sequences;
    speak(part.slot, made.end(), ended);
  }
  plan_.parts.clear();
  plan_.most_steps = 0;
  plan_.open = true;
}

Ticks Rank::next_ready() const {
  Ticks next{std::numeric_limits<std::int64_t>::max()};
  for (const std::uint32_t s : loading_) next = min(next, slots_[s].ready);
  return next;
}

void Rank::close(Ticks now) {
  queued_gauge_.change(now, 0);
  running_gauge_.change(now, 0);
  ledger_.totals.queued_time += queued_gauge_.area;
  ledger_.totals.running_time += running_gauge_.area;
}

bool Rank::consistent() const {
  return pool_.consistent() && full_ >= 0 && held_ >= 0 && running_ >= 0;
}

}  // namespace orrery
