// SPDX-License-Identifier: Apache-2.0
// Knows how switches hash flows onto equal paths, and what the collisions cost.
#pragma once

#include <cstdint>

namespace orrery {

// Finaliser of SplitMix64 (Steele, Lea and Flood, OOPSLA 2014): every bit of the result depends on
// every bit of x.
constexpr std::uint64_t mix_bits(std::uint64_t x) {
  x = (x ^ (x >> 30U)) * 0xBF58476D1CE4E5B9U;
  x = (x ^ (x >> 27U)) * 0x94D049BB133111EBU;
  return x ^ (x >> 31U);
}

// A flow's hash, and its continuation over a queue pair, a switch and the like. Switches mix in
// their own numbers: the polarisation of switches that all hash alike is not modelled. Inline,
// since a study of a million accelerators hashes a thousand million times.
constexpr std::uint64_t hash_with_mixed(std::uint64_t hash, std::uint64_t mixed_value) {
  return mix_bits(hash + 0x9E3779B97F4A7C15U + mixed_value);
}
constexpr std::uint64_t hash_with(std::uint64_t hash, std::uint64_t value) {
  return hash_with_mixed(hash, mix_bits(value));
}
constexpr std::uint64_t flow_hash(std::uint64_t seed, std::int64_t from, std::int64_t to) {
  const std::uint64_t start = mix_bits(seed + 0x9E3779B97F4A7C15U);
  return hash_with(hash_with(start, static_cast<std::uint64_t>(from)),
                   static_cast<std::uint64_t>(to));
}
constexpr std::uint64_t flow_hash(std::uint64_t seed, std::int64_t from, std::int64_t to,
                                  std::uint64_t label) {
  return hash_with(flow_hash(seed, from, to), label);
}
// [0, choices), uniform for a uniform hash; choices in [1, 2^32).
constexpr std::int64_t hash_choice(std::uint64_t hash, std::int64_t choices) {
  return static_cast<std::int64_t>((hash >> 32U) * static_cast<std::uint64_t>(choices) >> 32U);
}

// What hashing costs between leaves and spines of a non-blocking fabric: every leaf sends, and
// receives, `flows` at NIC rate over `uplinks` links of that rate; a flow is `queue_pairs` equal
// parts, each hashed by itself. A link then carries X parts, X binomial with mean flows x
// queue_pairs / uplinks (balls into bins; near Poisson, so that loads of different links count as
// independent: Mitzenmacher and Upfal, Probability and Computing, chapter 5). The spine that the
// way up chose also decides the link down, on which parts from many leaves meet: 2 x uplinks x
// leaves loads in all (half, where all flows of a leaf go to one other: the same flows meet again).
// A flow ends with its last part and a synchronised collective with its last flow, on the link of
// the worst load M, after M / queue_pairs times as long as a flow alone takes. P(M <= x) = P(X <=
// x)^loads gives E[M] without simulation. With as many flows as uplinks and one queue pair, X has
// mean 1 but M is 5 or more: a collective keeps a fifth of the rate, and more queue pairs win it
// back as the square root of their number: M / mean - 1 ~ sqrt(2 ln(loads) / mean). All arguments
// at least 1.
double ecmp_worst_load(std::int64_t flows, std::int64_t uplinks, std::int64_t queue_pairs,
                       std::int64_t leaves);  // E[M / queue_pairs], in flows
// Rate of a synchronised collective over that with perfectly spread flows: ideal time over
// expected time, 0 to 1. Neither is below the time of a flow alone.
double ecmp_share(std::int64_t flows, std::int64_t uplinks, std::int64_t queue_pairs,
                  std::int64_t leaves);

// The worst load in parts on links that carry parts of one collective, where it has `own` on each
// of `leaves` leaves and others have `others` there: P(M <= x) = (1 - P(T > x) + P(no own) P(O >
// x)) ^ loads, T binomial of all parts, O of the others'. At least one of its own; parts between
// whole numbers are rounded.
double ecmp_worst_met(double own, double others, std::int64_t uplinks, std::int64_t leaves);

// The mean rate of flows that nothing synchronises, over that of spread ones. Low: every part gets
// its equal share of the worse of its two links. High: every link on its own is as busy as its
// parts can make it. Max-min fairness lies between.
struct EcmpAverage {
  double low = 0, high = 0;
};
EcmpAverage ecmp_average_share(std::int64_t flows, std::int64_t uplinks, std::int64_t queue_pairs);

}  // namespace orrery
