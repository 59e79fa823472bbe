// SPDX-License-Identifier: Apache-2.0
// Tests saves on a shared store: what their means say against saves that are played out.
#include "sim/outcome/fleet/shared_saves.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>

#include "sim/base/random.h"
#include "sim/engine/losses/shared_reads.h"
#include "tests/base/fresh_seed.h"

namespace orrery {
namespace {

constexpr std::int64_t gigabyte = 1'000'000'000;

struct PeriodicSaver {
  double size = 0, most = 0, interval = 0;  // bytes, bytes a second, seconds
};

// The mean time of a save of each: all save every interval from a phase of its own on; whoever
// still saves then goes on, and the save that would have begun is left out.
std::vector<double> played_out(const std::vector<PeriodicSaver>& savers, double store,
                               RandomStream& random, int saves) {
  SharedReads writes(static_cast<std::int64_t>(store));
  std::vector<double> sum(savers.size()), count(savers.size()), phase(savers.size());
  const auto ask = [&](std::size_t i, double at) {
    const double alone = savers[i].size / savers[i].most;
    writes.ask(static_cast<std::uint32_t>(i), {std::llround(at * 1e6)},
               {.alone = {std::llround(alone * 1e6)},
                .after = {},
                .bytes_per_s = std::llround(savers[i].most)});
  };
  for (std::size_t i = 0; i < savers.size(); ++i) {
    phase[i] = random.uniform() * savers[i].interval;
    ask(i, phase[i]);
  }
  int done = 0;
  while (done < saves * static_cast<int>(savers.size())) {
    for (const SharedReads::Read& write : writes.pass_to(writes.next())) {
      const std::size_t i = write.job;
      sum[i] += to_seconds(write.end - write.begin).si();
      ++count[i];
      ++done;
      const double now = to_seconds(write.end).si() - phase[i];
      ask(i, phase[i] + savers[i].interval * (std::floor(now / savers[i].interval) + 1));
    }
    writes.share();
  }
  for (std::size_t i = 0; i < savers.size(); ++i) sum[i] /= std::max(1.0, count[i]);
  return sum;
}

TEST_CASE("law: saves by their means are written within the store, and as they are played out",
          "[fleet]") {
  RandomStream random(fresh(51), 0);
  double worst = 0, most_optimistic = 0, sum_error = 0;
  int compared = 0;
  for (int round = 0; round < 150; ++round) {
    const auto n = 2 + random.below(9);
    const double store = static_cast<double>((50 + random.below(500)) * gigabyte);
    std::vector<PeriodicSaver> savers;
    std::vector<StoreSaver> by_mean;
    double all = 0;
    for (std::size_t i = 0; i < n; ++i) {
      PeriodicSaver saver{.size = 1e12 * (0.2 + 5 * random.uniform()),
                          .most = std::min(store, 1e9 * (20.0 + 300 * random.uniform()))};
      saver.interval = saver.size / saver.most * (2 + 30 * random.uniform());
      all += saver.size / saver.interval;
      savers.push_back(saver);
    }
    for (const PeriodicSaver& saver : savers)
      by_mean.push_back(
          {bytes_per_second(saver.most), bytes_per_second(saver.size / saver.interval)});
    const auto rates = save_rates(by_mean, bytes_per_second(store));
    double written = 0;
    for (std::size_t i = 0; i < n; ++i) {
      REQUIRE(rates[i] <= by_mean[i].most);
      REQUIRE(rates[i].si() >=
              std::min(savers[i].most, store / static_cast<double>(n)) * (1 - 1e-12));
      written += savers[i].size / std::max(savers[i].interval, savers[i].size / rates[i].si());
    }
    REQUIRE(written <= store * (1 + 1e-9));
    if (all > 0.8 * store) continue;  // beyond it intervals grow
    const std::vector<double> played = played_out(savers, store, random, 300);
    for (std::size_t i = 0; i < n; ++i) {
      const double error = savers[i].size / rates[i].si() / played[i] - 1;
      worst = std::max(worst, error);
      most_optimistic = std::min(most_optimistic, error);
      sum_error += error;
      ++compared;
    }
  }
  INFO("by their means over played out: " << most_optimistic << " to " << worst << ", mean "
                                          << sum_error / compared << " of " << compared);
  CHECK(compared > 300);
  CHECK(std::abs(sum_error / compared) < 0.1);
}

}  // namespace
}  // namespace orrery
