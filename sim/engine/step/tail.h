// SPDX-License-Identifier: Apache-2.0
// Times what data parallelism and the optimizer add after a stage's last pass.
#pragma once

#include <functional>

#include "sim/engine/pipeline/run.h"
#include "sim/engine/step/chunks.h"
#include "sim/engine/step/contention.h"
#include "sim/engine/step/ending.h"

namespace orrery {

struct Tail {
  Ticks data, optimizer, overhead;
  Ticks host;                             // dispatching the calls that reduce whole gradients
  Bytes scale_up_bytes, scale_out_bytes;  // sent by a rank
  Ticks total() const { return data + optimizer + overhead; }
};

// The tails of a step's stages under one ending.
class StageTails {
 public:
  // The step must outlive them.
  StageTails(const PricedStep& step, const Ending& ending);
  StageTails(const StageTails&) = delete;
  StageTails& operator=(const StageTails&) = delete;
  // After the passes that `run` tells, the last of which takes `paced` longer because of its host.
  Tail of(std::int64_t stage, const StageRun& run, Ticks paced);

 private:
  Seconds shown_earlier(Seconds gradients, double count, std::int64_t stage, const StageRun& run,
                        bool overlapped) const;

  const PricedStep& step_;
  const Ending ending_;
  GradientContention contention_;
  Seconds closing_;  // of calls that close a step
};

// The most that a host which runs ahead can add to a stage's last backward pass.
Ticks most_paced_by_host(const PricedStep& step, std::int64_t stage);

// Tells every collective that moves gradients or parameters of a stage, with its count in a step.
void list_data_traffic(const PricedStep& step, const Ending& ending, std::int64_t stage,
                       const std::function<void(const Collective&, double count)>& told);

// The optimizer's kernel on a stage, and the products that it runs beside it.
Kernel update_kernel(const PricedStep& step, const Ending& ending, std::int64_t stage);
double update_products(const PricedStep& step, const Ending& ending, std::int64_t stage);

}  // namespace orrery
