// SPDX-License-Identifier: Apache-2.0
// Packs sequences of many lengths into microbatches of one size.
#pragma once

#include <cstdint>
#include <vector>

namespace orrery {

// What a microbatch of a batch is, once packed.
struct PackedBatch {
  std::int64_t microbatches = 0;  // of each data-parallel rank
  std::int64_t tokens = 0;        // of each, padding included
  std::int64_t document = 0;      // tokens of the sequence that a token lies in, in the mean
  double filled = 1;              // share of all tokens that are no padding
};

struct PackingRules {
  std::int64_t ranks = 1;     // of data parallelism, that get as many microbatches each
  std::int64_t capacity = 0;  // tokens of a microbatch
  std::int64_t round = 1;     // tokens of which microbatches are multiples
  bool alike = false;         // pipelines: all microbatches are as long as the longest
  bool packed = true;         // else a microbatch has `together` sequences, padded to the longest
  std::int64_t together = 1;
};

// First fit, longest sequences first (Johnson 1974), which needs as many bins as the modified rule
// of NeMo RL or a few more. Ranks that miss a microbatch get an empty one: the rank with most sets
// the pace. Attention's work goes with the squares of the sequences, which `document` keeps.
// Sequences longer than the capacity are a bin of their own.
PackedBatch pack(const std::vector<std::int64_t>& sequences, const PackingRules& rules);

}  // namespace orrery
