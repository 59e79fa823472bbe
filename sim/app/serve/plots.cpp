// SPDX-License-Identifier: Apache-2.0
// Counts requests by their latency and lays points on a grid.
#include "sim/app/serve/plots.h"

#include <algorithm>

#include "sim/base/text/words.h"
#include "sim/paper/text_plot.h"

namespace orrery {
namespace {

constexpr std::size_t parts = 8;  // of a histogram
constexpr std::size_t curve_width = 64, curve_height = 12;
constexpr double wide = 20;          // a spread from which on axes are logarithmic
constexpr std::int64_t fewest = 20;  // requests whose spread is worth a picture

// Seconds of the requests that count.
struct Latencies {
  std::vector<double> ttft, tpot;
};

Latencies latencies_of(const ServicePrediction& p) {
  Latencies out;
  for (std::size_t i = static_cast<std::size_t>(p.requests.warmup); i < p.timeline.requests.size();
       ++i) {
    const RequestRecord& r = p.timeline.requests[i];
    if (r.state != RequestState::finished) continue;
    const std::int32_t output = p.requests.requests[i].output;
    out.ttft.push_back(to_seconds(r.first - r.arrival).si());
    if (output > 1) out.tpot.push_back(to_seconds(r.last - r.first).si() / (output - 1));
  }
  return out;
}

// "up to 139 ms", its share of the requests, a bar; blank beyond the last part.
void add_part(std::vector<std::string>& row, const Histogram& h, std::size_t i, double all) {
  if (i >= h.counts.size()) {
    row.insert(row.end(), {"", "", ""});
    return;
  }
  const std::size_t most = *std::max_element(h.counts.begin(), h.counts.end());
  const double count = static_cast<double>(h.counts[i]);
  row.insert(row.end(), {to_text(Seconds(h.edges[i + 1])), percent_figure(count / all),
                         bar(count / static_cast<double>(most), 16)});
}

bool is_wide(const std::vector<TextPoint>& points, double TextPoint::*axis) {
  const auto [low, high] = std::minmax_element(
      points.begin(), points.end(),
      [&](const TextPoint& a, const TextPoint& b) { return a.*axis < b.*axis; });
  return (*high).*axis > wide * (*low).*axis;
}

}  // namespace

void add_spread(Document& document, const ServicePrediction& p) {
  if (p.summary.requests < fewest) return;
  const Latencies values = latencies_of(p);
  const Histogram ttft = histogram(values.ttft, parts), tpot = histogram(values.tpot, parts);
  document.label("How requests spread (up to so much time, % of the requests):");
  Table table({"TTFT", "%", "", "TPOT", "%", ""},
              {Align::right, Align::right, Align::left, Align::right, Align::right, Align::left});
  for (std::size_t i = 0; i < std::max(ttft.counts.size(), tpot.counts.size()); ++i) {
    std::vector<std::string> row;
    add_part(row, ttft, i, static_cast<double>(values.ttft.size()));
    add_part(row, tpot, i, static_cast<double>(values.tpot.size()));
    table.add(row);
  }
  document.table(std::move(table));
  document.gap();
}

void add_curve(Document& document, const Served& served) {
  std::vector<TextPoint> points, best;
  for (std::size_t i = 0; i < served.points.size(); ++i) {
    const ServedPoint& point = served.points[i];
    const ServicePrediction& p = point.prediction;
    if (!p.refusal.empty() || !(p.summary.tpot.p50 > Seconds(0)) || !(p.tokens_per_gpu > 0))
      continue;
    const bool chosen = served.chosen == i;
    (point.best || chosen ? best : points)
        .push_back({.x = 1 / p.summary.tpot.p50.si(),
                    .y = p.tokens_per_gpu,
                    .mark = chosen       ? '#'
                            : point.best ? '*'
                                         : 'o'});
  }
  points.insert(points.end(), best.begin(), best.end());  // they lie on top
  if (points.size() < 3) return;
  const PlotAxis x{.label = "tokens/s a user", .logarithmic = is_wide(points, &TextPoint::x)};
  const PlotAxis y{.label = "tokens/s a GPU", .logarithmic = is_wide(points, &TextPoint::y)};
  std::string picture;
  for (const std::string& line : text_plot(x, y, points, curve_width, curve_height))
    picture += "  " + line + "\n";
  document.gap();
  document.code(picture, "text");
}

}  // namespace orrery
