// SPDX-License-Identifier: Apache-2.0
// Knows where work that Ctrl-C met ended, so that a later run ends at the same place.
#pragma once

#include <cstdint>
#include <optional>

#include "sim/base/errors/interrupt.h"

namespace orrery {

// Work that is done in one order asks at fixed places whether it is to stop: before and after each
// search. The number of places that it passed says where it ended, whatever the clock said.
class StopPoint {
 public:
  // `after`: the places that are passed; none: until Ctrl-C.
  explicit StopPoint(std::optional<std::int64_t> after = {}) : after_(after) {}

  // Once true it stays so.
  bool reached() {
    if (reached_) return true;
    reached_ = interrupted() || passed_ == after_;
    if (!reached_) ++passed_;
    return reached_;
  }
  // Places passed before it stopped; none: it did not.
  std::optional<std::int64_t> where() const {
    return reached_ ? std::optional(passed_) : std::nullopt;
  }

 private:
  std::optional<std::int64_t> after_;
  std::int64_t passed_ = 0;
  bool reached_ = false;
};

}  // namespace orrery
