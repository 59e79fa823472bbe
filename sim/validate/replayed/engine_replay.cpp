// SPDX-License-Identifier: Apache-2.0
// Replays runs, pairs, steps and pools of the serving engine.
#include "sim/validate/replayed/engine_replay.h"

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <tuple>

#include "hw_models/catalog.h"
#include "sim/base/errors/check.h"
#include "sim/base/parallel.h"
#include "sim/engine/collectives/collectives.h"
#include "sim/engine/prices/engine_prices.h"
#include "sim/engine/scenario.h"
#include "sim/engine/serving/fleet.h"
#include "sim/outcome/serving/engine_memory.h"
#include "sim/outcome/serving/host_stalls.h"
#include "workloads/model/model_catalog.h"

namespace orrery {
namespace {

// One model on its GPUs, or on either GPU of a pair, with its prices. Prices refer to the rest,
// which must not move.
struct OneEngine {
  Cluster cluster;
  Model model;
  Stack stack;
  EngineLayout layout;
  std::unique_ptr<EnginePrices> prices;
  std::string refusal;
};

constexpr std::int64_t most_sequences = 2048;
constexpr int most_draws = 16;

std::unique_ptr<OneEngine> engine_of(const EngineCase& c) {
  auto engine = std::make_unique<OneEngine>();
  try {
    engine->model = load_model(c.model, data_root() / "workloads/catalog/models");
    engine->cluster = load_cluster(c.cluster, c.gpus());
    engine->layout.tp = c.tp;
    const Job job{.task = Task::decode, .batch = 1, .context = 1};
    engine->stack =
        catalogue_stack(c.stack, engine->cluster, engine->model, job, engine->layout.precision);
    engine->prices = std::make_unique<EnginePrices>(engine->cluster, engine->model, engine->layout,
                                                    engine->stack, most_sequences);
  } catch (const Error& error) {
    engine->refusal = error.message();
  }
  return engine;
}

EnginePolicy policy_of(const EngineCase& c, const OneEngine& engine) {
  EnginePolicy policy = engine.stack.serving.policy;
  if (c.token_budget) policy.token_budget = *c.token_budget;
  if (c.max_sequences) policy.max_sequences = *c.max_sequences;
  policy.prefix_cache = false;  // each prompt is its own
  return policy;
}

RequestList requests_of(const EngineLoad& load) {
  RequestList list;
  list.concurrency = load.clients;
  for (std::size_t i = 0; i < load.prompts.size(); ++i) {
    Request r{.prompt = static_cast<std::int32_t>(load.prompts[i]),
              .output = static_cast<std::int32_t>(load.outputs[i])};
    if (load.clients == 0) r.arrival = Ticks{load.arrivals_us[i] * 1'000'000};
    list.requests.push_back(r);
  }
  return list;
}

EngineMemory memory_of(const EngineCase& c, const OneEngine& engine, double share) {
  Stack stack = engine.stack;
  stack.serving.policy = policy_of(c, engine);
  stack.serving.memory.share = share;
  return engine_memory(engine.cluster, engine.model, engine.layout, stack);
}

// How keys and values go from one GPU of a pair to the other (validation/microbench/serve_pair.py):
// by NCCL, a message of whole blocks for each prompt. The GPU that decodes looks for messages
// between its steps, and finds that one has come a step later at the earliest.
class BlockTransfer : public TransferPrices {
 public:
  BlockTransfer(const EngineCase& c, const OneEngine& engine)
      : engine_(engine),
        token_(memory_of(c, engine, engine.stack.serving.memory.share).token),
        block_tokens_(engine.stack.serving.policy.block_tokens) {}
  Ticks on_link(std::int64_t tokens) const override {
    const std::int64_t blocks = (tokens + block_tokens_ - 1) / block_tokens_;
    const Collective message{.kind = CollectiveKind::send_receive,
                             .group = {.size = 2, .per_domain = 2, .span = 2},
                             .bytes = token_ * static_cast<double>(blocks * block_tokens_)};
    const Cluster& cluster = engine_.cluster;
    return to_ticks(collective_time(message, cluster.fabric, cluster.collective_costs).time);
  }
  Ticks latency(std::int64_t tokens) const override {
    return engine_.prices->step({.decodes = 1, .contexts = tokens + 1, .sampled = 1});
  }

 private:
  const OneEngine& engine_;
  Bytes token_;
  std::int64_t block_tokens_;
};

// From the end of a prefill to the first step that decodes, in seconds.
double mean_transfer(const ServiceTotals& totals, std::size_t requests) {
  return static_cast<double>(totals.on_the_way + totals.waited_there) * 1e-12 /
         static_cast<double>(requests);
}

std::vector<EngineFigure> run_figures(const EngineCase& c, const OneEngine& engine) {
  const EngineLatencies& m = c.latencies;
  std::vector<EngineFigure> figures{{&c, "tpot", "s", m.tpot_mean}, {&c, "ttft", "s", m.ttft_mean}};
  if (m.ttft_p99) figures.push_back({&c, "ttft_p99", "s", *m.ttft_p99});
  if (m.transfer_mean) figures.push_back({&c, "transfer", "s", *m.transfer_mean});
  std::string skipped = engine.refusal;
  if (skipped.empty() && c.load.unfinished > 0)
    skipped = "the run was cut off before all its requests had ended";
  for (EngineFigure& f : figures) f.skipped = skipped;
  if (!skipped.empty()) return figures;
  const RequestList list = requests_of(c.load);
  ServingFleet fleet{.engines = {.shape = {.blocks = c.blocks,
                                           .stalls = host_stalls(engine.stack.serving,
                                                                 engine.prices->launching())},
                                 .policy = policy_of(c, engine),
                                 .prices = engine.prices.get()}};
  std::optional<BlockTransfer> transfers;
  if (c.kind == EngineCaseKind::pair) {
    fleet.decode = fleet.engines;
    fleet.transfers = &transfers.emplace(c, engine);
  }
  // What the host is kept from is drawn: a figure is the mean over some draws.
  const int draws = fleet.engines.shape.stalls.share > 0 ? most_draws : 1;
  for (int draw = 0; draw < draws; ++draw) {
    const ServingOptions options{.seed = static_cast<std::uint64_t>(draw) + 1};
    const ServiceTimeline timeline = serve(list, fleet, options);
    const ServiceSummary s = summarise(list, timeline);
    figures[0].predicted += s.tpot.mean.si() / draws;
    figures[1].predicted += s.ttft.mean.si() / draws;
    if (m.ttft_p99) figures[2].predicted += s.ttft.p99.si() / draws;
    if (m.transfer_mean)
      figures.back().predicted += mean_transfer(timeline.totals, list.requests.size()) / draws;
  }
  return figures;
}

EngineFigure step_figure(const EngineCase& c, const OneEngine& engine) {
  EngineFigure f{&c, "device_step", "s", c.step.device_seconds, 0, engine.refusal};
  if (f.skipped.empty() && c.step.chunk == 0 && c.step.graph == 0)
    f.skipped = "decodes alone run in graphs: this step was launched kernel by kernel for study";
  if (!f.skipped.empty()) return f;
  StepShape shape{.decodes = c.step.decodes,
                  .contexts = c.step.decodes * c.step.context,
                  .sampled = c.step.decodes};
  if (c.step.chunk > 0) {
    shape.chunks.push_back({c.step.context, c.step.chunk});
    ++shape.sampled;
  }
  const StepParts parts = engine.prices->parts(shape);
  f.predicted = (parts.total() - parts.time[static_cast<std::size_t>(Label::host)]).si();
  return f;
}

EngineFigure pool_figure(const EngineCase& c, const OneEngine& engine) {
  EngineFigure f{&c, "kv_blocks", "blocks", static_cast<double>(c.blocks), 0, engine.refusal};
  if (f.skipped.empty())
    f.predicted =
        static_cast<double>(memory_of(c, engine, engine.stack.serving.memory.share).blocks);
  return f;
}

// The pool and the step's workspace, as the allocator takes it, against all that is there.
EngineFigure memory_figure(const EngineCase& c, const OneEngine& engine) {
  EngineFigure f{&c, "oom", "", c.out_of_memory ? 1.0 : 0.0, 0, engine.refusal};
  if (!f.skipped.empty()) return f;
  const EngineMemory m = memory_of(c, engine, 1);
  const double rounding = engine.stack.serving.memory.workspace_rounding.get();
  const double block = m.token.si() * static_cast<double>(engine.stack.serving.policy.block_tokens);
  const double left = m.cache.si() - (rounding - 1) * m.workspace.si() - c.beside_bytes;
  f.predicted = static_cast<double>(c.blocks) * block > left || left < 0 ? 1 : 0;
  return f;
}

std::vector<EngineFigure> figures_of(const EngineCase& c, const OneEngine& engine) {
  switch (c.kind) {
    case EngineCaseKind::run:
    case EngineCaseKind::pair:
      return run_figures(c, engine);
    case EngineCaseKind::step:
      return {step_figure(c, engine)};
    case EngineCaseKind::pool:
      return {pool_figure(c, engine)};
    case EngineCaseKind::memory:
      return {memory_figure(c, engine)};
  }
  return {};
}

}  // namespace

std::vector<EngineFigure> replay_engine(const std::vector<EngineCase>& cases, int threads) {
  using Key = std::tuple<std::string, std::string, std::string, std::int64_t, std::int64_t>;
  std::map<Key, std::unique_ptr<OneEngine>> engines;
  std::vector<const OneEngine*> engine(cases.size());
  for (std::size_t i = 0; i < cases.size(); ++i) {
    const EngineCase& c = cases[i];
    auto& found = engines[{c.cluster, c.stack, c.model, c.tp, c.gpus()}];
    if (!found) found = engine_of(c);
    engine[i] = found.get();
  }
  std::vector<std::vector<EngineFigure>> figures(cases.size());
  parallel_for(cases.size(), threads, [&](std::size_t i) {
    try {
      figures[i] = figures_of(cases[i], *engine[i]);
    } catch (const Error& error) {
      OneEngine refused;
      refused.refusal = error.message();
      figures[i] = figures_of(cases[i], refused);
    }
  });
  std::vector<EngineFigure> all;
  for (const auto& some : figures) all.insert(all.end(), some.begin(), some.end());
  return all;
}

}  // namespace orrery
