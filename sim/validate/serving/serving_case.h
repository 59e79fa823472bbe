// SPDX-License-Identifier: Apache-2.0
// Holds a row of a serving table while rules judge it, with the cells that only they look at.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "hw_models/device.h"
#include "sim/base/text/csv.h"
#include "sim/validate/serving/serving_row.h"
#include "workloads/model/model.h"

namespace orrery {

// Tables of serving runs, told by their columns.
enum class ServingTable : std::uint8_t {
  inferencex,  // aiconfigurator's collection of InferenceX and of its own campaigns
  dashboard,   // InferenceX's application: every run labelled, with percentiles
  overview,    // TensorRT-LLM's performance overview: most tokens/s
  batches,     // Splitwise: static batches
  positions,   // InferenceX's experiment on token positions
  stages,      // stages of open-loop loads that the table does not tell
};

// Sizes of one kind of workers as the cells have them, after repairs; 0: blank.
struct ToldWorkers {
  std::int64_t count = 0, tp = 0, pp = 1, attention_dp = 1, moe_tp = 0, moe_ep = 0;
  std::int64_t ranks() const { return tp * pp * attention_dp; }
};

struct ServingCells {
  std::optional<double> batch;                              // of one rank, as the cell has it
  std::optional<double> mean_ttft, median_ttft, p99_ttft;   // seconds
  std::optional<double> e2e, printed_tokens, total_tokens;  // seconds; tokens/s
  double printed_gpus = 0;  // that the printed tokens/s are divided by
  std::string tpot_digits;  // as printed
  std::string run;          // what trials of one run have in common
  bool squared = false;     // sizes were multiplied with themselves (A1 to A3)
  bool capped = false;      // in power
};

struct ServingCase {
  ServingTable table = ServingTable::inferencex;
  std::size_t number = 0;  // of its row in its table, from 1
  ServingRow row;
  ServingCells cells;
  ToldWorkers engine, prefill;
  std::string engine_name;           // the stack's, without release; else as told
  bool expert_groups_as_tp = false;  // its tables write expert parallelism as tensor parallelism
  std::string name_speculation;      // what the model's name says of it: "none", "unknown" or blank
  bool analysed = false;             // of a campaign that was made to compare with predictions
  const Model* model = nullptr;      // null: not in the catalogue
  const ResolvedDevice* device = nullptr;
  std::int64_t domain = 0;  // accelerators of a scale-up domain; 0: not known

  bool live() const { return row.rule.empty(); }
  bool of(ServingTable t) const { return table == t; }
  bool inferencex_run() const {
    return of(ServingTable::inferencex) || of(ServingTable::dashboard);
  }
  std::int64_t gpus() const {
    return row.disaggregated ? engine.count * engine.ranks() + prefill.count * prefill.ranks()
                             : engine.ranks();
  }
  double concurrency() const { return row.load.concurrency.value_or(0); }
};
using ServingCases = std::vector<ServingCase>;

// Leaves the row out for a reason, unless an earlier rule did.
inline void leave_out(ServingCase& c, const char* rule, std::string sentence) {
  if (!c.live()) return;
  c.row.rule = rule;
  c.row.skipped = std::move(sentence);
}

using CaseGroups = std::map<std::string, std::vector<ServingCase*>>;
// Those for which `wanted` holds, in their order, by what `key` says of them.
template <class Wanted, class Key>
CaseGroups group_cases(ServingCases& cases, const Wanted& wanted, const Key& key) {
  CaseGroups groups;
  for (ServingCase& c : cases)
    if (wanted(c)) groups[key(c)].push_back(&c);
  return groups;
}

// Equal deployments have equal text: layout and workers; with software, model and machine too.
std::string layout_key(const ServingCase& c);
std::string deployment_key(const ServingCase& c);
std::string lengths_key(const ServingCase& c);

}  // namespace orrery
