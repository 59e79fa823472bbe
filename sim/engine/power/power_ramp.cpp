// SPDX-License-Identifier: Apache-2.0
// Keeps the least and the most of a span in two queues, so that a piece costs a constant.
#include "sim/engine/power/power_ramp.h"

#include <algorithm>

namespace orrery {

void RampWatch::end_last(std::deque<Piece>& pieces, FleetTime at) {
  if (!pieces.empty() && pieces.back().until == fleet_never) pieces.back().until = at;
}

void RampWatch::forget(std::deque<Piece>& pieces, FleetTime at) const {
  while (!pieces.empty() && pieces.front().until <= at - span_) pieces.pop_front();
}

void RampWatch::draw(FleetTime at, std::int64_t milliwatts) {
  for (std::deque<Piece>* pieces : {&low_, &high_}) {
    end_last(*pieces, at);
    forget(*pieces, at);
  }
  if (!low_.empty()) most_.rise = std::max(most_.rise, milliwatts - low_.front().milliwatts);
  if (!high_.empty()) most_.fall = std::max(most_.fall, high_.front().milliwatts - milliwatts);
  while (!low_.empty() && low_.back().milliwatts >= milliwatts) low_.pop_back();
  while (!high_.empty() && high_.back().milliwatts <= milliwatts) high_.pop_back();
  low_.push_back({milliwatts});
  high_.push_back({milliwatts});
}

}  // namespace orrery
