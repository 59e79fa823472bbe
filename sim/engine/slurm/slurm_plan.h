// SPDX-License-Identifier: Apache-2.0
// Holds what Slurm's backfill loop reserves: whole hosts over spans of time.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "sim/engine/slurm/tree_places.h"

namespace orrery {

// Spans one after the other, each with the hosts that are reserved in it. Times in seconds.
class SlurmPlan {
 public:
  SlurmPlan(std::int64_t begin, std::int64_t end, std::int32_t hosts);
  // Hosts that are reserved at some time from `start` to `end`, in `barred`; when the first of them
  // is freed.
  std::optional<std::int64_t> bar(std::int64_t start, std::int64_t end, HostWords& barred) const;
  bool is_free(const SlurmPlace& place, std::int64_t begin, std::int64_t end) const;
  void reserve(const SlurmPlace& place, std::int64_t begin, std::int64_t end);

 private:
  HostWordsView span(std::size_t i) const { return {&reserved_[i * words_], words_}; }
  std::size_t index_of(std::int64_t time) const;  // of the span that holds it
  std::size_t split(std::int64_t edge);
  void join(std::size_t from, std::size_t to);

  std::size_t words_;
  std::vector<std::int64_t> edges_;
  std::vector<std::uint64_t> reserved_;  // span by span
  std::vector<std::uint8_t> frees_;      // a host of the span is not reserved in the next one
};

}  // namespace orrery
