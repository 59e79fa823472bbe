// SPDX-License-Identifier: Apache-2.0
// Counts what arrives and ends while a load is on.
#include "sim/question/serve/load.h"

#include <algorithm>
#include <cmath>

namespace orrery {
namespace {

constexpr std::int64_t most_lengthened = 200'000;
constexpr double slack = 0.02;       // of the requests that arrive
constexpr double deviations = 3;     // of how many are in the system
constexpr double requests_long = 2;  // a half that is so many requests long settles

Ticks last_arrival(const ServiceTimeline& timeline) {
  Ticks last;
  for (const RequestRecord& r : timeline.requests) last = max(last, r.arrival);
  return last;
}

double variation_of(const Arrivals& arrivals) {
  const auto* gamma = std::get_if<GammaArrivals>(&arrivals);
  return gamma ? gamma->variation : 1;
}

}  // namespace

Hertz load_rate(const Arrivals& arrivals) {
  if (const auto* gamma = std::get_if<GammaArrivals>(&arrivals)) return gamma->rate;
  return std::get<PoissonArrivals>(arrivals).rate;
}

bool lengthen(ServedPoint& point) {
  const ServicePrediction& p = point.prediction;
  Traffic& traffic = point.asked.traffic;
  if (!p.refusal.empty() || p.timeline.stopped || p.counts.finished == 0) return false;
  const double half = to_seconds(last_arrival(p.timeline)).si() / 2;
  const double wanted = requests_long * p.summary.e2e.p90.si();
  if (half >= wanted || traffic.requests >= most_lengthened) return false;
  const double more = 1.1 * 2 * wanted * load_rate(traffic.arrivals).si();
  traffic.requests = std::min(
      most_lengthened, std::max(2 * traffic.requests, static_cast<std::int64_t>(std::ceil(more))));
  return true;
}

LoadResult judge(const ServedPoint& point) {
  LoadResult result;
  const ServicePrediction& p = point.prediction;
  if (!p.refusal.empty() || p.timeline.stopped || p.counts.finished == 0) return result;
  const Ticks end = last_arrival(p.timeline), middle{end.ps / 2};
  std::int64_t arrived = 0, ended = 0, within = 0;
  for (const RequestRecord& r : p.timeline.requests) {
    if (r.state != RequestState::finished) continue;
    arrived += r.arrival > middle ? 1 : 0;
    ended += r.last > middle && r.last <= end ? 1 : 0;
    within += r.arrival <= middle && r.last > middle ? 1 : 0;
  }
  const double time = to_seconds(end - middle).si();
  if (time <= 0) return result;
  result.offered = static_cast<double>(arrived) / time;
  result.served = static_cast<double>(ended) / time;
  result.long_enough = time >= p.summary.e2e.mean.si();
  const double noise = deviations * variation_of(point.asked.traffic.arrivals) *
                       std::sqrt(2 * static_cast<double>(within));
  result.keeps_up = result.long_enough && static_cast<double>(arrived - ended) <=
                                              slack * static_cast<double>(arrived) + noise;
  const std::vector<bool>& kept = p.target.kept;
  result.meets = result.keeps_up && p.counts.rejected == 0 &&
                 std::all_of(kept.begin(), kept.end(), [](bool one) { return one; });
  return result;
}

std::optional<std::size_t> least_that_meets(const std::vector<ServedPoint>& points) {
  std::optional<std::size_t> best;
  for (std::size_t i = 0; i < points.size(); ++i) {
    if (!points[i].load || !points[i].load->meets) continue;
    const auto key = [&](std::size_t at) {
      return std::pair(points[at].asked.gpus(), points[at].prediction.summary.e2e.mean);
    };
    if (!best || key(i) < key(*best)) best = i;
  }
  return best;
}

}  // namespace orrery
