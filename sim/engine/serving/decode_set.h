// SPDX-License-Identifier: Apache-2.0
// Holds the sequences that get a token in each step, without touching each of them in each step.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "sim/base/random.h"

namespace orrery {

// Draft tokens of a step, and how likely at least the first j + 1 of them are accepted.
struct Speculation {
  std::int64_t drafts = 0;
  std::vector<double> survival;  // by j, falling; drafts numbers
};

// All members step together. A member's tokens in the cache are its offset plus the steps of the
// set, so that a step costs nothing, n steps cost as much as one, and a completion O(log members).
// With drafts members advance by what was accepted of each, one by one.
class DecodeSet {
 public:
  DecodeSet(std::int64_t block_tokens, std::int64_t drafts);

  // A sequence with `cached` tokens in its blocks that still has `remaining` tokens to emit. Serial
  // numbers break ties. The set grows to the largest slot that joined.
  void join(std::uint32_t slot, std::int64_t cached, std::int64_t remaining, std::uint64_t serial);
  void leave(std::uint32_t slot);

  std::int64_t count() const { return count_; }
  std::int64_t tokens() const { return tokens_; }  // in the cache, of all members
  std::int64_t steps() const { return steps_; }    // that the set has made
  std::int64_t blocks() const { return blocks_; }  // of all members
  std::int64_t cached(std::uint32_t slot) const { return offset_[slot] + steps_; }
  std::int64_t remaining(std::uint32_t slot) const { return finish_[slot] - steps_; }
  std::int64_t blocks(std::uint32_t slot) const;
  bool has(std::uint32_t slot) const { return slot < stamp_.size() && stamp_[slot] != 0; }

  // More blocks for so many steps (one, with drafts).
  std::int64_t blocks_needed(std::int64_t steps) const;
  // The most steps, up to `limit`, that need no more than `blocks`.
  std::int64_t steps_within(std::int64_t blocks, std::int64_t limit) const;
  // Until the first member ends: one with drafts. There is a member.
  std::int64_t steps_to_finish();
  // Members that ended leave; they are appended in the order of their serial numbers.
  void advance(std::int64_t steps, std::vector<std::uint32_t>& finished);

  // With drafts: the members, and a step in which each emits so many tokens beside its own. Returns
  // the tokens emitted, none beyond a member's last.
  const std::vector<std::uint32_t>& members() const { return members_; }
  std::int64_t advance_drawn(const std::vector<std::int64_t>& accepted,
                             std::vector<std::uint32_t>& finished);

 private:
  struct Finish {
    std::int64_t step;
    std::uint64_t stamp;
    std::uint32_t slot;
    bool operator>(const Finish& o) const {
      return step != o.step ? step > o.step : stamp > o.stamp;
    }
  };
  std::int64_t blocks_for(std::int64_t tokens) const {
    return (tokens + block_tokens_ - 1) / block_tokens_;
  }
  // Members by their tokens in their last block, as if the set had made no steps.
  std::size_t phase(std::int64_t cached) const {
    const std::int64_t rest = (cached - steps_) % block_tokens_;
    return static_cast<std::size_t>(rest < 0 ? rest + block_tokens_ : rest);
  }
  std::int64_t lookahead(std::uint32_t slot) const;  // blocks that a step with drafts adds
  void drop_stale();

  std::int64_t block_tokens_, drafts_;
  std::int64_t count_ = 0, tokens_ = 0, steps_ = 0, blocks_ = 0, ahead_ = 0;
  std::vector<std::int64_t> offset_, finish_, held_, phases_;
  std::vector<std::uint64_t> stamp_;  // by slot, its member's serial number plus one; 0: no member
  std::vector<Finish> ends_;          // a heap, with entries of members that left
  std::vector<std::uint32_t> members_, place_;  // with drafts
};

}  // namespace orrery
