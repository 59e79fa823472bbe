// SPDX-License-Identifier: Apache-2.0
// Holds what became of each request of a served model, and what its engines did.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "sim/base/units/ticks.h"
#include "sim/engine/serving/gap_histogram.h"
#include "workloads/traffic/request.h"
#include "workloads/traffic/service_target.h"

namespace orrery {

enum class RequestState : std::uint8_t { expected, queued, running, finished, rejected, lost };

// Times are those of the client.
struct RequestRecord {
  Ticks arrival, scheduled, first, last;  // `scheduled`: its first step begins
  std::int32_t cached = 0;                // tokens of its prompt that were in a cache at first
  std::int32_t replica = -1;
  std::uint16_t preemptions = 0;
  RequestState state = RequestState::expected;
  bool operator==(const RequestRecord&) const = default;
};

// How many there were over time: the integral is exact, so that Little's law is.
struct Gauge {
  std::int64_t count = 0;
  Ticks since;
  __int128 area = 0;  // of count over picoseconds
  void change(Ticks now, std::int64_t by) {
    area += static_cast<__int128>(count) * (now - since).ps;
    since = now;
    count += by;
  }
};

// Sums over engines; those of two engines add up.
struct ServiceTotals {
  std::int64_t steps = 0, decode_steps = 0, mixed_steps = 0;  // the rest: prompts alone
  __int128 busy = 0, decode_time = 0, mixed_time = 0;         // picoseconds of engines
  std::int64_t sequences = 0;               // sum over steps of the sequences that got a token
  std::int64_t prefilled = 0, emitted = 0;  // tokens
  // Of requests that start the first time: tokens of their prompts, those of them that were cached,
  // and of these those from below device memory.
  std::int64_t prompts = 0, cached = 0, from_tiers = 0;
  // Of requests that made room: tokens lost, and then swapped in, or found of what they had left.
  std::int64_t recomputed = 0, restored = 0, found_again = 0;
  std::int64_t preemptions = 0, drafted = 0, accepted = 0;
  __int128 queued_time = 0, running_time = 0;  // integrals of requests over time
  __int128 waited = 0;                         // the sum of the times that requests waited
  // Of requests that go from one engine to another: on their way, and then before the other's step.
  __int128 on_the_way = 0, waited_there = 0;
  // How much later last tokens were read than made, over all, less the same of first tokens.
  __int128 read_late = 0;
  ServiceTotals& operator+=(const ServiceTotals& other);
  bool operator==(const ServiceTotals&) const = default;
};

// Alike steps of a batch that followed each other, for pictures.
struct StepRecord {
  Ticks start, end;
  std::int32_t replica = 0, lane = 0;
  std::int64_t steps = 0;
  std::int64_t decodes = 0, prompt_tokens = 0;  // of all ranks, in each of the steps
  std::int64_t running = 0, queued = 0;         // requests of the batch while they ran
  std::int64_t running_after = 0, queued_after = 0;
};
// The first `most` records of each engine; `cut` where it had more. Engines one after the other,
// each in order of time.
struct StepLog {
  std::size_t most = 0;
  std::vector<StepRecord> steps;
  bool cut = false;
};

struct ServiceTimeline {
  std::vector<RequestRecord> requests;
  ServiceTotals totals;
  GapHistogram gaps;
  __int128 in_system = 0;  // integral of requests between arrival and last token
  Ticks end;               // the last event
  bool stopped = false;    // before all were served
  bool operator==(const ServiceTimeline&) const = default;
};

struct RequestCounts {
  std::int64_t arrived = 0, finished = 0, running = 0, queued = 0, rejected = 0, lost = 0;
};
RequestCounts count_requests(const ServiceTimeline& timeline);

struct LatencySummary {
  std::int64_t count = 0;
  Seconds mean, p50, p90, p95, p99;
};

// Of the requests that finished, those of a class alone where one is named, warm-up left out.
struct ServiceSummary {
  LatencySummary ttft, tpot, itl, e2e, wait;
  std::int64_t requests = 0, prompt_tokens = 0, cached_tokens = 0, output_tokens = 0;
  Seconds span;            // from the first counted arrival to the last counted token
  double output_rate = 0;  // tokens a second over the span
  double request_rate = 0;
};
ServiceSummary summarise(const RequestList& list, const ServiceTimeline& timeline,
                         std::optional<std::int32_t> class_index = std::nullopt);

// Linear interpolation between order statistics, as percentile() of doubles; 0 of none. Reorders.
Seconds tick_percentile(std::span<Ticks> values, double percent);

// A request keeps a target when it keeps each bound on its own; bounds between tokens are kept on
// average, and who was rejected keeps none. `goodput` counts those, a second; `kept` says of each
// bound whether the service as a whole keeps it, `shares` how many of its requests do. What is
// `reached` is of those that were served; a percentile that is kept holds of all.
struct TargetResult {
  double goodput = 0, share = 0;
  std::int64_t tokens = 0;  // output of the requests that keep it
  std::vector<double> shares;
  std::vector<Seconds> reached;
  std::vector<bool> kept;
};
TargetResult against(const ServiceTarget& target, const RequestList& list,
                     const ServiceTimeline& timeline);

}  // namespace orrery
