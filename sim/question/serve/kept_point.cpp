// SPDX-License-Identifier: Apache-2.0
// Lists the members of what serving a point finds.
#include "sim/question/serve/kept_point.h"

#include "sim/base/tasks/task_value.h"

namespace orrery {

// Beside the types, in their namespace, so that records find them.
auto fields(EitherConst<SequenceBlocks> auto& b) {
  auto& [states, window, window_tokens] = b;
  return std::tie(states, window, window_tokens);
}
auto fields(EitherConst<EngineMemory> auto& m) {
  auto& [capacity, weights, workspace, outside, cache, token, drafter, state, beside, blocks,
         sequences, refusal] = m;
  return std::tie(capacity, weights, workspace, outside, cache, token, drafter, state, beside,
                  blocks, sequences, refusal);
}
auto fields(EitherConst<ServiceTotals> auto& t) {
  auto& [steps, decode_steps, mixed_steps, busy, decode_time, mixed_time, sequences, prefilled,
         emitted, prompts, cached, from_tiers, recomputed, restored, found_again, preemptions,
         drafted, accepted, queued_time, running_time, waited, on_the_way, waited_there,
         read_late] = t;
  return std::tie(steps, decode_steps, mixed_steps, busy, decode_time, mixed_time, sequences,
                  prefilled, emitted, prompts, cached, from_tiers, recomputed, restored,
                  found_again, preemptions, drafted, accepted, queued_time, running_time, waited,
                  on_the_way, waited_there, read_late);
}
// Requests and gaps are of a point that is alone.
auto fields(EitherConst<ServiceTimeline> auto& t) {
  auto& [requests, totals, gaps, in_system, end, stopped] = t;
  static_cast<void>(requests);
  static_cast<void>(gaps);
  return std::tie(totals, in_system, end, stopped);
}
auto fields(EitherConst<RequestList> auto& l) {
  auto& [requests, hashes, hash_tokens, concurrency, warmup, classes] = l;
  static_cast<void>(requests);
  static_cast<void>(hashes);
  return std::tie(hash_tokens, concurrency, warmup, classes);
}
auto fields(EitherConst<RequestCounts> auto& c) {
  auto& [arrived, finished, running, queued, rejected, lost] = c;
  return std::tie(arrived, finished, running, queued, rejected, lost);
}
auto fields(EitherConst<LatencySummary> auto& s) {
  auto& [count, mean, p50, p90, p95, p99] = s;
  return std::tie(count, mean, p50, p90, p95, p99);
}
auto fields(EitherConst<ServiceSummary> auto& s) {
  auto& [ttft, tpot, itl, e2e, wait, requests, prompt_tokens, cached_tokens, output_tokens, span,
         output_rate, request_rate] = s;
  return std::tie(ttft, tpot, itl, e2e, wait, requests, prompt_tokens, cached_tokens, output_tokens,
                  span, output_rate, request_rate);
}
auto fields(EitherConst<TargetResult> auto& t) {
  auto& [goodput, share, tokens, shares, reached, kept] = t;
  return std::tie(goodput, share, tokens, shares, reached, kept);
}
auto fields(EitherConst<RequestTime> auto& t) {
  auto& [server, waiting, prefill, on_the_way, waiting_there, decoding, first_there] = t;
  return std::tie(server, waiting, prefill, on_the_way, waiting_there, decoding, first_there);
}
auto fields(EitherConst<PrefillChunk> auto& c) {
  auto& [start, tokens] = c;
  return std::tie(start, tokens);
}
auto fields(EitherConst<GroupRows> auto& g) {
  auto& [largest, all] = g;
  return std::tie(largest, all);
}
auto fields(EitherConst<StepShape> auto& s) {
  auto& [decodes, contexts, drafts, chunks, sampled, group] = s;
  return std::tie(decodes, contexts, drafts, chunks, sampled, group);
}
auto fields(EitherConst<StepParts> auto& p) {
  auto& [time, drafting, energy] = p;
  return std::tie(time, drafting, energy);
}
auto fields(EitherConst<LoneRequest> auto& l) {
  auto& [ttft, tpot] = l;
  return std::tie(ttft, tpot);
}
auto fields(EitherConst<Rejections> auto& r) {
  auto& [context, cache, step, queue] = r;
  return std::tie(context, cache, step, queue);
}
auto fields(EitherConst<ServiceCost> auto& c) {
  auto& [input, cached, output, promised, prompts, decodes, mean, per_output] = c;
  return std::tie(input, cached, output, promised, prompts, decodes, mean, per_output);
}
auto fields(EitherConst<ServicePrediction> auto& p) {
  auto& [memory, decode_memory, refusal, requests, timeline, counts, summary, classes, target,
         request, batch, shape, step, tokens_per_gpu, rental, bottleneck, lone, rejections, cost] =
      p;
  return std::tie(memory, decode_memory, refusal, requests, timeline, counts, summary, classes,
                  target, request, batch, shape, step, tokens_per_gpu, rental, bottleneck, lone,
                  rejections, cost);
}
auto fields(EitherConst<ServedRange> auto& r) {
  auto& [low, high] = r;
  return std::tie(low, high);
}
auto fields(EitherConst<ServedRanges> auto& r) {
  auto& [ttft, tpot, tokens_s_gpu, widened] = r;
  return std::tie(ttft, tpot, tokens_s_gpu, widened);
}
auto fields(EitherConst<LoadResult> auto& l) {
  auto& [offered, served, long_enough, keeps_up, meets] = l;
  return std::tie(offered, served, long_enough, keeps_up, meets);
}
auto fields(EitherConst<KeptPoint> auto& k) {
  auto& [prediction, ranges, load, requests] = k;
  return std::tie(prediction, ranges, load, requests);
}

std::optional<KeptPoint> kept_point(Tasks* tasks, std::uint64_t task,
                                    const std::function<std::optional<KeptPoint>()>& make) {
  return task_value<KeptPoint>(tasks, task, make);
}

}  // namespace orrery
