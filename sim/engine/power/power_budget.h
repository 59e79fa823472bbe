// SPDX-License-Identifier: Apache-2.0
// Holds what the jobs of a shared cluster draw under a limit, and who is capped how far.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "sim/base/text/enum_names.h"
#include "sim/engine/power/cap_curve.h"

namespace orrery {

// admit: no job starts that would pass the limit. proportional: all jobs are capped alike, at the
// same share of the range of their caps, as high as the limit lets them. priority: those of the
// lowest priority first, down to their least caps, then the next ones. A job starts under both if
// all have power at their least caps.
enum class PowerPolicy : std::uint8_t { admit, proportional, priority };
inline constexpr auto power_policy_text =
    enum_names<PowerPolicy>({"admit", "proportional", "priority"});

// In milliwatts, accelerators with their shares of hosts.
struct PowerRules {
  std::int64_t idle = 0;   // of an accelerator that nobody holds
  std::int64_t limit = 0;  // of all; 0: none
  std::int64_t gpus = 0;   // of the cluster
  PowerPolicy policy = PowerPolicy::admit;
  std::vector<std::int64_t> drawn = {};              // by kind of work, without a cap
  std::vector<std::optional<CapCurve>> curves = {};  // likewise; none: it cannot be capped
};

class PowerBudget {
 public:
  explicit PowerBudget(PowerRules rules);
  std::int64_t drawn() const { return drawn_; }  // by the whole cluster, capped as they are
  std::int64_t least() const { return least_; }  // likewise, if all were at their least caps
  bool is_over() const { return rules_.limit > 0 && drawn_ > rules_.limit; }
  // So much may be drawn by jobs at their least caps.
  bool has(std::int64_t milliwatts) const {
    return rules_.limit == 0 || milliwatts <= rules_.limit;
  }
  // A job that has the cluster for itself has power.
  bool has_alone(std::uint16_t work, std::int64_t gpus) const {
    return has(rules_.idle * rules_.gpus + extra(work, gpus));
  }
  // What such a job draws at its least cap more than its accelerators do idle.
  std::int64_t extra(std::uint16_t work, std::int64_t gpus) const {
    return (at(work, 0) - rules_.idle) * gpus;
  }

  // A job that begins is not capped until the next settle().
  void begin(std::uint32_t job, std::uint16_t work, std::int64_t gpus, std::int32_t priority);
  void end(std::uint32_t job, std::uint16_t work, std::int64_t gpus);
  // Caps all anew after what began and ended; jobs whose caps are others now, ascending.
  const std::vector<std::uint32_t>& settle();
  // Its steps over those without a cap.
  double slower(std::uint32_t job) const;

 private:
  // Jobs that are capped alike: of one kind, and with `priority` of one priority.
  struct Block {
    std::int64_t gpus = 0;
    std::int64_t level = cap_steps;
    std::set<std::uint32_t> jobs;
  };
  using BlockName = std::pair<std::int32_t, std::uint16_t>;  // priority, work
  std::int64_t at(std::uint16_t work, std::int64_t level) const;
  std::int64_t drawn_at(std::int32_t priority, std::int64_t level) const;
  void share_out();
  void raise(std::int32_t priority, std::int64_t& left);

  PowerRules rules_;
  bool caps_ = false, changed_ = false;
  std::int64_t drawn_ = 0, least_ = 0;
  std::map<BlockName, Block> blocks_;
  std::map<std::uint32_t, BlockName> running_;
  std::vector<std::uint32_t> fresh_, told_;  // that began since the last look; whose caps changed
};

}  // namespace orrery
