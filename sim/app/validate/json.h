// SPDX-License-Identifier: Apache-2.0
// Knows how scores of predictions are written for machines.
#pragma once

#include <string>
#include <vector>

#include "sim/base/json/tree.h"
#include "sim/validate/parts/collectives.h"
#include "sim/validate/parts/kernels.h"
#include "sim/validate/score/report.h"

namespace orrery {

Json report_json(const std::vector<ScoredRow>& rows);
Json report_json(const std::vector<ScoredRow>& rows,
                 const std::vector<ScoredCollective>& collectives);
Json report_json(const std::vector<ScoredRow>& rows,
                 const std::vector<ScoredCollective>& collectives,
                 const std::vector<ScoredKernel>& kernels);
Json left_out_json(const std::vector<LeftOut>& groups, const std::string& kind);

}  // namespace orrery
