// SPDX-License-Identifier: Apache-2.0
// Writes what replayed traces took, for people and for machines.
#pragma once

#include <cstddef>
#include <string>

#include "sim/base/json/tree.h"
#include "sim/chakra/replay.h"
#include "sim/paper/document.h"

namespace orrery {

Document replay_document(const ReplayResult& result, const Cluster& cluster, NetworkMode network,
                         bool full, std::size_t width);
Json replay_json(const ReplayResult& result, const Cluster& cluster, NetworkMode network);

}  // namespace orrery
