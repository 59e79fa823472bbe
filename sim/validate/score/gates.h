// SPDX-License-Identifier: Apache-2.0
// Knows the gates of validation: how far predictions may be from measurements, group by group.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "sim/validate/score/groups.h"

namespace orrery {

// One figure of one group may be at most so much. Gates are only ever tightened: the file says when
// each was set and what the figure was then.
struct Gate {
  std::string group, figure;
  double at_most = 0;
  double was = 0;    // the figure when the gate was set
  std::string date;  // of that, "2026-11-21"
};

struct GateFile {
  double relative_margin = 0.1, absolute_margin = 0.003;  // above today's figure for new gates
  std::vector<Gate> gates;
};

// validation/gates.json. Error for a file that is missing or does not have this shape.
GateFile load_gates(const std::filesystem::path& file);
GateFile load_gates_or_none(const std::filesystem::path& file);  // missing: no gates yet
std::string gates_json(const GateFile& gates);

// New gates at today's figures and the margins above them; a gate of `before` stays where it is
// tighter, and where its group or figure is not there today.
GateFile tightened(const GateFile& before, const std::vector<GroupFigures>& today,
                   const std::string& date);

struct GateVerdict {
  Gate gate;
  std::optional<double> today;  // absent: nothing of the group was measured
  bool passed = false;
};
// A gate whose group is absent fails when `every_group` is set (our own measurements are all there)
// and is left out otherwise.
std::vector<GateVerdict> judge(const GateFile& gates, const std::vector<GroupFigures>& today,
                               bool every_group);
std::string verdicts_text(const std::vector<GateVerdict>& verdicts);

}  // namespace orrery
