// SPDX-License-Identifier: Apache-2.0
// Knows the error that is nobody's mistake: the machine has no disk or memory left.
#pragma once

#include "sim/base/errors/check.h"

namespace orrery {

class MachineFailed : public Error {
 public:
  using Error::Error;
};

}  // namespace orrery
