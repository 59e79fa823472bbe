// SPDX-License-Identifier: Apache-2.0
// Knows the patterns of traffic that a study offers: which domains send to which.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace orrery {

// Every accelerator of every domain sends, all of them at once and at the NIC's rate, always to its
// own position in other domains: collectives are rail-aligned (NCCL's PXN), a message for another
// position changes rails over the scale-up links. So traffic of a rail stays on its rail.
//   ring: to the next domain, the last to the first
//   crossing_ring: to the domain one leaf group further on, so that all traffic passes the spines
//     (a last group that is not full may keep some)
//   all_to_all: to every other domain of a group of neighbours, all at once and equally
//   spread_all_to_all: the same, the domains of a group as far apart as equal steps allow
//   all_to_all_all: among all domains by rounds; in one everyone sends as many domains further on.
//     A study draws rounds at random; times of rounds add up.
enum class TrafficPattern : std::uint8_t {
  ring,
  crossing_ring,
  all_to_all,
  spread_all_to_all,
  all_to_all_all,
};
std::string_view to_text(TrafficPattern);
std::optional<TrafficPattern> traffic_pattern_from(std::string_view);
std::vector<std::string> traffic_pattern_names();

// Which domains send to which.
class Senders {
 public:
  Senders(TrafficPattern pattern, std::int64_t domains, std::int64_t leaf_step, std::int64_t group)
      : pattern_(pattern), domains_(domains), step_(leaf_step), group_(group) {
    grouped_ =
        pattern == TrafficPattern::all_to_all || pattern == TrafficPattern::spread_all_to_all;
    groups_ = grouped_ ? domains / group : 1;
    if (step_ >= domains) step_ = 1;
  }
  std::int64_t domains() const { return grouped_ ? groups_ * group_ : domains_; }
  std::int64_t peers() const { return grouped_ ? group_ - 1 : 1; }
  // `shift`: of this round of all_to_all_all, 1 to domains - 1.
  std::int64_t peer(std::int64_t from, std::int64_t i, std::int64_t shift) const {
    const auto other = [&](std::int64_t member) { return i < member ? i : i + 1; };
    switch (pattern_) {
      case TrafficPattern::ring:
        return (from + 1) % domains_;
      case TrafficPattern::crossing_ring:
        return (from + step_) % domains_;
      case TrafficPattern::all_to_all:
        return from / group_ * group_ + other(from % group_);
      case TrafficPattern::spread_all_to_all:
        return from % groups_ + groups_ * other(from / groups_);
      case TrafficPattern::all_to_all_all:
        return (from + shift) % domains_;
    }
    return from;
  }

 private:
  TrafficPattern pattern_;
  std::int64_t domains_, step_, group_, groups_ = 1;
  bool grouped_ = false;
};

}  // namespace orrery
