// SPDX-License-Identifier: Apache-2.0
// Reads what the store of a cluster gives all of its jobs together.
#pragma once

#include <cstdint>
#include <optional>

#include "sim/base/json/json.h"
#include "sim/base/units/units.h"

namespace orrery {

// A store that all jobs of a cluster share.
struct StoreRates {
  BytesPerSecond read, write;          // of all that do so at a time
  std::optional<BytesPerSecond> host;  // each way, of one host; none: as the profile says
};

// Settings store, store_write, store_host; nothing: each job has a store as if it were alone.
// Errors: bandwidths below 1 MB/s or above 1 EB/s, store_write or store_host without a store.
std::optional<StoreRates> read_store(const JsonValue& settings);

}  // namespace orrery
