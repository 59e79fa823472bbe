// SPDX-License-Identifier: Apache-2.0
// Prices steps by straight lines, for tests and benches of serving that need no physics.
#pragma once

#include <cstdint>

#include "sim/engine/serving/fleet.h"

namespace orrery {

// A step takes a base, and so much for each sequence, token of its context and token of a prompt.
// Pieces of contexts cost their own rates where `piece` is set.
class AffinePrices : public StepPrices {
 public:
  std::int64_t base = 1'000'000, sequence = 10'000, context = 7, token = 50'000, past = 3;
  std::int64_t piece = 0;   // contexts of a piece; each next one costs half a rate more
  std::int64_t launch = 0;  // of a step with prompts, by the host

  DecodePiece decode(std::int64_t decodes, std::int64_t contexts) const override {
    if (piece == 0)
      return {Ticks{base + sequence * decodes}, Ticks{context}, 0, std::int64_t{1} << 50};
    const std::int64_t number = contexts / piece, first = number * piece;
    std::int64_t at_first = base + sequence * decodes;
    // 1 + n / 2 rates for piece n: sums of n pieces before it.
    at_first += piece * (context * number + context * (number * (number - 1) / 2) / 2);
    return {Ticks{at_first}, Ticks{context + context * number / 2}, first, first + piece - 1};
  }
  Ticks step(const StepShape& shape) const override {
    std::int64_t time = base;
    if (shape.decodes > 0) {
      const DecodePiece p = decode(shape.decodes, shape.contexts);
      time = p.at_first.ps + p.per_token.ps * (shape.contexts - p.first);
      time += shape.drafts * shape.decodes * sequence;
    }
    for (const PrefillChunk& chunk : shape.chunks)
      time += token * chunk.tokens + past * chunk.tokens * (chunk.start / 64);
    return Ticks{time};
  }
  Ticks launching(const StepShape& shape, Ticks) const override {
    return Ticks{shape.chunks.empty() ? 0 : launch};
  }
};

class AffineTransfers : public TransferPrices {
 public:
  std::int64_t token = 2'000, wait = 5'000;
  Ticks on_link(std::int64_t tokens) const override { return Ticks{token * tokens}; }
  Ticks latency(std::int64_t) const override { return Ticks{wait}; }
};

}  // namespace orrery
