// SPDX-License-Identifier: Apache-2.0
// Applies the rules of serving tables, and holds those that look at one row alone.
#include "sim/validate/serving/serving_rules.h"

#include <fmt/format.h>

#include <cmath>

#include "sim/validate/serving/peak_rules.h"
#include "sim/validate/serving/repeated_runs.h"
#include "sim/validate/serving/serving_duplicates.h"
#include "sim/validate/serving/stalled_runs.h"

namespace orrery {

void drop_without_concurrency(ServingCases& cases) {
  for (ServingCase& c : cases)
    if (c.inferencex_run() && !c.row.load.concurrency)
      leave_out(c, "R3", "the concurrency is not given, so the load is unknown");
}

void drop_sums(ServingCases& cases) {
  constexpr std::int64_t host = 8;
  for (ServingCase& c : cases) {
    if (c.inferencex_run() && !c.row.disaggregated && c.domain > host && c.engine.tp > host)
      leave_out(c, "R4",
                fmt::format("\"aggregated\" with tp {} is the sum of the GPUs of a disaggregated "
                            "deployment, its workers are unknown",
                            c.engine.tp));
    if (c.of(ServingTable::dashboard) && c.row.disaggregated && c.engine.count == 0)
      leave_out(c, "R4",
                fmt::format("disaggregated with 0 workers, tp {:.0f} is the sum of all GPUs",
                            c.cells.printed_gpus));
  }
}

void drop_without_workers(ServingCases& cases) {
  for (ServingCase& c : cases)
    if (c.row.disaggregated && (c.prefill.count == 0 || c.engine.count == 0))
      leave_out(c, "R5",
                "disaggregated, and the numbers of prefill and decode workers are not given");
}

void drop_unfit_layouts(ServingCases& cases) {
  constexpr double slack = 0.51;
  for (ServingCase& c : cases) {
    if (!c.of(ServingTable::inferencex) || c.row.disaggregated || !c.row.load.concurrency) continue;
    const ToldWorkers& w = c.engine;
    const std::int64_t attention = w.tp * w.attention_dp, experts = w.moe_tp * w.moe_ep;
    const auto dp = static_cast<double>(w.attention_dp);
    const double batch = c.cells.batch.value_or(0), load = c.concurrency();
    // One rank for experts that no catalogue knows: a dense model has as many.
    const bool dense = !c.model && experts == 1;
    if (experts > 0 && experts != attention && !dense) {
      leave_out(
          c, "R6",
          fmt::format("attention is spread over {} GPUs and experts over {}", attention, experts));
    } else if (!c.cells.squared && batch > 0 && std::abs(load / batch / dp - 1) > slack &&
               !(dp > 1 && load == batch)) {
      leave_out(c, "R6",
                fmt::format("batch_size {:.0f} is not concurrency {:.0f} / attention DP {:.0f}: "
                            "replicas or attention DP are not told, so neither are the GPUs",
                            batch, load, dp));
    }
  }
}

void drop_contradicting_throughput(ServingCases& cases) {
  constexpr double most = 2, slack = 0.01;
  for (ServingCase& c : cases) {
    if (!c.live()) continue;
    if (c.of(ServingTable::dashboard) && c.cells.e2e && c.cells.printed_tokens) {
      const double ratio = c.concurrency() * c.row.load.output_tokens * c.row.load.mean_share() /
                           *c.cells.e2e / c.cells.printed_gpus / *c.cells.printed_tokens;
      if (ratio > most || ratio < 1 / most)
        leave_out(c, "R13",
                  fmt::format("printed throughput and latency differ {:.1f} times", ratio));
    }
    if (c.of(ServingTable::overview) && c.cells.total_tokens && c.row.measured.tokens_s_gpu &&
        std::abs(*c.cells.total_tokens / c.cells.printed_gpus / *c.row.measured.tokens_s_gpu - 1) >
            slack)
      leave_out(c, "R13", "total and per-GPU throughput disagree");
  }
}

void drop_without_load(ServingCases& cases) {
  for (ServingCase& c : cases)
    if (c.of(ServingTable::stages))
      leave_out(c, "R15", "arrivals and lengths of the load are not in the table");
}

void drop_capped(ServingCases& cases) {
  for (ServingCase& c : cases)
    if (c.cells.capped)
      leave_out(c, "R17", "the GPUs were capped in power, so their clocks are not the product's");
}

void apply_known(ServingCases& cases, const ServingCatalogue& catalogue) {
  for (ServingCase& c : cases) {
    if (!c.live() || !c.of(ServingTable::inferencex)) continue;
    const ServingFacts facts = catalogue.facts(c, c.row.disaggregated ? "decode" : "");
    for (const auto& known : catalogue.recipes().known) {
      if (!known.when.holds(facts)) continue;
      if (!known.ttft_only) leave_out(c, known.rule.c_str(), known.sentence);
      if (known.ttft_only && c.row.measured.ttft_skipped.empty())
        c.row.measured.ttft_skipped = known.sentence;
    }
  }
}

void apply_serving_rules(ServingCases& cases, const ServingCatalogue& catalogue,
                         const std::vector<SpeculationLabel>& labels) {
  drop_repeated_rows(cases);
  join_labelled_runs(cases);
  drop_without_concurrency(cases);
  drop_sums(cases);
  drop_without_workers(cases);
  drop_unfit_layouts(cases);
  label_speculation(cases, labels);
  drop_contradicting_pairs(cases);
  drop_beyond_peaks(cases);
  drop_waves_of_prompts(cases);
  drop_without_graphs(cases);
  drop_contradicting_throughput(cases);
  skip_ttft_of_stalls(cases);
  skip_falling_ttft(cases);
  drop_outliers_among_reruns(cases);
  drop_defective_builds(cases);
  apply_known(cases, catalogue);
  drop_stalled_campaigns(cases);
  skip_ttft_of_stalled_twins(cases);
  drop_without_load(cases);
  drop_repeated_throughput(cases);
  drop_trials(cases);
  drop_capped(cases);
}

}  // namespace orrery
