// SPDX-License-Identifier: Apache-2.0
// Tests the share of a kernel's traffic that lies in L2, and the capacity that gives a share.
#include "hw_models/kernel/l2.h"

#include <catch2/catch.hpp>

namespace orrery {
namespace {

TEST_CASE("a cache of twice the operands holds none of them, a larger one some") {
  CHECK(l2_share(Bytes(0), Bytes(64e6)) == 1);
  CHECK(l2_share(Bytes(16e6), Bytes(64e6)) == Approx(0.5));
  CHECK(l2_share(Bytes(32e6), Bytes(64e6)) == 0);
  CHECK(l2_share(Bytes(90e6), Bytes(64e6)) == 0);
  CHECK(l2_share(Bytes(1), Bytes(0)) == 0);
}

TEST_CASE("the capacity that gives a share gives it") {
  for (const double share : {0.05, 0.3, 0.7, 0.99})
    for (const double traffic : {1e3, 5e6, 2e8})
      CHECK(l2_share(Bytes(traffic), l2_that_gives(share, Bytes(traffic))) == Approx(share));
}

}  // namespace
}  // namespace orrery
