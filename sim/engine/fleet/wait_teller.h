// SPDX-License-Identifier: Apache-2.0
// Tells why one job waited.
#pragma once

#include <cstdint>
#include <optional>

#include "sim/engine/fleet/fleet_record.h"
#include "sim/engine/fleet/fleet_state.h"

namespace orrery {

class WaitTeller {
 public:
  // `watch`: its place in the list; nullopt: nobody's wait is told.
  WaitTeller(const FleetState& state, std::optional<std::uint32_t> watch)
      : state_(state), watch_(watch) {}
  // As a job comes, before it is in the list.
  void submit(std::uint32_t job);
  // It is kept back until its hour comes.
  void hold(std::uint32_t job) { held_ = held_ || watch_ == job; }
  void release(std::uint32_t job) { held_ = held_ && watch_ != job; }
  // While jobs wait; `scattered`: the head asks for no more than is free.
  void pass(FleetTime time, bool scattered);
  // After decisions: it may have started.
  void look();
  std::optional<WaitStory> story;

 private:
  const FleetState& state_;
  std::optional<std::uint32_t> watch_;
  bool watching_ = false, held_ = false;
};

}  // namespace orrery
