// SPDX-License-Identifier: Apache-2.0
// Repeats the rates of a day or a week.
#include "workloads/traffic/load_curve.h"

#include <algorithm>

#include "sim/base/errors/check.h"

namespace orrery {

LoadCurve::LoadCurve(const std::vector<RatePiece>& pieces) {
  for (const RatePiece& piece : pieces) {
    CHECK_THAT(piece.length.si() >= 1 && piece.rate.si() >= 0, "rates that hold for a while");
    const FleetTime end = period_ + to_fleet_time(piece.length);
    if (!pieces_.empty() && pieces_.back().rate == piece.rate.si())
      pieces_.back().to = end;
    else
      pieces_.push_back({period_, end, piece.rate.si()});
    period_ = end;
    peak_ = std::max(peak_, piece.rate.si());
  }
  CHECK_THAT(peak_ > 0, "some requests come");
}

LoadCurve LoadCurve::of_week(double peak, const std::array<double, 24>& by_hour,
                             const std::array<double, 7>& by_weekday) {
  const double most = *std::max_element(by_hour.begin(), by_hour.end()) *
                      *std::max_element(by_weekday.begin(), by_weekday.end());
  CHECK_THAT(most > 0, "some hour of some day has requests");
  std::vector<RatePiece> pieces;
  for (const double day : by_weekday)
    for (const double hour : by_hour)
      pieces.push_back({.length = seconds(3600), .rate = Hertz(peak * (day * hour / most))});
  return LoadCurve(pieces);
}

std::size_t LoadCurve::piece_at(FleetTime in_period) const {
  const auto after =
      std::upper_bound(pieces_.begin(), pieces_.end(), in_period,
                       [](FleetTime at, const LoadSpan& piece) { return at < piece.from; });
  return static_cast<std::size_t>(after - pieces_.begin()) - 1;
}

std::vector<LoadSpan> LoadCurve::spans(FleetTime from, FleetTime to) const {
  std::vector<LoadSpan> out;
  FleetTime at = from;
  while (at < to) {
    const FleetTime begin{at.us - at.us % period_.us};
    const LoadSpan& piece = pieces_[piece_at(at - begin)];
    const FleetTime end = std::min(to, begin + piece.to);
    if (!out.empty() && out.back().rate == piece.rate)
      out.back().to = end;
    else
      out.push_back({at, end, piece.rate});
    at = end;
  }
  return out;
}

double LoadCurve::most(FleetTime from, FleetTime to) const {
  if (to - from >= period_) return peak_;
  double most = 0;
  for (FleetTime at = from; at < to;) {
    const FleetTime begin{at.us - at.us % period_.us};
    const LoadSpan& piece = pieces_[piece_at(at - begin)];
    most = std::max(most, piece.rate);
    at = begin + piece.to;
  }
  return most;
}

}  // namespace orrery
