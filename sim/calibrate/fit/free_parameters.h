// SPDX-License-Identifier: Apache-2.0
// Knows which parameters of a curve a fit may move, between which bounds, from where.
#pragma once

#include <string>
#include <vector>

#include "hw_models/calibration.h"
#include "hw_models/device.h"
#include "sim/calibrate/log/measurement.h"

namespace orrery {

// One free number of the table's curve, or of the conversion that its rows time as well.
struct Free {
  double Curve::*member;
  double low, high, start;
  bool quantise = false;
  int role = -1;          // not negative: role_factor[role] and not `member`
  bool expected = false;  // few rows show it: near `start`, or where other kernels have it
  // As calibration files call it: "k_half", "roles.forward".
  std::string_view name() const;
  double& in(Curve& curve) const { return role >= 0 ? curve.role_factor[role] : curve.*member; }
};

// What the kernels of this table can tell.
std::vector<Free> free_parameters(const OperatorTable& table);

// Tiles of a kind and how work is split: facts of the libraries, which are not fitted.
void set_tiles(Curve& curve, Architecture architecture);

}  // namespace orrery
