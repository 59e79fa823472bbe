// SPDX-License-Identifier: Apache-2.0
// Knows a small job on a small fabric on which a collective runs exactly as on a large one.
#pragma once

#include <array>
#include <optional>

#include "sim/engine/collectives/collectives.h"
#include "sim/engine/flows/ground.h"

namespace orrery {

// Repetition costs nothing to simulate. On a healthy, sprayed Clos fabric
//   - blocks of groups that fill whole pods, again and again, share no link: one period stands for
//     all (any algorithm);
//   - a ring or a line of sends that steps no farther than a part of the fabric at some level sees
//     the same at all inner parts of that level: six in a row stand for any number, links and
//     uplinks of each kept as they are.
// Link loads, and so rates and times, are those of the large job to the bit; tests hold both sides
// against each other.
struct ShortJob {
  ClosShape shape;
  JobGround job;
  Collective collective;
  // Flows of the large job over those of the small one, by the highest layer that they pass.
  std::array<double, 5> layer_scale{1, 1, 1, 1, 1};
};
// nullopt where nothing repeats, and for scattered jobs: their domains are not under switches in
// equal steps.
std::optional<ShortJob> shorten(const Collective& collective, CollectiveAlgorithm algorithm,
                                const ClosShape& shape, const JobGround& job);

}  // namespace orrery
