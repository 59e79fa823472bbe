// SPDX-License-Identifier: Apache-2.0
// Knows the keys of plan's questions: what each means, and how it is written as a flag.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sim/base/errors/check.h"
#include "sim/base/json/tree.h"

namespace orrery {

// How a flag's text becomes the key's value. Text that begins with '{' or '[' is always JSON.
enum class PlanText : std::uint8_t {
  values,  // "a,b": a list of points; numbers become numbers
  whole,   // one value that may hold commas ("gemm=1.15,attention=1.5"): several as JSON
  parts,   // a list that is one value ("weights,optimizer")
  words,   // a text for people
  json,    // nothing but JSON
};

struct PlanKey {
  std::string key;  // in files: "scale_up_domain"
  std::string help;
  PlanText text = PlanText::values;
  std::string group = {};      // heading of the help that it stands under
  std::string completes = {};  // what a shell may complete it with (see Flag)
  std::string flag() const;    // "--scale-up-domain"
};

// Keys that hold for all points (start, objective, checkpoint, ...): no lists, no ranges.
const std::vector<PlanKey>& plan_common_keys();
// Keys that change the machine.
const std::vector<PlanKey>& plan_machine_keys();
// Keys that change nothing about a step: money, limits, failures.
const std::vector<PlanKey>& plan_money_keys();
// Keys of which each may be a value, a list or a range, in the order of points: model, tokens,
// machine, settings of advise, money; the count last.
const std::vector<PlanKey>& plan_point_keys();
// The common keys, then those of points.
const std::vector<PlanKey>& plan_keys();

bool is_among(const std::vector<PlanKey>& keys, const std::string& key);

// A flag's text as the key's value. Error (file: the flag) for JSON that cannot be read.
SortedJson plan_flag_value(const PlanKey& key, const std::string& text);

// The error under the flag's name where the key was a flag, or is missing and there is no file.
Error named_by_plan_flag(const Error& error, const std::string& file, const SortedJson& flags);

}  // namespace orrery
