// SPDX-License-Identifier: Apache-2.0
// Lays a load over the replicas that stood.
#include "sim/outcome/fleet/service_measures.h"

#include <algorithm>

namespace orrery {
namespace {

constexpr FleetTime hour{INT64_C(3'600'000'000)};

// A replica from its first answer to its last. `up`: the share of that time in which it serves.
struct Standing {
  FleetTime from, to;
  double up = 1;
};

double seconds_of(FleetTime t) { return to_seconds(t).si(); }

// Those that served before `end`.
std::vector<Standing> standing_replicas(const FleetService& service, const ClusterJobs& jobs,
                                        const FleetRecord& record, FleetTime end,
                                        ServiceMeasures& out) {
  std::vector<Standing> all;
  for (std::size_t i = 0; i < jobs.jobs.size(); ++i) {
    const ClusterJob& job = jobs.jobs[i];
    const JobRecord& r = record.jobs[i];
    if (job.work != service.work || r.start == fleet_never) continue;
    const FleetTime left = std::min(r.end, record.last_end);
    out.gpu_hours += static_cast<double>(job.gpus) * seconds_of(left - r.start - r.waited_again) /
                     seconds_of(hour);
    Standing one{.from = r.start + service.rule.start, .to = std::min(left, end)};
    if (one.from >= one.to) continue;
    if (r.stops + r.preemptions > 0) {
      // Where it came to its end, what its length left of the time; else at least its waits.
      const FleetTime span = (r.end == fleet_never ? left : r.end) - one.from;
      const FleetTime down = r.end == fleet_never ? r.waited_again : span - job.length;
      one.up = 1 - std::clamp(seconds_of(down) / seconds_of(span), 0.0, 1.0);
    }
    all.push_back(one);
  }
  return all;
}

// The chances that 0, 1, .. of several serve, each by itself.
std::vector<double> chances_of(const std::vector<double>& up, std::size_t sure) {
  std::vector<double> chance(sure + 1, 0);
  chance[sure] = 1;
  for (const double p : up) {
    chance.push_back(0);
    for (std::size_t n = chance.size() - 1; n > 0; --n)
      chance[n] = chance[n] * (1 - p) + chance[n - 1] * p;
    chance[0] *= 1 - p;
  }
  return chance;
}

// A second of a load on some replicas.
struct ServedSecond {
  double taken = 0, kept = 0;  // requests
  double tokens = 0;
  double watts = 0;  // sum over replicas, of an accelerator of each
};
ServedSecond second_of(const FleetService& service, double rate, std::size_t replicas) {
  if (replicas == 0) return {};
  const auto n = static_cast<double>(replicas);
  const double each = std::min(rate / n, service.rule.bears);
  const ServedLoad load = service.table->at(each);
  return {.taken = n * each,
          .kept = n * each * load.kept,
          .tokens = n * load.tokens,
          .watts = n * load.power.si()};
}

class ServiceHours {
 public:
  explicit ServiceHours(FleetTime open) : open_(open) {}
  // Within an hour.
  void add(FleetTime from, double requests, double kept) {
    const auto at = static_cast<std::size_t>((from - open_).us / hour.us);
    if (hours_.size() <= at) hours_.resize(at + 1);
    hours_[at].requests += requests;
    hours_[at].kept += kept;
  }
  void find_worst(ServiceMeasures& out) const {
    for (std::size_t i = 0; i < hours_.size(); ++i) {
      if (hours_[i].requests <= 0) continue;
      const double share = hours_[i].kept / hours_[i].requests;
      if (share >= out.worst_hour) continue;
      out.worst_hour = share;
      out.worst_at = open_ + FleetTime{hour.us * static_cast<std::int64_t>(i)};
    }
  }

 private:
  struct Hour {
    double requests = 0, kept = 0;
  };
  FleetTime open_;
  std::vector<Hour> hours_;
};

// Times between which neither the load nor who stands changes, within an hour each.
std::vector<FleetTime> cuts_of(const std::vector<LoadSpan>& spans,
                               const std::vector<Standing>& replicas, FleetTime open,
                               FleetTime end) {
  std::vector<FleetTime> cuts = {open, end};
  for (const LoadSpan& span : spans) cuts.push_back(span.from);
  for (const Standing& one : replicas) {
    cuts.push_back(one.from);
    cuts.push_back(one.to);
  }
  for (FleetTime at = open; at < end; at += hour) cuts.push_back(at);
  std::sort(cuts.begin(), cuts.end());
  cuts.erase(std::unique(cuts.begin(), cuts.end()), cuts.end());
  std::erase_if(cuts, [&](FleetTime at) { return at < open || at > end; });
  return cuts;
}

}  // namespace

namespace {

// Of a second in which each of some replicas serves or is stopped.
struct MeanSecond : ServedSecond {
  double replicas = 0;
};
MeanSecond mean_second(const FleetService& service, double rate, const std::vector<Standing>& now) {
  std::vector<double> unsure;
  for (const Standing& one : now)
    if (one.up < 1) unsure.push_back(one.up);
  const std::vector<double> chances = chances_of(unsure, now.size() - unsure.size());
  MeanSecond mean;
  for (std::size_t n = 0; n < chances.size(); ++n) {
    if (chances[n] == 0) continue;
    const ServedSecond one = second_of(service, rate, n);
    mean.taken += chances[n] * one.taken;
    mean.kept += chances[n] * one.kept;
    mean.tokens += chances[n] * one.tokens;
    mean.watts += chances[n] * one.watts;
    mean.replicas += chances[n] * static_cast<double>(n);
  }
  return mean;
}

}  // namespace

ServiceMeasures service_measures(const FleetService& service, const ClusterJobs& jobs,
                                 const FleetRecord& record) {
  ServiceMeasures out;
  const FleetTime end =
      record.ends_early() ? std::min(service.close, record.last_end) : service.close;
  if (end <= service.open) return out;
  std::vector<Standing> replicas = standing_replicas(service, jobs, record, end, out);
  std::sort(replicas.begin(), replicas.end(),
            [](const Standing& a, const Standing& b) { return a.from < b.from; });
  const std::vector<LoadSpan> spans = service.load.spans(service.open, end);
  const std::vector<FleetTime> cuts = cuts_of(spans, replicas, service.open, end);
  ServiceHours hours(service.open);
  std::vector<Standing> now;
  double taken = 0, kept = 0, served_s = 0, watt_s = 0;
  std::size_t span = 0, next = 0;
  for (std::size_t i = 0; i + 1 < cuts.size(); ++i) {
    while (next < replicas.size() && replicas[next].from <= cuts[i])
      now.push_back(replicas[next++]);
    std::erase_if(now, [&](const Standing& one) { return one.to <= cuts[i]; });
    while (spans[span].to <= cuts[i]) ++span;
    const MeanSecond mean = mean_second(service, spans[span].rate, now);
    const double time = seconds_of(cuts[i + 1] - cuts[i]);
    out.requests += time * spans[span].rate;
    taken += time * mean.taken;
    kept += time * mean.kept;
    out.tokens += time * mean.tokens;
    served_s += time * mean.replicas;
    watt_s += time * mean.watts;
    out.most_replicas = std::max(out.most_replicas, static_cast<double>(now.size()));
    hours.add(cuts[i], time * spans[span].rate, time * mean.kept);
  }
  out.replicas = served_s / seconds_of(end - service.open);
  if (served_s > 0) out.power = Watts(watt_s / served_s);
  if (out.requests > 0) {
    out.refused = std::max(0.0, 1 - taken / out.requests);
    out.kept = kept / out.requests;
  }
  hours.find_worst(out);
  return out;
}

double kept_share(const std::vector<ServiceMeasures>& services) {
  double requests = 0, kept = 0;
  for (const ServiceMeasures& one : services) {
    requests += one.requests;
    kept += one.requests * one.kept;
  }
  return requests > 0 ? kept / requests : 1;
}

}  // namespace orrery
