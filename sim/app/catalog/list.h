// SPDX-License-Identifier: Apache-2.0
// Knows how the catalogue is listed and searched.
#pragma once

#include <cstddef>
#include <string>

#include "sim/paper/tables.h"

namespace orrery {

struct ListOptions {
  std::string kind;    // "": how many entries each kind has
  std::string search;  // words that a name, an alias or a title must hold, in any case
  std::string device;  // clusters of this accelerator
  bool names = false;  // nothing but names
  bool json = false;
  std::size_t width = page_width;
};
std::string list_text(const ListOptions& options);

}  // namespace orrery
