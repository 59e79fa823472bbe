// SPDX-License-Identifier: Apache-2.0
// Serves the requests of measured rows.
#include "sim/validate/served/served_rows.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdio>

#include "hw_models/catalog.h"
#include "sim/base/errors/check.h"
#include "sim/base/parallel.h"
#include "sim/calibrate/steps/step_fit.h"
#include "sim/outcome/serving/service.h"
#include "workloads/model/model_catalog.h"

namespace orrery {
namespace {

// Requests of a run whose table says that as many were sent as the engine takes.
constexpr std::int64_t offline_requests = 3000;

// The stack's policy with the limits of a run. An engine that cuts no prompts was given room for
// the longest, since it served it.
EnginePolicy policy_of(const ServingLimits& limits, const ServingLoad& load, const Stack& stack,
                       std::int64_t drafts) {
  EnginePolicy policy = stack.serving.policy;
  if (limits.token_budget) policy.token_budget = *limits.token_budget;
  if (limits.chunk) policy.chunk = *limits.chunk;
  if (limits.max_sequences) policy.max_sequences = *limits.max_sequences;
  if (limits.balance_steps) policy.balance_steps = *limits.balance_steps;
  if (limits.batch_wait_steps) policy.batch_wait.steps = *limits.batch_wait_steps;
  policy.batch_wait.tokens = limits.batch_wait_tokens;
  if (!policy.chunked_prefill)
    policy.token_budget =
        std::max<std::int64_t>(policy.token_budget, std::llround(load.prompt_tokens) + 64);
  policy.max_sequences = std::min(policy.max_sequences, policy.token_budget / (1 + drafts));
  set_front(policy, stack.serving.host, limits.frontend.value_or(Frontend::engine));
  // The engine has just started, or was warmed by its first prompt alone.
  if (!load.warmed || stack.serving.host.first_prompts_by_rows)
    policy.first_prompts = to_ticks(stack.serving.host.first_prompts.get());
  if (limits.stream_interval) policy.stream_interval = *limits.stream_interval;
  if (limits.receive_interval) policy.receive_interval = *limits.receive_interval;
  policy.prefix_cache = limits.prefix_cache;
  policy.new_tokens.known_ends = true;  // benchmarks have answers of the lengths that they drew
  return policy;
}

Traffic traffic_of(const ServingLoad& load) {
  Traffic traffic;
  const auto length = [&](double nominal) {
    return RatioLength{.nominal = std::max<std::int64_t>(1, std::llround(nominal)),
                       .ratio = load.shortest};
  };
  traffic.classes = {{.name = "default",
                      .prompt = length(load.prompt_tokens),
                      .output = length(load.output_tokens)}};
  if (load.concurrency) {
    const auto clients = std::max<std::int64_t>(1, std::llround(*load.concurrency));
    traffic.arrivals = ClosedLoop{clients};
    traffic.requests = load.prompts > 0 ? std::llround(load.prompts) : 10 * clients;
  } else {
    traffic.arrivals = OfflineArrivals{};
    traffic.requests = load.prompts > 0 ? std::llround(load.prompts) : offline_requests;
  }
  return traffic;
}

// The model's own modules, with the tokens that others counted of them.
Guessing guessing_of(const ServingRow& row, const Model& model) {
  const std::int64_t drafts = row.software.drafts;
  const auto measured = measured_acceptance(catalogue_acceptance(), model, DraftKind::mtp, drafts,
                                            row.software.accept);
  const auto want = [&](bool holds, const char* found, const char* expected) {
    if (!holds) throw Error({.file = model.name, .path = "", .found = found, .expected = expected});
  };
  want(model.mtp_layers > 0, "no prediction modules", "those that the row's speculation runs");
  want(drafts > 0, "no number of drafts", "one of the row's recipe");
  want(measured.has_value(), "no measured acceptance", "that of its prediction modules");
  return {.drafter = mtp_drafter(model, row.engine.layout, drafts), .acceptance = *measured};
}

// Experts by the library of the row's recipe. Where engines of prompts have another one than those
// that decode, steps of as many rows as a rank of those ever has are theirs.
void set_experts(Stack& stack, const ServingRow& row) {
  Library& common = stack.kernels.grouped_gemm;
  const Library decodes = row.engine.limits.grouped_gemm.value_or(common);
  const Library prompts =
      row.disaggregated ? row.prefill.limits.grouped_gemm.value_or(common) : decodes;
  common = prompts;
  if (prompts == decodes) return;
  constexpr std::int64_t most_rows = 1024;  // of decodes on a rank (srt-slurm's recipes)
  stack.serving.kernels.small_grouped_gemm = decodes;
  stack.serving.kernels.small_grouped_rows = most_rows;
}

ServiceCase case_of(const ServingRow& row, const MovedValue& moved) {
  ServiceCase out;
  out.model = load_model(row.model, data_root() / "workloads/catalog/models");
  out.cluster = load_cluster(row.cluster, row.gpus());
  const Job job{.task = Task::decode, .batch = 1, .context = 1};
  out.stack =
      catalogue_stack(row.software.stack, out.cluster, out.model, job, row.engine.layout.precision);
  if (!moved.name.empty()) set_step_value(out.stack, moved.name, moved.deviations);
  if (guesses(row)) out.guessing = guessing_of(row, out.model);
  bool& ahead = out.stack.serving.host.guesses_ahead;
  ahead = row.software.guesses_ahead.value_or(ahead);
  Library& products = out.stack.kernels.gemm;
  products = row.software.gemm.value_or(products);
  const std::int64_t drafts = out.guessing ? out.guessing->drafter.drafts : 0;
  const auto group = [&](const ServingWorkers& w) {
    return EngineGroup{.layout = w.layout,
                       .replicas = w.count,
                       .policy = policy_of(w.limits, row.load, out.stack, drafts),
                       .eager = w.limits.eager};
  };
  out.engines = group(row.disaggregated ? row.prefill : row.engine);
  if (row.disaggregated) out.decode = group(row.engine);
  if (const auto& share = row.engine.limits.memory_share) out.stack.serving.memory.share = *share;
  set_experts(out.stack, row);
  if (!row.engine.limits.graphs.empty()) out.stack.serving.graphs = row.engine.limits.graphs;
  if (const auto& rows = row.engine.limits.mixed_graph_rows)
    out.stack.serving.mixed_graph_rows = *rows;
  out.stack.serving.policy.stream_interval =
      row.engine.limits.stream_interval.value_or(out.stack.serving.policy.stream_interval);
  out.traffic = traffic_of(row.load);
  return out;
}

// As the table has it; nullopt where it has none, or one that follows from the latencies.
std::optional<double> told(const ServingFigures& m, ServedQuantity quantity) {
  switch (quantity) {
    case ServedQuantity::ttft:
      return m.ttft;
    case ServedQuantity::tpot:
      return m.tpot;
    case ServedQuantity::tokens_s_gpu:
      return m.tokens_derived ? std::nullopt : m.tokens_s_gpu;
  }
  return std::nullopt;
}

}  // namespace

std::optional<double> measured(const ServedRow& row, ServedQuantity quantity) {
  const bool skipped = quantity == ServedQuantity::ttft && !row.row->measured.ttft_skipped.empty();
  return skipped ? std::nullopt : told(row.row->measured, quantity);
}

double predicted(const ServedRow& row, ServedQuantity quantity) {
  switch (quantity) {
    case ServedQuantity::ttft:
      return row.ttft;
    case ServedQuantity::tpot:
      return row.tpot;
    case ServedQuantity::tokens_s_gpu:
      return row.tokens_s_gpu;
  }
  return 0;
}

std::vector<ServedFigure> served_figures(const ServedRow& row) {
  std::vector<ServedFigure> figures;
  for (const ServedQuantity quantity : served_quantities) {
    const auto value = told(row.row->measured, quantity);
    if (!value) continue;
    figures.push_back({quantity, *value, predicted(row, quantity), row.skipped});
    if (row.skipped.empty() && quantity == ServedQuantity::ttft)
      figures.back().skipped = row.row->measured.ttft_skipped;
  }
  return figures;
}

bool guesses(const ServingRow& row) { return row.software.speculation == ServingSpeculation::mtp; }

RunKind run_kind(const ServedRow& served) {
  const ServingRow& row = *served.row;
  const std::string& stack = row.software.stack;
  return {.stack = stack.substr(0, stack.find('@')),
          .family = row.family,
          .kind = served_kind(row.disaggregated, guesses(row)),
          .device = row.accelerator,
          .precision = std::string(to_text(row.engine.layout.precision)),
          .gpus = static_cast<double>(row.engine.layout.gpus()),
          .waits = served.waits};
}

std::optional<Stack> stack_of(const ServingRow& row) {
  try {
    return case_of(row, {}).stack;
  } catch (const Error&) {
    return std::nullopt;
  }
}

// A batch of Splitwise is one phase of prompts, which ends when its last request has a first token,
// and one of tokens: prompt_time and all token_times add up to the table's e2e_time.
void set_batch(ServedRow& out, const ServicePrediction& p) {
  Ticks sent = p.timeline.end, first, last;
  for (const RequestRecord& record : p.timeline.requests) {
    if (record.state != RequestState::finished) continue;
    sent = min(sent, record.arrival);
    first = max(first, record.first);
    last = max(last, record.last);
  }
  const auto tokens = static_cast<double>(std::llround(out.row->load.output_tokens));
  out.ttft = to_seconds(first - sent).si();
  out.tpot = to_seconds(last - first).si() / std::max(tokens - 1, 1.0);
}

ServedRow serve_row(const ServingRow& row, const MovedValue& moved) {
  ServedRow out{.row = &row, .skipped = row.skipped};
  if (!out.skipped.empty()) return out;
  try {
    const ServicePrediction p = predict_service(case_of(row, moved), {});
    out.skipped = p.refusal;
    if (!out.skipped.empty()) return out;
    if (p.summary.requests == 0) {
      out.skipped = "no request was served";
      return out;
    }
    if (row.measured.statistic == ServingStatistic::trial) {
      set_batch(out, p);
    } else {
      const bool median = row.measured.statistic == ServingStatistic::median;
      out.ttft = (median ? p.summary.ttft.p50 : p.summary.ttft.mean).si();
      out.tpot = (median ? p.summary.tpot.p50 : p.summary.tpot.mean).si();
    }
    out.tokens_s_gpu = p.tokens_per_gpu;
    out.waits = p.request.waits();
  } catch (const Error& error) {
    out.skipped = error.message();
  }
  return out;
}

std::vector<ServedRow> serve_rows(const std::vector<ServingRow>& rows, int threads, bool quiet) {
  std::vector<ServedRow> out(rows.size());
  std::atomic<std::size_t> done{0};
  parallel_for(rows.size(), threads, [&](std::size_t i) {
    out[i] = serve_row(rows[i]);
    constexpr std::size_t step = 500;
    if (const std::size_t count = ++done; !quiet && count % step == 0)
      fmt::print(stderr, "{} of {} served runs predicted\n", count, rows.size());
  });
  return out;
}

}  // namespace orrery
