// SPDX-License-Identifier: Apache-2.0
// Knows in which order a job's parallel dimensions count through its ranks.
#pragma once

#include <array>
#include <cstdint>
#include <string>

#include "sim/base/json/json.h"

namespace orrery {

enum class Parallel : std::uint8_t { tp, cp, dp, pp };

// From the innermost dimension, whose neighbours are neighbouring accelerators, to the outermost.
// Expert groups fold over tp, cp and dp in the same order.
class RankOrder {
 public:
  // Megatron's default: "tp-cp-dp-pp".
  constexpr RankOrder() = default;
  constexpr explicit RankOrder(std::array<Parallel, 4> axes) : axes_(axes) {}
  constexpr const std::array<Parallel, 4>& axes() const { return axes_; }
  constexpr bool is_default() const { return *this == RankOrder(); }
  constexpr bool operator==(const RankOrder&) const = default;

 private:
  std::array<Parallel, 4> axes_ = {Parallel::tp, Parallel::cp, Parallel::dp, Parallel::pp};
};

std::string to_text(RankOrder order);
// Text with every one of tp, cp, dp and pp once: "tp-pp-cp-dp". Errors say what is missing.
RankOrder rank_order_from(const JsonValue&);

}  // namespace orrery
