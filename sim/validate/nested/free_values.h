// SPDX-License-Identifier: Apache-2.0
// Counts the values of stacks that are neither specified, nor measured on a part, nor read from a
// program, and how many measured runs each rests on.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "sim/base/json/tree.h"
#include "sim/validate/score/report.h"

namespace orrery {

// A value with a range, where runs that are scored use it. The same value with the same reason is
// one, in however many stacks and releases it holds.
struct FreeValue {
  std::string stack, name;  // "nemo", "kernel_age"
  double value = 0, low = 0, high = 0;
  bool fitted = false;  // made from whole steps; else judged, or assumed
  std::string reason;
  std::set<std::string> points;  // operating points, as nested errors have them
  std::set<std::string> families, sources;
};

// Of the scored rows, by stack and name. Facts are left out: values without a range, or whose range
// is themselves.
std::vector<FreeValue> free_values(const std::vector<ScoredRow>& rows);

std::string free_values_text(const std::vector<FreeValue>& values);
Json free_values_json(const std::vector<FreeValue>& values);

}  // namespace orrery
