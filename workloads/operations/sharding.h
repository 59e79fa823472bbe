// SPDX-License-Identifier: Apache-2.0
// Adds what ZeRO-3 moves and copies: gathers of parameters, reductions of gradients, both unit by
// unit.
#pragma once

#include "workloads/layout/job.h"
#include "workloads/layout/layout.h"
#include "workloads/model/model.h"
#include "workloads/operations/program.h"
#include "workloads/parameters/state_memory.h"
#include "workloads/parameters/weight_split.h"
#include "workloads/stack/stack.h"

namespace orrery {

// Adds ZeRO-3's traffic to the programs of layers. Nothing where the layout does not shard.
class Sharding {
 public:
  Sharding(const Model& model, const Job& job, const Layout& layout, const Stack& stack);

  // Of one layer: beside the compute of the layers next to it.
  void add(LayerProgram& layer, const LocalParameters& local) const;
  // Of the ends: `vocabulary` parameters of the embedding and of the head. What comes first in a
  // microbatch's forward (the embedding and `first`, the first layer) has no compute to hide its
  // gather under, and what ends its backward none for its reduction.
  void add_ends(LayerProgram& embedding, LayerProgram& head, double vocabulary,
                const LocalParameters& first) const;

 private:
  enum class Place : std::uint8_t { beside, visible };
  void gather(Segment& s, const LocalParameters& local, double count, Place place) const;
  void reduce(Segment& s, const LocalParameters& local, double count, Place place) const;
  // Of the compute stream, unless it belongs to a gather beside that.
  void copy(Segment& s, double parameters, double bytes, double count,
            Place place = Place::visible) const;
  double reduce_copy_bytes() const;
  double shard_copy_bytes() const;
  double gather_copy_bytes() const;

  const Layout& layout_;
  const Stack& stack_;
  ShardWays ways_;
  bool adapters_ = false;  // of the parameters these alone have gradients
  bool tied_ = false;      // one table is embedding and head
  bool active_ = false;
  bool gathers_once_ = false;
  double gathers_ = 1;    // of a layer before a microbatch's forward
  double regathers_ = 1;  // and before its backward
  double reduces_ = 1;
};

}  // namespace orrery
