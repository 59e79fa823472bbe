// SPDX-License-Identifier: Apache-2.0
// Tests that exchanges hide under another microbatch's pass only as long as that pass computes.
#include <catch2/catch.hpp>

#include <algorithm>

#include "sim/base/random.h"
#include "sim/engine/step/segment_time.h"
#include "tests/base/fresh_seed.h"

namespace orrery {
namespace {

constexpr auto exchange = static_cast<std::size_t>(Label::expert_comm);

TEST_CASE("an exchange hides no longer than its partner computes") {
  RandomStream random(fresh(11), 0);
  for (int i = 0; i < 500; ++i) {
    const Seconds whole(1e-3 * random.uniform());
    const double share = random.uniform();
    const Seconds compute(2e-3 * random.uniform());
    PhaseTime phase;
    phase.beside_passes = whole;
    phase.hidden_by_passes = share * whole;
    phase.time[exchange] = (1 - share) * whole;
    PhaseTime capped = phase;
    cap_hidden_exchange(capped, compute);
    // Of the passes with a partner, `share` of all, the exchange takes all of the partner at most.
    CHECK(capped.hidden_by_passes <= share * compute + Seconds(1e-15));
    CHECK(capped.hidden_by_passes.si() == Approx(share * std::min(whole, compute).si()));
    CHECK((capped.hidden_by_passes + capped.time[exchange]).si() == Approx(whole.si()));
    if (compute >= whole) CHECK(capped.time[exchange] == phase.time[exchange]);
    // A partner that computes for longer never shows more.
    PhaseTime longer = phase;
    cap_hidden_exchange(longer, 1.5 * compute);
    CHECK(longer.time[exchange] <= capped.time[exchange] + Seconds(1e-15));
  }
  PhaseTime plain;
  plain.time[exchange] = Seconds(1);
  cap_hidden_exchange(plain, Seconds(0));
  CHECK(plain.time[exchange] == Seconds(1));
}

TEST_CASE("only kernels count as what can hide an exchange") {
  PhaseTime phase;
  for (Seconds& s : phase.time) s = Seconds(1);
  CHECK(compute_time(phase) == Seconds(7));  // gemm to recompute
}

}  // namespace
}  // namespace orrery
