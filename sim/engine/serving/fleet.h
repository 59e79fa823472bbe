// SPDX-License-Identifier: Apache-2.0
// Serves a list of requests on several engines, and says what became of each.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <optional>

#include "sim/engine/serving/rank.h"
#include "sim/engine/serving/router.h"
#include "sim/engine/serving/service_timeline.h"

namespace orrery {

// Equal engines behind one router.
struct ServingGroup {
  EngineShape shape;
  EnginePolicy policy;
  const StepPrices* prices = nullptr;
  std::int64_t replicas = 1;
  RouterPolicy router;
};

// What it takes to send the keys and values of a prompt from a prefill engine to a decode engine.
// Transfers of one prefill engine follow each other on its link; the latency is beside that.
class TransferPrices {
 public:
  virtual ~TransferPrices() = default;
  virtual Ticks on_link(std::int64_t tokens) const = 0;
  virtual Ticks latency(std::int64_t tokens) const = 0;
};

// Without `decode` the engines do all. With it they compute prompts and first tokens alone.
struct ServingFleet {
  ServingGroup engines;
  std::optional<ServingGroup> decode;
  const TransferPrices* transfers = nullptr;
};

struct ServingOptions {
  std::uint64_t seed = 1;
  int threads = 1;     // 0: all cores; the result is the same bytes on any number
  bool leaps = true;   // off: one event for each step, for tests
  bool fold = true;    // engines that get equal requests at equal times are simulated once
  bool check = false;  // all counts anew after each event, for tests
  const std::atomic<bool>* stop = nullptr;          // set: ends with what was served so far
  std::function<void(std::int64_t)> progress = {};  // requests that ended, now and then
  StepLog* log = nullptr;                           // takes the steps of each engine; no fold then
};

// Error at `fleet`: policies that cannot be, no engines, no blocks, texts in units that are no
// whole blocks.
ServiceTimeline serve(const RequestList& requests, const ServingFleet& fleet,
                      const ServingOptions& options);

}  // namespace orrery
