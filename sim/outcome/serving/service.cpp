// SPDX-License-Identifier: Apache-2.0
// Puts a deployment together, serves its requests and sums up.
#include "sim/outcome/serving/service.h"

#include <fmt/format.h>

#include <algorithm>

#include "hw_models/catalog.h"
#include "sim/base/errors/check.h"
#include "sim/base/text/words.h"
#include "sim/outcome/serving/cache_transfer.h"
#include "sim/outcome/serving/host_stalls.h"
#include "sim/outcome/serving/service_cost.h"

namespace orrery {
namespace {

// Not more than `whole`, which is shortened by it.
Seconds taken_out(Seconds part, Seconds& whole) {
  const Seconds taken = std::min(part, whole);
  whole = whole - taken;
  return taken;
}

RequestTime mean_request(const ServiceTimeline& timeline, const RequestList& list,
                         const EnginePolicy& policy, bool first_there) {
  RequestTime sum;
  double count = 0;
  for (std::size_t i = static_cast<std::size_t>(list.warmup); i < timeline.requests.size(); ++i) {
    const RequestRecord& r = timeline.requests[i];
    if (r.state != RequestState::finished) continue;
    const Ticks front = min(policy.front_of(list.requests[i].prompt), r.scheduled - r.arrival);
    sum.server += to_seconds(front);
    sum.waiting += to_seconds(r.scheduled - r.arrival - front);
    sum.prefill += to_seconds(r.first - r.scheduled);
    sum.decoding += to_seconds(r.last - r.first);
    count += 1;
  }
  if (count == 0) return {};
  RequestTime mean{.server = sum.server / count,
                   .waiting = sum.waiting / count,
                   .prefill = sum.prefill / count,
                   .decoding = sum.decoding / count,
                   .first_there = first_there};
  // Of all requests, warm-up too; what was counted of one ends with its last token.
  const auto all = static_cast<double>(timeline.requests.size());
  const auto of = [&](__int128 sum_of_all) {
    return Seconds(static_cast<double>(sum_of_all) * 1e-12 / all);
  };
  Seconds& between = first_there ? mean.prefill : mean.decoding;
  mean.on_the_way = taken_out(of(timeline.totals.on_the_way), between);
  mean.waiting_there = taken_out(of(timeline.totals.waited_there), between);
  return mean;
}

// A step of the mean batch of a rank, at the mean context of its sequences.
StepShape mean_shape(const ServicePrediction& p, std::int64_t ranks, std::int64_t drafts) {
  const ServiceTotals& t = p.timeline.totals;
  const std::int64_t steps = std::max<std::int64_t>(1, (t.decode_steps + t.mixed_steps) * ranks);
  StepShape shape;
  shape.decodes = std::max<std::int64_t>(1, t.sequences / steps);
  const std::int64_t served = std::max<std::int64_t>(1, p.summary.requests);
  const std::int64_t context =
      p.summary.prompt_tokens / served + p.summary.output_tokens / served / 2;
  shape.contexts = shape.decodes * std::max<std::int64_t>(1, context);
  shape.sampled = shape.decodes;
  shape.drafts = drafts;
  return shape;
}

std::string bottleneck_of(const ServicePrediction& p) {
  const RequestTime& r = p.request;
  const Seconds total = r.total();
  if (total <= Seconds(0)) return "No request was served.";
  if (r.waiting > 0.3 * total)
    return fmt::format("Requests wait for {:.0f}% of their time: the engines are at their limit.",
                       100 * (r.waiting / total));
  if (r.on_the_way + r.waiting_there > 0.3 * total)
    return fmt::format("Requests wait for {:.0f}% of their time between prompt and decodes: {}.",
                       100 * ((r.on_the_way + r.waiting_there) / total),
                       r.on_the_way > r.waiting_there
                           ? "the links of the prompts' engines are at their limit"
                           : "the engines that decode are at their limit");
  std::size_t top = 0;
  for (std::size_t i = 1; i < p.step.time.size(); ++i)
    if (p.step.time[i] > p.step.time[top]) top = i;
  if (p.step.drafting > p.step.time[top])
    return fmt::format("Of a decode step {:.0f}% goes to guessing tokens.",
                       100 * (p.step.drafting / p.step.total()));
  return fmt::format("Of a decode step {:.0f}% goes to {}.",
                     100 * (p.step.time[top] / p.step.total()), label_table[top].words);
}

const EnginePolicy& policy_of(const EngineGroup& group, const ServiceCase& asked) {
  return group.policy ? *group.policy : asked.stack.serving.policy;
}

const Drafter* drafter_of(const ServiceCase& asked) {
  return asked.guessing ? &asked.guessing->drafter : nullptr;
}

Speculation speculation_of(const ServiceCase& asked) {
  if (!asked.guessing) return {};
  return {.drafts = asked.guessing->drafter.drafts,
          .survival = asked.guessing->acceptance.survival};
}

EngineMemory memory_of(const EngineGroup& group, const ServiceCase& asked) {
  Stack stack = asked.stack;
  stack.serving.policy = policy_of(group, asked);
  EngineMemory m =
      engine_memory(asked.cluster, asked.model, group.layout, stack, drafter_of(asked));
  const std::int64_t wanted = stack.serving.policy.max_sequences;
  if (m.refusal.empty() && asked.needs_all_sequences && m.sequences < wanted)
    m.refusal = fmt::format(
        "the states of {} sequences fill more than the {} for keys and values: at most {} can run "
        "(--max-sequences)",
        grouped(wanted), to_text(m.cache), grouped(m.sequences));
  return m;
}

ServingGroup group_of(const EngineGroup& group, const ServiceCase& asked, const Stack& stack,
                      const EngineMemory& memory, const EnginePrices& prices, bool prefill_only) {
  EnginePolicy policy = policy_of(group, asked);
  policy.max_sequences = memory.sequences;
  // SGLang's engines that only decode have a rule of their own.
  if (asked.decode && !prefill_only) policy.new_tokens.known_ends = false;
  return {.shape = {.blocks = memory.blocks,
                    .beside = memory.beside,
                    .ranks = group.layout.attention_dp,
                    .lanes = group.layout.pp,
                    .token = memory.token,
                    .stalls = host_stalls(stack.serving, prices.launching()),
                    .speculation = speculation_of(asked),
                    .prefill_only = prefill_only,
                    .plans_ahead = stack.serving.host.ahead(asked.guessing.has_value()),
                    .reads_after_launch = stack.serving.host.reads_after_launch,
                    .longest = asked.longest},
          .policy = policy,
          .prices = &prices,
          .replicas = group.replicas,
          .router = asked.router};
}

// The reason that holds for the request itself; the queue's where none does.
Rejections rejections_of(const ServicePrediction& p, const ServiceCase& asked) {
  const EngineGroup& last = asked.decode ? *asked.decode : asked.engines;
  const auto room = [&](const EngineGroup& group, const EngineMemory& memory) {
    const std::int64_t beside = memory.beside.of(memory.beside.window_tokens);
    return (memory.blocks / group.layout.pp - beside) * policy_of(group, asked).block_tokens;
  };
  const std::int64_t first_room = room(asked.engines, p.memory);
  const std::int64_t last_room = p.decode_memory ? room(last, *p.decode_memory) : first_room;
  const EnginePolicy& policy = policy_of(asked.engines, asked);
  Rejections out;
  for (std::size_t i = 0; i < p.timeline.requests.size(); ++i) {
    if (p.timeline.requests[i].state != RequestState::rejected) continue;
    const Request& r = p.requests.requests[i];
    const std::int64_t tokens = std::int64_t{r.prompt} + r.output;
    if (asked.longest > 0 && tokens > asked.longest)
      ++out.context;
    else if (!policy.chunked_prefill && tokens > policy.token_budget)
      ++out.step;
    else if (policy.queue_limit > 0 && tokens < last_room && r.prompt < first_room)
      ++out.queue;
    else
      ++out.cache;
  }
  return out;
}

// Its prompt in steps of its own, as large as the engine takes; then steps of one sequence.
LoneRequest lone_request(const ServicePrediction& p, const ServiceCase& asked,
                         const EnginePrices& prompts, const EnginePrices& decodes) {
  const EnginePolicy& policy = policy_of(asked.engines, asked);
  const std::int64_t served = std::max<std::int64_t>(1, p.summary.requests);
  const std::int64_t prompt = std::max<std::int64_t>(1, p.summary.prompt_tokens / served);
  const std::int64_t most = policy.chunked_prefill && policy.chunk > 0
                                ? std::min(policy.chunk, policy.token_budget)
                                : policy.token_budget;
  Ticks first = policy.front_of(prompt);
  std::int64_t start = std::min(p.summary.cached_tokens / served, prompt - 1);
  while (start < prompt) {
    StepShape shape;
    shape.chunks.push_back({start, std::min(most, prompt - start)});
    start += shape.chunks.front().tokens;
    shape.sampled = start == prompt ? 1 : 0;
    if (asked.engines.layout.attention_dp > 1) shape.group = {shape.rows(), shape.rows()};
    first += prompts.step(shape);
  }
  const StepShape step{
      .decodes = 1, .contexts = prompt + 1, .drafts = speculation_of(asked).drafts, .sampled = 1};
  const double tokens = asked.guessing ? asked.guessing->acceptance.tokens() : 1;
  return {.ttft = to_seconds(first), .tpot = to_seconds(decodes.step(step)) / tokens};
}

void sum_up(ServicePrediction& p, const ServiceCase& asked, const EnginePrices& prices) {
  p.counts = count_requests(p.timeline);
  if (p.counts.rejected > 0) p.rejections = rejections_of(p, asked);
  p.summary = summarise(p.requests, p.timeline);
  const std::size_t kinds = p.requests.classes.size();
  for (std::size_t i = 0; kinds > 1 && i < kinds; ++i)
    p.classes.push_back(summarise(p.requests, p.timeline, static_cast<std::int32_t>(i)));
  if (!asked.target.bounds.empty()) p.target = against(asked.target, p.requests, p.timeline);
  const bool first_there =
      asked.decode && policy_of(*asked.decode, asked).scheduler != SchedulerKind::simple;
  p.request = mean_request(p.timeline, p.requests, policy_of(asked.engines, asked), first_there);
  const ServiceTotals& t = p.timeline.totals;
  const std::int64_t steps = t.decode_steps + t.mixed_steps;
  p.batch = steps > 0 ? static_cast<double>(t.sequences) / static_cast<double>(steps) : 0;
  p.shape = mean_shape(p, (asked.decode ? *asked.decode : asked.engines).layout.attention_dp,
                       speculation_of(asked).drafts);
  p.step = prices.parts(p.shape);
  p.tokens_per_gpu = p.summary.output_rate / static_cast<double>(asked.gpus());
  p.rental = asked.rental.value_or(asked.cluster.device.resolved().rental);
  p.bottleneck = bottleneck_of(p);
}

}  // namespace

Seconds RequestTime::total() const {
  return server + waiting + prefill + on_the_way + waiting_there + decoding;
}

double RequestTime::waits() const {
  Seconds waits = waiting, first = server + waiting + prefill;
  if (first_there) {
    waits += waiting_there;
    first += on_the_way + waiting_there;
  }
  return first > Seconds(0) ? waits / first : 0;
}

const std::vector<MeasuredAcceptance>& catalogue_acceptance() {
  static const auto all = load_acceptance(data_root() / "workloads/catalog/acceptance.json");
  return all;
}

std::string why_all_rejected(const ServicePrediction& p, const ServiceCase& asked) {
  if (p.counts.rejected == 0 || p.counts.rejected < p.counts.arrived) return "";
  const Rejections& r = p.rejections;
  const std::string longer = "prompt and output are longer than ";
  if (r.context == p.counts.arrived)
    return longer + fmt::format("the {} tokens of {}", grouped(asked.longest),
                                asked.longest == asked.model.max_context
                                    ? asked.model.title + " (--max-context)"
                                    : "--max-context");
  if (r.cache == p.counts.arrived) return longer + "all blocks of keys and values of an engine";
  if (r.step == p.counts.arrived)
    return "the engine does not cut prompts, and they are longer than its step (--token-budget)";
  return longer + "a request's context, an engine's blocks or its step";
}

// As engines run it that neither capture graphs nor compile.
Stack launched_by_python(Stack stack) {
  stack.serving.graphs.clear();
  stack.serving.mixed_graph_rows = 0;
  stack.serving.host.compiled_launch = stack.serving.host.uncompiled_launch;
  return stack;
}

// The stack as the engines run it.
Stack stack_of(const ServiceCase& asked, const EngineGroup& group) {
  Stack stack = group.eager ? launched_by_python(asked.stack) : asked.stack;
  const EngineLayout& layout = asked.engines.layout;
  const bool plain = layout.attention_dp == 1 && layout.pp == 1 && !asked.guessing && !asked.decode;
  if (stack.serving.mixed_graphs_of_plain && !plain) stack.serving.mixed_graph_rows = 0;
  return stack;
}

// As engines run it that decode nothing.
Stack stack_of_prompts(Stack stack) {
  ServingHost& host = stack.serving.host;
  if (!host.prompts_ahead) host.schedules_ahead = host.reads_after_launch = false;
  return stack;
}

ServicePrediction predict_service(const ServiceCase& asked, const ServiceOptions& options) {
  ServicePrediction p;
  const Stack stack = stack_of(asked, asked.decode ? *asked.decode : asked.engines);
  const Stack first = asked.decode ? stack_of_prompts(stack_of(asked, asked.engines)) : stack;
  p.memory = memory_of(asked.engines, asked);
  p.refusal = p.memory.refusal;
  if (asked.decode) {
    p.decode_memory = memory_of(*asked.decode, asked);
    if (p.refusal.empty()) p.refusal = p.decode_memory->refusal;
  }
  if (!p.refusal.empty()) return p;
  p.requests = make_requests(asked.traffic, asked.seed);
  const EnginePrices prices(asked.cluster, asked.model, asked.engines.layout, first,
                            p.memory.sequences, drafter_of(asked));
  ServingFleet fleet{
      .engines = group_of(asked.engines, asked, first, p.memory, prices, asked.decode.has_value())};
  std::optional<EnginePrices> decode_prices;
  std::optional<CacheTransfer> transfer;
  if (asked.decode) {
    decode_prices.emplace(asked.cluster, asked.model, asked.decode->layout, stack,
                          p.decode_memory->sequences, drafter_of(asked));
    transfer.emplace(asked.cluster, CacheHolder{asked.engines.layout, p.memory.token},
                     CacheHolder{asked.decode->layout, p.decode_memory->token},
                     stack.serving.memory.cache_in_domain &&
                         asked.gpus() <= asked.cluster.fabric.scale_up.domain);
    fleet.decode = group_of(*asked.decode, asked, stack, *p.decode_memory, *decode_prices, false);
    fleet.transfers = &*transfer;
  }
  p.timeline = serve(p.requests, fleet,
                     {.seed = asked.seed,
                      .threads = options.threads,
                      .stop = options.stop,
                      .progress = options.progress,
                      .log = options.log});
  sum_up(p, asked, decode_prices ? *decode_prices : prices);
  if (const std::string why = why_all_rejected(p, asked); !why.empty())
    p.refusal = (p.counts.arrived == 1
                     ? "the only request is rejected: "
                     : fmt::format("all {} requests are rejected: ", grouped(p.counts.arrived))) +
                why;
  if (!asked.target.bounds.empty())
    p.lone = lone_request(p, asked, prices, decode_prices ? *decode_prices : prices);
  add_cost(p, asked, prices);
  return p;
}

}  // namespace orrery
