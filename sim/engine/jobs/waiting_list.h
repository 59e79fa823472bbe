// SPDX-License-Identifier: Apache-2.0
// Holds waiting jobs in their order, by the number of accelerators that they ask for.
#pragma once

#include <cstddef>
#include <cstdint>
#include <unordered_map>
#include <vector>

#include "sim/base/units/fleet_time.h"
#include "sim/engine/jobs/policy.h"

namespace orrery {

struct WaitingJob {
  std::int64_t key = 0;   // least first; of equals the least turn, then the lower place in the list
  std::int64_t turn = 0;  // 0 for all where nobody goes behind others
  std::uint32_t job = 0;  // its place in the list
  std::int32_t gpus = 0;
  FleetTime limit;
  std::int32_t within = no_level;  // one group of that level
  std::int32_t milli = 0;          // thousandths of one accelerator, which it shares; 0: whole ones
};
// Whether a is before b.
bool is_before(const WaitingJob& a, const WaitingJob& b);

// Waiting jobs of one size and level, in order. Jobs that come in order cost a constant; one that
// goes between others moves those behind it.
class SizeQueue {
 public:
  explicit SizeQueue(std::int32_t gpus, std::int32_t milli = 0) : gpus_(gpus), milli_(milli) {}
  static constexpr std::size_t none = SIZE_MAX;

  std::int32_t gpus() const { return gpus_; }
  std::int32_t milli() const { return milli_; }
  bool empty() const { return live_ == 0; }
  std::size_t head() const { return head_; }
  const WaitingJob& at(std::size_t place) const { return entries_[place]; }
  void insert(const WaitingJob& job);
  // Places hold until something is inserted.
  void erase(std::size_t place);
  // The first job from `from` on, and the first of those with a limit of at most `window`.
  std::size_t next(std::size_t from) const;
  // The first place that is behind `job` in the order.
  std::size_t after(const WaitingJob& job) const;
  std::size_t next_within(std::size_t from, FleetTime window);

 private:
  void compact();
  void build();
  void renew(std::size_t place);

  std::int32_t gpus_, milli_;
  std::vector<WaitingJob> entries_;  // those that left have gpus 0
  std::size_t head_ = 0, live_ = 0;
  // The least limit of a binary tree over `leaves_` places: [1] is the root. Built when it is asked
  // for.
  std::vector<FleetTime> least_;
  std::size_t leaves_ = 0;
};

// All of them. What a cluster decides for one job it decides for all of its size, so that a pass
// over the list costs a step for each size and not for each job.
class WaitingList {
 public:
  bool empty() const { return live_ == 0; }
  std::size_t size() const { return live_; }
  std::size_t most() const { return most_; }  // that were in it at a time
  void insert(const WaitingJob& job);
  // Those that have jobs, in no order.
  const std::vector<std::uint32_t>& active() const { return active_; }
  SizeQueue& queue(std::uint32_t number) { return queues_[number]; }
  const WaitingJob& head() const { return queues_[first_].at(queues_[first_].head()); }
  void pop_head() { erase(first_, queues_[first_].head()); }
  void erase(std::uint32_t number, std::size_t place);
  // Takes out one that is in it.
  void take(const WaitingJob& job);

 private:
  void find_first();
  std::vector<SizeQueue> queues_;
  std::unordered_map<std::int64_t, std::uint32_t> numbers_;  // by accelerators, part and level
  std::vector<std::uint32_t> active_;
  std::uint32_t first_ = 0;  // the queue whose head is the head of all
  std::size_t live_ = 0, most_ = 0;
};

}  // namespace orrery
