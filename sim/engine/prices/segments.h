// SPDX-License-Identifier: Apache-2.0
// Prices the parts of a serving step anew: rows, sampled rows, attention of decodes and of prompts.
#pragma once

#include <vector>

#include "sim/engine/cluster.h"
#include "sim/engine/network/ideal_network.h"
#include "sim/engine/step/segment_time.h"
#include "workloads/inference/serving_operations.h"
#include "workloads/serving/step_shape.h"

namespace orrery {

double seconds_of(const PhaseTime& phase);  // of all labels

// Operations of a step, how many of them are collectives, and how many a compiler can be shown:
// products, norms and element-wise kernels. Engines hide attention, experts and collectives from
// it.
struct Launches {
  double operations = 0, collectives = 0, shown = 0;
};

// One thread at a time.
class Segments {
 public:
  // All must outlive it.
  Segments(const Cluster& cluster, const Model& model, const EngineLayout& layout,
           const Stack& stack);
  PhaseTime rows(std::int64_t rows, bool in_graph) const;  // with the embedding
  // The same of a rank whose group has other rows, outside of graphs.
  PhaseTime rows(std::int64_t rows, const GroupRows& group) const;
  // Of a rank's time outside of graphs what the group decides: seconds of sending so many rows of
  // its largest rank, and those of experts, with gathers, over so many rows of all. Each as it is
  // where all ranks have as many: with what the board's power limit then adds.
  double exchange_seconds(std::int64_t largest) const;
  double expert_seconds(std::int64_t all) const;
  PhaseTime head(std::int64_t sampled, bool in_graph) const;
  // The same of a step that ends with it: the next one is prepared.
  PhaseTime ended(std::int64_t sampled, bool in_graph) const;
  PhaseTime joined(const std::vector<JoinedInput>& inputs, std::int64_t rows, bool first,
                   bool in_graph) const;
  PhaseTime decode(std::int64_t sequences, std::int64_t each, std::int64_t history) const;
  PhaseTime prefill(const PrefillChunk& chunk) const;
  // What the host launches for a step with a prompt where no graph holds it; `indexed`: indexers
  // choose among its keys.
  Launches launches(bool indexed) const;
  // Of these, operations of attention over latents, from its first product to its last but one.
  double latent_launches() const;
  // Whether the host waits in each layer for the counts of rows that are sent to a rank.
  bool waits_for_counts() const { return operations_.waits_for_counts(); }

 private:
  PhaseTime price(const Segment& segment, bool in_graph) const;
  PhaseTime sustained(PhaseTime phase) const;
  template <class Lower>
  PhaseTime burst_layers(bool in_graph, const Lower& lower) const;  // without the power limit
  template <class Lower>
  PhaseTime layers(bool in_graph, const Lower& lower) const {
    return sustained(burst_layers(in_graph, lower));
  }
  double shared_seconds(const GroupRows& group, std::int64_t rows) const;

  const Model& model_;
  EngineLayout layout_;
  ServingOperations operations_;
  StepContext context_;
  Placement placement_;
  mutable IdealNetwork network_;   // remembers prices
  std::vector<double> layers_of_;  // of each class
};

}  // namespace orrery
