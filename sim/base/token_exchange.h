// SPDX-License-Identifier: Apache-2.0
// Knows what an exchange of tokens between expert ranks is, beside its bytes.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numeric>

#include "sim/base/names.h"

namespace orrery {

// What an exchange of tokens among experts' ranks does: send each token to its experts, bring the
// results back and add them, or tell how many will come. Anything else is of the first kind.
enum class ExchangePhase : std::uint8_t { dispatch, combine, prepare };

// What a library that knows tokens is told, beside the bytes (which are tokens x experts of a token
// x bytes of one row). tokens = 0: unknown; then every copy is taken to travel by itself.
struct TokenExchange {
  ExchangePhase phase = ExchangePhase::dispatch;
  std::int64_t tokens = 0;   // of one rank
  std::int64_t experts = 0;  // that one token goes to
  std::int64_t pool = 0;     // experts that there are, each with a counter of its own; 0: unknown
  double reaches = 0;        // ranks that one token goes to; 0: experts are drawn at random
  std::int64_t most_domains = 0;  // that one token may go to (group-limited routing); 0: any
  std::int64_t sms = 0;           // that the kernel is given; 0: the library's own choice
  bool in_turn = false;           // experts are dealt out in turn: those of a token are neighbours
  bool operator==(const TokenExchange&) const = default;
};

// Places, of `places` with equally many experts each, that one token goes to. Drawn at random,
// experts share a place now and then; in turn (the next token takes the experts after the last
// one's), they share as often as neighbours do. Without a pool nothing is known of neighbours.
inline double places_reached(const TokenExchange& e, double places) {
  const auto experts = static_cast<double>(e.experts);
  if (!e.in_turn || e.pool <= 0) return places * (1 - std::pow(1 - 1 / places, experts));
  const double each = std::max(1.0, static_cast<double>(e.pool) / places);
  const std::int64_t step = std::max<std::int64_t>(1, e.experts);
  const std::int64_t turns = e.pool / std::gcd(step, e.pool);
  double reached = 0;
  for (std::int64_t i = 0; i < turns; ++i) {
    const auto first = static_cast<double>(i * step % e.pool);
    const double last = std::floor((first + experts - 1) / each);
    reached += std::min(places, last - std::floor(first / each) + 1);
  }
  return reached / static_cast<double>(turns);
}

// Whether the library is told of tokens: DeepEP's kernels and those of an NVLink domain.
constexpr bool knows_tokens(CollectiveLibrary l) {
  return l == CollectiveLibrary::deepep || l == CollectiveLibrary::nvlink_two_sided ||
         l == CollectiveLibrary::nvlink_one_sided;
}

}  // namespace orrery
