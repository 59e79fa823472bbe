// SPDX-License-Identifier: Apache-2.0
// Judges and renews gates, prints shipped nested errors, writes pages of validation.
#pragma once

#include <optional>
#include <vector>

#include "sim/app/validate/validate.h"
#include "sim/validate/rows/aliases.h"
#include "sim/validate/score/gates.h"
#include "sim/validate/score/report.h"

namespace orrery {

// The files of gates that the options name.
struct GateFiles {
  GateFile judged, before;  // --gates; --write-gates, where it is there already
};

// Reads them and makes sure that every result will find its place, before any row is predicted.
GateFiles prepare_files(const ValidateOptions& options);

// Judges, tightens and draws what the options ask for; nullopt where they ask for the usual report.
std::optional<Printed> gates_and_report(const std::vector<ScoredRow>& scored,
                                        const Aliases& aliases, const GateFiles& files,
                                        const ValidateOptions& options);

// The nested errors that ship, of training and of served runs.
Printed nested_as_shipped(const ValidateOptions& options);

}  // namespace orrery
