// SPDX-License-Identifier: Apache-2.0
// Looks for a stretch of spans in which enough hosts are free throughout.
#include "sim/engine/backfill/room_plan.h"

#include <algorithm>
#include <optional>
#include <utility>

namespace orrery {

RoomPlan::RoomPlan(const SlotShape& shape)
    : pool_(shape.hosts == 1),
      hosts_(static_cast<std::size_t>(shape.hosts)),
      words_(pool_ ? 0 : words_for(shape.hosts)),
      span_words_(words_ * (static_cast<std::size_t>(shape.gpus_per_host) + 1)),
      of_host_(shape.gpus_per_host),
      begins_{FleetTime{}},
      rows_{0},
      with_room_(span_words_, 0) {
  for (std::int32_t host = 0; host < shape.hosts; ++host) free_.push_back(shape.gpus_of(host));
  index(0);
}

void RoomPlan::clear(FleetTime now, const Slots& slots) {
  begins_.assign(1, now);
  rows_.assign(1, 0);
  unused_.clear();
  free_.clear();
  for (std::int32_t host = 0; host < slots.shape().hosts; ++host)
    free_.push_back(slots.free_of(host));
  with_room_.assign(span_words_, 0);
  index(0);
}

void RoomPlan::index(std::size_t span) {
  if (pool_) return;
  for (std::size_t host = 0; host < hosts_; ++host)
    for (std::int32_t gpus = 0; gpus <= free_of(span)[host]; ++gpus)
      add_host(with_room(span, gpus), static_cast<std::int32_t>(host));
}

std::size_t RoomPlan::index_of(FleetTime at) const {
  const auto after = std::upper_bound(begins_.begin(), begins_.end(), at);
  return after == begins_.begin() ? 0 : static_cast<std::size_t>(after - begins_.begin()) - 1;
}

void RoomPlan::advance(FleetTime now) {
  const std::size_t gone = index_of(now);
  const auto count = static_cast<std::ptrdiff_t>(gone);
  unused_.insert(unused_.end(), rows_.begin(), rows_.begin() + count);
  begins_.erase(begins_.begin(), begins_.begin() + count);
  rows_.erase(rows_.begin(), rows_.begin() + count);
  begins_.front() = std::max(begins_.front(), now);
}

// The span that begins then.
std::size_t RoomPlan::split(FleetTime at) {
  const std::size_t holds = index_of(at);
  if (begins_[holds] >= at) return holds;
  const std::size_t from = rows_[holds];
  std::size_t row = rows_.size() + unused_.size();
  if (unused_.empty()) {
    free_.resize((row + 1) * hosts_);
    with_room_.resize((row + 1) * span_words_);
  } else {
    row = unused_.back();
    unused_.pop_back();
  }
  std::copy_n(&free_[from * hosts_], hosts_, &free_[row * hosts_]);
  std::copy_n(with_room_.begin() + static_cast<std::ptrdiff_t>(from * span_words_), span_words_,
              with_room_.begin() + static_cast<std::ptrdiff_t>(row * span_words_));
  const auto behind = static_cast<std::ptrdiff_t>(holds) + 1;
  begins_.insert(begins_.begin() + behind, at);
  rows_.insert(rows_.begin() + behind, static_cast<std::uint32_t>(row));
  return holds + 1;
}

void RoomPlan::change_free(std::size_t span, std::int32_t host, std::int32_t by) {
  std::int32_t& free = free_of(span)[static_cast<std::size_t>(host)];
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
        if (free_of(span)[static_cast<std::size_t>(host)] < grant.gpus) return false;
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
    const std::int32_t free = std::min(all.pool, free_of(span).front());
    if (free >= gang.gpus) all.pool = free;
    return free >= gang.gpus;
  }
  // False where fewer than `count` are in both; `next` has these.
  const auto cut = [&](const HostWords& set, HostWordsView by, std::int32_t count,
                       HostWords& next) {
    std::uint64_t any = 0;
    for (std::size_t w = 0; w < words_; ++w) any |= next[w] = set[w] & by[w];
    return count == 1 ? any != 0 : has_hosts(next, count);
  };
  if (gang.hosts > 0 && !cut(all.whole, with_room(span, of_host_), gang.hosts, next_.whole))
    return false;
  if (gang.rest > 0) {
    if (!cut(all.part, with_room(span, gang.rest), gang.hosts + 1, next_.part)) return false;
    all.part.swap(next_.part);
  }
  if (gang.hosts > 0) all.whole.swap(next_.whole);
  return true;
}

bool RoomPlan::may_begin_earlier(std::int32_t gpus, const HeldRoom& own,
                                 const HeldRoom& freed) const {
  if (!pool_ && gpus > of_host_) return true;
  const FleetTime length = own.to - own.from;
  const FleetTime first = std::max(begins_.front(), freed.from - length);
  const FleetTime before = std::min(own.from, freed.to);
  // Its own room is free to it; a span that is so in part counts as free.
  const auto fits = [&](std::size_t span, std::int32_t host, FleetTime end) {
    std::int32_t free = free_of(span)[static_cast<std::size_t>(host)];
    const bool has = host == own.place.front().host && begins_[span] < own.to && end > own.from;
    if (has) free += gpus;
    return free >= gpus;
  };
  const auto begins_on = [&](std::int32_t host) {
    FleetTime from = fleet_never;  // since when there is room
    for (std::size_t span = index_of(first); span < spans(); ++span) {
      const FleetTime begin = std::max(begins_[span], first);
      const FleetTime end = span + 1 < spans() ? begins_[span + 1] : fleet_never;
      if (!fits(span, host, end))
        from = fleet_never;
      else if (from == fleet_never)
        from = begin;
      if ((from == fleet_never ? end : from) >= before) return false;
      if (from != fleet_never && end - from >= length) return true;
    }
    return false;
  };
  for (const HostGrant& grant : freed.place)
    for (std::int32_t host = grant.host; host < grant.host + grant.hosts; ++host)
      if (begins_on(host)) return true;
  return false;
}

void RoomPlan::join_equal() {
  std::size_t kept = 0;
  for (std::size_t span = 1; span < spans(); ++span) {
    const auto here = free_of(span), before = free_of(kept);
    if (std::equal(here.begin(), here.end(), before.begin())) {
      unused_.push_back(rows_[span]);
      continue;
    }
    ++kept;
    begins_[kept] = begins_[span];
    rows_[kept] = rows_[span];
  }
  begins_.resize(kept + 1);
  rows_.resize(kept + 1);
}

// The spans from the first instant on from which a gang has a place for as long as it holds it:
// find() without what hosts have free then. `narrow(span)` leaves what is free in that span as
// well, or says that it is not enough; `open()` begins anew.
template <class Open, class Narrow>
std::optional<std::pair<std::size_t, std::size_t>> RoomPlan::stretch(
    std::size_t from, FleetTime held, FleetTime latest, const Open& open_all,
    const Narrow& narrow_to) const {
  open_all();
  std::size_t to = from;  // enough is free from one to before the other
  while (from < spans() && begins_[from] < latest) {
    if (to > from && (to == spans() || begins_[to] - begins_[from] >= held))
      return std::pair(from, to);
    if (narrow_to(to)) {
      ++to;
      continue;
    }
    // No start from which this span is needed, and another one that rules it out.
    const std::size_t failed = from;
    open_all();
    for (from = to + 1; from > failed + 1 && narrow_to(from - 1);) --from;
    to = std::max(to + 1, from);
  }
  return std::nullopt;
}

FleetTime RoomPlan::find(std::int32_t gpus, FleetTime length, FleetTime latest,
                         std::vector<std::int32_t>& room, FleetTime from) const {
  const Gang gang{gpus, gpus / of_host_, gpus % of_host_};
  const FleetTime held = std::max(length, FleetTime{1});
  const auto first = static_cast<std::size_t>(
      std::lower_bound(begins_.begin(), begins_.end(), from) - begins_.begin());
  std::optional<std::pair<std::size_t, std::size_t>> found;
  open(now_);
  open(next_);
  if (!pool_ && gpus <= of_host_) {
    // Most gangs are of one host: there is room where a set has any.
    std::uint64_t *all = now_.whole.data(), *next = next_.whole.data();
    found = stretch(
        first, held, latest, [&] { std::fill_n(all, words_, ~std::uint64_t{0}); },
        [&](std::size_t span) {
          const HostWordsView row = with_room(span, gpus);
          std::uint64_t any = 0;
          for (std::size_t w = 0; w < words_; ++w) any |= next[w] = all[w] & row[w];
          if (any != 0) std::swap(all, next);
          return any != 0;
        });
  } else {
    found = stretch(
        first, held, latest, [&] { open(now_); },
        [&](std::size_t span) { return narrow(gang, span, now_); });
  }
  if (!found) return fleet_never;
  room.assign(hosts_, INT32_MAX);
  for (std::size_t span = found->first; span < found->second; ++span)
    for (std::size_t host = 0; host < hosts_; ++host)
      room[host] = std::min(room[host], free_of(span)[host]);
  return begins_[found->first];
}

}  // namespace orrery
