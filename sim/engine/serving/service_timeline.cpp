// SPDX-License-Identifier: Apache-2.0
// Sums up timelines: percentiles, rates and targets.
#include "sim/engine/serving/service_timeline.h"

#include <algorithm>
#include <cmath>

namespace orrery {
namespace {

// The requests that count, by number.
template <class Use>
void for_counted(const RequestList& list, const ServiceTimeline& timeline,
                 std::optional<std::int32_t> class_index, const Use& use) {
  for (std::size_t i = static_cast<std::size_t>(list.warmup); i < timeline.requests.size(); ++i) {
    if (timeline.requests[i].state != RequestState::finished) continue;
    if (class_index && list.requests[i].class_index != *class_index) continue;
    use(list.requests[i], timeline.requests[i]);
  }
}

// Those that were rejected, warm-up left out.
template <class Use>
void for_rejected(const RequestList& list, const ServiceTimeline& timeline, const Use& use) {
  for (std::size_t i = static_cast<std::size_t>(list.warmup); i < timeline.requests.size(); ++i)
    if (timeline.requests[i].state == RequestState::rejected) use(list.requests[i]);
}

// Time per output token after the first; of one token there is none.
Ticks per_token(const Request& request, const RequestRecord& record) {
  return Ticks{(record.last - record.first).ps / (request.output - 1)};
}

LatencySummary summary_of(std::vector<Ticks>& values) {
  LatencySummary summary{.count = static_cast<std::int64_t>(values.size())};
  if (values.empty()) return summary;
  __int128 sum = 0;
  for (const Ticks t : values) sum += t.ps;
  summary.mean = Seconds(static_cast<double>(sum) / static_cast<double>(values.size()) * 1e-12);
  summary.p50 = tick_percentile(values, 50);
  summary.p90 = tick_percentile(values, 90);
  summary.p95 = tick_percentile(values, 95);
  summary.p99 = tick_percentile(values, 99);
  return summary;
}

std::optional<Ticks> latency_of(ServiceLatency latency, const Request& request,
                                const RequestRecord& record) {
  switch (latency) {
    case ServiceLatency::ttft:
      return record.first - record.arrival;
    case ServiceLatency::e2e:
      return record.last - record.arrival;
    case ServiceLatency::tpot:
    case ServiceLatency::itl:
      break;
  }
  if (request.output < 2) return std::nullopt;
  return per_token(request, record);
}

std::optional<std::int32_t> class_of(const LatencyBound& bound, const RequestList& list) {
  if (bound.class_name.empty()) return std::nullopt;
  const auto found = std::find(list.classes.begin(), list.classes.end(), bound.class_name);
  return static_cast<std::int32_t>(found - list.classes.begin());
}

Seconds reached_by(const LatencyBound& bound, const RequestList& list,
                   const ServiceTimeline& timeline) {
  const auto class_index = class_of(bound, list);
  // Gaps between tokens are counted for all classes together.
  if (bound.latency == ServiceLatency::itl && !class_index)
    return bound.percent == 0 ? timeline.gaps.mean() : timeline.gaps.percentile(bound.percent);
  std::vector<Ticks> values;
  for_counted(list, timeline, class_index, [&](const Request& q, const RequestRecord& r) {
    if (const auto value = latency_of(bound.latency, q, r)) values.push_back(*value);
  });
  return bound.percent == 0 ? summary_of(values).mean : tick_percentile(values, bound.percent);
}

}  // namespace

ServiceTotals& ServiceTotals::operator+=(const ServiceTotals& o) {
  steps += o.steps;
  decode_steps += o.decode_steps;
  mixed_steps += o.mixed_steps;
  busy += o.busy;
  decode_time += o.decode_time;
  mixed_time += o.mixed_time;
  sequences += o.sequences;
  prefilled += o.prefilled;
  emitted += o.emitted;
  prompts += o.prompts;
  cached += o.cached;
  from_tiers += o.from_tiers;
  recomputed += o.recomputed;
  restored += o.restored;
  found_again += o.found_again;
  preemptions += o.preemptions;
  drafted += o.drafted;
  accepted += o.accepted;
  queued_time += o.queued_time;
  running_time += o.running_time;
  waited += o.waited;
  on_the_way += o.on_the_way;
  waited_there += o.waited_there;
  read_late += o.read_late;
  return *this;
}

RequestCounts count_requests(const ServiceTimeline& timeline) {
  RequestCounts counts;
  for (const RequestRecord& r : timeline.requests) {
    counts.arrived += r.state != RequestState::expected ? 1 : 0;
    counts.finished += r.state == RequestState::finished ? 1 : 0;
    counts.running += r.state == RequestState::running ? 1 : 0;
    counts.queued += r.state == RequestState::queued ? 1 : 0;
    counts.rejected += r.state == RequestState::rejected ? 1 : 0;
    counts.lost += r.state == RequestState::lost ? 1 : 0;
  }
  return counts;
}

Seconds tick_percentile(std::span<Ticks> values, double percent) {
  if (values.empty()) return {};
  const double position = percent / 100 * static_cast<double>(values.size() - 1);
  const auto below = static_cast<std::ptrdiff_t>(position);
  const auto low = values.begin() + below;
  std::nth_element(values.begin(), low, values.end());
  const double first = static_cast<double>(low->ps);
  const auto next = std::min_element(low + 1, values.end());
  const double second = next == values.end() ? first : static_cast<double>(next->ps);
  return Seconds(std::lerp(first, second, position - static_cast<double>(below)) * 1e-12);
}

ServiceSummary summarise(const RequestList& list, const ServiceTimeline& timeline,
                         std::optional<std::int32_t> class_index) {
  ServiceSummary summary;
  std::vector<Ticks> ttft, tpot, e2e, wait;
  Ticks begin{INT64_MAX}, end;
  for_counted(list, timeline, class_index, [&](const Request& q, const RequestRecord& r) {
    ttft.push_back(r.first - r.arrival);
    e2e.push_back(r.last - r.arrival);
    wait.push_back(r.scheduled - r.arrival);
    if (q.output > 1) tpot.push_back(per_token(q, r));
    begin = min(begin, r.arrival);
    end = max(end, r.last);
    summary.prompt_tokens += q.prompt;
    summary.cached_tokens += r.cached;
    summary.output_tokens += q.output;
  });
  summary.requests = static_cast<std::int64_t>(ttft.size());
  summary.ttft = summary_of(ttft);
  summary.tpot = summary_of(tpot);
  summary.e2e = summary_of(e2e);
  summary.wait = summary_of(wait);
  const GapHistogram& gaps = timeline.gaps;
  summary.itl = {.count = gaps.count(),
                 .mean = gaps.mean(),
                 .p50 = gaps.percentile(50),
                 .p90 = gaps.percentile(90),
                 .p95 = gaps.percentile(95),
                 .p99 = gaps.percentile(99)};
  if (summary.requests == 0) return summary;
  summary.span = to_seconds(end - begin);
  if (summary.span.si() > 0) {
    summary.output_rate = static_cast<double>(summary.output_tokens) / summary.span.si();
    summary.request_rate = static_cast<double>(summary.requests) / summary.span.si();
  }
  return summary;
}

TargetResult against(const ServiceTarget& target, const RequestList& list,
                     const ServiceTimeline& timeline) {
  TargetResult result;
  std::int64_t good = 0, all = 0, rejected = 0;
  std::vector<std::int64_t> asked(target.bounds.size()), keep(target.bounds.size());
  Ticks begin{INT64_MAX}, end;
  for_counted(list, timeline, std::nullopt, [&](const Request& q, const RequestRecord& r) {
    ++all;
    begin = min(begin, r.arrival);
    end = max(end, r.last);
    bool keeps = true;
    for (std::size_t i = 0; i < target.bounds.size(); ++i) {
      const LatencyBound& bound = target.bounds[i];
      const auto class_index = class_of(bound, list);
      if (class_index && *class_index != q.class_index) continue;
      const auto value = latency_of(bound.latency, q, r);
      const bool kept = !value || to_seconds(*value) <= bound.at_most;
      ++asked[i];
      keep[i] += kept ? 1 : 0;
      keeps = keeps && kept;
    }
    good += keeps ? 1 : 0;
    result.tokens += keeps ? q.output : 0;
  });
  std::vector<bool> refused(target.bounds.size());  // some request of the bound's kind
  for_rejected(list, timeline, [&](const Request& q) {
    ++rejected;
    for (std::size_t i = 0; i < target.bounds.size(); ++i) {
      const auto class_index = class_of(target.bounds[i], list);
      if (class_index && *class_index != q.class_index) continue;
      ++asked[i];
      refused[i] = true;
    }
  });
  for (std::size_t i = 0; i < asked.size(); ++i) {
    const LatencyBound& bound = target.bounds[i];
    result.shares.push_back(
        asked[i] > 0 ? static_cast<double>(keep[i]) / static_cast<double>(asked[i]) : 0);
    result.reached.push_back(reached_by(bound, list, timeline));
    const bool enough = !refused[i] || 100 * result.shares.back() >= bound.percent;
    result.kept.push_back(result.reached.back() <= bound.at_most && enough);
  }
  if (all == 0) return result;
  result.share = static_cast<double>(good) / static_cast<double>(all + rejected);
  const double span = to_seconds(end - begin).si();
  if (span > 0) result.goodput = static_cast<double>(good) / span;
  return result;
}

}  // namespace orrery
