// SPDX-License-Identifier: Apache-2.0
// Reads serving tables: cells, names, rules, then what recipes say.
#include "sim/validate/serving/serving_rows.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "hw_models/catalog.h"
#include "sim/validate/serving/serving_columns.h"
#include "sim/validate/serving/serving_rules.h"

namespace orrery {
namespace {

// Where a table prints no throughput: that of the closed loop in its steady state.
void derive_tokens(ServingCase& c) {
  ServingFigures& measured = c.row.measured;
  if (measured.tokens_s_gpu || !measured.ttft || !measured.tpot || !c.row.load.concurrency ||
      c.of(ServingTable::batches) || c.gpus() == 0)
    return;
  const double output = c.row.load.output_tokens * c.row.load.mean_share();
  if (output <= 0) return;
  measured.tokens_s_gpu = c.concurrency() * output /
                          (*measured.ttft + (output - 1) * *measured.tpot) /
                          static_cast<double>(c.gpus());
  measured.tokens_derived = true;
}

}  // namespace

bool is_serving_table(const CsvTable& table) { return serving_table(table).has_value(); }

ServingReader::ServingReader(Aliases aliases)
    : catalogue_(std::move(aliases),
                 load_serving_recipes(data_root() / "validation/serving_recipes.json")),
      labels_(read_speculation_labels(
          read_csv(data_root() / "validation/measurements/serving/speculation_labels.csv"))) {}

std::vector<ServingRow> ServingReader::read(const std::vector<CsvTable>& tables) {
  ServingCases cases;
  for (const CsvTable& table : tables) {
    ServingCases read = read_serving_table(table, catalogue_.recipes());
    std::move(read.begin(), read.end(), std::back_inserter(cases));
  }
  for (ServingCase& c : cases) catalogue_.resolve(c);
  apply_serving_rules(cases, catalogue_, labels_);
  std::vector<ServingRow> rows;
  rows.reserve(cases.size());
  for (ServingCase& c : cases) {
    catalogue_.complete(c);
    derive_tokens(c);
    rows.push_back(std::move(c.row));
  }
  return rows;
}

}  // namespace orrery
