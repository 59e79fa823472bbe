// Knows that the closed form of goodput and its simulation are one process.
#include <catch2/catch.hpp>
#include <cmath>
#include <numeric>

#include "sim/outcome/goodput_simulation.h"
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
  RandomStream random(6, 1);
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
    for (std::size_t s = 0; s < closed.shares.size(); ++s)
      CHECK(closed.shares[s] == Approx(played.shares[s]).margin(6 * played.standard_error + 0.004));
    // The simulation counts failures of open time only, as the closed form does.
    CHECK(played.mean_time_to_failure.si() ==
          Approx(closed.mean_time_to_failure.si()).epsilon(0.03));
  }
  // A bias that no single case shows would show here: the mean square of a normal is 1.
  CHECK(std::sqrt(squares / cases) < 1.5);
}

TEST_CASE("goodput: several tiers, late corruption, elasticity and slack agree to a point") {
  RandomStream random(6, 2);
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

TEST_CASE("goodput: a simulation is the same on any number of threads, and another by its seed") {
  RandomStream random(6, 3);
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
