// SPDX-License-Identifier: Apache-2.0
// Steps a set of sequences in closed form: tokens, blocks and completions of n steps at once.
#include "sim/engine/serving/decode_set.h"

#include <algorithm>
#include <functional>

#include "sim/base/errors/check.h"

namespace orrery {

DecodeSet::DecodeSet(std::int64_t block_tokens, std::int64_t drafts)
    : block_tokens_(block_tokens),
      drafts_(drafts),
      phases_(static_cast<std::size_t>(block_tokens)) {}

std::int64_t DecodeSet::blocks(std::uint32_t slot) const {
  return drafts_ > 0 ? held_[slot] : blocks_for(cached(slot));
}

std::int64_t DecodeSet::lookahead(std::uint32_t slot) const {
  return std::max<std::int64_t>(blocks_for(cached(slot) + 1 + drafts_) - held_[slot], 0);
}

void DecodeSet::join(std::uint32_t slot, std::int64_t cached, std::int64_t remaining,
                     std::uint64_t serial) {
  CHECK_THAT(remaining > 0 && !has(slot), "a sequence joins that has nothing to emit, or twice");
  if (slot >= stamp_.size()) {
    const std::size_t slots = std::size_t{slot} + 1;
    offset_.resize(slots);
    finish_.resize(slots);
    stamp_.resize(slots);
    if (drafts_ > 0) {
      held_.resize(slots);
      place_.resize(slots);
    }
  }
  offset_[slot] = cached - steps_;
  finish_[slot] = steps_ + remaining;
  stamp_[slot] = serial + 1;
  ++count_;
  tokens_ += cached;
  blocks_ += blocks_for(cached);
  if (drafts_ > 0) {
    held_[slot] = blocks_for(cached);
    place_[slot] = static_cast<std::uint32_t>(members_.size());
    members_.push_back(slot);
    ahead_ += lookahead(slot);
    return;
  }
  ++phases_[phase(cached)];
  ends_.push_back({finish_[slot], stamp_[slot], slot});
  std::push_heap(ends_.begin(), ends_.end(), std::greater<>());
}

void DecodeSet::leave(std::uint32_t slot) {
  CHECK_THAT(has(slot), "a sequence leaves that is no member");
  --count_;
  tokens_ -= cached(slot);
  blocks_ -= blocks(slot);
  stamp_[slot] = 0;
  if (drafts_ == 0) {
    --phases_[phase(cached(slot))];
    return;
  }
  ahead_ -= lookahead(slot);
  members_[place_[slot]] = members_.back();
  place_[members_.back()] = place_[slot];
  members_.pop_back();
}

// A member with m tokens in its last block (block_tokens where it is full) needs one more block
// when m plus the steps beyond whole blocks exceed it.
std::int64_t DecodeSet::blocks_needed(std::int64_t steps) const {
  if (drafts_ > 0) return ahead_;
  const std::int64_t whole = steps / block_tokens_, rest = steps % block_tokens_;
  std::int64_t needed = whole * count_;
  std::size_t at = phase(block_tokens_ - rest + 1);
  for (std::int64_t i = 0; i < rest; ++i) {
    needed += phases_[at];
    if (++at == phases_.size()) at = 0;
  }
  return needed;
}

std::int64_t DecodeSet::steps_within(std::int64_t blocks, std::int64_t limit) const {
  if (drafts_ > 0) return ahead_ <= blocks ? std::min<std::int64_t>(limit, 1) : 0;
  if (count_ * (limit / block_tokens_ + 1) <= blocks || blocks_needed(limit) <= blocks)
    return limit;
  std::int64_t low = 0, high = limit;  // enough for `low`, not for `high`
  while (high - low > 1) {
    const std::int64_t middle = low + (high - low) / 2;
    (blocks_needed(middle) <= blocks ? low : high) = middle;
  }
  return low;
}

void DecodeSet::drop_stale() {
  while (!ends_.empty() && stamp_[ends_.front().slot] != ends_.front().stamp) {
    std::pop_heap(ends_.begin(), ends_.end(), std::greater<>());
    ends_.pop_back();
  }
}

std::int64_t DecodeSet::steps_to_finish() {
  if (drafts_ > 0) return 1;
  drop_stale();
  CHECK_THAT(!ends_.empty(), "a set without members has no end");
  return ends_.front().step - steps_;
}

void DecodeSet::advance(std::int64_t steps, std::vector<std::uint32_t>& finished) {
  CHECK_THAT(drafts_ == 0, "steps with drafts are drawn");
  blocks_ += blocks_needed(steps);
  steps_ += steps;
  tokens_ += steps * count_;
  for (drop_stale(); !ends_.empty() && ends_.front().step <= steps_; drop_stale()) {
    const std::uint32_t slot = ends_.front().slot;
    CHECK_THAT(ends_.front().step == steps_, "a step beyond the end of a sequence");
    std::pop_heap(ends_.begin(), ends_.end(), std::greater<>());
    ends_.pop_back();
    finished.push_back(slot);
    // The caller still asks for its tokens and blocks, which offset_ keeps.
    leave(slot);
  }
}

std::int64_t DecodeSet::advance_drawn(const std::vector<std::int64_t>& accepted,
                                      std::vector<std::uint32_t>& finished) {
  const std::size_t from = finished.size();
  std::int64_t emitted = 0;
  for (const std::uint32_t slot : members_) {
    const std::int64_t more = lookahead(slot);
    held_[slot] += more;
    blocks_ += more;
  }
  ++steps_;
  for (std::size_t i = 0; i < members_.size(); ++i) {
    const std::uint32_t slot = members_[i];
    const std::int64_t extra = std::min(accepted[i], remaining(slot));
    offset_[slot] += extra;
    finish_[slot] -= extra;
    emitted += 1 + extra;
    if (finish_[slot] == steps_) finished.push_back(slot);
  }
  tokens_ += emitted;
  ahead_ = 0;
  for (const std::uint32_t slot : members_) ahead_ += lookahead(slot);
  const auto begin = finished.begin() + static_cast<std::ptrdiff_t>(from);
  std::sort(begin, finished.end(),
            [this](std::uint32_t a, std::uint32_t b) { return stamp_[a] < stamp_[b]; });
  for (auto slot = begin; slot != finished.end(); ++slot) leave(*slot);
  return emitted;
}

}  // namespace orrery
