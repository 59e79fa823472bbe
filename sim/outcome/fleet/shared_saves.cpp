// SPDX-License-Identifier: Apache-2.0
// Takes the means of others from what a store takes.
#include "sim/outcome/fleet/shared_saves.h"

#include <algorithm>

namespace orrery {

std::vector<BytesPerSecond> save_rates(std::span<const StoreSaver> savers, BytesPerSecond store) {
  BytesPerSecond all;
  for (const StoreSaver& saver : savers) all += saver.mean;
  const BytesPerSecond part = store / static_cast<double>(std::max<std::size_t>(1, savers.size()));
  std::vector<BytesPerSecond> rates;
  for (const StoreSaver& saver : savers)
    rates.push_back(std::min(saver.most, std::max(part, store - (all - saver.mean))));
  return rates;
}

}  // namespace orrery
