// SPDX-License-Identifier: Apache-2.0
// Keeps the shapes for which a curve was measured, and tells how far another lies outside of them.
#pragma once

#include <array>
#include <boost/container/static_vector.hpp>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "sim/base/names.h"
#include "sim/base/text/enum_names.h"
#include "sim/base/work.h"

namespace orrery {

// What spans the shapes of a kind. Products: m, n, k, groups; attention: heads in all sequences
// (batch * heads), q_length, kv_length, qk_dim; memory-bound kinds: bytes read and written.
enum class Axis : std::uint8_t {
  m,
  n,
  k,
  groups,
  sequence_heads,
  q_length,
  kv_length,
  qk_dim,
  bytes
};
inline constexpr int axis_count = enumerator_count<Axis>();
std::string_view to_text(Axis);
std::optional<Axis> axis_from(std::string_view);
std::vector<std::string> axis_names();

// The axes that a kind has.
std::vector<Axis> axes_of(WorkKind kind);

// Where a work lies on an axis, at least 1; nothing where its kind does not have the axis.
std::optional<double> position(const Work& work, Axis axis);

// From the least to the largest that was measured on an axis.
struct Extent {
  Axis axis = Axis::m;
  double low = 1, high = 1;  // 0 < low <= high
};

// The box of shapes that a curve was measured on.
struct Region {
  // In place: regions are copied with every curve.
  boost::container::static_vector<Extent, axis_count>
      extents;  // each axis at most once, in the order of Axis; empty: not known
  // How much the relative error grows with each octave (doubling or halving) outside: measured by
  // fitting a part of the region and predicting the rest. 0: not measured.
  double per_octave = 0;

  bool known() const { return !extents.empty(); }
};

// Makes the region hold the work: for fitters, which start from an empty region. CHECKs that all
// works of a region have the same axes.
void include(Region& region, const Work& work);

// Doublings or halvings from the work to the region along one of its axes; 0 inside, and for works
// that do not have the axis.
double octaves_outside(const Work& work, const Extent& extent);

// The same summed over the region's axes: 0 inside and where the region is not known.
double octaves_outside(const Work& work, const Region& region);

}  // namespace orrery
