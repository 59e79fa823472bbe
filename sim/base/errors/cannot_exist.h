// SPDX-License-Identifier: Apache-2.0
// Knows the failure of a question that is well put, but whose answer cannot exist.
#pragma once

#include "sim/base/errors/check.h"

namespace orrery {

// No layout is valid, or a program does not run on a machine. Commands print message() as they do
// for any Error, and exit with code 3 in place of 2.
class CannotExist : public Error {
 public:
  using Error::Error;
};

}  // namespace orrery
