// SPDX-License-Identifier: Apache-2.0
// Knows how a study of routing is asked for and printed: one row for every way to route.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "sim/app/answer/whole.h"
#include "topologies/fabric.h"

namespace orrery {

struct TrafficQuestion {
  std::string pattern = {};                // as traffic_pattern_names()
  std::string routing = {};                // empty: the fabric's own beside the others
  std::optional<std::int64_t> paths = {};  // queue pairs of a hashed flow
  std::int64_t group = 0, rounds = 0;      // 0: the study's own choice
  std::uint64_t seed = 1;
  bool asked() const {
    return !pattern.empty() || !routing.empty() || paths || group > 0 || rounds > 0;
  }
};

// `kind` and `name` say what was asked for, a cluster or a fabric. Errors name flags that are not
// understood, and what the study cannot do on this fabric.
WholeAnswer traffic_answer(const std::string& kind, const std::string& name, const Fabric& fabric,
                           std::int64_t accelerators, const TrafficQuestion& question,
                           const AnswerHead& head);

}  // namespace orrery
