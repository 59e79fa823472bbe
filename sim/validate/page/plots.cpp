// SPDX-License-Identifier: Apache-2.0
// Draws validation's pictures.
#include "sim/validate/page/plots.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>

#include "sim/base/sorting.h"
#include "sim/base/statistics.h"
#include "sim/paper/plot.h"

namespace orrery {
namespace {

constexpr int palette_size = 8;
constexpr int black = 7;

using Chosen = std::function<bool(const ScoredRow&)>;
using Quantity = std::function<std::optional<Point>(const ScoredRow&)>;  // measured, predicted
using Naming = std::function<std::string(const PreparedRow&)>;

std::string gpu_of(const PreparedRow& r) { return r.gpu; }
std::string source_of(const PreparedRow& r) { return r.source; }
std::string stack_of(const PreparedRow& r) { return r.stack.name; }

bool published(const ScoredRow& s) { return s.row->full_config && !s.row->sweep; }
bool of_sweep(const ScoredRow& s) { return s.row->full_config && s.row->sweep; }

std::optional<Point> speeds(const ScoredRow& s) {
  if (!s.speed_error) return std::nullopt;
  const double predicted = s.prediction.tokens_per_second_per_gpu;
  // Inference steps are scored by their time; training rows by tokens/s.
  if (s.row->measured.step_seconds) return std::nullopt;
  return Point{.x = predicted / (1 + *s.speed_error), .y = predicted};
}

std::optional<Point> memory(const std::optional<double>& error, double predicted) {
  if (!error || predicted <= 0) return std::nullopt;
  return Point{.x = predicted / (1 + *error), .y = predicted};
}

// What the legend has room for.
std::string short_name(const std::string& name) {
  constexpr std::size_t most = 27;
  if (name.size() <= most) return name;
  std::size_t end = most;
  // Not inside a character of several bytes.
  while (end > 0 && (static_cast<unsigned char>(name[end]) & 0xC0U) == 0x80U) --end;
  return name.substr(0, end) + "…";
}

// Series by name, those with most points first; past 15 the rest stand together.
std::vector<PlotSeries> series_by(const std::vector<ScoredRow>& rows, const Chosen& chosen,
                                  const Quantity& quantity, const Naming& name) {
  constexpr std::size_t most = 15;
  std::map<std::string, std::vector<Point>> points;
  for (const ScoredRow& s : rows) {
    if (!chosen(s) || !s.prediction.made) continue;
    if (const auto at = quantity(s)) points[name(*s.row)].push_back(*at);
  }
  std::vector<PlotSeries> series;
  for (auto& [label, list] : points)
    series.push_back(
        {.label = fmt::format("{} ({})", short_name(label), list.size()), .points = list});
  sort_stably(series, [](const PlotSeries& a, const PlotSeries& b) {
    return a.points.size() > b.points.size();
  });
  if (series.size() > most) {
    PlotSeries rest{.points = {}};
    for (std::size_t i = most - 1; i < series.size(); ++i)
      rest.points.insert(rest.points.end(), series[i].points.begin(), series[i].points.end());
    rest.label = fmt::format("{} others ({})", series.size() - most + 1, rest.points.size());
    series.resize(most - 1);
    series.push_back(rest);
  }
  for (std::size_t i = 0; i < series.size(); ++i) {
    series[i].colour = static_cast<int>(i);
    series[i].mark = i < palette_size ? Mark::filled : Mark::hollow;
  }
  return series;
}

// Lines y = factor x in a frame whose axes both go from `low` to `high`.
void add_lines(std::vector<PlotSeries>& series, double low, double high) {
  constexpr double band = 0.2;
  const auto line = [&](const char* label, double factor, Mark mark) {
    const double first = factor < 1 ? low / factor : low, last = factor > 1 ? high / factor : high;
    series.push_back({.label = label,
                      .colour = black,
                      .mark = mark,
                      .points = {{first, first * factor}, {last, last * factor}}});
    // Rounding must not carry an end out of the frame.
    for (Point& p : series.back().points)
      p = {std::clamp(p.x, low, high), std::clamp(p.y, low, high)};
  };
  line("as measured", 1, Mark::line);
  line("20% above and below", 1 + band, Mark::dashed);
  line("", 1 - band, Mark::dashed);
}

Plot scatter(const std::string& title, const char* unit, std::vector<PlotSeries> series) {
  Plot plot{.title = title,
            .note = "A point a run. Above the line: predicted to be more than was measured.",
            .x = {.label = fmt::format("measured, {}", unit), .logarithmic = true},
            .y = {.label = fmt::format("predicted, {}", unit), .logarithmic = true},
            .series = std::move(series)};
  double low = 1e300, high = 0;
  for (const PlotSeries& s : plot.series)
    for (const Point& p : s.points) {
      low = std::min({low, p.x, p.y});
      high = std::max({high, p.x, p.y});
    }
  constexpr double room = 1.12;
  // Both axes span the same, so that the line is a diagonal.
  if (high > 0) {
    plot.x.low = plot.y.low = low / room;
    plot.x.high = plot.y.high = high * room;
    add_lines(plot.series, low / room, high * room);
  }
  return plot;
}

// Errors in percent, those past the end of the axis drawn at it.
Plot residual_plot(const std::vector<ScoredRow>& rows, const Chosen& chosen, const Naming& name,
                   const std::string& title, const char* label,
                   const std::function<double(const PreparedRow&)>& position) {
  constexpr double end = 60;
  Plot plot{
      .title = title,
      .note = "Points beyond 60% are drawn at the edge. Dashed: 20% off.",
      .x = {.label = label, .logarithmic = true},
      .y = {.label = "error of tokens/s/GPU, percent", .tight = true, .low = -end, .high = end}};
  plot.series = series_by(
      rows, chosen,
      [&](const ScoredRow& s) -> std::optional<Point> {
        if (!s.speed_error) return std::nullopt;
        return Point{position(*s.row), std::clamp(100 * *s.speed_error, -end, end)};
      },
      name);
  double low = 1e300, high = 0;
  for (const PlotSeries& s : plot.series)
    for (const Point& p : s.points) {
      low = std::min(low, p.x);
      high = std::max(high, p.x);
    }
  if (high <= 0) return plot;
  for (const double level : {0.0, 20.0, -20.0})
    plot.series.push_back({.label = level == 0 ? "as measured" : "",
                           .colour = black,
                           .mark = level == 0 ? Mark::line : Mark::dashed,
                           .points = {{low, level}, {high, level}}});
  return plot;
}

void add(std::vector<Picture>& pictures, const std::string& name, const std::string& heading,
         std::vector<Plot> plots, int columns) {
  std::erase_if(plots, [](const Plot& plot) { return plot.empty(); });
  if (plots.empty()) return;
  std::vector<std::string> parts;
  for (const Plot& plot : plots) parts.push_back(plots_svg("", {plot}, 1));
  pictures.push_back({.name = name,
                      .title = heading,
                      .svg = plots_svg(heading, plots, columns),
                      .parts = std::move(parts)});
}

std::vector<Plot> residual_plots(const std::vector<ScoredRow>& rows, const Chosen& chosen,
                                 const Naming& name) {
  const auto number = [](std::int64_t value) { return static_cast<double>(value); };
  return {residual_plot(rows, chosen, name, "Error against the number of GPUs", "GPUs",
                        [=](const PreparedRow& r) { return number(r.layout.gpus()); }),
          residual_plot(rows, chosen, name, "Error against the global batch", "sequences a step",
                        [=](const PreparedRow& r) { return number(r.job.global_batch); }),
          residual_plot(rows, chosen, name, "Error against the sequence", "tokens a sequence",
                        [=](const PreparedRow& r) { return number(r.job.sequence); }),
          residual_plot(rows, chosen, name, "Error against tokens of a GPU and step",
                        "tokens of a GPU and step", [=](const PreparedRow& r) {
                          return number(r.job.global_batch) * number(r.job.sequence) /
                                 number(r.layout.gpus());
                        })};
}

// One line of a table of bins: label, count, range, median.
void draw_bin(Svg& svg, const ResidualBin& bin, double y, double left, double width) {
  constexpr double end = 60, low_rank = 5, high_rank = 95;
  const auto at = [&](double error) {
    return left + width * (std::clamp(100 * error, -end, end) + end) / (2 * end);
  };
  const double middle = median(bin.errors);
  const Lettering words{.size = 12};
  svg.text({12, y + 4}, bin.label, words, left - 90);
  svg.text({left - 20, y + 4}, fmt::format("{}", bin.errors.size()),
           {.size = 12, .anchor = Anchor::end, .fill = "#555555"}, 60);
  svg.line({at(percentile(bin.errors, low_rank)), y}, {at(percentile(bin.errors, high_rank)), y},
           {.stroke = "#56b4e9", .width = 5});
  constexpr double good = 0.06, fair = 0.15;
  const double off = std::abs(middle);
  const char* colour = off <= good ? "#009e73" : off <= fair ? "#e69f00" : "#d55e00";
  svg.dot({at(middle), y}, 4.5, {.fill = colour, .stroke = "#ffffff"});
  svg.text(
      {left + width + 14, y + 4},
      fmt::format("{:+.1f}%, 90% from {:+.0f} to {:+.0f}%", 100 * middle,
                  100 * percentile(bin.errors, low_rank), 100 * percentile(bin.errors, high_rank)),
      words, 212);
}

}  // namespace

std::string residuals_svg(const std::string& heading, const std::vector<ResidualTable>& tables) {
  constexpr double wide = 830, left = 250, width = 350, step = 21, title_step = 30;
  constexpr double heading_height = 32;
  const double under = heading.empty() ? 18 : 18 + heading_height, top = under + 28;
  double height = top + 24;
  for (const ResidualTable& t : tables)
    height += title_step + step * static_cast<double>(t.bins.size());
  Svg svg(wide, height);
  svg.box({.width = wide, .height = height}, {.fill = "#ffffff"});
  if (!heading.empty()) svg.text({12, 29}, heading, {.size = 19, .bold = true}, wide - 24);
  svg.text({12, under},
           "Error of tokens/s/GPU: median (dot) and nine rows of ten (bar); above 0: predicted too "
           "fast",
           {.size = 12, .fill = "#555555"}, wide - 24);
  for (const int level : {-60, -40, -20, 0, 20, 40, 60}) {
    const double x = left + width * (level + 60) / 120.0;
    svg.line({x, top}, {x, height - 12}, {.stroke = level == 0 ? "#777777" : "#e3e3e3"});
    svg.text({x, top - 6}, fmt::format("{:+}%", level),
             {.size = 11, .anchor = Anchor::middle, .fill = "#444444"}, 60);
  }
  double y = top;
  for (const ResidualTable& t : tables) {
    y += title_step;
    svg.text({12, y - 8}, t.quantity, {.size = 13, .bold = true}, left - 24);
    for (const ResidualBin& bin : t.bins) {
      draw_bin(svg, bin, y + step / 2, left, width);
      y += step;
    }
  }
  return svg.finish();
}

std::vector<Picture> validation_pictures(const std::vector<ScoredRow>& rows) {
  std::vector<Picture> pictures;
  const char* speed = "tokens/s/GPU";
  add(pictures, "speed-published", "Published runs, predicted against measured",
      {scatter("By GPU", speed, series_by(rows, published, speeds, gpu_of)),
       scatter("By source", speed, series_by(rows, published, speeds, source_of)),
       scatter(
           "With experts, by GPU", speed,
           series_by(
               rows, [](const ScoredRow& s) { return published(s) && s.row->model.has_experts(); },
               speeds, gpu_of)),
       scatter("By stack", speed, series_by(rows, published, speeds, stack_of))},
      2);
  add(pictures, "speed-sweeps", "Sweeps of odd and bad layouts, predicted against measured",
      {scatter("By source", speed, series_by(rows, of_sweep, speeds, source_of))}, 1);
  const auto whole = [](const ScoredRow& s) { return s.row->full_config; };
  add(pictures, "memory", "Memory, predicted against measured",
      {scatter(
           "Peak of allocated memory", "GiB",
           series_by(
               rows, whole,
               [](const ScoredRow& s) { return memory(s.peak_error, s.prediction.peak_gibibytes); },
               source_of)),
       scatter("Memory between steps", "GiB",
               series_by(
                   rows, whole,
                   [](const ScoredRow& s) {
                     return memory(s.static_error, s.prediction.static_gibibytes);
                   },
                   source_of))},
      2);
  add(pictures, "errors-published", "Errors of published runs",
      residual_plots(rows, published, gpu_of), 2);
  add(pictures, "errors-sweeps", "Errors of sweeps", residual_plots(rows, of_sweep, source_of), 2);
  for (const bool sweeps : {false, true}) {
    const auto tables = residual_tables(rows, sweeps);
    if (tables.empty()) continue;
    const std::string of = sweeps ? "sweeps" : "published runs";
    const std::string title = "Errors of " + of + " by what they were";
    pictures.push_back({.name = sweeps ? "bins-sweeps" : "bins-published",
                        .title = title,
                        .svg = residuals_svg(title, tables),
                        .parts = {residuals_svg("", tables)}});
  }
  return pictures;
}

}  // namespace orrery
