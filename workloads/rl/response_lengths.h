// SPDX-License-Identifier: Apache-2.0
// Draws how long the responses of an RL step are: exponential, cut where the context ends.
#pragma once

#include <cstdint>
#include <vector>

namespace orrery {

// Tokens of a prompt, mean tokens of a response, and the context that both may fill.
struct ResponseLengths {
  double prompt = 0, response = 0;
  std::int64_t context = 0;
  std::int64_t prompt_tokens() const;
  std::int64_t longest() const { return context - prompt_tokens(); }
};

// `count` response lengths in a random order, at least one token each, whose mean is `response` to
// a token. Of all distributions of a given mean the exponential one assumes least; an engine stops
// a response that fills the context, so that what lies above is longest(). They are its quantiles
// at (i + 1/2) / count, so that the mean has no noise. Error: a mean outside [1, longest()].
std::vector<std::int64_t> draw_responses(const ResponseLengths& lengths, std::int64_t count,
                                         std::uint64_t seed);

// The share of the responses that fill the context.
double cut_share(const ResponseLengths& lengths, const std::vector<std::int64_t>& responses);

}  // namespace orrery
