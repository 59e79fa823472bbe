// SPDX-License-Identifier: Apache-2.0
// Knows the structures of Arrow's C data and C stream interfaces, by their published definition
// (https://arrow.apache.org/docs/format/CDataInterface.html, CStreamInterface.html).
#pragma once

#include <cstdint>

namespace orrery {

struct ArrowSchema {
  const char* format = nullptr;
  const char* name = nullptr;
  const char* metadata = nullptr;
  std::int64_t flags = 0;
  std::int64_t n_children = 0;
  ArrowSchema** children = nullptr;
  ArrowSchema* dictionary = nullptr;
  void (*release)(ArrowSchema*) = nullptr;  // null: released
  void* private_data = nullptr;
};

struct ArrowArray {
  std::int64_t length = 0;
  std::int64_t null_count = 0;
  std::int64_t offset = 0;
  std::int64_t n_buffers = 0;
  std::int64_t n_children = 0;
  const void** buffers = nullptr;
  ArrowArray** children = nullptr;
  ArrowArray* dictionary = nullptr;
  void (*release)(ArrowArray*) = nullptr;  // null: released
  void* private_data = nullptr;
};

struct ArrowArrayStream {
  int (*get_schema)(ArrowArrayStream*, ArrowSchema* out) = nullptr;
  int (*get_next)(ArrowArrayStream*, ArrowArray* out) = nullptr;
  const char* (*get_last_error)(ArrowArrayStream*) = nullptr;
  void (*release)(ArrowArrayStream*) = nullptr;  // null: released
  void* private_data = nullptr;
};

inline constexpr std::int64_t arrow_nullable = 2;

}  // namespace orrery
