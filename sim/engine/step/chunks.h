// SPDX-License-Identifier: Apache-2.0
// Prices every distinct chunk of a step once: what its passes take, beside those of its partner.
#pragma once

#include <cstddef>
#include <deque>
#include <vector>

#include "sim/engine/step/layers.h"

namespace orrery {

// Passes of one distinct chunk.
// NOLINTNEXTLINE(bugprone-exception-escape): small_vector moves its elements
struct ChunkTime {
  ChunkProgram program;
  ChunkProgram partner;       // whose passes run beside its own where the schedule pairs them
  std::size_t speed = 0;      // index of its speed class
  bool dual = false;          // both directions of a dual schedule hide each other's exchanges
  bool only_its_own = false;  // what it moves to the host depends on the whole layout
  PassTicks forward, backward, input_gradient, weight_gradient;
  Bytes scale_up_bytes, scale_out_bytes;  // sent by a rank in forward and backward
};

// Whether both run the same parts as often. What they own may differ.
bool same_work(const ChunkProgram& a, const ChunkProgram& b);

// Chunks that steps on the same layers met so far: most are like another layout's. They never move.
using KnownChunks = std::deque<ChunkTime>;

// The chunks of one layout, each with its passes' times.
class PricedChunks {
 public:
  // `programs`: the layout's, by pipeline position. `known` must outlive the chunks.
  PricedChunks(const StepCase& asked, const PricedLayers& layers,
               const std::vector<ChunkProgram>& programs, KnownChunks& known);

  std::int64_t per_stage() const { return per_stage_; }
  const ChunkTime& at(std::int64_t stage, std::int64_t chunk) const {
    return *distinct_[index(stage, chunk)];
  }
  // Distinct chunks count from 0.
  std::size_t index(std::int64_t stage, std::int64_t chunk) const {
    return index_[static_cast<std::size_t>(stage * per_stage_ + chunk)];
  }
  std::size_t distinct() const { return distinct_.size(); }
  // Whether a stage holds the same chunks as another.
  bool alike(std::int64_t stage, std::int64_t other) const;
  // Trained parameters of a stage on one rank, and those of its experts.
  double trained(std::int64_t stage) const;
  double trained_experts(std::int64_t stage) const;

 private:
  std::int64_t per_stage_ = 1;
  std::vector<const ChunkTime*> distinct_;
  std::vector<std::size_t> index_;  // [stage * per_stage + chunk] into distinct_
};

// A step whose passes are priced. What runs, bounds or lists it starts from here.
struct PricedStep {
  StepCase asked;
  const PricedLayers& layers;
  PricedChunks chunks;
};

// `context_beside` false: without the context-parallel traffic beside compute, of which layers
// together can hide less than each alone.
ChunkTime time_chunk(const StepCase& asked, const PricedLayers& layers, const ChunkProgram& chunk,
                     const ChunkProgram& partner, std::size_t speed, bool context_beside = true);

}  // namespace orrery
