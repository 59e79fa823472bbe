// SPDX-License-Identifier: Apache-2.0
// Compares a place with the last one that fell into the same slot; classes are marked else.
#include "sim/engine/prices/price_table.h"

#include <algorithm>
#include <utility>

namespace orrery {
namespace {

std::uint64_t word_of(const HostGrant& grant) {
  return static_cast<std::uint32_t>(grant.host) ^
         static_cast<std::uint64_t>(static_cast<std::uint32_t>(grant.hosts)) << 32 ^
         static_cast<std::uint64_t>(static_cast<std::uint32_t>(grant.gpus)) << 56;
}

}  // namespace

// A few of the grants tell places apart; those that they do not take turns in a slot.
PriceTable::Last& PriceTable::last_of(const Grants& place) {
  constexpr std::size_t looks = 8;
  constexpr std::uint64_t odd = 0x9e3779b97f4a7c15u;
  std::uint64_t hash = place.size();
  const std::size_t step = place.size() / looks + 1;
  for (std::size_t i = 0; i < place.size(); i += step) hash = (hash ^ word_of(place[i])) * odd;
  return last_[(hash >> 32) % remembered];
}

const PlacePrice* PriceTable::find(const Grants& place, const ClassMarker& marker,
                                   ClassMark& mark) {
  Last& last = last_of(place);
  if (last.price != nullptr && last.place == place) return last.price;
  mark = marker.mark(place);
  const auto found = by_class_.find(mark);
  if (found == by_class_.end()) return nullptr;
  last = {place, &found->second};
  return last.price;
}

const PlacePrice& PriceTable::add(const Grants& place, const ClassMark& mark, PlacePrice price) {
  const PlacePrice& kept = by_class_.emplace(mark, std::move(price)).first->second;
  last_of(place) = {place, &kept};
  return kept;
}

}  // namespace orrery
