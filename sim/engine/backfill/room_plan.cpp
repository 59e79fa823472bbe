// SPDX-License-Identifier: Apache-2.0
// Looks for a stretch of spans in which enough hosts are free throughout.
#include "sim/engine/backfill/room_plan.h"

#include <algorithm>

namespace orrery {

RoomPlan::RoomPlan(const SlotShape& shape)
    : pool_(shape.hosts == 1),
      hosts_(static_cast<std::size_t>(shape.hosts)),
      words_(pool_ ? 0 : words_for(shape.hosts)),
      span_words_(words_ * (static_cast<std::size_t>(shape.gpus_per_host) + 1)),
      of_host_(shape.gpus_per_host),
      begins_{FleetTime{}},
      with_room_(span_words_, 0) {
  for (std::int32_t host = 0; host < shape.hosts; ++host) free_.push_back(shape.gpus_of(host));
  index(0);
}

void RoomPlan::clear(FleetTime now, const Slots& slots) {
  begins_.assign(1, now);
  free_.clear();
  for (std::int32_t host = 0; host < slots.shape().hosts; ++host)
    free_.push_back(slots.free_of(host));
  with_room_.assign(span_words_, 0);
  index(0);
}

void RoomPlan::index(std::size_t span) {
  if (pool_) return;
  for (std::size_t host = 0; host < hosts_; ++host)
    for (std::int32_t gpus = 0; gpus <= free_[span * hosts_ + host]; ++gpus)
      add_host(with_room(span, gpus), static_cast<std::int32_t>(host));
}

std::size_t RoomPlan::index_of(FleetTime at) const {
  const auto after = std::upper_bound(begins_.begin(), begins_.end(), at);
  return after == begins_.begin() ? 0 : static_cast<std::size_t>(after - begins_.begin()) - 1;
}

void RoomPlan::advance(FleetTime now) {
  const std::size_t gone = index_of(now);
  const auto of = [&](std::size_t each) { return static_cast<std::ptrdiff_t>(gone * each); };
  begins_.erase(begins_.begin(), begins_.begin() + of(1));
  free_.erase(free_.begin(), free_.begin() + of(hosts_));
  with_room_.erase(with_room_.begin(), with_room_.begin() + of(span_words_));
  begins_.front() = std::max(begins_.front(), now);
}

// The span that begins then.
std::size_t RoomPlan::split(FleetTime at) {
  const std::size_t holds = index_of(at);
  if (begins_[holds] >= at) return holds;
  const auto repeat = [&](auto& rows, std::size_t each) {
    rows.resize(rows.size() + each);
    const auto from = rows.begin() + static_cast<std::ptrdiff_t>(holds * each);
    std::copy_backward(from, rows.end() - static_cast<std::ptrdiff_t>(each), rows.end());
  };
  begins_.insert(begins_.begin() + static_cast<std::ptrdiff_t>(holds) + 1, at);
  repeat(free_, hosts_);
  repeat(with_room_, span_words_);
  return holds + 1;
}

void RoomPlan::change_free(std::size_t span, std::int32_t host, std::int32_t by) {
  std::int32_t& free = free_[span * hosts_ + static_cast<std::size_t>(host)];
  if (pool_) {
    free += by;
    return;
  }
  for (; by > 0; --by) add_host(with_room(span, ++free), host);
  for (; by < 0; ++by) remove_host(with_room(span, free--), host);
}

void RoomPlan::change(const Grants& grants, FleetTime from, FleetTime to, std::int32_t sign) {
  if (to <= begins_.front() || to <= from) return;
  const std::size_t first = split(from);
  const std::size_t behind = to == fleet_never ? spans() : split(to);
  for (std::size_t span = first; span < behind; ++span)
    for (const HostGrant& grant : grants)
      for (std::int32_t host = grant.host; host < grant.host + grant.hosts; ++host)
        change_free(span, host, sign * grant.gpus);
}

bool RoomPlan::has_room(const Grants& grants, FleetTime from, FleetTime to) const {
  for (std::size_t span = index_of(from); span < spans() && begins_[span] < to; ++span)
    for (const HostGrant& grant : grants)
      for (std::int32_t host = grant.host; host < grant.host + grant.hosts; ++host)
        if (free_[span * hosts_ + static_cast<std::size_t>(host)] < grant.gpus) return false;
  return true;
}

void RoomPlan::open(Throughout& all) const {
  all.whole.assign(words_, ~std::uint64_t{0});
  all.part.assign(words_, ~std::uint64_t{0});
  all.pool = INT32_MAX;
}

// Leaves what is free in one more span as well; false: that is not enough, and nothing is changed.
// As Placer::fits: whole hosts, and one more for the rest.
bool RoomPlan::narrow(const Gang& gang, std::size_t span, Throughout& all) const {
  if (pool_) {
    const std::int32_t free = std::min(all.pool, free_[span]);
    if (free >= gang.gpus) all.pool = free;
    return free >= gang.gpus;
  }
  const auto both = [&](const HostWords& a, HostWordsView b, HostWords& out) {
    out.resize(words_);
    for (std::size_t w = 0; w < words_; ++w) out[w] = a[w] & b[w];
  };
  if (gang.hosts > 0) {
    both(all.whole, with_room(span, of_host_), next_.whole);
    if (!has_hosts(next_.whole, gang.hosts)) return false;
  }
  if (gang.rest > 0) {
    both(all.part, with_room(span, gang.rest), next_.part);
    if (!has_hosts(next_.part, gang.hosts + 1)) return false;
    all.part.swap(next_.part);
  }
  if (gang.hosts > 0) all.whole.swap(next_.whole);
  return true;
}

FleetTime RoomPlan::find(std::int32_t gpus, FleetTime length, FleetTime latest,
                         std::vector<std::int32_t>& room) const {
  const Gang gang{gpus, gpus / of_host_, gpus % of_host_};
  const FleetTime held = std::max(length, FleetTime{1});
  open(now_);
  std::size_t from = 0, to = 0;  // enough is free from one to before the other
  while (from < spans() && begins_[from] < latest) {
    if (to > from && (to == spans() || begins_[to] - begins_[from] >= held)) {
      room.assign(hosts_, INT32_MAX);
      for (std::size_t span = from; span < to; ++span)
        for (std::size_t host = 0; host < hosts_; ++host)
          room[host] = std::min(room[host], free_[span * hosts_ + host]);
      return begins_[from];
    }
    if (narrow(gang, to, now_)) {
      ++to;
      continue;
    }
    // No start from which this span is needed, and another one that rules it out.
    const std::size_t failed = from;
    open(now_);
    for (from = to + 1; from > failed + 1 && narrow(gang, from - 1, now_);) --from;
    to = std::max(to + 1, from);
  }
  return fleet_never;
}

}  // namespace orrery
