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

LinkUser hashed_user(double busy, double load, std::int32_t paths) {
  return {.step = 1, .busy = busy, .load = load, .uplinks = 32, .paths = paths, .leaves = 8};
}

// Flows that chance puts on one link share it; more queue pairs, or fewer flows, meet less.
TEST_CASE("law: jobs that are hashed onto the same links lose by chance", "[fleet]") {
  for (const double busy : {0.1, 0.3, 0.5}) {
    const auto loss = [&](double load, std::int32_t paths, LinkMeeting how) {
      const std::vector<LinkUser> pair = {hashed_user(busy, load, paths),
                                          hashed_user(busy, load, paths)};
      return sharing_losses(pair, how)[0];
    };
    INFO("busy " << busy);
    CHECK(loss(0.25, 1, LinkMeeting::random) > 0);
    CHECK(loss(0.25, 1, LinkMeeting::shifted) == Approx(0).margin(1e-9));
    CHECK(loss(0.25, 1, LinkMeeting::aligned) >= loss(0.25, 1, LinkMeeting::random));
    CHECK(loss(0.25, 16, LinkMeeting::random) < loss(0.25, 1, LinkMeeting::random));
    CHECK(loss(0.02, 16, LinkMeeting::random) == 0);
  }
  RandomStream random(fresh(23), 7);
  for (int round = 0; round < 100; ++round) {
    const LinkUser user = hashed_user(0.3, 0.05 + 0.4 * random.uniform(),
                                      static_cast<std::int32_t>(1 + random.below(4)));
    CHECK(hashed_slowdown(user, 0) == 1);
    double before = 1;
    for (const double others : {4.0, 16.0, 64.0}) {
      const double now = hashed_slowdown(user, others);
      CHECK(now >= before);
      before = now;
    }
    // No worse than all that others send, put in its way.
    CHECK(before <= 1 + 64.0);
    const std::vector<LinkUser> alone = {user};
    CHECK(sharing_losses(alone, LinkMeeting::aligned)[0] == 0);
    // In front of the other it loses nothing.
    const std::vector<LinkUser> pair = {user, hashed_user(0.4, 0.3, 1)};
    CHECK(sharing_losses(pair, LinkMeeting::priority)[0] == Approx(0).margin(1e-9));
  }
}

}  // namespace
}  // namespace orrery
