// SPDX-License-Identifier: Apache-2.0
// Describes who asks a served model for what and when, and draws the requests.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "sim/base/units/units.h"
#include "workloads/traffic/lengths.h"
#include "workloads/traffic/request.h"

namespace orrery {

struct PoissonArrivals {
  Hertz rate;
};
// Independent gaps of a Gamma distribution; `variation` is their deviation over their mean, 1 as
// Poisson's, above it bursts.
struct GammaArrivals {
  Hertz rate;
  double variation = 1;
};
// Poisson with a rate that holds for a while; the list repeats.
struct RatePiece {
  Seconds length;
  Hertz rate;
};
struct DailyArrivals {
  std::vector<RatePiece> pieces;
};
// So many clients, each of which asks again when it was answered.
struct ClosedLoop {
  std::int64_t concurrency = 1;
};
struct OfflineArrivals {};  // all at 0
// As the trace says, its clock so many times faster.
struct TraceArrivals {
  double speed = 1;
};
using Arrivals = std::variant<PoissonArrivals, GammaArrivals, DailyArrivals, ClosedLoop,
                              OfflineArrivals, TraceArrivals>;

// A request is the first of so many turns. Each later one repeats all before it, outputs too, and
// adds a new prompt; it arrives an exponential time after the answer.
struct Sessions {
  Length turns = FixedLength{1};
  Length added = FixedLength{100};  // tokens that a later turn adds
  Seconds think;                    // mean
  std::int64_t unit_tokens = 64;    // how fine texts are compared
  std::int64_t shared = 0;          // tokens with which all sessions begin: a system prompt
};

// One of several kinds of requests.
struct TrafficClass {
  std::string name;
  double share = 1;  // of the requests, of the sum of all shares
  Length prompt = FixedLength{1}, output = FixedLength{1};
};

struct Traffic {
  Arrivals arrivals = OfflineArrivals{};
  std::int64_t requests = 1;  // of sessions: how many; of a trace: at most so many, 0 all
  std::int64_t warmup = 0;
  std::vector<TrafficClass> classes = {{.name = "default"}};
  std::optional<Sessions> sessions;
  // Lengths and prefixes come from here; drawn one by one unless the arrivals are the trace's.
  std::shared_ptr<const RequestList> trace;
};

// The same bytes for the same seed; the lengths of a request depend on its number alone. Error:
// rates and shares that are not positive, more than 10^9 tokens in a request, no requests, more
// hashes than 2^32; `flag` says where the traffic stood.
RequestList make_requests(const Traffic& traffic, std::uint64_t seed,
                          const std::string& flag = "traffic");

// "poisson:12/s", "gamma:12/s:3", "daily:8h:2/s:16h:12/s", "closed:64", "offline", "trace",
// "trace:2".
Arrivals parse_arrivals(std::string_view text, const std::string& flag);

}  // namespace orrery
