// SPDX-License-Identifier: Apache-2.0
// Knows a device on which one kind of kernel is replaced by another that takes a share of its time.
#pragma once

#include <vector>

#include "hw_models/calibration.h"

namespace orrery {

// Curves of the kind in 16 bits take `factor` times as long, in every library; of products those of
// the roles alone (none: all). Other kinds that borrow the same curve keep it.
void replace_kernel(Calibration& calibration, WorkKind kind, const std::vector<GemmRole>& roles,
                    double factor);

}  // namespace orrery
