// SPDX-License-Identifier: Apache-2.0
// Holds what the jobs of a shared cluster draw under a limit, and who is capped how far.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "sim/base/text/enum_names.h"
#include "sim/engine/power/cap_curve.h"
#include "sim/engine/power/power_thresholds.h"

namespace orrery {

// admit: no job starts that would pass the limit. proportional: all jobs are capped alike, at the
// same share of the range of their caps, as high as the limit lets them. priority: those of the
// lowest priority first, down to their least caps, then the next ones. thresholds: clocks fall in
// steps as a share of the limit is passed (PowerThresholds). A job starts under these if all have
// power at their least caps, or lowest clocks.
enum class PowerPolicy : std::uint8_t { admit, proportional, priority, thresholds };
inline constexpr auto power_policy_text =
    enum_names<PowerPolicy>({"admit", "proportional", "priority", "thresholds"});

// In milliwatts, accelerators with their shares of hosts.
struct PowerRules {
  std::int64_t idle = 0;   // of an accelerator that nobody holds
  std::int64_t limit = 0;  // of all; 0: none
  std::int64_t most = 0;   // the highest that it will be; 0: it stays
  std::int64_t gpus = 0;   // of the cluster
  PowerPolicy policy = PowerPolicy::admit;
  bool feeds = false;                    // single feeds have limits, and cap jobs by set_ceiling()
  std::vector<std::int64_t> drawn = {};  // by kind of work, without a cap
  std::vector<std::optional<CapCurve>> curves = {};  // likewise; none: it cannot be capped
  PowerThresholds thresholds = {};
};

// By which jobs draw, and are capped.
struct PowerUser {
  std::uint16_t work = 0;
  std::int32_t priority = 0;
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
  // A job that has the cluster for itself has power, at some time.
  bool has_alone(PowerUser user, std::int64_t gpus) const { return has_alone(extra(user, gpus)); }
  bool has_alone(std::int64_t above_idle) const {
    const std::int64_t alone = rules_.idle * rules_.gpus + above_idle;
    return has(alone) || alone <= rules_.most;
  }
  // From now on; there was one before. Caps are others from the next settle() on.
  void set_limit(std::int64_t milliwatts) {
    rules_.limit = milliwatts;
    changed_ = caps_;
  }
  // What such a job draws at its least cap more than its accelerators do idle.
  std::int64_t extra(PowerUser user, std::int64_t gpus) const {
    return (at(user.work, least_level(rank_of(user.priority))) - rules_.idle) * gpus;
  }

  // Accelerators that the limit carries if each draws so much more than idle.
  std::int64_t most_gpus(std::int64_t each) const {
    if (rules_.limit == 0 || each <= 0) return rules_.gpus;
    return std::clamp<std::int64_t>((rules_.limit - rules_.idle * rules_.gpus) / each, 0,
                                    rules_.gpus);
  }
  std::int64_t idle() const { return rules_.idle; }
  bool is_open() const { return rules_.limit == 0 && !rules_.feeds; }  // there is no limit at all
  // What parts of accelerators draw, or drew, where nobody is capped.
  void add(std::int64_t milliwatts) {
    drawn_ += milliwatts;
    least_ += milliwatts;
  }
  bool caps() const { return caps_; }  // jobs may be capped
  // Jobs of one rank are capped alike, higher ones later.
  std::int32_t rank_of(std::int32_t priority) const;
  std::int64_t least_level(std::int32_t rank) const;
  // None: caps are as high as a limit lets them.
  const PowerThresholds* thresholds() const {
    return rules_.policy == PowerPolicy::thresholds ? &rules_.thresholds : nullptr;
  }
  ThresholdStep step() const { return step_; }
  // What an accelerator draws at a level of caps.
  std::int64_t at(std::uint16_t work, std::int64_t level) const;

  // A job that begins is not capped until the next settle().
  void begin(std::uint32_t job, PowerUser user, std::int64_t gpus);
  void end(std::uint32_t job, PowerUser user, std::int64_t gpus);
  // A job that runs gets no higher level than this from the next settle() on.
  void set_ceiling(std::uint32_t job, std::int64_t level);
  // Caps all anew after what began and ended; jobs whose caps are others now, ascending.
  const std::vector<std::uint32_t>& settle();
  // Its steps over those without a cap.
  double slower(std::uint32_t job) const;

 private:
  // Jobs that are capped alike: of one kind, under one ceiling, and of one rank.
  struct Block {
    std::int64_t gpus = 0;
    std::int64_t level = cap_steps;
    std::set<std::uint32_t> jobs;
  };
  // Rank, work, ceiling.
  using BlockName = std::tuple<std::int32_t, std::uint16_t, std::int64_t>;
  struct Moved {
    std::uint32_t job = 0;
    std::int64_t level = 0;  // that it had
  };
  struct Running {
    BlockName block;
    std::int64_t gpus = 0;
  };
  void enter(std::uint32_t job, const Running& running);
  void leave(std::uint32_t job, const Running& running);
  std::int64_t level_of(const BlockName& name) const;  // under its ceiling
  std::int64_t drawn_at(std::int32_t rank, std::int64_t level) const;
  void share_out();
  void set_clocks();
  void raise(std::int32_t rank, std::int64_t& left);

  PowerRules rules_;
  bool caps_ = false, changed_ = false;
  ThresholdStep step_ = ThresholdStep::none;
  std::int64_t drawn_ = 0, least_ = 0;
  std::map<BlockName, Block> blocks_;
  std::map<std::uint32_t, Running> running_;
  std::vector<Moved> moved_;                 // whose ceilings changed since then
  std::vector<std::uint32_t> fresh_, told_;  // that began since the last look; whose caps changed
};

}  // namespace orrery
