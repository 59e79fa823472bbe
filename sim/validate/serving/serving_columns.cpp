// SPDX-License-Identifier: Apache-2.0
// Tells tables of serving runs by their columns and reads them row by row.
#include "sim/validate/serving/serving_columns.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "sim/base/text/lower_case.h"

namespace orrery {
namespace {

struct Kind {
  ServingTable table;
  std::vector<std::string> own, required;  // any of `own` tells the kind
  CellReader read;
};

const std::vector<Kind>& kinds() {
  static const std::vector<Kind> all = {
      {ServingTable::inferencex,
       {"silicon_ttft_ms", "silicon_tpot_ms", "model_path"},
       {"system", "model_path", "precision", "backend", "backend_version", "mode", "isl", "osl",
        "concurrency", "silicon_ttft_ms", "silicon_tpot_ms"},
       read_inferencex},
      {ServingTable::dashboard,
       {"spec_method", "output_tput_per_gpu"},
       {"model", "hardware", "framework", "precision", "spec_method", "disagg", "decode_tp",
        "decode_ep", "decode_dp_attention", "isl", "osl", "conc", "median_tpot", "median_ttft",
        "output_tput_per_gpu"},
       read_dashboard},
      {ServingTable::overview,
       {"output_tok_s_per_gpu", "output_tok_s_total"},
       {"model", "gpu", "parallel", "num_gpus", "precision", "isl", "osl", "output_tok_s_per_gpu"},
       read_overview},
      {ServingTable::batches,
       {"prompt_time", "token_time"},
       {"model", "hardware", "prompt_size", "batch_size", "token_size", "prompt_time", "token_time",
        "tensor_parallel"},
       read_batches},
      {ServingTable::positions,
       {"median_ttft_s", "median_tpot_s"},
       {"model", "engine", "layout", "isl", "osl", "concurrency", "num_prompts", "median_ttft_s",
        "median_tpot_s"},
       read_positions},
      {ServingTable::stages,
       {"itl_mean_ms"},
       {"model", "hardware", "tp", "stage", "ttft_mean_ms", "itl_mean_ms"},
       read_stages}};
  return all;
}

const Kind* kind_of(const CsvTable& table) {
  for (const Kind& kind : kinds())
    if (std::any_of(kind.own.begin(), kind.own.end(),
                    [&table](const std::string& column) { return table.has(column); }))
      return &kind;
  return nullptr;
}

}  // namespace

std::optional<ServingTable> serving_table(const CsvTable& table) {
  const Kind* kind = kind_of(table);
  return kind ? std::optional(kind->table) : std::nullopt;
}

std::optional<double> positive_cell(const CsvRow& cells, const char* column) {
  const auto value = cells.number(column);
  if (value && *value <= 0) cells.fail(column, "a number above 0");
  return value;
}

std::optional<double> milliseconds(const CsvRow& cells, const char* column) {
  const auto value = positive_cell(cells, column);
  return value ? std::optional(*value * 1e-3) : std::nullopt;
}

double required_cell(const CsvRow& cells, const char* column) {
  const auto value = positive_cell(cells, column);
  if (!value) cells.fail(column, "a number above 0");
  return *value;
}

std::int64_t size_cell(const CsvRow& cells, const char* column) {
  constexpr std::int64_t most = 1 << 20;
  const auto value = cells.integer(column);
  if (value && (*value < 0 || *value > most)) cells.fail(column, "a whole number from 0 on");
  return value.value_or(0);
}

void set_engine(ServingCase& c, const std::string& told, const ServingRecipes& recipes) {
  c.row.software.framework = told;
  const ServingEngine* engine = recipes.engine(told);
  c.engine_name = engine ? engine->stack : lower_case(told);
  c.expert_groups_as_tp = engine && engine->expert_groups_as_tp;
}

ServingCases read_serving_table(const CsvTable& table, const ServingRecipes& recipes) {
  const Kind* kind = kind_of(table);
  if (!kind) return {};
  require_columns(table, kind->required, "validation/measurements/serving/README.md");
  const std::string stem = std::filesystem::path(table.file).stem().string();
  ServingCases cases(table.rows.size());
  for (std::size_t i = 0; i < cases.size(); ++i) {
    const CsvRow cells(table, i);
    ServingCase& c = cases[i];
    c.table = kind->table;
    c.number = i + 1;
    c.row.file = table.file;
    c.row.id = cells.blank("id") ? fmt::format("{}:{}", stem, c.number) : cells.text("id");
    c.row.source = cells.text("source");
    kind->read(c, cells, recipes);
  }
  return cases;
}

}  // namespace orrery
