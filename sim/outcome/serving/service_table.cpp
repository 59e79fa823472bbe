// SPDX-License-Identifier: Apache-2.0
// Serves a replica at a few loads, and at more where straight lines are not good enough.
#include "sim/outcome/serving/service_table.h"

#include <algorithm>
#include <cmath>

#include "sim/base/errors/check.h"
#include "sim/base/parallel.h"

namespace orrery {
namespace {

// Shares of the load that the replica can bear. At the last two more comes than it can serve: how
// many keep their promises there depends on how long that lasts, so nothing is added between them.
constexpr double first_loads[] = {0.01, 0.03, 0.08, 0.2, 0.4, 0.6, 0.75, 0.9, 1.0};
constexpr double beyond[] = {1.1, 1.25};
constexpr double closest = 0.005;
constexpr double off_share = 0.004, off_power = 0.007;
constexpr std::size_t most_loads = 64;
// Requests of a run: where hardly any wait, elsewhere, and at most.
constexpr std::int64_t light_requests = 5'000, usual_requests = 12'000, most_requests = 50'000;
constexpr double light = 0.5;
constexpr double memories = 20;        // times that a queue forgets, of a run
constexpr double most_settled = 0.98;  // 1 - sqrt(memories / most_requests)
// Student's t of 95% with one degree less than there are seeds.
constexpr double t_of_seeds = 2.365;
static_assert(ServiceTable::seeds == 8, "t is that of seven degrees of freedom");

constexpr std::int64_t rounds_of_clients = 8;  // requests of each in a saturated run

Arrivals arrivals_at(double rate, double variation) {
  if (variation == 1) return PoissonArrivals{Hertz(rate)};
  return GammaArrivals{Hertz(rate), variation};
}

double seconds_between(Ticks from, Ticks to) { return to_seconds(to - from).si(); }

ServedLoad line_between(const ServedLoad& a, const ServedLoad& b, double rate) {
  const double way = (rate - a.rate) / (b.rate - a.rate);
  const auto mix = [&](double x, double y) { return x + way * (y - x); };
  return {.rate = rate,
          .kept = mix(a.kept, b.kept),
          .error = std::max(a.error, b.error),
          .tokens = mix(a.tokens, b.tokens),
          .power = Watts(mix(a.power.si(), b.power.si()))};
}

bool is_off(const ServedLoad& line, const ServedLoad& run) {
  return std::abs(line.kept - run.kept) > off_share ||
         std::abs(line.power.si() - run.power.si()) > off_power * run.power.si();
}

std::int64_t sequences_of(const EngineGroup& group, const EngineMemory& memory) {
  return group.replicas * group.layout.attention_dp * group.layout.pp *
         std::max<std::int64_t>(1, memory.sequences);
}

// A table of one replica while it is made.
struct LoadRuns {
  const ServiceCase& asked;
  double saturated = 0, variation = 1;
  int threads = 0;
  ServedLoad at(double rate) const;
};

}  // namespace

SaturatedRun saturated_service(ServiceCase asked) {
  asked.target = {};
  // Memory says how many sequences run: of a run of one request.
  asked.traffic.arrivals = OfflineArrivals{};
  asked.traffic.requests = 1;
  asked.traffic.warmup = 0;
  const ServicePrediction one = predict_service(asked, {});
  SaturatedRun out{.refusal = one.memory.refusal};
  if (out.refusal.empty() && one.decode_memory) out.refusal = one.decode_memory->refusal;
  if (!out.refusal.empty()) return out;
  std::int64_t clients = sequences_of(asked.engines, one.memory);
  if (asked.decode) clients += sequences_of(*asked.decode, *one.decode_memory);
  asked.traffic.arrivals = ClosedLoop{clients};
  asked.traffic.requests = rounds_of_clients * clients;
  asked.traffic.warmup = 0;
  const ServicePrediction p = predict_service(asked, {});
  out.refusal = p.refusal;
  if (!out.refusal.empty()) return out;
  // From the time at which half of the requests had come until the last one comes, all clients
  // wait for an answer.
  std::vector<Ticks> arrivals;
  for (const RequestRecord& r : p.timeline.requests) arrivals.push_back(r.arrival);
  std::sort(arrivals.begin(), arrivals.end());
  const Ticks from = arrivals[arrivals.size() / 2], to = arrivals.back();
  double running = 0;
  for (std::size_t i = 0; i < p.timeline.requests.size(); ++i) {
    const RequestRecord& r = p.timeline.requests[i];
    if (r.state != RequestState::finished) continue;
    const Ticks begin = std::max(r.scheduled, from), end = std::min(r.last, to);
    if (begin < end) running += seconds_between(begin, end);
    if (r.last <= from || r.last > to) continue;
    out.service.rate += 1;
    out.service.tokens += p.requests.requests[i].output;
  }
  const double time = seconds_between(from, to);
  CHECK_THAT(time > 0 && out.service.rate > 0, "clients in a loop are answered");
  out.service.rate /= time;
  out.service.tokens /= time;
  out.service.in_flight = std::max<std::int64_t>(1, std::llround(running / time));
  out.service.power = p.cost.mean;
  return out;
}

std::int64_t ServiceTable::requests_at(double share) {
  if (share < light) return light_requests;
  const double left = 1 - share;
  if (left <= 0) return share > 1 ? usual_requests : most_requests;
  return std::clamp(static_cast<std::int64_t>(memories / (left * left)), usual_requests,
                    most_requests);
}

ServedLoad LoadRuns::at(double rate) const {
  std::vector<ServedLoad> runs(ServiceTable::seeds);
  parallel_for(runs.size(), threads, [&](std::size_t i) {
    ServiceCase one = asked;
    one.seed = asked.seed + i;
    one.traffic.arrivals = arrivals_at(rate, variation);
    one.traffic.requests = ServiceTable::requests_at(rate / saturated);
    one.traffic.warmup = one.traffic.requests / 5;
    const ServicePrediction p = predict_service(one, {});
    const double share = p.target.shares.empty() ? 1 : p.target.share;
    runs[i] = {.kept = share, .tokens = p.summary.output_rate, .power = p.cost.mean};
  });
  ServedLoad mean{.rate = rate, .kept = 0};
  const auto n = static_cast<double>(runs.size());
  for (const ServedLoad& run : runs) {
    mean.kept += run.kept / n;
    mean.tokens += run.tokens / n;
    mean.power = mean.power + run.power / n;
  }
  double squares = 0;
  for (const ServedLoad& run : runs) squares += (run.kept - mean.kept) * (run.kept - mean.kept);
  mean.error = t_of_seeds * std::sqrt(squares / (n - 1) / n);
  return mean;
}

ServiceTable::ServiceTable(const ServiceCase& asked, const SaturatedService& saturated,
                           double variation, int threads)
    : saturated_(saturated) {
  const double bears = saturated.rate;
  const LoadRuns runs{asked, bears, variation, threads};
  for (const double share : first_loads) loads_.push_back(runs.at(share * bears));
  // Who is never there disappoints nobody more than who comes rarely.
  ServedLoad none = loads_.front();
  none.rate = none.tokens = 0;
  none.power = asked.cluster.device.resolved().idle_power;
  loads_.insert(loads_.begin(), none);
  for (std::size_t i = 0; i + 1 < loads_.size() && loads_.size() < most_loads;) {
    const double width = loads_[i + 1].rate - loads_[i].rate;
    if (width < 2 * closest * bears) {
      ++i;
      continue;
    }
    const double middle = loads_[i].rate + width / 2;
    const ServedLoad run = runs.at(middle);
    const bool off = is_off(line_between(loads_[i], loads_[i + 1], middle), run);
    loads_.insert(loads_.begin() + static_cast<std::ptrdiff_t>(i) + 1, run);
    if (!off) i += 2;
  }
  for (const double share : beyond) loads_.push_back(runs.at(share * bears));
}

ServedLoad ServiceTable::at(double rate) const {
  const auto after =
      std::upper_bound(loads_.begin(), loads_.end(), rate,
                       [](double value, const ServedLoad& load) { return value < load.rate; });
  if (after == loads_.end()) {
    ServedLoad last = loads_.back();
    last.rate = rate;
    return last;
  }
  CHECK_THAT(after != loads_.begin(), "a load of 0 or more");
  return line_between(*(after - 1), *after, rate);
}

double ServiceTable::most_at(double share) const {
  if (loads_.front().kept < share) return 0;
  const double most = most_settled * saturated_.rate;
  for (std::size_t i = 1; i < loads_.size(); ++i) {
    const ServedLoad &a = loads_[i - 1], &b = loads_[i];
    if (b.kept >= share) continue;
    return std::min(most, a.rate + (b.rate - a.rate) * (a.kept - share) / (a.kept - b.kept));
  }
  return most;
}

}  // namespace orrery
