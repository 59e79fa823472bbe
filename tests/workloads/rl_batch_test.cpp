// SPDX-License-Identifier: Apache-2.0
// Holds lengths of responses and packed batches to what they are drawn and packed for.
#include <catch2/catch.hpp>

#include <algorithm>
#include <numeric>

#include "sim/base/errors/check.h"
#include "workloads/rl/packing.h"
#include "workloads/rl/response_lengths.h"

namespace orrery {
namespace {

double mean_of(const std::vector<std::int64_t>& values) {
  return static_cast<double>(std::accumulate(values.begin(), values.end(), std::int64_t{0})) /
         static_cast<double>(values.size());
}

TEST_CASE("responses have the mean that is asked for, and none is longer than the context") {
  for (const double mean : {50.0, 700.0, 3251.0, 3990.0}) {
    const ResponseLengths lengths{.prompt = 102, .response = mean, .context = 4096};
    const auto drawn = draw_responses(lengths, 2048, 1);
    CAPTURE(mean);
    CHECK(mean_of(drawn) == Approx(mean).margin(1));
    CHECK(*std::min_element(drawn.begin(), drawn.end()) >= 1);
    CHECK(*std::max_element(drawn.begin(), drawn.end()) <= 3994);
  }
}

TEST_CASE("few of an exponential law's responses are cut, most of a mean near the context") {
  // A mean of a quarter of the room: 1 - exp(-x) = x / 4 at x = 3.92, and exp(-3.92) is 2%.
  const ResponseLengths some{.prompt = 96, .response = 1000, .context = 4096};
  CHECK(cut_share(some, draw_responses(some, 4096, 1)) == Approx(0.02).margin(0.002));
  const ResponseLengths most{.prompt = 96, .response = 3900, .context = 4096};
  CHECK(cut_share(most, draw_responses(most, 4096, 1)) > 0.9);
}

TEST_CASE("a seed changes the order of responses alone") {
  const ResponseLengths lengths{.prompt = 10, .response = 500, .context = 2048};
  auto one = draw_responses(lengths, 512, 1), other = draw_responses(lengths, 512, 2);
  CHECK(one != other);
  CHECK(one == draw_responses(lengths, 512, 1));
  std::sort(one.begin(), one.end());
  std::sort(other.begin(), other.end());
  CHECK(one == other);
}

TEST_CASE("a mean that the context does not hold is refused") {
  CHECK_THROWS_WITH(draw_responses({.prompt = 100, .response = 5000, .context = 4096}, 8, 1),
                    Catch::Contains("5000") && Catch::Contains("3996"));
}

TEST_CASE("sequences share microbatches, and ranks get as many each") {
  // First fit of the longest first: 9 | 6 + 4 | 5 + 3 + 2.
  const std::vector<std::int64_t> sequences{6, 2, 9, 5, 4, 3};
  const PackedBatch one = pack(sequences, {.ranks = 1, .capacity = 10});
  CHECK(one.microbatches == 3);
  CHECK(one.tokens == 10);  // 29 over three, rounded up
  CHECK(one.filled == Approx(29.0 / 30));
  // Of two ranks the one with most has two.
  const PackedBatch two = pack(sequences, {.ranks = 2, .capacity = 10});
  CHECK(two.microbatches == 2);
  CHECK(two.tokens == 8);
  // Pipelines pad to the longest bin.
  CHECK(pack({9, 3}, {.ranks = 1, .capacity = 10, .alike = true}).tokens == 9);
  CHECK(pack({9, 3}, {.ranks = 1, .capacity = 10}).tokens == 6);
}

TEST_CASE("a token attends to the sequence that it lies in") {
  // Half of 100 + 300 tokens squared: (100^2 + 300^2) / 400.
  CHECK(pack({100, 300}, {.ranks = 1, .capacity = 400}).document == 250);
}

TEST_CASE("without packing each sequence is as long as the longest") {
  const PackedBatch padded =
      pack({100, 300, 200, 50}, {.ranks = 2, .capacity = 400, .round = 64, .packed = false});
  CHECK(padded.microbatches == 2);
  CHECK(padded.tokens == 320);
  CHECK(padded.filled == Approx(650.0 / 1280));
}

}  // namespace
}  // namespace orrery
