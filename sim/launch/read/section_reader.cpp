// SPDX-License-Identifier: Apache-2.0
// Counts data-parallel ranks and their batches.
#include "sim/launch/read/section_reader.h"

#include <fmt/format.h>

namespace orrery {

std::optional<std::int64_t> SectionReader::data_ranks() const {
  if (const auto dp = reading.size("dp")) return dp;
  const auto gpus = reading.size("gpus");
  const std::int64_t others =
      reading.size_or_one("tp") * reading.size_or_one("pp") * reading.size_or_one("cp");
  if (!gpus || *gpus % others != 0) return std::nullopt;
  return *gpus / others;
}

void SectionReader::batch_of_ranks(const Said* said, std::int64_t sequences) {
  if (reading.has("global_batch") || reading.asked().contains("global_batch")) return;
  const auto known = data_ranks();
  if (!known) {
    reading.missing("the global batch",
                    fmt::format("{} sequences on each data-parallel rank: how many there are "
                                "follows from gpus, which are not said",
                                sequences));
  } else if (said != nullptr) {
    reading.set(*said, "global_batch", *known * sequences);
  } else {
    reading.follow("global_batch", *known * sequences);
  }
}

}  // namespace orrery
