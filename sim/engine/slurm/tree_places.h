// SPDX-License-Identifier: Apache-2.0
// Takes hosts for a gang as Slurm's topology/tree does: leaf by leaf.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "sim/engine/slurm/host_words.h"

namespace orrery {

// What a gang asks for: whole hosts, and GPUs of one more.
struct SlurmGang {
  std::int32_t hosts = 0, rest = 0;
};

struct SlurmPlace {
  std::vector<std::int32_t> hosts;        // taken whole, ascending
  std::optional<std::int32_t> rest_host;  // of which a part is taken
  bool has(HostWordsView set) const;      // one of them is in it
};

class TreePlaces {
 public:
  // `leaf`: hosts of a leaf switch; the last one may have fewer.
  TreePlaces(std::int32_t hosts, std::int32_t leaf) : hosts_(hosts), leaf_(leaf) {}
  // Whether there is a place. `whole`: hosts free as a whole; `part`: with room for the rest, those
  // among them.
  static bool exists(const SlurmGang& gang, HostWordsView whole, HostWordsView part) {
    return has_hosts(whole, gang.hosts) && (gang.rest == 0 || has_hosts(part, gang.hosts + 1));
  }
  // One that exists. `part` is left without the hosts that are taken.
  SlurmPlace take(const SlurmGang& gang, HostWordsView whole, HostWords& part);

 private:
  void take_hosts(HostWordsView eligible, std::int32_t count, std::vector<std::int32_t>& taken);

  std::int32_t hosts_, leaf_;
  std::vector<std::int32_t> counts_;  // of leaves; -1: one that was taken from
};

}  // namespace orrery
