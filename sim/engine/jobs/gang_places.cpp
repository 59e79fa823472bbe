// SPDX-License-Identifier: Apache-2.0
// Empties hosts for gangs in front, the emptiest first, and puts back what need not have left.
#include "sim/engine/jobs/gang_places.h"

#include <algorithm>
#include <numeric>
#include <set>
#include <tuple>
#include <utility>

namespace orrery {
namespace {

class GangPlaces {
 public:
  GangPlaces(Slots& slots, Placer& placer, std::vector<SizedGang>& gangs, GangNeeds& needs)
      : slots_(slots), placer_(placer), gangs_(gangs), needs_(needs) {}
  void run();

 private:
  using Turn = std::tuple<std::int32_t, std::int32_t, std::size_t>;
  Turn turn(std::size_t i) const { return {-gangs_[i].rank, -gangs_[i].gpus, i}; }
  void give_back_changed();
  std::vector<std::vector<std::size_t>> by_host() const;
  std::vector<std::pair<std::size_t, Grants>> empty_hosts_for(std::size_t gang);
  bool make_room(std::size_t gang);
  bool fits(std::size_t gang) { return needs_.fits(slots_, gangs_, gang); }
  void take(std::size_t gang, const Grants& place) {
    slots_.take(place);
    needs_.change(gang, place, 1);
  }
  void give(std::size_t gang, const Grants& place) {
    slots_.give(place);
    needs_.change(gang, place, -1);
  }

  Slots& slots_;
  Placer& placer_;
  std::vector<SizedGang>& gangs_;
  GangNeeds& needs_;
  std::set<Turn> pending_;
};

void GangPlaces::run() {
  give_back_changed();
  // Gangs that leave for another come behind it: each is looked at once.
  while (!pending_.empty()) {
    const std::size_t i = std::get<2>(*pending_.begin());
    pending_.erase(pending_.begin());
    SizedGang& gang = gangs_[i];
    const bool found = (fits(i) || make_room(i)) && needs_.find(slots_, placer_, gangs_, i);
    if (!found) gang.place.clear();
    const bool smaller = !found && Placer::fits(slots_, gang.gpus) &&
                         needs_.find_smaller(slots_, placer_, gangs_, i);
    if (found || smaller) take(i, gang.place);
  }
}

void GangPlaces::give_back_changed() {
  for (std::size_t i = 0; i < gangs_.size(); ++i) {
    SizedGang& gang = gangs_[i];
    if (!gang.now->empty() && (gang.stays || gpus_of_place(*gang.now) == gang.gpus)) {
      gang.place = *gang.now;
      continue;
    }
    if (!gang.now->empty()) give(i, *gang.now);
    if (gang.gpus > 0) pending_.insert(turn(i));
  }
}

std::vector<std::vector<std::size_t>> GangPlaces::by_host() const {
  std::vector<std::vector<std::size_t>> out(static_cast<std::size_t>(slots_.shape().hosts));
  for (std::size_t i = 0; i < gangs_.size(); ++i)
    for (const HostGrant& grant : gangs_[i].place)
      for (std::int32_t h = 0; h < grant.hosts; ++h)
        out[static_cast<std::size_t>(grant.host + h)].push_back(i);
  return out;
}

// Who leaves, in order, and from where. The gang may still have no place then.
std::vector<std::pair<std::size_t, Grants>> GangPlaces::empty_hosts_for(std::size_t gang) {
  const std::vector<std::vector<std::size_t>> on_host = by_host();
  std::vector<std::int32_t> hosts(on_host.size());
  std::iota(hosts.begin(), hosts.end(), 0);
  std::erase_if(hosts, [&](std::int32_t h) { return slots_.is_out(h); });
  std::stable_sort(hosts.begin(), hosts.end(), [&](std::int32_t a, std::int32_t b) {
    return slots_.free_of(a) > slots_.free_of(b);
  });
  std::vector<std::pair<std::size_t, Grants>> left;
  for (const std::int32_t host : hosts) {
    if (fits(gang)) break;
    const bool lacks_hosts = !Placer::fits(slots_, gangs_[gang].gpus);
    for (const std::size_t i : on_host[static_cast<std::size_t>(host)]) {
      Grants& place = gangs_[i].place;
      if (place.empty() || gangs_[i].stays || turn(i) < turn(gang)) continue;
      if (!lacks_hosts && gangs_[i].rank == gangs_[gang].rank) continue;
      give(i, place);
      left.emplace_back(i, std::exchange(place, {}));
    }
  }
  return left;
}

// Whether the gang has a place then; if not, nobody has left.
bool GangPlaces::make_room(std::size_t gang) {
  const std::vector<std::pair<std::size_t, Grants>> left = empty_hosts_for(gang);
  const bool there = fits(gang);
  // The last to leave were on the fullest hosts.
  for (auto one = left.rbegin(); one != left.rend(); ++one) {
    take(one->first, one->second);
    if (!there || fits(gang)) {
      gangs_[one->first].place = one->second;
      continue;
    }
    give(one->first, one->second);
    pending_.insert(turn(one->first));
  }
  return there;
}

}  // namespace

void place_gangs(Slots& slots, Placer& placer, std::vector<SizedGang>& gangs, GangNeeds& needs) {
  GangPlaces(slots, placer, gangs, needs).run();
}

}  // namespace orrery
