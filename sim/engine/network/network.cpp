// SPDX-License-Identifier: Apache-2.0
// Hashes collectives.
#include "sim/engine/network/network.h"

#include <boost/container_hash/hash.hpp>

namespace orrery {

std::size_t CollectiveHash::operator()(const Collective& c) const {
  std::size_t seed = 0;
  boost::hash_combine(seed, c.bytes.si());
  boost::hash_combine(seed, static_cast<int>(c.kind));
  boost::hash_combine(seed, c.group.size);
  boost::hash_combine(seed, c.group.per_domain);
  return seed;
}

}  // namespace orrery
