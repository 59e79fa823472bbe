// SPDX-License-Identifier: Apache-2.0
// Scales the curves of one kind of kernel.
#include "sim/calibrate/kernel/replace.h"

#include <map>

namespace orrery {
namespace {

void scale(std::optional<double>& value, double factor) {
  if (value) *value *= factor;
}

}  // namespace

void replace_kernel(Calibration& calibration, WorkKind kind, const std::vector<GemmRole>& roles,
                    double factor) {
  std::map<std::uint16_t, std::uint16_t> copies;  // of a curve that several libraries share
  for (int l = 0; l < library_count; ++l) {
    std::uint16_t& place =
        calibration.index[Calibration::slot(kind, Format::bf16, static_cast<Library>(l))];
    const auto known = copies.find(place);
    if (known != copies.end()) {
      place = known->second;
      continue;
    }
    Curve curve = calibration.curves[place];
    if (is_product(kind) && !roles.empty()) {
      for (const GemmRole role : roles) curve.role_factor[static_cast<std::size_t>(role)] *= factor;
    } else {
      scale(curve.scale.value, factor);
      scale(curve.scale.low, factor);
      scale(curve.scale.high, factor);
    }
    const auto added = static_cast<std::uint16_t>(calibration.curves.size());
    calibration.curves.push_back(std::move(curve));
    copies.emplace(place, added);
    place = added;
  }
}

}  // namespace orrery
