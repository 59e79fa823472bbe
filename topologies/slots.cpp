// SPDX-License-Identifier: Apache-2.0
// Keeps the counts of free accelerators while grants are taken and given back.
#include "topologies/slots.h"

#include <algorithm>

#include "sim/base/errors/check.h"
#include "topologies/clos.h"

namespace orrery {

std::int64_t SlotShape::gpus() const {
  return static_cast<std::int64_t>(hosts - 1) * gpus_per_host + last_host_gpus;
}

std::int32_t SlotShape::gpus_of(std::int32_t host) const {
  return host + 1 == hosts ? last_host_gpus : gpus_per_host;
}

std::int32_t gpus_of_place(const Grants& place) {
  std::int32_t sum = 0;
  for (const HostGrant& grant : place) sum += grant.hosts * grant.gpus;
  return sum;
}

SlotShape pool_shape(std::int64_t gpus) {
  const auto all = static_cast<std::int32_t>(gpus);
  return {.hosts = 1, .gpus_per_host = all, .last_host_gpus = all};
}

SlotShape slot_shape(const Fabric& fabric, std::int64_t gpus, std::int64_t gpus_per_host) {
  SlotShape shape;
  shape.hosts = static_cast<std::int32_t>((gpus + gpus_per_host - 1) / gpus_per_host);
  shape.gpus_per_host = static_cast<std::int32_t>(gpus_per_host);
  shape.last_host_gpus =
      static_cast<std::int32_t>(gpus - static_cast<std::int64_t>(shape.hosts - 1) * gpus_per_host);
  const auto add = [&](const char* name, std::int64_t reach_gpus) {
    if (reach_gpus <= 0 || reach_gpus % gpus_per_host != 0) return;
    const std::int64_t reach = reach_gpus / gpus_per_host;
    const std::int64_t below = shape.levels.empty() ? 1 : shape.levels.back().reach;
    if (reach <= below || reach >= shape.hosts || reach % below != 0) return;
    shape.levels.push_back({name, static_cast<std::int32_t>(reach)});
  };
  add("domain", fabric.scale_up.domain);
  if (fabric.scale_out.kind == ScaleOutKind::none) return shape;
  const ClosShape clos = clos_shape(fabric, gpus);
  constexpr const char* names[] = {"leaf group", "pod", "core group"};
  for (std::size_t t = 0; t < clos.tiers.size() && t < std::size(names); ++t)
    add(names[t], clos.tiers[t].reach);
  return shape;
}

Slots::Slots(SlotShape shape) : shape_(std::move(shape)), total_(shape_.gpus()), free_(total_) {
  const auto hosts = static_cast<std::size_t>(shape_.hosts);
  free_of_.assign(hosts, shape_.gpus_per_host);
  free_of_.back() = shape_.last_host_gpus;
  is_out_.assign(hosts, 0);
  for (const SlotLevel& level : shape_.levels)
    whole_.emplace_back((shape_.hosts + level.reach - 1) / level.reach, 0);
  if (shape_.hosts == 1) return;
  with_free_.assign(static_cast<std::size_t>(shape_.gpus_per_host) + 1, HostSet(shape_.hosts));
  for (std::int32_t host = 0; host < shape_.hosts; ++host) index(host, 1);
}

// Puts a host into the sets of hosts that have free accelerators (sign 1), or takes it out (-1).
void Slots::index(std::int32_t host, std::int32_t sign) {
  const std::int32_t free = free_of_[static_cast<std::size_t>(host)];
  HostSet& alike = with_free_[static_cast<std::size_t>(free)];
  sign > 0 ? alike.insert(host) : alike.erase(host);
  if (free != shape_.gpus_per_host) return;
  for (std::size_t level = 0; level < whole_.size(); ++level)
    whole_[level][static_cast<std::size_t>(host / shape_.levels[level].reach)] += sign;
}

void Slots::change(std::int32_t host, std::int32_t by) {
  std::int32_t& free = free_of_[static_cast<std::size_t>(host)];
  CHECK_THAT(free + by >= 0 && free + by <= shape_.gpus_of(host), "free accelerators of a host");
  (is_out(host) ? out_ : free_) += by;
  if (shape_.hosts == 1 || is_out(host)) {
    free += by;
    return;
  }
  index(host, -1);
  free += by;
  index(host, 1);
}

void Slots::set_out(std::int32_t host, bool out) {
  CHECK_THAT(shape_.hosts > 1 && is_out(host) != out, "a host goes out, or comes back");
  const std::int32_t free = free_of_[static_cast<std::size_t>(host)];
  ++changes_;
  index(host, out ? -1 : 1);
  is_out_[static_cast<std::size_t>(host)] = out ? 1 : 0;
  free_ += out ? -free : free;
  out_ += out ? free : -free;
}

void Slots::move(std::span<const HostGrant> grants, std::int32_t sign) {
  ++changes_;
  for (const HostGrant& grant : grants)
    for (std::int32_t i = 0; i < grant.hosts; ++i) change(grant.host + i, sign * grant.gpus);
}

}  // namespace orrery
