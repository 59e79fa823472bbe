// SPDX-License-Identifier: Apache-2.0
// Knows a layout as a part of a task's result: the object that read_layout reads.
#pragma once

#include "sim/base/tasks/record.h"
#include "workloads/layout/layout.h"

namespace orrery {

template <>
struct Record<Layout> {
  static SortedJson write(const Layout& layout) { return SortedJson::parse(to_json_text(layout)); }
  static Layout read(const SortedJson& json) {
    return read_layout(JsonValue::from(json, "a result's layout"));
  }
};

}  // namespace orrery
