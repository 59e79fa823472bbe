// SPDX-License-Identifier: Apache-2.0
// Labels rows with the speculation of their run or campaign.
#include "sim/validate/serving/speculation_labels.h"

#include <fmt/format.h>

#include <set>
#include <utility>

#include "sim/base/date.h"
#include "sim/validate/serving/serving_columns.h"

namespace orrery {
namespace {

const std::vector<std::string>& label_columns() {
  static const std::vector<std::string> columns = {"gpu", "engine", "precision",   "date",
                                                   "isl", "osl",    "concurrency", "tp",
                                                   "ep",  "dp",     "method",      "citation"};
  return columns;
}

bool labels_campaign(const SpeculationLabel& label, const ServingCase& c) {
  return label.gpu == c.row.gpu && label.engine == c.engine_name &&
         label.precision == c.row.precision && label.date == c.row.date;
}

bool labels_run(const SpeculationLabel& label, const ServingCase& c) {
  const auto same = [](const auto& wanted, auto actual) { return !wanted || *wanted == actual; };
  return !label.of_campaign() && labels_campaign(label, c) &&
         same(label.isl, c.row.load.prompt_tokens) && same(label.osl, c.row.load.output_tokens) &&
         same(label.concurrency, c.concurrency()) && same(label.tp, c.engine.tp) &&
         same(label.ep, c.engine.moe_ep) && same(label.dp, c.engine.attention_dp);
}

void set_label(ServingCase& c, ServingSpeculation method, const std::string& from) {
  c.row.software.speculation = method;
  c.row.software.speculation_from = from;
}

std::string campaign_key(const ServingCase& c) {
  return fmt::format("{}, {}, {}, {}, {}", c.row.family, c.row.gpu, c.engine_name, c.row.precision,
                     c.row.date);
}

struct CampaignMethods {
  std::set<ServingSpeculation> methods;
  std::size_t runs = 0;
};

// Of aggregated runs that InferenceX's application labels.
std::map<std::string, CampaignMethods> labelled_campaigns(const ServingCases& cases) {
  std::map<std::string, CampaignMethods> campaigns;
  for (const ServingCase& c : cases) {
    if (!c.of(ServingTable::dashboard) || c.row.disaggregated) continue;
    CampaignMethods& campaign = campaigns[campaign_key(c)];
    campaign.methods.insert(c.row.software.speculation);
    ++campaign.runs;
  }
  return campaigns;
}

}  // namespace

bool is_speculation_labels(const CsvTable& table) {
  return table.has("method") && table.has("citation") && table.has("engine");
}

std::vector<SpeculationLabel> read_speculation_labels(const CsvTable& table) {
  require_columns(table, label_columns(), "validation/measurements/serving/README.md");
  std::vector<SpeculationLabel> labels;
  for (std::size_t i = 0; i < table.rows.size(); ++i) {
    const CsvRow cells(table, i);
    const auto method = serving_speculation_text.find(cells.text("method"));
    if (!method || *method == ServingSpeculation::unknown) cells.fail("method", "none or mtp");
    if (!date_from_text(cells.text("date"))) cells.fail("date", "a date such as 2026-03-25");
    labels.push_back({.gpu = cells.text("gpu"),
                      .engine = cells.text("engine"),
                      .precision = cells.text("precision"),
                      .date = cells.text("date"),
                      .isl = positive_cell(cells, "isl"),
                      .osl = positive_cell(cells, "osl"),
                      .concurrency = positive_cell(cells, "concurrency"),
                      .tp = cells.integer("tp"),
                      .ep = cells.integer("ep"),
                      .dp = cells.integer("dp"),
                      .method = *method,
                      .citation = cells.text("citation")});
  }
  return labels;
}

void label_speculation(ServingCases& cases, const std::vector<SpeculationLabel>& labels) {
  const auto campaigns = labelled_campaigns(cases);
  for (ServingCase& c : cases) {
    if (!c.row.software.speculation_from.empty()) continue;  // a label, or a twin's
    const auto by_label = [&](const auto& fits, const char* from) {
      if (c.row.disaggregated || c.name_speculation != "unknown") return;
      for (const SpeculationLabel& label : labels)
        if (c.row.software.speculation_from.empty() && fits(label))
          set_label(c, label.method, fmt::format("{}: {}", from, label.citation));
    };
    by_label([&c](const SpeculationLabel& l) { return labels_run(l, c); }, "label");
    if (c.name_speculation == "none") {
      set_label(c, ServingSpeculation::none, "the name of its model");
    } else if (c.name_speculation.empty()) {
      set_label(c, ServingSpeculation::none, "model without repeated values");
    }
    const auto found = campaigns.find(campaign_key(c));
    if (c.row.software.speculation_from.empty() && !c.row.disaggregated &&
        found != campaigns.end() && found->second.methods.size() == 1 && found->second.runs >= 2)
      set_label(c, *found->second.methods.begin(), "campaign");
    by_label([&c](const SpeculationLabel& l) { return l.of_campaign() && labels_campaign(l, c); },
             "campaign");
    if (c.row.software.speculation_from.empty())
      leave_out(c, "R7",
                fmt::format("{} without a label: speculative decoding may be on or off",
                            c.row.model_told.substr(c.row.model_told.rfind('/') + 1)));
  }
}

}  // namespace orrery
