// SPDX-License-Identifier: Apache-2.0
// Prices the steps of a serving engine: tables compiled once, that any thread may ask.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "sim/engine/cluster.h"
#include "sim/engine/serving/step_prices.h"
#include "sim/engine/step/segment_time.h"
#include "workloads/inference/serving_operations.h"

namespace orrery {

// Time of one step by what takes it, host included.
struct StepParts {
  std::array<Seconds, label_count> time{};
  Seconds drafting;  // passes of the network that guesses tokens, all of them, whatever they do
  Joules energy;     // of a GPU above idle, all stages of a pipeline together
  Seconds total() const;
};

// One engine: a model laid over GPUs of a cluster by a stack's kernels. A step's time is a sum of
// what its rows take, what the sampled ones take, what attention takes and what of the host shows.
//
// Rows: batches of decodes pad to captured sizes where the stack draws graphs; between nodes of the
// table time is linear. Attention of decodes: linear in the sum of their contexts between nodes of
// the mean context, so that sums over steps have a closed form.
//
// With a drafter decodes have 1 + drafts rows each, and its passes follow in the same step; shapes
// with decodes have as many drafts as it.
class EnginePrices : public StepPrices {
 public:
  // All must outlive it. `most_sequences`: of a batch, on one attention rank.
  EnginePrices(const Cluster& cluster, const Model& model, const EngineLayout& layout,
               const Stack& stack, std::int64_t most_sequences, const Drafter* drafter = nullptr);
  ~EnginePrices() override;
  EnginePrices(const EnginePrices&) = delete;
  EnginePrices& operator=(const EnginePrices&) = delete;

  DecodePiece decode(std::int64_t decodes, std::int64_t contexts) const override;
  Ticks step(const StepShape& shape) const override;
  Ticks launching(const StepShape& shape, Ticks step) const override;
  // The same, by parts, computed anew.
  StepParts parts(const StepShape& shape) const;
  Ticks launching() const;  // of a step with prompts in no graph; indexers choose

 private:
  class Tables;
  std::unique_ptr<Tables> tables_;
};

}  // namespace orrery
