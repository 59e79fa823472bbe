// SPDX-License-Identifier: Apache-2.0
// Says how a stack divides parameters, gradients and layers over ranks.
#pragma once

#include <cstdint>

#include "sim/base/names.h"
#include "workloads/layout/layout.h"
#include "workloads/stack/unstated.h"

namespace orrery {

// How ZeRO-3 keeps what it shards. That decides which copies its collectives need around them.
enum class ShardStorage : std::uint8_t {
  in_place,  // gathered and reduced where parameters and gradients lie (Megatron-FSDP)
  flat,      // a flat tensor for each unit (FSDP1): gradients are joined, cast and divided in it
  parts,     // a shard for each parameter (FSDP2): gathers are copied out, gradients copied in
  bucketed,  // flat partitions, gradients in buckets of several parameters (DeepSpeed)
};

// Traffic of the copies around ZeRO-3's collectives over one read and one write of what they move:
// many tensors in one kernel, rows of each in turn.
struct ShardCopies {
  static constexpr const char* source = "orrery-measured-h200-sxm";
  Sourced<double> gathered =  // out of what was gathered
      unstated(1.06, 1.02, 1.25, Evidence::measured,
               "split_with_sizes_copy of decoder layers of 1B, 8B and 32B models over 2 and 8 "
               "ranks, one H200 (h200_sharding.jsonl): 3.2 to 3.9 TB/s",
               source);
  Sourced<double> reduced =  // into what is reduced
      unstated(1.2, 1.13, 1.4, Evidence::measured, "chunk_cat of the same: 2.8 to 3.5 TB/s",
               source);
  Sourced<double> widened =  // the same, from 16 to 32 bits
      unstated(2.03, 1.94, 2.2, Evidence::measured, "chunk_cat that casts to FP32: 1.8 to 2.0 TB/s",
               source);
  Sourced<double> shard =  // into what is gathered
      unstated(1.2, 1.14, 1.9, Evidence::measured,
               "foreach_copy from FP32 to 16 bits: 3.0 to 3.5 TB/s, 2.0 of a small shard", source);
};

// Who holds what, in which format, and when that is gathered and reduced.
struct StackSharding {
  Sourced<Bytes> bucket;                   // gradient bucket
  Sourced<Bytes> bucket_per_rank;          // buckets grow to this for every rank of the group
  Format gradient_format = Format::fp32;   // as reduced
  Format gradient_storage = Format::fp32;  // as kept
  Format parameter_gather_format = Format::bf16;
  bool sharded_at_once = false;  // ZeRO-1: one call after the last backward reduces gradients,
                                 // one gathers parameters; without shards gradients go by buckets
  ShardStorage shard_storage = ShardStorage::in_place;
  ShardCopies copies;
  bool reshard_after_forward = true;    // ZeRO-3 gathers again for backward what forward used
  bool reduce_each_microbatch = true;   // ZeRO-3; else gradients stay whole until the last
                                        // microbatch of a step, and parameters with them,
  bool reshard_after_backward = false;  // unless backward frees what it gathered all the same
  bool splits_vocabulary = true;        // embedding and head are split over tp
  // Rows of embedding and head are filled up to a multiple of this for every part of the table
  // (Megatron's make_vocab_size_divisible_by); 1: as the model has them.
  std::int64_t vocabulary_multiple = 1;
  Partition partition = Partition::even;
};

}  // namespace orrery
