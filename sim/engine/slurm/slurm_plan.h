// SPDX-License-Identifier: Apache-2.0
// Holds what Slurm's backfill loop reserves: whole hosts over spans of time.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

namespace orrery {

// A set of hosts by their numbers.
using HostFlags = std::vector<std::uint8_t>;

// Spans one after the other, each with the hosts that are reserved in it. Times in seconds.
class SlurmPlan {
 public:
  SlurmPlan(std::int64_t begin, std::int64_t end, std::int32_t hosts);
  struct Barred {
    HostFlags hosts;                    // reserved at some time of it
    std::optional<std::int64_t> later;  // when the first of them is freed
  };
  Barred barred(std::int64_t start, std::int64_t end) const;
  bool is_free(const std::vector<std::int32_t>& hosts, std::int64_t begin, std::int64_t end) const;
  void reserve(const std::vector<std::int32_t>& hosts, std::int64_t begin, std::int64_t end);

 private:
  void split(std::int64_t edge);

  std::vector<std::int64_t> edges_;
  std::vector<HostFlags> reserved_;
};

}  // namespace orrery
