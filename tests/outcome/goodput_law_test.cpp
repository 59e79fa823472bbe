// SPDX-License-Identifier: Apache-2.0
// Knows that the closed form of goodput and its simulation are one process.
#include <catch2/catch.hpp>
#include <cmath>
#include <numeric>

#include "sim/outcome/months/simulation.h"
#include "tests/base/fresh_seed.h"
#include "tests/outcome/goodput_case.h"

namespace orrery {
namespace {

double sum(const TimeShares& shares) { return std::accumulate(shares.begin(), shares.end(), 0.0); }

// How many standard errors apart they are; a floor keeps rounding from counting.
double distance(const Goodput& closed, const SimulatedGoodput& played, double floor) {
  return std::abs(closed.effective - played.effective) / std::hypot(played.standard_error, floor);
}

}  // namespace

TEST_CASE("goodput: closed form and simulation agree on random cases") {
  RandomStream random(fresh(6), 1);
  const int cases = 60;
  double squares = 0;
  for (int i = 0; i < cases; ++i) {
    const GoodputCase input = random_case(random);
    const Goodput closed = goodput(input);
    const SimulatedGoodput played = simulate_goodput(input, 100 + static_cast<std::uint64_t>(i), 2,
                                                     {.trials = 32, .failures = 1500});
    INFO("case " << i << ": " << closed.effective << " and " << played.effective << " +- "
                 << played.standard_error);
    CHECK(sum(closed.shares) == Approx(1).epsilon(1e-9));
    CHECK(sum(played.shares) == Approx(1).epsilon(1e-9));
    for (const double share : closed.shares) CHECK(share >= -1e-12);
    const double apart = distance(closed, played, 5e-4);
    CHECK(apart < 4.5);
    squares += apart * apart;
    // Of a job that hardly gets on the error of what it reaches tells nothing about its waits.
    for (std::size_t s = 0; s < closed.shares.size() && closed.effective > 0.01; ++s)
      CHECK(closed.shares[s] ==
            Approx(played.shares[s]).margin(6 * played.share_errors[s] + 0.004));
    // The simulation counts failures of open time only, as the closed form does.
    CHECK(played.mean_time_to_failure.si() ==
          Approx(closed.mean_time_to_failure.si()).epsilon(0.03));
  }
  // A bias that no single case shows would show here: the mean square of a normal is 1.
  CHECK(std::sqrt(squares / cases) < 1.5);
}

TEST_CASE("goodput: several tiers, late corruption, elasticity and slack agree to a point") {
  RandomStream random(fresh(6), 2);
  for (int i = 0; i < 40; ++i) {
    GoodputCase input = random_case(random);
    input.tiers[0].interval = {};
    input.failures[0].removed = exactly(0.3);
    input.spares = 40;
    if (i % 4 == 0) {
      input.tiers.insert(input.tiers.begin(), {.name = "peers",
                                               .stall = seconds(0.2),
                                               .write = seconds(2),
                                               .read = seconds(2),
                                               .survives = BlastRadius::domain});
      FailureClass site = input.failures[1];
      site.name = "site-power";
      site.blast = BlastRadius::site;
      site.rate = exactly(Hertz(0.1 * input.failures[0].rate.value.si()));
      input.failures.push_back(site);
    } else if (i % 4 == 1) {
      FailureClass corruption = input.failures[0];
      corruption.name = "silent-corruption";
      corruption.rate = exactly(Hertz(0.05 * input.failures[0].rate.value.si()));
      corruption.latency = time_of(2 / input.failures[0].rate.value.si());
      input.failures.push_back(corruption);
    } else if (i % 4 == 2) {
      input.elastic = {.replicas = 16, .stall = seconds(20), .rejoin = seconds(600)};
      input.spares = 3;
    } else {
      input.units = {.name = "NVLink domain", .count = 64, .hosts = 18, .slack = 2};
      input.failures[0].repair = time_of(60 / input.failures[0].rate.value.si());
      input.failures[0].removed = exactly(1.0);
      input.spares = 1;
    }
    const Goodput closed = goodput(input);
    const SimulatedGoodput played = simulate_goodput(input, 900 + static_cast<std::uint64_t>(i), 2,
                                                     {.trials = 32, .failures = 1500});
    INFO("case " << i << ": " << closed.effective << " and " << played.effective << " +- "
                 << played.standard_error);
    CHECK(sum(closed.shares) == Approx(1).epsilon(1e-9));
    CHECK(sum(played.shares) == Approx(1).epsilon(1e-9));
    CHECK(closed.effective == Approx(played.effective).margin(4 * played.standard_error + 0.01));
    for (std::size_t s = 0; s < closed.shares.size(); ++s)
      CHECK(closed.shares[s] ==
            Approx(played.shares[s]).margin(6 * played.share_errors[s] + 0.015));
  }
}

TEST_CASE("goodput: a slow machine inside makes the dearer tier lose more time") {
  GoodputCase input = plain_case(20000, 60, 300);
  input.failures[0].blast = BlastRadius::site;
  input.tiers[0].interval = seconds(8000);
  FailureClass often = input.failures[0];
  often.name = "software";
  often.blast = BlastRadius::process;
  often.rate = exactly(Hertz(1 / 1500.0));
  input.failures.push_back(often);
  input.tiers.insert(input.tiers.begin(), {.name = "host memory",
                                           .interval = seconds(200),
                                           .stall = seconds(2),
                                           .survives = BlastRadius::process});
  const Goodput closed = goodput(input);
  const SimulatedGoodput played = simulate_goodput(input, 1, 2, {.trials = 64, .failures = 4000});
  INFO(closed.effective << " and " << played.effective << " +- " << played.standard_error);
  CHECK(closed.effective == Approx(played.effective).margin(3 * played.standard_error + 0.004));
  // Old checkpoints stand on the last tier: corruption falls back to it, however small its blast.
  input.failures[1].latency = time_of(100);
  CHECK(goodput(input).tiers[1].failures.si() == Approx(1 / 1500.0 + 1 / 20000.0));
}

TEST_CASE("goodput: repair crews hold the job up in the closed form as in the simulation") {
  GoodputCase input = plain_case(3600, 1, 60);
  input.failures[0].removed = exactly(1.0);
  input.failures[0].repair = time_of(3 * 3600);
  input.spares = 6;
  const double unlimited = goodput(input).effective;
  input.repair_crews = 4;
  const Goodput closed = goodput(input);
  const SimulatedGoodput played = simulate_goodput(input, 3, 2, {.trials = 64, .failures = 8000});
  CHECK(closed.effective < unlimited - 0.02);
  // Repairs go on while the job waits: failures of idle machines are in both.
  CHECK(closed.effective == Approx(played.effective).margin(4 * played.standard_error + 0.01));
}

TEST_CASE("goodput: with few spares the job waits, and idle machines do not fail") {
  RandomStream random(fresh(6), 4);
  double squares = 0;
  const int cases = 40;
  for (int i = 0; i < cases; ++i) {
    GoodputCase input = random_case(random);
    const double mttf = 1 / input.failures[0].rate.value.si();
    const double load = 2 + 18 * random.uniform();  // hosts out if nothing ever waited
    input.failures[0].removed = exactly(1.0);
    input.failures[0].repair = time_of(load * mttf);
    input.spares = static_cast<std::int64_t>(random.below(static_cast<std::uint64_t>(load)));
    if (i % 2 == 1) {  // two kinds of repairs, which only their mean time tells apart
      FailureClass other = input.failures[0];
      other.name = "nic";
      other.rate = exactly(Hertz(1.5 / mttf));
      other.repair = time_of(0.2 * load * mttf);
      input.failures.push_back(other);
    }
    const Goodput closed = goodput(input);
    const SimulatedGoodput played = simulate_goodput(input, 40 + static_cast<std::uint64_t>(i), 2,
                                                     {.trials = 32, .failures = 3000});
    const double waits = share_of(closed.shares, TimeShare::waiting);
    INFO("case " << i << ": " << input.spares << " spares for " << load << ", waits " << waits
                 << ", useful " << closed.effective << " and " << played.effective << " +- "
                 << played.standard_error);
    CHECK(waits > 0.02);
    const double error = share_of(played.share_errors, TimeShare::waiting);
    CHECK(waits == Approx(share_of(played.shares, TimeShare::waiting)).margin(4.5 * error + 0.004));
    CHECK(closed.units_out == Approx(played.units_out).margin(4.5 * played.units_out_error + 0.02));
    const double apart = distance(closed, played, 5e-4);
    CHECK(apart < 4.5);
    squares += apart * apart;
  }
  CHECK(std::sqrt(squares / cases) < 1.6);
}

TEST_CASE("goodput: waiting of leaves, of crews and of domains with slack, as it is played") {
  for (int i = 0; i < 12; ++i) {
    GoodputCase input = plain_case(3600, 1, 60);
    input.failures[0].removed = exactly(1.0);
    input.failures[0].repair = time_of(5 * 3600);
    input.spares = i / 3;
    if (i % 3 == 0) {
      input.units.leaf = 4;
      FailureClass leaf = input.failures[0];
      leaf.name = "switch";
      leaf.blast = BlastRadius::leaf;
      leaf.rate = exactly(Hertz(0.04 / 3600));
      input.failures.push_back(leaf);
    } else if (i % 3 == 1) {
      input.repair_crews = 6;
    } else {
      input.units = {.name = "NVLink domain", .count = 64, .hosts = 18, .slack = 2};
      input.failures[0].repair = time_of(60 * 3600);
    }
    const Goodput closed = goodput(input);
    const SimulatedGoodput played = simulate_goodput(input, 70 + static_cast<std::uint64_t>(i), 2,
                                                     {.trials = 48, .failures = 6000});
    INFO("case " << i << ": waits " << share_of(closed.shares, TimeShare::waiting) << " and "
                 << share_of(played.shares, TimeShare::waiting));
    CHECK(share_of(closed.shares, TimeShare::waiting) ==
          Approx(share_of(played.shares, TimeShare::waiting)).margin(i % 3 == 2 ? 0.04 : 0.015));
  }
}

TEST_CASE("goodput: spares by Erlang's formula, and the fewest that are enough") {
  GoodputCase input = plain_case(3600, 1, 60);
  input.failures[0].removed = exactly(1.0);
  input.failures[0].repair = time_of(6.66 * 3600);
  double blocked = 1;  // of no places, then of one more each time
  for (std::int64_t spares = 0; spares < 30; ++spares) {
    blocked = 6.66 * blocked / (static_cast<double>(spares + 1) + 6.66 * blocked);
    input.spares = spares;
    CHECK(spare_use(input).waiting == Approx(blocked));
    CHECK(spare_use(input).units_out == Approx(6.66 * (1 - blocked)));
  }
  input.spares = 0;
  CHECK(1 - spare_use(input).waiting == Approx(1 / 7.66));
  for (const double probability : {0.2, 0.9, 0.99, 0.9999}) {
    input.spares = spares_needed(input, probability);
    CHECK(spare_use(input).waiting <= 1 - probability);
    --input.spares;
    if (input.spares >= 0) CHECK(spare_use(input).waiting > 1 - probability);
  }
  // A thousand out at a time: no overflow, no underflow.
  input.failures[0].repair = time_of(1000 * 3600.0);
  input.spares = 0;
  CHECK(spare_use(input).waiting == Approx(1000.0 / 1001));
  input.spares = spares_needed(input, 0.99);
  CHECK(input.spares > 1000);
  CHECK(input.spares < 1100);
}

TEST_CASE("goodput: a simulation is the same on any number of threads, and another by its seed") {
  RandomStream random(fresh(6), 3);
  const GoodputCase input = random_case(random);
  const SimulatedGoodput one = simulate_goodput(input, 5, 1, {.trials = 9, .failures = 300});
  const SimulatedGoodput four = simulate_goodput(input, 5, 4, {.trials = 9, .failures = 300});
  const SimulatedGoodput other = simulate_goodput(input, 6, 4, {.trials = 9, .failures = 300});
  CHECK(one.shares == four.shares);
  CHECK(one.failures == four.failures);
  CHECK(one.shares != other.shares);
  const GoodputRange alone = goodput_range(input, 5, 1, 50),
                     shared = goodput_range(input, 5, 3, 50);
  CHECK(alone.effective.low == shared.effective.low);
  CHECK(alone.effective.high == shared.effective.high);
}

TEST_CASE("goodput: work does not grow with the machine, only with the failures") {
  GoodputCase small = plain_case(3600, 1, 60), large = small;
  large.gpus = 1 << 20;
  large.units.count = 1 << 17;
  const SimulatedGoodput a = simulate_goodput(small, 1, 1, {.trials = 4, .failures = 500});
  const SimulatedGoodput b = simulate_goodput(large, 1, 1, {.trials = 4, .failures = 500});
  CHECK(a.failures == b.failures);
  CHECK(a.shares == b.shares);
}

}  // namespace orrery
