// SPDX-License-Identifier: Apache-2.0
// Says what kernels have to do whose work is not in their operands alone. Sources of the numbers:
// aiconfigurator-operators, aiconfigurator-blocks.
#pragma once

#include <algorithm>
#include <cstdint>

#include "sim/base/work.h"

namespace orrery {

// Elements that the conversion of so many rows of a width to fewer bits takes as long as. One block
// of threads converts a row, and a short one takes as long as one of 3,072 elements (TensorRT-LLM
// on H200: 123 us for 16,384 rows of 32 and of 1,024 alike, then 2 ps an element; on B200 before
// 1.3: 20 ns for rows of 1,024 to 2,048).
inline double converted_elements(std::int64_t rows, std::int64_t width) {
  constexpr std::int64_t shortest = 3072;
  return static_cast<double>(rows) * static_cast<double>(std::max(width, shortest));
}

// TensorRT-LLM before 1.3.0rc19 with DeepGEMM on Blackwell (pull request 14591): each rank puts all
// tokens in order by all experts, those of other ranks too. A rank of one of 256 experts takes 27
// ns for each token, whatever reaches it.
inline Work listed_tokens(std::int64_t tokens, std::int64_t experts, std::int64_t width) {
  const double bytes = 2.0 * static_cast<double>(tokens) * static_cast<double>(width);
  return {.kind = WorkKind::permute,
          .m = tokens * experts,
          .bytes_read = bytes,
          .bytes_written = bytes};
}

}  // namespace orrery
