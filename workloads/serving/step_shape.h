// SPDX-License-Identifier: Apache-2.0
// Says what one step of a serving engine computes.
#pragma once

#include <cstdint>
#include <vector>

namespace orrery {

struct PrefillChunk {
  std::int64_t start = 0, tokens = 0;  // tokens of a prompt after `start` that are in the cache
};

// Rows of a step over the ranks that share experts, each with attention of its own.
struct GroupRows {
  std::int64_t largest = 0, all = 0;  // of the rank that has most; of all ranks together
};

struct StepShape {
  std::int64_t decodes =
      0;  // sequences that get one token (with speculation: 1 + drafts rows each)
  std::int64_t contexts =
      0;                    // sum over decodes of the tokens whose keys they read, the new one too
  std::int64_t drafts = 0;  // draft tokens a sequence verified beside its own
  std::vector<PrefillChunk> chunks;
  std::int64_t sampled = 0;  // sequences that get a token: decodes and chunks that end their prompt
  // Where a rank of its group has a prompt; zeros: none has, or each rank has as many rows as this.
  GroupRows group;

  bool beside_prompts() const { return !chunks.empty() || group.all > 0; }
  std::int64_t rows() const {
    std::int64_t rows = decodes * (1 + drafts);
    for (const PrefillChunk& chunk : chunks) rows += chunk.tokens;
    return rows;
  }
};

}  // namespace orrery
