// SPDX-License-Identifier: Apache-2.0
// Holds what a step took: its time by stage and label, its energy and its traffic.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "sim/base/units/ticks.h"
#include "sim/engine/network/flow_price.h"
#include "workloads/operations/program.h"

namespace orrery {

// Where one stage's step went; the labels sum to the step (law 13).
struct StageBreakdown {
  std::array<Ticks, label_count> label{};
  Ticks& operator[](Label l) { return label[static_cast<std::size_t>(l)]; }
  Ticks operator[](Label l) const { return label[static_cast<std::size_t>(l)]; }
  Ticks total() const;
};

// A collective that a stage runs `count` times a step, and what it does to the network.
struct NetworkUse {
  Label label = Label::data_comm;
  Collective collective;
  double count = 0;
  FlowPrice price;
};

struct StepResult {
  Ticks step;  // from the start of one step to the start of the next
  std::vector<StageBreakdown> stages;
  Joules energy_per_gpu;  // mean over stages, idle power included
  double throttle = 1;    // sustained over burst time of tensor work; 1: not throttled
  Bytes scale_up_bytes, scale_out_bytes;  // sent by one GPU of the busiest stage per step
  std::vector<NetworkUse> network;        // flow network only: of the stage that sends most
};

// Index of the stage that waits least for others: it paces the pipeline.
std::int64_t pacing_stage(const std::vector<StageBreakdown>& stages);

}  // namespace orrery
