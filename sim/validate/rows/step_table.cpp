// SPDX-License-Identifier: Apache-2.0
// Renames the columns of timed training steps to those of training runs.
#include "sim/validate/rows/step_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace orrery {
namespace {

using Cells = std::vector<std::pair<std::string, std::string>>;

std::string count(const CsvRow& row, const char* column, std::int64_t other) {
  return fmt::format("{}", row.integer(column).value_or(other));
}

bool is_true(const std::string& text) { return text == "True" || text == "true" || text == "1"; }

Cells cells_of(const CsvRow& row, const TrainingStepSource& from) {
  const std::int64_t sequences = row.integer("mbs").value_or(1) * row.integer("nm").value_or(1) *
                                 row.integer("dp").value_or(1);
  // What was still allocated of the case before is none of this one's.
  const auto peak = row.number("peak_gb"), reserved = row.number("reserved_gb");
  const double held = row.number("held_gb").value_or(0);
  const auto gibibytes = [held](const std::optional<double>& gigabytes) {
    return gigabytes ? fmt::format("{}", (*gigabytes - held) * 1e9 / 1073741824.0) : "";
  };
  return {{"id", row.text("id")},
          {"source", from.source},
          {"gpu", from.gpu},
          {"n_gpus", row.text("gpus")},
          {"interconnect", from.interconnect},
          {"system", ""},
          {"model", row.text("model")},
          {"task", "pretrain"},
          {"layers", row.text("L")},
          {"hidden", row.text("h")},
          {"ffn", row.text("f")},
          {"heads", row.text("nh")},
          {"kv_heads", row.text("nkv")},
          {"head_dim", row.text("hd")},
          {"vocab", row.text("V")},
          {"mlp", "swiglu"},
          {"experts", row.text("E")},
          {"topk", row.text("k")},
          {"seq", row.text("seq")},
          {"global_batch", fmt::format("{}", sequences)},
          {"micro_batch", count(row, "mbs", 1)},
          {"tp", count(row, "tp", 1)},
          {"pp", count(row, "pp", 1)},
          {"vpp", count(row, "vpp", 1)},
          {"dp", count(row, "dp", 1)},
          {"ep", count(row, "ep", 1)},
          {"etp", "1"},
          {"cp", "1"},
          {"zero_stage", row.text("wrap") == "fsdp" ? "3" : "0"},
          {"seqpar", "0"},
          {"recompute", is_true(row.text("ac")) ? "full" : "none"},
          {"schedule", row.text("sched")},
          {"precision", "BF16"},
          {"framework", from.framework},
          {"version", ""},
          {"tokens_s_gpu", ""},
          {"step_time_s", row.text("step_s")},
          {"peak_memory_gib", gibibytes(peak)},
          {"reserved_memory_gib", gibibytes(reserved)}};
}

}  // namespace

bool is_step_table(const CsvTable& table) {
  const std::vector<std::string> columns = {"gpus", "h",   "L",  "nh",   "f",     "V",
                                            "seq",  "mbs", "nm", "wrap", "step_s"};
  return std::all_of(columns.begin(), columns.end(),
                     [&](const std::string& column) { return table.has(column); });
}

CsvTable training_runs_of(const CsvTable& steps, const Aliases& aliases) {
  CsvTable runs{.file = steps.file, .lines = steps.lines};
  for (std::size_t i = 0; i < steps.rows.size(); ++i) {
    const Cells cells = cells_of(CsvRow(steps, i), aliases.training_steps);
    std::vector<std::string> row;
    for (const auto& [name, value] : cells) {
      if (i == 0) runs.header.push_back(name);
      row.push_back(value);
    }
    runs.rows.push_back(std::move(row));
  }
  return runs;
}

}  // namespace orrery
