// SPDX-License-Identifier: Apache-2.0
// Knows what a question came to, for machines and for people.
#pragma once

#include <string>
#include <vector>

#include "sim/app/answer/answer.h"
#include "sim/paper/document.h"

namespace orrery {

// A picture that is no chart: the scheme of a network.
struct Drawing {
  std::string title, svg;
};

// The document leaves nothing out.
struct WholeAnswer {
  MachineAnswer machines;
  Document document;
  std::vector<Drawing> drawings = {};
};

}  // namespace orrery
