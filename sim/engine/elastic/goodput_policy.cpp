// SPDX-License-Identifier: Apache-2.0
// Sizes jobs for the largest mean speedup, as Pollux does, exactly.
#include "sim/engine/elastic/goodput_sizes.h"
#include "sim/engine/elastic/packed_places.h"

namespace orrery {
namespace {

class GoodputPolicy : public RoundPolicy {
 public:
  void decide(const RoundView& view, std::vector<Grants>& places) override {
    place_packed(view, choose_goodput_sizes(view), places);
  }
};

}  // namespace

std::unique_ptr<RoundPolicy> goodput_policy() { return std::make_unique<GoodputPolicy>(); }

}  // namespace orrery
