// SPDX-License-Identifier: Apache-2.0
// Holds how many accelerators of each host will be free, from now on, and finds when a gang has a
// place for as long as it asks for.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "sim/base/units/fleet_time.h"
#include "sim/engine/slurm/host_words.h"
#include "topologies/slots.h"

namespace orrery {

// A gang's place for a while, and what of it is on each host.
struct HeldRoom {
  FleetTime from, to;
  Grants place;
};

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
  // before `latest`. `room` then holds what each host has free all that time. `from`: no instant
  // before.
  FleetTime find(std::int32_t gpus, FleetTime length, FleetTime latest,
                 std::vector<std::int32_t>& room, FleetTime from = {}) const;

  // Whether a gang that holds `own` could begin earlier on hosts of `freed`, while those are freed;
  // true where only find() can tell.
  bool may_begin_earlier(std::int32_t gpus, const HeldRoom& own, const HeldRoom& freed) const;
  // Joins neighbouring spans in which the same is free.
  void join_equal();
  std::size_t spans() const { return begins_.size(); }
  // Of the span that begins now.
  std::int32_t free_now(std::int32_t host) const {
    return free_of(0)[static_cast<std::size_t>(host)];
  }

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
  std::size_t index_of(FleetTime at) const;
  std::size_t split(FleetTime at);
  void change(const Grants& grants, FleetTime from, FleetTime to, std::int32_t sign);
  void change_free(std::size_t span, std::int32_t host, std::int32_t by);
  void index(std::size_t span);
  // Hosts with so many free, or more.
  std::span<std::uint64_t> with_room(std::size_t span, std::int32_t gpus) {
    return {&with_room_[rows_[span] * span_words_ + static_cast<std::size_t>(gpus) * words_],
            words_};
  }
  HostWordsView with_room(std::size_t span, std::int32_t gpus) const {
    return {&with_room_[rows_[span] * span_words_ + static_cast<std::size_t>(gpus) * words_],
            words_};
  }
  std::span<std::int32_t> free_of(std::size_t span) {
    return {&free_[rows_[span] * hosts_], hosts_};
  }
  std::span<const std::int32_t> free_of(std::size_t span) const {
    return {&free_[rows_[span] * hosts_], hosts_};
  }
  void open(Throughout& all) const;
  template <class Open, class Narrow>
  std::optional<std::pair<std::size_t, std::size_t>> stretch(std::size_t from, FleetTime held,
                                                             FleetTime latest, const Open& open_all,
                                                             const Narrow& narrow_to) const;
  bool narrow(const Gang& gang, std::size_t span, Throughout& all) const;

  bool pool_;  // one host: only the number counts
  std::size_t hosts_, words_, span_words_;
  std::int32_t of_host_;
  std::vector<FleetTime> begins_;
  // Of each span where its row is: spans come between others, and rows stay where they are.
  std::vector<std::uint32_t> rows_;
  std::vector<std::uint32_t> unused_;
  std::vector<std::int32_t> free_;        // row by row
  std::vector<std::uint64_t> with_room_;  // likewise, by accelerators; none of a pool
  mutable Throughout now_, next_;         // scratch
};

}  // namespace orrery
