// SPDX-License-Identifier: Apache-2.0
// Holds how many accelerators of each host will be free, from now on, and finds when a gang has a
// place for as long as it asks for.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "sim/base/units/fleet_time.h"
#include "sim/engine/slurm/host_words.h"
#include "topologies/slots.h"

namespace orrery {

// Spans of time one after the other, the last one for ever.
class RoomPlan {
 public:
  explicit RoomPlan(const SlotShape& shape);
  // Nothing changes from `now` on.
  void clear(FleetTime now, const Slots& slots);
  // Time goes on: what was before is forgotten.
  void advance(FleetTime now);
  // So many accelerators of the hosts are taken from `from` to `to`; given back with sign 1.
  void take(const Grants& grants, FleetTime from, FleetTime to) { change(grants, from, to, -1); }
  void give(const Grants& grants, FleetTime from, FleetTime to) { change(grants, from, to, 1); }
  bool has_room(const Grants& grants, FleetTime from, FleetTime to) const;
  // The first instant, now or later, from which a gang has a place for `length`; fleet_never: none
  // before `latest`. `room` then holds what each host has free all that time.
  FleetTime find(std::int32_t gpus, FleetTime length, FleetTime latest,
                 std::vector<std::int32_t>& room) const;

 private:
  // What is free throughout some spans: hosts that are free as a whole, hosts with room for the
  // rest of a gang, or accelerators of a pool.
  struct Throughout {
    HostWords whole, part;
    std::int32_t pool = INT32_MAX;
  };
  struct Gang {
    std::int32_t gpus = 0, hosts = 0, rest = 0;
  };
  std::size_t spans() const { return begins_.size(); }
  std::size_t index_of(FleetTime at) const;
  std::size_t split(FleetTime at);
  void change(const Grants& grants, FleetTime from, FleetTime to, std::int32_t sign);
  void change_free(std::size_t span, std::int32_t host, std::int32_t by);
  void index(std::size_t span);
  // Hosts with so many free, or more.
  std::span<std::uint64_t> with_room(std::size_t span, std::int32_t gpus) {
    return {&with_room_[span * span_words_ + static_cast<std::size_t>(gpus) * words_], words_};
  }
  HostWordsView with_room(std::size_t span, std::int32_t gpus) const {
    return {&with_room_[span * span_words_ + static_cast<std::size_t>(gpus) * words_], words_};
  }
  void open(Throughout& all) const;
  bool narrow(const Gang& gang, std::size_t span, Throughout& all) const;

  bool pool_;  // one host: only the number counts
  std::size_t hosts_, words_, span_words_;
  std::int32_t of_host_;
  std::vector<FleetTime> begins_;
  std::vector<std::int32_t> free_;        // span by span
  std::vector<std::uint64_t> with_room_;  // likewise, by accelerators; none of a pool
  mutable Throughout now_, next_;         // scratch
};

}  // namespace orrery
