// SPDX-License-Identifier: Apache-2.0
// Knows the end of a stage's step in a trace: gradients, the optimizer, parameters.
#pragma once

#include <vector>

#include "sim/chakra/stage_passes.h"
#include "sim/engine/step/result.h"

namespace orrery {

// What a stage does beside its passes.
class StageTail {
 public:
  // `breakdown`: where the predicted step of the stage went. The prices must outlive it.
  StageTail(const PricedStep& step, const StageBreakdown& breakdown, TracePrices& prices,
            std::int64_t stage);
  // Before the passes: parameters that the step before updated and that hide under the first ones.
  void begin(StageTrace& out);
  // After them: gradients, most of which hide under the last passes, and the update.
  void end(const StagePasses& passes, StageTrace& out);

 private:
  struct Buckets {
    StepCollective each;
    std::int64_t count = 0;
  };
  static Seconds time_of(const std::vector<Buckets>& all);
  static std::vector<Buckets> split_off(std::vector<Buckets>& from, Seconds time);
  static NodeIndex add(const StepCollective& c, const NodeList& after, StageTrace& out);
  static NodeList chain(const std::vector<Buckets>& buckets, NodeList after, StageTrace& out);

  std::vector<Buckets> gradients_, early_parameters_, late_parameters_;
  std::vector<StepCollective> tables_;  // word tables of the first and the last stage
  Seconds shown_gradients_, optimizer_, rest_;
};

}  // namespace orrery
