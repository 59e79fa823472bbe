// SPDX-License-Identifier: Apache-2.0
// Sizes jobs for the largest mean speedup, as Pollux does, exactly.
#include "sim/engine/elastic/goodput_sizes.h"
#include "sim/engine/elastic/packed_places.h"

namespace orrery {
namespace {

class GoodputPolicy : public RoundPolicy {
 public:
  std::vector<std::int32_t> sizes(const RoundView& view) override {
    return choose_goodput_sizes(view);
  }
  void decide(const RoundView& view, std::vector<Grants>& places) override {
    place_packed(view, sizes(view), places);
  }
};

}  // namespace

std::unique_ptr<RoundPolicy> goodput_policy() { return std::make_unique<GoodputPolicy>(); }

}  // namespace orrery
