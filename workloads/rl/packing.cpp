// SPDX-License-Identifier: Apache-2.0
// Fills bins, the longest sequence first.
#include "workloads/rl/packing.h"

#include <algorithm>
#include <cmath>
#include <functional>

#include "sim/base/errors/check.h"

namespace orrery {
namespace {

std::int64_t rounded_up(std::int64_t value, std::int64_t by) { return (value + by - 1) / by * by; }

// Tokens of each bin.
std::vector<std::int64_t> bins_of(std::vector<std::int64_t> sequences, std::int64_t capacity) {
  std::sort(sequences.begin(), sequences.end(), std::greater<>());
  std::vector<std::int64_t> bins;
  for (const std::int64_t tokens : sequences) {
    const auto fits = std::find_if(bins.begin(), bins.end(),
                                   [&](std::int64_t bin) { return bin + tokens <= capacity; });
    if (fits == bins.end())
      bins.push_back(tokens);
    else
      *fits += tokens;
  }
  return bins;
}

}  // namespace

PackedBatch pack(const std::vector<std::int64_t>& sequences, const PackingRules& rules) {
  ORRERY_CHECK(!sequences.empty() && rules.ranks > 0 && rules.round > 0, "nothing to pack");
  double sum = 0, squares = 0;
  for (const std::int64_t s : sequences) {
    sum += static_cast<double>(s);
    squares += static_cast<double>(s) * static_cast<double>(s);
  }
  const std::int64_t longest = *std::max_element(sequences.begin(), sequences.end());
  PackedBatch out;
  if (!rules.packed) {
    const auto count = static_cast<std::int64_t>(sequences.size());
    const std::int64_t each = rules.ranks * rules.together;
    out.microbatches = (count + each - 1) / each;
    out.document = rounded_up(longest, rules.round);
    out.tokens = out.document * rules.together;
    out.filled = sum / static_cast<double>(out.document * count);
    return out;
  }
  const std::vector<std::int64_t> bins = bins_of(sequences, rules.capacity);
  const auto count = static_cast<std::int64_t>(bins.size());
  out.microbatches = (count + rules.ranks - 1) / rules.ranks;
  const std::int64_t most = *std::max_element(bins.begin(), bins.end());
  // Where lengths differ, the time of a rank is that of its tokens in all.
  const double even = sum / static_cast<double>(out.microbatches * rules.ranks);
  out.tokens =
      rounded_up(rules.alike ? most : static_cast<std::int64_t>(std::ceil(even)), rules.round);
  out.document = std::clamp<std::int64_t>(std::llround(squares / sum), 1, out.tokens);
  out.filled = sum / static_cast<double>(out.tokens * out.microbatches * rules.ranks);
  return out;
}

}  // namespace orrery
