// SPDX-License-Identifier: Apache-2.0
// Knows the names of the kinds of evidence.
#include "sim/base/units/sourced.h"

#include <array>

namespace orrery {
namespace {

constexpr std::array<std::string_view, 6> evidence_text = {"measured",  "specified", "derived",
                                                           "announced", "estimated", "assumed"};

}  // namespace

std::string_view to_text(Evidence e) { return evidence_text[static_cast<std::size_t>(e)]; }

std::optional<Evidence> evidence_from(std::string_view text) {
  for (std::size_t i = 0; i < evidence_text.size(); ++i)
    if (evidence_text[i] == text) return static_cast<Evidence>(i);
  return std::nullopt;
}

}  // namespace orrery
