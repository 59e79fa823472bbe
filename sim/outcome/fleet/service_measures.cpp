// SPDX-License-Identifier: Apache-2.0
// Lays a load over the replicas that stood.
#include "sim/outcome/fleet/service_measures.h"

#include <algorithm>
#include <cmath>

namespace orrery {
namespace {

constexpr FleetTime hour{INT64_C(3'600'000'000)};

// A time in which a replica serves.
struct Standing {
  FleetTime from, to;
};

double seconds_of(FleetTime t) { return to_seconds(t).si(); }

// Between its stops. What it takes to serve again after one, beyond the wait for a place, is the
// mean over its stops: all of that together is what its time from start to end has beside its
// length, its first start and its waits.
void add_standing(const ReplicaRule& rule, FleetTime length, const JobRecord& record,
                  const std::vector<ReplicaStop>& stops, FleetTime end,
                  std::vector<Standing>& all) {
  FleetTime from = record.start + rule.start;
  FleetTime overhead = rule.start;
  if (record.end != fleet_never && !stops.empty()) {
    FleetTime rest = record.end - from - length;
    for (const ReplicaStop& stop : stops) rest = rest - (stop.again - stop.at);
    overhead.us = std::max<std::int64_t>(0, rest.us / static_cast<std::int64_t>(stops.size()));
  }
  const auto add = [&](FleetTime to) {
    if (from < std::min(to, end)) all.push_back({from, std::min(to, end)});
  };
  for (const ReplicaStop& stop : stops) {
    add(stop.at);
    if (stop.again == fleet_never) return;
    from = stop.again + overhead;
  }
  add(record.end);
}

// Those that served before `end`.
std::vector<Standing> standing_replicas(const FleetService& service, const ClusterJobs& jobs,
                                        const FleetRecord& record, const ReplicaStops& stops,
                                        FleetTime end, ServiceMeasures& out) {
  std::vector<Standing> all;
  for (std::size_t i = 0; i < jobs.jobs.size(); ++i) {
    const ClusterJob& job = jobs.jobs[i];
    const JobRecord& r = record.jobs[i];
    if (job.work != service.work || r.start == fleet_never) continue;
    const FleetTime left = std::min(r.end, record.last_end);
    out.gpu_hours += static_cast<double>(job.gpus) * seconds_of(left - r.start - r.waited_again) /
                     seconds_of(hour);
    add_standing(service.rule, job.length, r, stops.of(static_cast<std::uint32_t>(i)),
                 std::min(end, record.last_end), all);
  }
  std::sort(all.begin(), all.end(),
            [](const Standing& a, const Standing& b) { return a.from < b.from; });
  return all;
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

void ReplicaStops::take(const FleetEvent& event) {
  if (works_.empty() || !is_of_job(event.kind)) return;
  if (std::find(works_.begin(), works_.end(), jobs_[event.job].work) == works_.end()) return;
  if (event.kind == FleetEventKind::stop) stops_[event.job].push_back({.at = event.at});
  if (event.kind == FleetEventKind::restart)
    stops_[event.job].push_back({.at = event.at, .again = event.at});
  if (event.kind != FleetEventKind::start) return;
  const auto known = stops_.find(event.job);
  if (known != stops_.end()) known->second.back().again = event.at;
}

const std::vector<ReplicaStop>& ReplicaStops::of(std::uint32_t job) const {
  static const std::vector<ReplicaStop> none;
  const auto known = stops_.find(job);
  return known != stops_.end() ? known->second : none;
}

ServiceMeasures service_measures(const FleetService& service, const ClusterJobs& jobs,
                                 const FleetRecord& record, const ReplicaStops& stops) {
  ServiceMeasures out;
  const FleetTime end =
      record.ends_early() ? std::min(service.close, record.last_end) : service.close;
  if (end <= service.open) return out;
  const std::vector<Standing> replicas = standing_replicas(service, jobs, record, stops, end, out);
  const std::vector<LoadSpan> spans = service.load.spans(service.open, end);
  const std::vector<FleetTime> cuts = cuts_of(spans, replicas, service.open, end);
  ServiceHours hours(service.open);
  std::vector<Standing> now;
  double taken = 0, kept = 0, served_s = 0, watt_s = 0, needed_s = 0;
  std::size_t span = 0, next = 0;
  for (std::size_t i = 0; i + 1 < cuts.size(); ++i) {
    while (next < replicas.size() && replicas[next].from <= cuts[i])
      now.push_back(replicas[next++]);
    std::erase_if(now, [&](const Standing& one) { return one.to <= cuts[i]; });
    while (spans[span].to <= cuts[i]) ++span;
    const auto n = static_cast<double>(now.size());
    const ServedSecond second = second_of(service, spans[span].rate, now.size());
    const double time = seconds_of(cuts[i + 1] - cuts[i]);
    out.requests += time * spans[span].rate;
    taken += time * second.taken;
    kept += time * second.kept;
    out.tokens += time * second.tokens;
    served_s += time * n;
    const double needed = spans[span].rate / service.rule.bears;
    needed_s += time * std::min(n, std::ceil(needed * (1 - 1e-12)));
    watt_s += time * second.watts;
    out.most_replicas = std::max(out.most_replicas, n);
    hours.add(cuts[i], time * spans[span].rate, time * second.kept);
  }
  out.replicas = served_s / seconds_of(end - service.open);
  out.standby_gpu_hours =
      static_cast<double>(service.gpus) * (served_s - needed_s) / seconds_of(hour);
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
