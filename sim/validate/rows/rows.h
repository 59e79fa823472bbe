// SPDX-License-Identifier: Apache-2.0
// Makes a scenario of a row of a table of measured runs, and says what had to be assumed.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "sim/base/text/csv.h"
#include "sim/engine/scenario.h"
#include "sim/engine/step/context.h"
#include "sim/validate/rows/aliases.h"
#include "sim/validate/rows/memory_savers.h"

namespace orrery {

// A cluster that many rows share, with its numbers resolved once.
struct SharedCluster {
  Cluster cluster;
  std::unique_ptr<StepContext> context;  // refers to `cluster`, which must not move
};

struct MeasuredRun {
  std::optional<double> tokens_per_second_per_gpu;
  std::optional<double> step_seconds;  // inference steps
  // Allocated at the peak, reserved by the allocator at its peak, allocated between steps.
  std::optional<double> peak_gibibytes, reserved_gibibytes, static_gibibytes;
  std::optional<bool> out_of_memory;
};

// A row ready to be predicted, or the reason why it cannot be.
struct PreparedRow {
  std::string id, source, gpu, family, release;
  bool full_config = true;  // the source tells the whole layout
  bool catalogued = true;   // its accelerator is in aliases.json
  bool sweep = false;       // of a sweep, not a published result
  MeasuredRun measured;
  std::string skipped;         // why nothing is predicted; empty: predicted
  std::string unfit_for_time;  // why its time is not scored; empty: scored
  std::string outside;         // why it counts for no 90th percentile and no ranking
  std::string remark;          // what else is known of it; it is scored as any row
  std::string unscored;        // why nothing of it is scored: the source tells no figure
  std::vector<std::string> assumed;
  const SharedCluster* cluster = nullptr;
  Model model;
  Job job;
  Layout layout;
  Stack stack;
  std::string program;  // that the stack stands in for; empty: the stack is its own
  // Recompute that the row leaves blank: the first of these that fits is taken; empty: stated.
  std::vector<MemorySaver> recompute_choices;
};

// Something is known of the row that no column tells, and so no value of a stack can.
inline bool is_odd(const PreparedRow& row) { return !row.outside.empty() || !row.remark.empty(); }

// Dimensions that a row states; 0 where it does not.
struct RowDimensions {
  std::int64_t layers = 0, hidden = 0, ffn = 0, heads = 0, kv_heads = 0, head_dim = 0;
  std::int64_t vocab = 0, experts = 0, topk = 0, sequence = 0;
  std::string mlp, attention;
  double parameters = 0;  // of the whole model, as published; 0: not stated
};
// The catalogue's model with the row's dimensions over it. A shorter proxy keeps one of the leading
// dense layers and then the layers that follow them.
Model adapt_model(const Model& base, const RowDimensions& dimensions,
                  std::vector<std::string>& assumed);
// A catalogued model's kind of block with the row's dimensions. Layers and hidden must be stated,
// or one of them and the size of the model; what else is blank is as most models have it.
Model fill_template(const Model& shape, const std::string& name, const RowDimensions& dimensions,
                    std::vector<std::string>& assumed);
// A model from a row alone, with the same blanks. Throws an Error for what a row cannot tell (MLA,
// Mamba).
Model model_from_dimensions(const std::string& name, const RowDimensions& dimensions,
                            std::vector<std::string>& assumed);

// What a row says of its machine.
struct MachineColumns {
  std::string interconnect, system, cluster;
  std::int64_t watts = 0;  // of a board, where the GPU's name tells them
};

// A training row's cells, read and checked as numbers.
struct RunColumns {
  RowDimensions dimensions;
  MachineColumns machine;
  std::string model, task, recompute, schedule, precision, framework;
  std::string version, notes, year;
  std::optional<std::int64_t> gpus, global_batch, micro_batch, tp, pp, vpp, dp, ep, etp, cp, zero;
  std::optional<bool> sequence_parallel;
};

// Columns that a table of inference steps must have.
const std::vector<std::string>& inference_columns();

// What of rows is taken to be unknown. "model": stacks take none of the conditions that name a
// model or a family, as for a model that nobody has run yet. "script": nor what launch programs set
// for it, as for one that they do not name. "program": another stack stands in for the row's as
// well, as for a program that has none.
enum class Unknown : std::uint8_t { nothing, model, script, program };

// Turns rows into scenarios. Loads every cluster, stack and model once; rows point into it.
class RowReader {
 public:
  explicit RowReader(Aliases aliases, Unknown unknown = Unknown::nothing);
  // Training runs in the columns of validation/README.md. Error for cells that do not parse; a row
  // that cannot become a scenario has its reason in `skipped`.
  std::vector<PreparedRow> read_training(const CsvTable& table);
  // Inference steps: mode, batch, ctx, tp and the model's dimensions.
  std::vector<PreparedRow> read_inference(const CsvTable& table);

 private:
  RunColumns read_columns(const CsvRow& row, PreparedRow& prepared) const;
  void build(PreparedRow& prepared, const RunColumns& columns);
  void choose_machine(PreparedRow& prepared, const RunColumns& columns, std::int64_t gpus);
  void build_job(PreparedRow& prepared, const RunColumns& columns) const;
  StackChoice choose_software(const PreparedRow& prepared, const RunColumns& columns) const;
  void build_stack(PreparedRow& prepared, const RunColumns& columns);
  void build_model(PreparedRow& prepared, const RunColumns& columns);
  const SharedCluster* shared_cluster(const ClusterChoice& choice, std::int64_t gpus,
                                      std::int64_t watts = 0);
  const Model& catalog_model(const std::string& name);
  StackContext context_of(const PreparedRow& row) const;
  const Stack& stack(const std::string& name, const StackContext& context);
  void collect_dimensions(const CsvTable& table);
  std::int64_t dimension(const CsvRow& row, const std::string& column,
                         std::vector<std::string>& assumed) const;

  Aliases aliases_;
  Unknown unknown_;
  WiringTable wirings_;
  std::vector<std::string> catalog_models_;
  std::map<std::string, std::unique_ptr<SharedCluster>> clusters_;
  std::map<std::string, Model> models_;
  std::map<std::string, Stack> stacks_;
  // (model, column): the one value that rows give; 0 when they disagree.
  std::map<std::pair<std::string, std::string>, std::int64_t> dimensions_;
};

}  // namespace orrery
