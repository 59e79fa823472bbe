// SPDX-License-Identifier: Apache-2.0
// Knows how lengths of prompts and outputs are drawn.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>

#include "sim/base/random.h"

namespace orrery {

// Each length is at least one token.
struct FixedLength {
  std::int64_t tokens = 1;
};
// Whole numbers, both ends included.
struct UniformLength {
  std::int64_t low = 1, high = 1;
};
// Between `ratio` times the nominal length and all of it, as the client of InferenceX draws.
struct RatioLength {
  std::int64_t nominal = 1;
  double ratio = 1;
};
// exp of a normal; what lies above `cap` is `cap`.
struct LognormalLength {
  double median = 1, sigma = 0;
  std::int64_t cap = 1;
};
using Length = std::variant<FixedLength, UniformLength, RatioLength, LognormalLength>;

// Takes the next draws of `random`; a fixed length takes none.
std::int64_t draw(const Length& length, RandomStream& random);

// "1024", "uniform:100:2000", "ratio:8192:0.8", "lognormal:500:1.2:32768". Error: anything else,
// and lengths that are not between 1 and 10^9 in order; `flag` says where the text stood.
Length parse_length(std::string_view text, const std::string& flag);

}  // namespace orrery
