// SPDX-License-Identifier: Apache-2.0
// Tests what jobs lose to each other on one link.
#include <catch2/catch.hpp>
#include <cmath>

#include "sim/base/random.h"
#include "sim/engine/jobs/link_sharing.h"
#include "tests/base/fresh_seed.h"

namespace orrery {
namespace {

// In phase each loses what it sends; a shift exists that costs nothing; at any phase it is the
// square. Sixteen phases know a triangle to 1/256.
TEST_CASE("law: two equal jobs on one link lose f, nothing, or f squared", "[fleet]") {
  for (const double f : {0.05, 0.125, 0.25, 0.3, 0.5}) {
    const std::vector<LinkUser> pair = {{.step = 2, .busy = f}, {.step = 2, .busy = f}};
    INFO("f " << f);
    for (const double loss : sharing_losses(pair, LinkMeeting::aligned))
      CHECK(loss == Approx(f).margin(1e-9));
    for (const double loss : sharing_losses(pair, LinkMeeting::shifted))
      CHECK(loss == Approx(0).margin(1e-9));
    for (const double loss : sharing_losses(pair, LinkMeeting::random))
      CHECK(loss == Approx(f * f).margin(1.0 / 256));
  }
}

TEST_CASE("law: jobs that never fill a link lose nothing on it", "[fleet]") {
  RandomStream random(fresh(23), 5);
  for (int round = 0; round < 300; ++round) {
    std::vector<LinkUser> users;
    double room = 1;
    const std::size_t count = 1 + random.below(6);
    for (std::size_t i = 0; i < count; ++i) {
      const double part = room * random.uniform() * 0.9;
      room -= part;
      users.push_back({.step = 0.1 + random.uniform(),
                       .busy = random.uniform(),
                       .load = part * 0.8 + 1e-9,
                       .hidden = part * 0.2});
    }
    for (const LinkMeeting how : {LinkMeeting::random, LinkMeeting::aligned, LinkMeeting::priority})
      for (const double loss : sharing_losses(users, how)) REQUIRE(loss == 0);
  }
}

// More than is there to send makes steps longer: what all send fits the link, and nobody gains.
TEST_CASE("law: a shared link carries no more than it can", "[fleet]") {
  RandomStream random(fresh(23), 6);
  double apart = 0;
  int compared = 0;
  for (int round = 0; round < 200; ++round) {
    std::vector<LinkUser> users;
    const std::size_t count = 2 + random.below(3);
    for (std::size_t i = 0; i < count; ++i)
      users.push_back({.step = 1 + random.uniform(),
                       .busy = 0.05 + 0.9 * random.uniform(),
                       .load = 0.2 + 0.8 * random.uniform()});
    for (const LinkMeeting how :
         {LinkMeeting::random, LinkMeeting::aligned, LinkMeeting::shifted, LinkMeeting::priority}) {
      const std::vector<double> losses = sharing_losses(users, how);
      double carried = 0;
      for (std::size_t i = 0; i < count; ++i) {
        REQUIRE(losses[i] >= 0);
        carried += users[i].busy * users[i].load / (1 + losses[i]);
      }
      INFO(round << ": " << carried);
      // A count of whole steps may end between two of them.
      REQUIRE(carried < 1.06);
    }
    const std::vector<double> played = sharing_losses(users, LinkMeeting::random),
                              mean = mean_losses(users);
    for (std::size_t i = 0; i < count; ++i) apart += std::abs(played[i] - mean[i]);
    compared += static_cast<int>(count);
  }
  // Mean loads are what more than four jobs are priced by.
  INFO("mean loads are off by " << apart / compared << " of a step");
  CHECK(apart / compared < 0.25);
}

TEST_CASE("whoever is first on a link is served first", "[fleet]") {
  const std::vector<LinkUser> pair = {{.step = 1, .busy = 0.4}, {.step = 1.7, .busy = 0.4}};
  const std::vector<double> losses = sharing_losses(pair, LinkMeeting::priority);
  CHECK(losses[0] == Approx(0).margin(1e-9));
  CHECK(losses[1] > 0.05);
}

}  // namespace
}  // namespace orrery
