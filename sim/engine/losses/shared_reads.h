// SPDX-License-Identifier: Apache-2.0
// Shares what a store gives among those that read from it at a time.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <span>
#include <utility>
#include <vector>

#include "sim/engine/jobs/job_work.h"

namespace orrery {

// Max-min fair shares of `all`, none above its most, in whole units, each at least 1. They sum to
// at most `all`, if there are no more of them than units.
std::vector<std::int64_t> fair_shares(std::span<const std::int64_t> most, std::int64_t all);

// Fluids, exact in bytes times a millionth: a read of a known size runs at its share of the moment.
class SharedReads {
 public:
  explicit SharedReads(std::int64_t bytes_per_s) : all_(bytes_per_s) {}

  struct Read {
    std::uint32_t job = 0;
    StoreRead asked;
    FleetTime begin, end;  // end: as it is expected now
    __int128 left = 0;     // bytes times 10^6
    std::int64_t bytes_per_s = 0;
  };
  // From `at` on, which is not past. It takes the place of what the job asked for before.
  void ask(std::uint32_t job, FleetTime at, const StoreRead& read);
  void forget(std::uint32_t job);
  // The next begin or end; fleet_never: nobody reads.
  FleetTime next() const;
  // To a time that is not after next(); the reads that are over by then.
  std::vector<Read> pass_to(FleetTime now);
  // Shares it out anew, if somebody came or went; the reads whose ends moved.
  std::vector<Read> share();
  std::size_t reading() const { return reads_.size(); }
  template <class Visit>
  void each(const Visit& visit) const {  // that is under way
    for (const auto& [job, read] : reads_) visit(read);
  }

 private:
  using Instant = std::pair<FleetTime, std::uint32_t>;
  std::int64_t all_;
  FleetTime now_;
  bool changed_ = false;
  std::map<std::uint32_t, Read> reads_, later_;  // under way; not begun
  std::set<Instant> ends_, begins_;
};

}  // namespace orrery
