// SPDX-License-Identifier: Apache-2.0
// Knows the topology command: what a network is made of, how far it reaches, what it costs.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "sim/app/answer/whole.h"
#include "sim/app/line/command.h"
#include "sim/app/topology/traffic_report.h"
#include "sim/base/json/tree.h"

namespace orrery {

struct TopologyOptions {
  std::string name;                          // cluster or fabric, or a file of either
  std::optional<std::int64_t> gpus = {};     // default: one full group of the largest sized tier
  std::string dot_file = {}, svg_file = {};  // written when named
  TrafficQuestion traffic = {};              // with a pattern: the study of it is printed instead
};

// What the command finds; writes the pictures that were named. Errors name what is unknown, too
// large or cannot be written.
WholeAnswer topology_answer(const TopologyOptions& options);
// An answer for machines again, from the question that it carries.
Json topology_again(const JsonValue& question, std::optional<std::uint64_t> seed);

Command topology_command();

}  // namespace orrery
