// SPDX-License-Identifier: Apache-2.0
// Reads rows of aiconfigurator's table of InferenceX runs, and of InferenceX's application.
#include <fmt/format.h>

#include <string>

#include "sim/base/date.h"
#include "sim/base/text/lower_case.h"
#include "sim/validate/serving/serving_columns.h"
#include "sim/validate/serving/serving_repairs.h"

namespace orrery {
namespace {

std::string date_cell(const CsvRow& cells, const char* column) {
  const std::string& text = cells.text(column);
  if (!text.empty() && !date_from_text(text)) cells.fail(column, "a date such as 2026-03-25");
  return text;
}

// "True", "False", "1", "0"; blank: false.
bool truth_cell(const CsvRow& cells, const char* column) {
  const std::string text = lower_case(cells.text(column));
  if (text == "true" || text == "1") return true;
  if (!text.empty() && text != "false" && text != "0") cells.fail(column, "True or False");
  return false;
}

void read_load(ServingCase& c, const CsvRow& cells, const char* concurrency,
               const ServingCampaign& campaign) {
  c.row.campaign = campaign.campaign;
  c.analysed = campaign.analysed;
  c.row.load = {.prompt_tokens = required_cell(cells, "isl"),
                .output_tokens = required_cell(cells, "osl"),
                .shortest = campaign.shortest,
                .concurrency = positive_cell(cells, concurrency)};
  c.row.load.prompts = campaign.waves * c.concurrency();
  c.row.load.warmed = campaign.warms(c.row.disaggregated, c.row.date);
}

ToldWorkers told_workers(const CsvRow& cells, const std::string& prefix) {
  const auto size = [&](const char* column) { return size_cell(cells, (prefix + column).c_str()); };
  const auto one_at_least = [](std::int64_t value) { return value == 0 ? 1 : value; };
  return {.count = prefix.empty() ? 1 : size("num_workers"),
          .tp = size("tp_size"),
          .pp = one_at_least(size("pp_size")),
          .attention_dp = one_at_least(size("attention_dp_size")),
          .moe_tp = size("moe_tp_size"),
          .moe_ep = size("moe_ep_size")};
}

DashboardWorkers dashboard_workers(const CsvRow& cells, const std::string& role) {
  const auto size = [&](const std::string& column) { return size_cell(cells, column.c_str()); };
  return {.tp = size(role + "_tp"),
          .ep = size(role + "_ep"),
          .workers = size(role + "_num_workers"),
          .gpus = size("num_" + role + "_gpu"),
          .attention_dp = truth_cell(cells, (role + "_dp_attention").c_str())};
}

void read_dashboard_workers(ServingCase& c, const CsvRow& cells) {
  const DashboardWorkers decode = dashboard_workers(cells, "decode");
  const auto printed = positive_cell(cells, "output_tput_per_gpu");
  c.cells.printed_tokens = printed;
  if (!c.row.disaggregated) {
    c.engine = aggregated_workers(decode);
    c.cells.printed_gpus = static_cast<double>(decode.tp);
    c.row.measured.tokens_s_gpu = printed;
    return;
  }
  const DashboardWorkers prefill = dashboard_workers(cells, "prefill");
  c.engine = worker_shares(decode, c.expert_groups_as_tp);
  c.prefill = worker_shares(prefill, c.expert_groups_as_tp);
  c.cells.printed_gpus = static_cast<double>(decode.gpus);
  if (printed && c.prefill.count > 0)
    c.row.measured.tokens_s_gpu = tokens_of_all(*printed, c.cells.printed_gpus,
                                                static_cast<double>(decode.gpus + prefill.gpus));
}

void read_dashboard_figures(ServingCase& c, const CsvRow& cells) {
  ServingFigures& measured = c.row.measured;
  const auto mean = positive_cell(cells, "mean_tpot");
  measured.statistic = mean ? ServingStatistic::mean : ServingStatistic::median;
  measured.tpot = mean ? mean : positive_cell(cells, "median_tpot");
  measured.ttft = positive_cell(cells, mean ? "mean_ttft" : "median_ttft");
  c.cells.mean_ttft = positive_cell(cells, "mean_ttft");
  c.cells.median_ttft = positive_cell(cells, "median_ttft");
  c.cells.p99_ttft = positive_cell(cells, "p99_ttft");
  const auto e2e = positive_cell(cells, "mean_e2el");
  c.cells.e2e = e2e ? e2e : positive_cell(cells, "median_e2el");
}

// Users' own rows may tell it too.
void read_label(ServingCase& c, const CsvRow& cells) {
  if (cells.blank("spec_method")) return;
  const auto method = serving_speculation_text.find(cells.text("spec_method"));
  if (!method) cells.fail("spec_method", "none or mtp");
  if (*method == ServingSpeculation::unknown) return;
  c.row.software.speculation = *method;
  c.row.software.speculation_from = "label";
}

}  // namespace

void read_inferencex(ServingCase& c, const CsvRow& cells, const ServingRecipes& recipes) {
  ServingRow& row = c.row;
  row.gpu = cells.text("system");
  row.model_told = cells.text("model_path");
  row.precision = repaired_precision(cells.text("precision"), c);
  row.date = date_cell(cells, "measured_date");
  row.software.release = cells.text("backend_version");
  set_engine(c, cells.text("backend"), recipes);
  read_label(c, cells);
  const std::string& mode = cells.text("mode");
  if (mode != "agg" && mode != "disagg") cells.fail("mode", "agg or disagg");
  row.disaggregated = mode == "disagg";
  read_load(c, cells, "concurrency", recipes.campaign(row.source));
  row.measured.ttft = milliseconds(cells, "silicon_ttft_ms");
  row.measured.tpot = milliseconds(cells, "silicon_tpot_ms");
  c.cells.tpot_digits = cells.text("silicon_tpot_ms");
  if (row.disaggregated) {
    c.engine = told_workers(cells, "decode_");
    c.prefill = told_workers(cells, "prefill_");
    c.cells.batch = positive_cell(cells, "decode_batch_size");
    repair_expert_groups(c.prefill, c);
    repair_expert_groups(c.engine, c);
  } else {
    c.engine = told_workers(cells, "");
    c.cells.batch = positive_cell(cells, "batch_size");
    repair_aggregated(c);
  }
}

void read_dashboard(ServingCase& c, const CsvRow& cells, const ServingRecipes& recipes) {
  ServingRow& row = c.row;
  row.gpu = cells.text("hardware");
  row.model_told = cells.text("model");
  row.precision = repaired_precision(cells.text("precision"), c);
  row.date = date_cell(cells, "date");
  const std::string& image = cells.text("image");
  row.software.release = image.substr(image.rfind(':') + 1);
  set_engine(c, cells.text("framework"), recipes);
  if (cells.blank("spec_method")) cells.fail("spec_method", "none or mtp");
  read_label(c, cells);
  row.disaggregated = truth_cell(cells, "disagg");
  read_load(c, cells, "conc", recipes.campaign(""));
  read_dashboard_workers(c, cells);
  read_dashboard_figures(c, cells);
}

}  // namespace orrery
