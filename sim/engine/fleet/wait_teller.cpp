// SPDX-License-Identifier: Apache-2.0
// Follows a job from its submission to its first start.
#include "sim/engine/fleet/wait_teller.h"

namespace orrery {

void WaitTeller::submit(std::uint32_t job) {
  if (watch_ != job) return;
  watching_ = true;
  story.emplace();
  story->ahead = static_cast<std::uint32_t>(state_.waiting().size());
  story->free_then = state_.slots().free();
}

void WaitTeller::pass(FleetTime time, bool scattered) {
  if (!watching_) return;
  if (held_ || state_.is_kept_back(*watch_)) {
    story->delayed += time;
    return;
  }
  if (state_.waiting().empty()) return;
  const std::uint32_t head = state_.waiting().head().job;
  if (head == *watch_) {
    (scattered ? story->scattered : story->short_of) += time;
    return;
  }
  story->behind += time;
  if (story->heads.empty() || story->heads.back().job != head) story->heads.push_back({head, {}});
  story->heads.back().time += time;
}

void WaitTeller::look() {
  if (watching_ && state_.records[*watch_].start != fleet_never) watching_ = false;
}

}  // namespace orrery
