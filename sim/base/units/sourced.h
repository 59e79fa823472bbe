// SPDX-License-Identifier: Apache-2.0
// Keeps a value together with where it comes from and how sure it is.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "sim/base/errors/check.h"
#include "sim/base/text/enum_names.h"

namespace orrery {

enum class Evidence { measured, specified, derived, announced, estimated, assumed };
inline constexpr auto evidence_text =
    enum_names<Evidence>({"measured", "specified", "derived", "announced", "estimated", "assumed"});
constexpr std::string_view to_text(Evidence e) { return evidence_text[e]; }

// The last three are not facts: they must carry a range, and a prediction names them (law 12).
constexpr bool is_uncertain(Evidence e) {
  return e == Evidence::announced || e == Evidence::estimated || e == Evidence::assumed;
}

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
