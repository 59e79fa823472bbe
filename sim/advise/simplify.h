// SPDX-License-Identifier: Apache-2.0
// Takes a layout back to its stack's defaults where a setting gains next to nothing.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sim/advise/search/expand.h"
#include "sim/base/text/enum_names.h"
#include "sim/outcome/noise.h"

namespace orrery {

// Settings that are no plan of their own, in the order in which they are taken back: first those
// that are a knob and no more, last those that a team would have to think about.
enum class Knob : std::uint8_t {
  bucket,      // to the stack's own size
  offload,     // to nothing in host memory, else to one kind less
  rank_order,  // to tp-cp-dp-pp
  per_domain,  // to as many accelerators of a scale-up domain as placement finds best
  recompute,   // to the recipe's, where it states one; to none; to one module less
  context,     // to the stack's exchange
  zero,        // to the stack's ZeRO stage over all ranks; to all ranks
  stages,      // to layers as the stack places them
  rows,        // to sequence parallelism as the stack has it
};
inline constexpr int knob_count = enumerator_count<Knob>();
// "bucket size", "offload", ...
std::string_view to_text(Knob);

// Simpler layouts that differ in this setting only, the simplest first. Empty where it is at its
// default already. Not all need be valid or in the grid.
std::vector<Layout> simpler(const Layout& layout, Knob knob, const Stack& stack);

struct LeftAtDefault {
  Knob knob = Knob::bucket;
  std::string setting;  // as the exact layout has it: "a bucket of 1.49 GiB"
  double gain = 0;      // what it would gain: its part of the score, all parts multiply
};
struct Simplified {
  Found exact, shown;
  std::vector<LeftAtDefault> left;  // in the order of knobs
};

// Takes back setting after setting, as long as the layout stays in the grid (so also within the
// limits), fits in the ground's memory and scores at most 1 + tolerance times the exact one; again
// from the first setting until nothing changes. Sizes, schedule, chunks, micro-batch, precision and
// optimizer stay, so that shapes stay apart.
Simplified simplify(const SearchGround& ground, const Found& exact, double tolerance);

// Settings of a layout that are not at their stack's defaults.
int special_settings(const Layout& layout, const Stack& stack);

// Of each, then by score, those that are equal as they were: what changes places are ties. Of those
// that score within the tolerance of the best, the first with the fewest special settings leads.
std::vector<Simplified> simplify_all(const SearchGround& ground, const std::vector<Found>& best,
                                     double tolerance, int threads);

}  // namespace orrery
