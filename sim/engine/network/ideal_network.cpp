// SPDX-License-Identifier: Apache-2.0
// Knows how collectives end when nothing disturbs them.
#include "sim/engine/network/ideal_network.h"

#include <boost/container_hash/hash.hpp>
#include <utility>

namespace orrery {

IdealNetwork::IdealNetwork(const Fabric& fabric, const CollectiveCosts& costs,
                           LoadedTransfers* loaded, JobGround scattered)
    : fabric_(fabric), costs_(costs), loaded_(loaded), scattered_(std::move(scattered)) {}

CollectiveId IdealNetwork::start(const Collective& collective, Ticks time) {
  const CollectiveId id{started_++};
  queue_.push(time + to_ticks(price(collective).time), {.kind = 0, .a = id.value, .b = 0});
  return id;
}

std::optional<Completion> IdealNetwork::next_completion() {
  Ticks time;
  Event event;
  if (!queue_.pop(time, event)) return std::nullopt;
  return Completion{.id = {event.a}, .time = time};
}

const CollectiveTime& IdealNetwork::price(const Collective& collective, std::int64_t) {
  const auto known = memo_.find(collective);
  if (known != memo_.end()) return known->second;
  CollectiveTime time = collective_time(collective, fabric_, costs_);
  const Seconds loaded = scattered_.scattered()
                             ? loaded_transfer(collective, time, fabric_, scattered_)
                         : loaded_ ? loaded_->of(collective, time, fabric_)
                                   : loaded_transfer(collective, time, fabric_);
  time.time += loaded - time.transfer;
  time.transfer = loaded;
  return memo_.emplace(collective, time).first->second;
}

// What most collectives of a step differ in.
std::size_t IdealNetwork::Hash::operator()(const Collective& c) const {
  std::size_t seed = 0;
  boost::hash_combine(seed, c.bytes.si());
  boost::hash_combine(seed, static_cast<int>(c.kind));
  boost::hash_combine(seed, c.group.size);
  boost::hash_combine(seed, c.group.per_domain);
  return seed;
}

}  // namespace orrery
