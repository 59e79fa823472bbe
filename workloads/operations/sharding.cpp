// SPDX-License-Identifier: Apache-2.0
// Adds the collectives of ZeRO-3 and the copies around them to the programs of layers.
#include "workloads/operations/sharding.h"

#include <algorithm>

#include "workloads/parameters/optimizer.h"

namespace orrery {

Sharding::Sharding(const Model& model, const Job& job, const Layout& layout, const Stack& stack)
    : layout_(layout),
      stack_(stack),
      ways_(shard_ways(layout)),
      adapters_(job.task == Task::lora),
      tied_(model.tied_embeddings),
      active_(layout.zero_stage == 3 && layout.dense_replicas() > 1) {
  const std::int64_t microbatches = layout.microbatches(job);
  gathers_once_ = gathers_once(layout, stack, microbatches);
  if (gathers_once_) gathers_ = 1 / static_cast<double>(microbatches);
  if (accumulates_whole(layout, stack, microbatches))
    reduces_ = 1 / static_cast<double>(microbatches);
  // A stage that keeps parameters whole for its next microbatch has them for backward as well.
  const bool pipelined = gathers_once_ && layout.pp > 1;
  regathers_ = stack.sharding.reshard_after_forward && !pipelined ? 1 : 0;
}

void Sharding::copy(Segment& s, double parameters, double bytes, double count, Place place) const {
  if (parameters <= 0 || bytes <= 0 || count <= 0) return;
  Operation o{.label = Label::data_comm, .count = count};
  o.side_kernel = place == Place::beside;
  o.work = Kernel{.work = {.kind = WorkKind::copy,
                           .bytes_read = parameters * bytes / 2,
                           .bytes_written = parameters * bytes / 2},
                  .library = Library::fused};
  s.operations.push_back(o);
}

// Traffic of the copies of a gradient element around its reduction, in bytes of one pass. FSDP1
// joins the gradients of a unit in a flat tensor, casts that where the reduction is wider and
// divides it before the sum (torch/distributed/fsdp/_runtime_utils.py); FSDP2 copies gradients into
// the reduction's input, which casts them on the way (_fsdp_collectives.py); DeepSpeed copies them
// into a bucket and divides that (runtime/zero/stage3.py).
double Sharding::reduce_copy_bytes() const {
  constexpr double own = 2;  // gradients are computed in 16 bits
  const double reduced = bytes_per_element(stack_.sharding.gradient_format);
  const ShardCopies& copies = stack_.sharding.copies;
  switch (stack_.sharding.shard_storage) {
    case ShardStorage::in_place:
      return 0;
    case ShardStorage::flat:
      return 2 * own + (reduced > own ? own + reduced : 0) + 2 * reduced;
    case ShardStorage::parts:
      return (own + reduced) * (reduced > own ? copies.widened : copies.reduced).get();
    case ShardStorage::bucketed:
      return own + reduced + 2 * reduced;
  }
  return 0;
}

// The same of an element of a rank's own shard before its gather. FSDP casts what it keeps in FP32;
// FSDP2 copies it into the gather's input after that.
double Sharding::shard_copy_bytes() const {
  const double gathered = bytes_per_element(stack_.sharding.parameter_gather_format);
  const double kept = shards_master(layout_, stack_) && !adapters_ ? 4 : 2;
  const double cast = kept > gathered ? kept + gathered : 0;
  switch (stack_.sharding.shard_storage) {
    case ShardStorage::flat:
      return cast * stack_.sharding.copies.shard.get();
    case ShardStorage::parts:
      return (cast + 2 * gathered) * stack_.sharding.copies.shard.get();
    case ShardStorage::in_place:
    case ShardStorage::bucketed:
      return 0;
  }
  return 0;
}

// The same of a gathered element: shards lie rank by rank, and FSDP2 and DeepSpeed copy parameters
// out of them.
double Sharding::gather_copy_bytes() const {
  const double gathered = bytes_per_element(stack_.sharding.parameter_gather_format);
  switch (stack_.sharding.shard_storage) {
    case ShardStorage::parts:
      return 2 * gathered * stack_.sharding.copies.gathered.get();
    case ShardStorage::bucketed:
      return 2 * gathered;
    case ShardStorage::in_place:
    case ShardStorage::flat:
      return 0;
  }
  return 0;
}

void Sharding::gather(Segment& s, const LocalParameters& local, double count, Place place) const {
  if (count <= 0) return;
  const double element = bytes_per_element(stack_.sharding.parameter_gather_format);
  const auto add = [&](GroupKind group, double parameters, std::int64_t ways) {
    copy(s, parameters / static_cast<double>(ways), shard_copy_bytes(), count, place);
    // DeepSpeed gathers module by module: a layer's big weights, attention's two and the
    // feed-forward's two, each exceed what it coalesces.
    const double pieces = stack_.sharding.shard_storage == ShardStorage::bucketed ? 4 : 1;
    s.operations.push_back(
        {.label = Label::data_comm,
         .count = count * pieces,
         .work = CollectiveOperation{.kind = CollectiveKind::all_gather,
                                     .group = group,
                                     .bytes = Bytes(element * parameters / pieces),
                                     .beside_compute = place == Place::beside}});
    copy(s, parameters, gather_copy_bytes(), count);
  };
  add(GroupKind::shard, local.dense + local.adapters, ways_.dense);
  if (local.expert > 0 && ways_.expert > 1)
    add(GroupKind::expert_shard, local.expert, ways_.expert);
}

void Sharding::reduce(Segment& s, const LocalParameters& local, double count, Place place) const {
  const double element = bytes_per_element(stack_.sharding.gradient_format);
  const double dense = adapters_ ? local.adapters : local.dense;
  if (dense <= 0) return;
  const auto add = [&](CollectiveKind kind, GroupKind group, double bytes) {
    s.operations.push_back({.label = Label::data_comm,
                            .count = count,
                            .work = CollectiveOperation{.kind = kind,
                                                        .group = group,
                                                        .bytes = Bytes(bytes),
                                                        .beside_compute = place == Place::beside}});
  };
  add(CollectiveKind::reduce_scatter, GroupKind::shard, element * dense);
  copy(s, dense, reduce_copy_bytes(), count);
  if (ways_.dense_copies > 1)
    add(CollectiveKind::all_reduce, GroupKind::shard_replica,
        element * dense / static_cast<double>(ways_.dense));
  if (adapters_ || local.expert <= 0 || layout_.expert_replicas() <= 1) return;
  add(CollectiveKind::reduce_scatter, GroupKind::expert_shard, element * local.expert);
  copy(s, local.expert, reduce_copy_bytes(), count);
  if (ways_.expert_copies > 1)
    add(CollectiveKind::all_reduce, GroupKind::expert_shard_replica,
        element * local.expert / static_cast<double>(ways_.expert));
}

void Sharding::add(LayerProgram& layer, const LocalParameters& local) const {
  if (!active_) return;
  gather(layer.forward, local, gathers_, Place::beside);
  gather(layer.backward, local, regathers_, Place::beside);
  gather(layer.input_gradient, local, regathers_, Place::beside);
  reduce(layer.backward, local, reduces_, Place::beside);
  reduce(layer.weight_gradient, local, reduces_, Place::beside);
}

void Sharding::add_ends(LayerProgram& embedding, LayerProgram& head, double vocabulary,
                        const LocalParameters& first) const {
  if (!active_) return;
  const LocalParameters table{.dense = vocabulary};
  // Stages of a pipeline that keep their parameters meet both ends once a step.
  const Place end = gathers_once_ && layout_.pp > 1 ? Place::beside : Place::visible;
  gather(embedding.forward, table, gathers_, end);
  reduce(embedding.backward, table, reduces_, end);
  reduce(embedding.weight_gradient, table, reduces_, end);
  // The first layer's share is in add() too, as of every layer of its class; there it is hidden.
  if (end == Place::visible) {
    gather(embedding.forward, first, gathers_, end);
    reduce(embedding.backward, first, reduces_, end);
    reduce(embedding.weight_gradient, first, reduces_, end);
  }
  if (tied_) return;
  // The head's weights are the last that forward and the first that backward uses.
  gather(head.forward, table, gathers_, Place::beside);
  reduce(head.backward, table, reduces_, Place::beside);
  reduce(head.weight_gradient, table, reduces_, Place::beside);
}

}  // namespace orrery
