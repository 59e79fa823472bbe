// SPDX-License-Identifier: Apache-2.0
// Knows what a run of a shared cluster tells as it happens.
#pragma once

#include <cstdint>
#include <string_view>

#include "sim/base/text/enum_names.h"
#include "sim/base/units/fleet_time.h"
#include "topologies/slots.h"

namespace orrery {

// submit, reject: a job comes, and waits or is turned away. With the cause "dependency" it does not
// wait before it is eligible: what it comes after has ended. cancel: that did not complete. start:
// it gets its accelerators. stop: it gives them back before its end, and waits for others. restart:
// it was stopped and begins again where it is. end: it gives them back for good. cut: the run ends
// while it holds them. out: hosts go for repair. repaired: they stand by. in: one that stood by
// goes to work. Spare hosts stand by when a run begins. power: what the cluster draws from here on.
enum class FleetEventKind : std::uint8_t {
  submit,
  reject,
  eligible,
  cancel,
  start,
  stop,
  restart,
  end,
  cut,
  out,
  in,
  repaired,
  power
};
inline constexpr auto fleet_event_text =
    enum_names<FleetEventKind>({"submit", "reject", "eligible", "cancel", "start", "stop",
                                "restart", "end", "cut", "out", "in", "repaired", "power"});
constexpr bool is_of_job(FleetEventKind kind) { return kind < FleetEventKind::out; }

// Valid while it is told.
struct FleetEvent {
  FleetTime at;
  FleetEventKind kind = FleetEventKind::submit;
  std::uint32_t job = 0;          // by its place in the list; of jobs
  std::int64_t gpus = 0;          // that the job asks for or holds; of the hosts
  std::string_view cause = {};    // of stop, restart and out: what broke, or who wanted it
  std::int32_t milli = 0;         // of one accelerator, where it asks for a part: thousandths
  const Grants* place = nullptr;  // hosts; none of submissions and where only the number counts
  std::int64_t milliwatts = 0;    // of power
};

}  // namespace orrery
