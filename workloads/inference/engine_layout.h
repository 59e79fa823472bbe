// SPDX-License-Identifier: Apache-2.0
// Describes how a serving engine lays a model over its GPUs, and in which formats.
#pragma once

#include <cstdint>
#include <optional>

#include "sim/base/work.h"
#include "workloads/layout/layout.h"

namespace orrery {

// GPUs of an engine = tp * pp * attention_dp. Experts fold over tp * attention_dp: ep ranks hold
// different experts, etp ranks share one expert's width, ep * etp = tp * attention_dp.
struct EngineLayout {
  std::int64_t tp = 1, pp = 1, attention_dp = 1, ep = 1, etp = 1;
  // Copies of the experts that are chosen most, where an engine evens out its ranks by counts of
  // earlier steps (EPLB). Absent: experts lie on ranks as they are numbered.
  std::optional<std::int64_t> expert_copies = {};
  // Ranks of experts gather all rows, although the stack has a library that sends each to its own.
  bool gathers_rows = false;
  PrecisionRecipe precision =
      PrecisionRecipe::bf16;    // of linear layers that the checkpoint quantises
  Format cache = Format::bf16;  // of keys and values
  bool operator==(const EngineLayout&) const = default;

  std::int64_t gpus() const { return tp * pp * attention_dp; }
  // The same as groups of ranks see it.
  Layout layout() const {
    Layout l;
    l.tp = tp;
    l.pp = pp;
    l.dp = attention_dp;
    l.ep = ep;
    l.etp = etp;
    l.redundant_experts = expert_copies.value_or(0);
    l.sequence_parallel = false;
    l.precision = precision;
    return l;
  }
};

}  // namespace orrery
