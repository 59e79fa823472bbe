// SPDX-License-Identifier: Apache-2.0
// Measures shapes against the region of a curve.
#include "hw_models/region.h"

#include <algorithm>
#include <cmath>

#include "sim/base/errors/check.h"

namespace orrery {

namespace {

constexpr auto axis_text = enum_names<Axis>(
    {"m", "n", "k", "groups", "sequence_heads", "q_length", "kv_length", "qk_dim", "bytes"});

// Not clamped: an extent of nothing is a mistake of the caller that reads as one element.
double extent_on(const Work& work, Axis axis) {
  switch (axis) {
    case Axis::m:
      return static_cast<double>(work.m);
    case Axis::n:
      return static_cast<double>(work.n);
    case Axis::k:
      return static_cast<double>(work.k);
    case Axis::groups:
      return static_cast<double>(work.groups);
    case Axis::sequence_heads:
      return static_cast<double>(work.batch) * static_cast<double>(work.heads);
    case Axis::q_length:
      return static_cast<double>(work.q_length);
    case Axis::kv_length:
      return static_cast<double>(work.kv_length);
    case Axis::qk_dim:
      return static_cast<double>(work.qk_dim);
    case Axis::bytes:
      return work.bytes_read + work.bytes_written;
  }
  return 1;
}

bool has_axis(WorkKind kind, Axis axis) {
  if (axis == Axis::bytes) return !is_product(kind) && !is_attention(kind);
  return axis <= Axis::groups ? is_product(kind) : is_attention(kind);
}

}  // namespace

std::string_view to_text(Axis axis) { return axis_text[axis]; }

std::optional<Axis> axis_from(std::string_view text) { return axis_text.find(text); }

std::vector<std::string> axis_names() { return axis_text.names(); }

std::vector<Axis> axes_of(WorkKind kind) {
  std::vector<Axis> axes;
  for (int a = 0; a < axis_count; ++a)
    if (has_axis(kind, static_cast<Axis>(a))) axes.push_back(static_cast<Axis>(a));
  return axes;
}

std::optional<double> position(const Work& work, Axis axis) {
  if (!has_axis(work.kind, axis)) return std::nullopt;
  // Kernels without work have no logarithm, and no time that could be wrong either.
  return std::max(1.0, extent_on(work, axis));
}

void include(Region& region, const Work& work) {
  const std::vector<Axis> axes = axes_of(work.kind);
  if (!region.known())
    for (const Axis axis : axes) {
      const double at = *position(work, axis);
      region.extents.push_back({.axis = axis, .low = at, .high = at});
    }
  CHECK_THAT(region.extents.size() == axes.size(), "works of one region have the same axes");
  for (Extent& extent : region.extents) {
    const auto at = position(work, extent.axis);
    CHECK_THAT(at.has_value(), "works of one region have the same axes");
    extent.low = std::min(extent.low, *at);
    extent.high = std::max(extent.high, *at);
  }
}

double octaves_outside(const Work& work, const Extent& extent) {
  const auto at = position(work, extent.axis);
  if (!at) return 0;
  if (*at < extent.low) return std::log2(extent.low / *at);
  if (*at > extent.high) return std::log2(*at / extent.high);
  return 0;
}

double octaves_outside(const Work& work, const Region& region) {
  double octaves = 0;
  for (const Extent& extent : region.extents) octaves += octaves_outside(work, extent);
  return octaves;
}

}  // namespace orrery
