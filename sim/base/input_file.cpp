// SPDX-License-Identifier: Apache-2.0
// Reads a whole file.
#include "sim/base/input_file.h"

#include <fstream>
#include <iterator>

namespace orrery {

std::string content_of(const std::filesystem::path& file) {
  std::ifstream stream(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(stream), {}};
}

}  // namespace orrery
