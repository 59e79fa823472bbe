// SPDX-License-Identifier: Apache-2.0
// Knows evidence: a value together with where it comes from and how sure it is.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "sim/base/errors/check.h"

namespace orrery {

enum class Evidence { measured, specified, derived, announced, estimated, assumed };

// The last three are not facts: they must carry a range, and a prediction names them (law 12).
constexpr bool is_uncertain(Evidence e) {
  return e == Evidence::announced || e == Evidence::estimated || e == Evidence::assumed;
}
std::string_view to_text(Evidence e);
std::optional<Evidence> evidence_from(std::string_view text);

// T is a Quantity, double or std::int64_t. A value that nobody has published is absent with a
// reason.
template <class T>
struct Sourced {
  std::optional<T> value = {};
  std::optional<T> low = {}, high = {};  // always there when the evidence is uncertain
  Evidence evidence = Evidence::assumed;
  std::string source = {};  // id in hw_models/catalog/sources.json
  std::string reason = {};  // why the value is absent; else a note
  bool known() const { return value.has_value(); }
  const T& get() const {
    ORRERY_CHECK(value.has_value(), "absent value read; resolve() must refuse it by name first");
    return *value;
  }
};

}  // namespace orrery
