// SPDX-License-Identifier: Apache-2.0
// Adds up steps, restarts and what is lost.
#include "sim/engine/elastic/elastic_progress.h"

#include <algorithm>

namespace orrery {
namespace {

constexpr std::int64_t million = 1'000'000;  // picoseconds of a millionth of a second; ppm of 1

}  // namespace

void ElasticProgress::move(Grants place, const JobPace& pace, FleetTime now, FleetTime restart,
                           ElasticJobRecord& record, ElasticGpuTime& time) {
  const GpuPicos begun = static_cast<GpuPicos>(in_step_ps_) * gpus_;
  time.useful -= begun;
  time.lost += begun;
  in_step_ps_ = 0;
  place_ = std::move(place);
  gpus_ = gpus_of_place(place_);
  if (place_.empty()) return;
  if (started_) ++record.restarts;
  if (!started_) record.start = now;
  started_ = true;
  pace_ = pace;
  to_restart_ = restart;
}

void ElasticProgress::advance(FleetTime now, FleetTime span, std::int64_t slower_ppm,
                              ElasticJobRecord& record, ElasticGpuTime& time) {
  if (place_.empty() || over_) return;
  const FleetTime wait = std::min(to_restart_, span);
  to_restart_ = to_restart_ - wait;
  time.restart += static_cast<GpuPicos>(wait.us) * million * gpus_;
  FleetTime rest = span - wait;
  const std::int64_t ps_of_us = million - slower_ppm;  // of its own time, in a real one
  const std::int64_t steps = (left_ + pace_.worth - 1) / pace_.worth;
  const GpuPicos need = static_cast<GpuPicos>(steps) * pace_.step_ps - in_step_ps_;
  GpuPicos done = static_cast<GpuPicos>(rest.us) * ps_of_us;
  if (rest.us > 0) {
    most_run_ = std::max(most_run_, gpus_);
    ran_across_ = ran_across_ || on_several_hosts(place_);
  }
  if (need <= done) {
    rest.us = static_cast<std::int64_t>((need + ps_of_us - 1) / ps_of_us);
    done = need;
    over_ = true;
    left_ = 0;
    in_step_ps_ = 0;
    record.end = now + wait + rest;
  } else {
    const GpuPicos all = in_step_ps_ + done;
    left_ -= static_cast<std::int64_t>(all / pace_.step_ps) * pace_.worth;
    in_step_ps_ = static_cast<std::int64_t>(all % pace_.step_ps);
  }
  time.useful += done * gpus_;
  time.slowed += (static_cast<GpuPicos>(rest.us) * million - done) * gpus_;
  record.held += static_cast<GpuMicros>((wait + rest).us) * gpus_;
}

}  // namespace orrery
