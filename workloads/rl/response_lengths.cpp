// SPDX-License-Identifier: Apache-2.0
// Finds the exponential law whose cut lengths have the mean that is asked for.
#include "workloads/rl/response_lengths.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "sim/base/errors/check.h"
#include "sim/base/random.h"

namespace orrery {
namespace {

constexpr std::uint64_t order_stream = 0x726f6c6c;  // of the shuffle
constexpr int halvings = 60;                        // of the scale's interval: past a double's bits

std::vector<std::int64_t> quantiles(double scale, std::int64_t longest, std::int64_t count) {
  std::vector<std::int64_t> out;
  out.reserve(static_cast<std::size_t>(count));
  for (std::int64_t i = 0; i < count; ++i) {
    const double u = (static_cast<double>(i) + 0.5) / static_cast<double>(count);
    const double length = std::min(-scale * std::log1p(-u), static_cast<double>(longest));
    out.push_back(std::max<std::int64_t>(1, std::llround(length)));
  }
  return out;
}

double mean_of(const std::vector<std::int64_t>& lengths) {
  double sum = 0;
  for (const std::int64_t l : lengths) sum += static_cast<double>(l);
  return sum / static_cast<double>(lengths.size());
}

}  // namespace

std::int64_t ResponseLengths::prompt_tokens() const {
  return std::max<std::int64_t>(1, std::llround(prompt));
}

std::vector<std::int64_t> draw_responses(const ResponseLengths& lengths, std::int64_t count,
                                         std::uint64_t seed) {
  const std::int64_t longest = lengths.longest();
  if (!(lengths.response >= 1 && lengths.response <= static_cast<double>(longest)))
    throw Error({.file = "responses",
                 .found = fmt::format("a mean of {:g} tokens", lengths.response),
                 .expected = fmt::format("1 to the {} that the context leaves", longest)});
  // The mean grows with the scale, to `longest` where nearly all are cut.
  double low = 0, high = 1e6 * static_cast<double>(longest);
  for (int i = 0; i < halvings; ++i) {
    const double middle = i == 0 ? lengths.response : (low + high) / 2;
    (mean_of(quantiles(middle, longest, count)) < lengths.response ? low : high) = middle;
  }
  std::vector<std::int64_t> out = quantiles(high, longest, count);
  RandomStream order(seed, order_stream);
  for (std::size_t i = out.size(); i > 1; --i) std::swap(out[i - 1], out[order.below(i)]);
  return out;
}

double cut_share(const ResponseLengths& lengths, const std::vector<std::int64_t>& responses) {
  const auto cut = std::count(responses.begin(), responses.end(), lengths.longest());
  return static_cast<double>(cut) / static_cast<double>(responses.size());
}

}  // namespace orrery
