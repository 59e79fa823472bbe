// SPDX-License-Identifier: Apache-2.0
// Counts the free accelerators of a cluster, host by host and by the switches above them. It knows
// no time and no jobs.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "topologies/fabric.h"
#include "topologies/host_set.h"

namespace orrery {

// Hosts that stand together: group g of a level has hosts g * reach to (g + 1) * reach - 1.
struct SlotLevel {
  std::string name;        // "leaf group"
  std::int32_t reach = 1;  // hosts; the last group may have fewer
};

// Levels from the inside out, each a multiple of the one below; the site holds all and has no
// entry.
struct SlotShape {
  std::int32_t hosts = 1;
  std::int32_t gpus_per_host = 8;
  std::int32_t last_host_gpus = 8;  // of the last host, which may be part full
  std::vector<SlotLevel> levels = {};
  std::int64_t gpus() const;
  // Of a full group of a level.
  std::int64_t gpus_within(std::int32_t level) const {
    return std::int64_t{levels[static_cast<std::size_t>(level)].reach} * gpus_per_host;
  }
  std::int32_t gpus_of(std::int32_t host) const;
};

// Hosts of `gpus_per_host`, scale-up domains of several hosts, leaf groups and pods, as the Clos
// shape of this many accelerators has them. Levels of one host, of all hosts, and such as do not
// divide the next one are left out.
SlotShape slot_shape(const Fabric& fabric, std::int64_t gpus, std::int64_t gpus_per_host);
// One pool in which only the number of accelerators counts.
SlotShape pool_shape(std::int64_t gpus);

// The same number of accelerators on each of neighbouring hosts.
struct HostGrant {
  std::int32_t host = 0, hosts = 1, gpus = 1;
  friend bool operator==(const HostGrant&, const HostGrant&) = default;
};
using Grants = std::vector<HostGrant>;
std::int32_t gpus_of_place(const Grants& place);  // all of it

class Slots {
 public:
  explicit Slots(SlotShape shape);
  const SlotShape& shape() const { return shape_; }
  std::int64_t total() const { return total_; }
  std::int64_t free() const { return free_; }
  // Of hosts that are out: not held, and not to be had.
  std::int64_t out() const { return out_; }
  std::int64_t held() const { return total_ - free_ - out_; }
  std::int32_t free_of(std::int32_t host) const {
    return is_out(host) ? 0 : free_of_[static_cast<std::size_t>(host)];
  }
  bool is_out(std::int32_t host) const { return is_out_[static_cast<std::size_t>(host)] != 0; }
  // Hosts with exactly so many free accelerators; only where there are several hosts.
  const HostSet& with_free(std::int32_t gpus) const {
    return with_free_[static_cast<std::size_t>(gpus)];
  }
  // Hosts of `gpus_per_host` of which none is taken and that are in use, in a group of a level.
  std::int32_t whole_hosts(std::size_t level, std::int32_t group) const {
    return whole_[level][static_cast<std::size_t>(group)];
  }
  std::int32_t groups(std::size_t level) const {
    return static_cast<std::int32_t>(whole_[level].size());
  }
  // All of `grants` must be free, or taken: the count of a host is checked, not whether it is out:
  // who thinks of giving something back may take it again.
  void take(std::span<const HostGrant> grants) { move(grants, -1); }
  void give(std::span<const HostGrant> grants) { move(grants, 1); }
  // How often something was taken, given or set out: whoever looked then sees the same now.
  std::uint64_t changes() const { return changes_; }
  // Takes a host out of use, or back. What is held of one that is out stays held until it is given.
  void set_out(std::int32_t host, bool out);

 private:
  void index(std::int32_t host, std::int32_t sign);
  void move(std::span<const HostGrant> grants, std::int32_t sign);
  void change(std::int32_t host, std::int32_t by);

  SlotShape shape_;
  std::int64_t total_ = 0, free_ = 0, out_ = 0;
  std::uint64_t changes_ = 0;
  std::vector<std::int32_t> free_of_;  // not held, of hosts that are out, too
  std::vector<std::uint8_t> is_out_;
  std::vector<HostSet> with_free_;
  std::vector<std::vector<std::int32_t>> whole_;  // by level, group
};

}  // namespace orrery
