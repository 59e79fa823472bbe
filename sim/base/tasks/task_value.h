// SPDX-License-Identifier: Apache-2.0
// Knows how a task's result is a value of a type (sim/base/tasks/record.h).
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "sim/base/tasks/record.h"
#include "sim/base/tasks/tasks.h"

namespace orrery {

// As task_result().
template <class T>
std::optional<T> task_value(Tasks* tasks, std::uint64_t task,
                            const std::function<std::optional<T>()>& make) {
  if (tasks == nullptr) return make();
  const auto text = tasks->result(task, [&]() -> std::optional<std::string> {
    const std::optional<T> value = make();
    if (!value) return std::nullopt;
    return record_text(*value);
  });
  if (!text) return std::nullopt;
  return from_record_text<T>(*text);
}

}  // namespace orrery
