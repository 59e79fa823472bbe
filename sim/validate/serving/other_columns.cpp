// SPDX-License-Identifier: Apache-2.0
// Reads rows of TensorRT-LLM's overview, Splitwise's batches, token positions and BLIS' stages.
#include <fmt/format.h>

#include <regex>
#include <string>
#include <utility>

#include "sim/base/text/lower_case.h"
#include "sim/validate/rows/row_words.h"
#include "sim/validate/serving/serving_columns.h"

namespace orrery {
namespace {

// What tables of this kind leave out.
void set_table(ServingCase& c, const ServingRecipes& recipes, const char* kind) {
  const ServingTableFacts& table = recipes.tables.at(kind);
  c.row.campaign = table.campaign;
  c.row.precision = table.precision;
  c.row.software.release = table.release;
  c.row.software.drafts = table.drafts;
  c.row.software.speculation =
      table.drafts > 0 ? ServingSpeculation::mtp : ServingSpeculation::none;
  c.row.software.speculation_from = "label";
  if (!table.engine.empty()) set_engine(c, table.engine, recipes);
  if (!table.gpu.empty()) c.row.gpu = table.gpu;
  if (!table.why.empty()) c.row.assumed.push_back(table.why);
}

std::int64_t required_size(const CsvRow& cells, const char* column) {
  const std::int64_t size = size_cell(cells, column);
  if (size == 0) cells.fail(column, "a whole number above 0");
  return size;
}

// "TP8": tensor parallelism; "DEP8": attention DP with as many groups of experts; "TEP8".
ToldWorkers workers_from_words(const CsvRow& cells, const char* column) {
  const std::string& text = cells.text(column);
  static const std::regex form(R"(^(?:DEP|TEP|TP)([1-9]\d{0,3})$)", std::regex::icase);
  std::smatch found;
  if (!std::regex_match(text, found, form)) cells.fail(column, "TP, TEP or DEP and a number");
  const std::int64_t n = std::stoll(found[1]);
  ToldWorkers w{.count = 1, .tp = n, .moe_tp = n, .moe_ep = 1};
  if (mentions(text, "EP")) std::swap(w.moe_tp, w.moe_ep);
  if (mentions(text, "DEP")) std::swap(w.tp, w.attention_dp);
  return w;
}

}  // namespace

void read_overview(ServingCase& c, const CsvRow& cells, const ServingRecipes& recipes) {
  set_table(c, recipes, "overview");
  ServingRow& row = c.row;
  row.source = cells.text("doc_version");
  row.software.release = row.source.substr(0, row.source.find(' '));
  row.gpu = cells.text("gpu");
  row.model_told = cells.text("model");
  row.precision = lower_case(cells.text("precision"));
  row.load.prompt_tokens = required_cell(cells, "isl");
  row.load.output_tokens = required_cell(cells, "osl");
  c.engine = workers_from_words(cells, "parallel");
  row.measured.tokens_s_gpu = positive_cell(cells, "output_tok_s_per_gpu");
  c.cells.total_tokens = positive_cell(cells, "output_tok_s_total");
  c.cells.printed_gpus = static_cast<double>(required_size(cells, "num_gpus"));
}

void read_batches(ServingCase& c, const CsvRow& cells, const ServingRecipes& recipes) {
  set_table(c, recipes, "batches");
  ServingRow& row = c.row;
  const std::string& hardware = cells.text("hardware");
  row.source = hardware;
  row.gpu = hardware;
  row.model_told = cells.text("model");
  c.cells.capped = hardware.ends_with("-pcap");
  const double batch = required_cell(cells, "batch_size");
  row.load = {.prompt_tokens = required_cell(cells, "prompt_size"),
              .output_tokens = required_cell(cells, "token_size"),
              .shortest = 1,
              .concurrency = batch,
              .prompts = batch};
  const std::int64_t tp = required_size(cells, "tensor_parallel");
  c.engine = {.count = 1, .tp = tp, .moe_tp = tp, .moe_ep = 1};
  row.measured.statistic = ServingStatistic::trial;
  row.measured.ttft = milliseconds(cells, "prompt_time");
  row.measured.tpot = milliseconds(cells, "token_time");
  c.cells.run =
      fmt::format("{}, {}, {}, {}, {}, {}, {}", hardware, row.model_told, tp,
                  row.load.prompt_tokens, row.load.output_tokens, batch, cells.text("peak_power"));
}

void read_positions(ServingCase& c, const CsvRow& cells, const ServingRecipes& recipes) {
  set_table(c, recipes, "positions");
  ServingRow& row = c.row;
  const std::string& day = cells.text("date");  // "20260213-135636"
  constexpr std::size_t digits = 8;
  if (day.size() >= digits)
    row.date = day.substr(0, 4) + "-" + day.substr(4, 2) + "-" + day.substr(6, 2);
  set_engine(c, cells.text("engine"), recipes);
  row.model_told = cells.text("model");
  row.load = {.prompt_tokens = required_cell(cells, "isl"),
              .output_tokens = required_cell(cells, "osl"),
              .shortest = 1,
              .concurrency = positive_cell(cells, "concurrency"),
              .prompts = required_cell(cells, "num_prompts")};
  c.engine = workers_from_words(cells, "layout");
  row.measured.statistic = ServingStatistic::median;
  row.measured.ttft = positive_cell(cells, "median_ttft_s");
  row.measured.tpot = positive_cell(cells, "median_tpot_s");
  if (const auto all = positive_cell(cells, "output_throughput"))
    row.measured.tokens_s_gpu = *all / static_cast<double>(c.engine.ranks());
}

void read_stages(ServingCase& c, const CsvRow& cells, const ServingRecipes& recipes) {
  set_table(c, recipes, "stages");
  ServingRow& row = c.row;
  row.gpu = cells.text("hardware");
  row.model_told = cells.text("model");
  const std::int64_t tp = required_size(cells, "tp");
  c.engine = {.count = 1, .tp = tp, .moe_tp = tp, .moe_ep = 1};
  row.measured.ttft = milliseconds(cells, "ttft_mean_ms");
  row.measured.tpot = milliseconds(cells, "itl_mean_ms");
}

}  // namespace orrery
