// SPDX-License-Identifier: Apache-2.0
// Asks schedule in tests.
#pragma once

#include <string>

#include "sim/question/schedule/schedule.h"
#include "tests/base/error_text.h"

namespace orrery {

inline Scheduled scheduled(const SortedJson& settings) {
  Catalogues catalogues;
  return schedule_jobs(JsonValue::from(settings, "test"), {.catalogues = catalogues});
}

inline std::string schedule_failure(const SortedJson& settings) {
  return error_text([&] { scheduled(settings); });
}

}  // namespace orrery
