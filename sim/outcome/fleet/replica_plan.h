// SPDX-License-Identifier: Apache-2.0
// Decides how many replicas of a served model are to stand at each time, and when each is asked
// for.
#pragma once

#include <cstdint>
#include <vector>

#include "sim/base/text/enum_names.h"
#include "workloads/traffic/load_curve.h"

namespace orrery {

// fixed: what the peak needs, always. expected: what the curve says of the time until the next
// check, asked for so early that it has started by then. observed: what the time since the last
// check needed, asked for at the check.
enum class ReplicaScale : std::uint8_t { fixed, expected, observed };
inline constexpr auto replica_scale_text =
    enum_names<ReplicaScale>({"fixed", "expected", "observed"});

struct ReplicaRule {
  ReplicaScale scale = ReplicaScale::expected;
  double bears = 1;     // requests a second with which a replica keeps its promises
  double headroom = 0;  // by so much the load is taken for higher
  std::int64_t least = 1, most = INT64_MAX;
  FleetTime check_every{INT64_C(300'000'000)};
  FleetTime start;  // from its accelerators until it serves
};

// That a load needs, whatever `least` and `most` say.
std::int64_t replicas_for(double rate, const ReplicaRule& rule);

// One replica from the time at which it is asked for until it leaves. At once on accelerators, it
// serves from `submit` + rule.start on.
struct ReplicaLife {
  std::int64_t replica = 0;  // from 1: the last ones leave first
  FleetTime submit, until;
};
// In order of `submit`, of equals in order of `replica`. The service is open from `open` on, which
// is at least rule.start, until `close`.
std::vector<ReplicaLife> replica_lives(const LoadCurve& load, const ReplicaRule& rule,
                                       FleetTime open, FleetTime close);

}  // namespace orrery
