// SPDX-License-Identifier: Apache-2.0
// Knows what jobs that compute and send in turns lose to each other on one link.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "sim/base/text/enum_names.h"

namespace orrery {

// A job on a link of capacity 1: it computes for (1 - busy) of its step, then sends for `busy` of
// it when it has the link alone, at the rate `load`. Or on the links of leaf switches over which
// its flows are hashed: `load` is a share of all links of a switch.
struct LinkUser {
  double step = 1;           // seconds, alone
  double busy = 0;           // 0 to 1
  double load = 1;           // above 0, at most 1
  double hidden = 0;         // of the link, in the mean: sent besides, and nobody waits for it
  std::int32_t uplinks = 0;  // of a switch; 0: not hashed
  std::int32_t paths = 1;    // queue pairs of a flow, each hashed by itself
  std::int32_t leaves = 1;   // switches that have flows of it

  auto operator<=>(const LinkUser&) const = default;
};

// How jobs meet. random: at any phases, the mean of 16. aligned: as they lose most, shifted: as
// they lose least (CASSINI, NSDI 2024, looks for such shifts). priority: at any phases, and the
// link serves whoever stands first in the list (Crux, SIGCOMM 2024, puts those first that compute
// most for what they send).
enum class LinkMeeting : std::uint8_t { random, aligned, shifted, priority };
inline constexpr auto link_meeting_text =
    enum_names<LinkMeeting>({"random", "aligned", "shifted", "priority"});

// How much longer the steps of each become, as shares of them. Nothing where all of them together
// never fill the link. Max-min shares of the link at every instant; up to `most_met` jobs are
// played out over 16 phases, of more each sees the others by their mean loads.
inline constexpr std::size_t most_met = 4;
std::vector<double> sharing_losses(std::span<const LinkUser> users, LinkMeeting how);

// The same by mean loads alone, for any number of jobs: what is left of the link while one sends,
// at least an equal part of it.
std::vector<double> mean_losses(std::span<const LinkUser> users);

// How many times as long hashed flows of a user take while those of `others` are on the leaves
// too: its worst link (topologies/routing/hashing.h) over the same without them. `others`: queue
// pairs on a leaf's links.
double hashed_slowdown(const LinkUser& user, double others);

}  // namespace orrery
