// SPDX-License-Identifier: Apache-2.0
// Reads off profiles how long stages of a pipeline wait for one another.
#include <algorithm>

#include "sim/diagnose/observed/observations.h"

namespace orrery {

// A receive of NCCL holds the device until the other stage has sent, so that a bubble is time in
// kernels of sends and receives. Rings of context parallelism have such kernels, too.
std::optional<double> exchanged_of(const std::vector<observe::Profile>& profiles,
                                   const Scenario& scenario) {
  if (scenario.layout.pp < 2 || scenario.layout.cp > 1 || profiles.empty()) return std::nullopt;
  const auto least =
      std::min_element(profiles.begin(), profiles.end(), [](const auto& a, const auto& b) {
        return a.mean.exposed_communication < b.mean.exposed_communication;
      });
  constexpr auto kind = static_cast<std::size_t>(CollectiveKind::send_receive);
  const double seconds = least->mean.by_collective[kind].si();
  return seconds > 0 ? std::optional(seconds) : std::nullopt;
}

}  // namespace orrery
