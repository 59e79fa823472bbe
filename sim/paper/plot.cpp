// SPDX-License-Identifier: Apache-2.0
// Draws plots as SVG.
#include "sim/paper/plot.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

namespace orrery {
namespace {

// Sizes of one plot in pixels. The legend's column is as wide as its longest entry may be.
constexpr double plot_width = 830, plot_height = 450;
constexpr double left_edge = 78, right_edge = 276, top_edge = 68, bottom_edge = 58;
constexpr double heading_height = 44, legend_step = 19;

// Colours that people with any colour vision tell apart (Okabe and Ito), black last.
constexpr std::array<const char*, 8> palette = {"#0072b2", "#d55e00", "#009e73", "#cc79a7",
                                                "#e69f00", "#56b4e9", "#8c6d31", "#000000"};

const char* colour_of(const PlotSeries& series) {
  return palette[static_cast<std::size_t>(series.colour) % palette.size()];
}

bool drawable(const PlotAxis& axis, double value) {
  return std::isfinite(value) && (!axis.logarithmic || value > 0);
}

struct Range {
  double low = 0, high = 1;
};

// What an axis spans: the data with a little room, or the ends that it was given.
Range range_of(const PlotAxis& axis, const std::vector<double>& values) {
  Range range;
  if (!values.empty()) {
    const auto [low, high] = std::minmax_element(values.begin(), values.end());
    range = {*low, *high};
  }
  constexpr double room = 1.06, log_room = 1.12;
  if (axis.logarithmic) {
    // At least an octave either way, so that there is something to read the scale by.
    const double beside = range.high < 2 * range.low ? 2 : log_room;
    range = {range.low / beside, range.high * beside};
  } else if (axis.tight) {
    const double beside = 0.06 * std::max(range.high - range.low, 1e-3 * std::abs(range.high));
    range = {range.low - beside, range.high + beside};
  } else {
    range = {std::min(0.0, range.low * room), range.high > 0 ? range.high * room : 1.0};
  }
  range.low = axis.low.value_or(range.low);
  range.high = axis.high.value_or(range.high);
  if (!(range.high > range.low)) range.high = axis.logarithmic ? range.low * 2 : range.low + 1;
  return range;
}

double share(const PlotAxis& axis, const Range& range, double value) {
  if (!axis.logarithmic) return (value - range.low) / (range.high - range.low);
  return std::log(value / range.low) / std::log(range.high / range.low);
}

// Turns data into pixels of one plot whose upper left corner is at `origin`.
struct Frame {
  const Plot& plot;
  Point origin;
  Range x, y;
  Box area() const {
    return {.x = origin.x + left_edge,
            .y = origin.y + top_edge,
            .width = plot_width - left_edge - right_edge,
            .height = plot_height - top_edge - bottom_edge};
  }
  bool inside(Point p) const {
    if (!drawable(plot.x, p.x) || !drawable(plot.y, p.y)) return false;
    return p.x >= x.low && p.x <= x.high && p.y >= y.low && p.y <= y.high;
  }
  Point at(Point p) const {
    const Box box = area();
    return {.x = box.x + share(plot.x, x, p.x) * box.width,
            .y = box.bottom() - share(plot.y, y, p.y) * box.height};
  }
};

Frame frame_of(const Plot& plot, Point origin) {
  std::vector<double> xs, ys;
  for (const PlotSeries& series : plot.series)
    for (const Point& p : series.points)
      if (drawable(plot.x, p.x) && drawable(plot.y, p.y)) {
        xs.push_back(p.x);
        ys.push_back(p.y);
      }
  return {.plot = plot, .origin = origin, .x = range_of(plot.x, xs), .y = range_of(plot.y, ys)};
}

void draw_axes(Svg& svg, const Frame& frame) {
  const Box area = frame.area();
  const Paint grid{.stroke = "#e3e3e3"};
  const Lettering small{.size = 12, .anchor = Anchor::middle, .fill = "#444444"};
  for (const double tick : axis_ticks(frame.plot.x, frame.x.low, frame.x.high)) {
    const double x = frame.at({tick, frame.y.low}).x;
    svg.line({x, area.y}, {x, area.bottom()}, grid);
    svg.text({x, area.bottom() + 17}, tick_label(frame.plot.x, tick), small, 60);
  }
  Lettering right = small;
  right.anchor = Anchor::end;
  for (const double tick : axis_ticks(frame.plot.y, frame.y.low, frame.y.high)) {
    const double y = frame.at({frame.x.low, tick}).y;
    svg.line({area.x, y}, {area.right(), y}, grid);
    svg.text({area.x - 7, y + 4}, tick_label(frame.plot.y, tick), right, left_edge - 12);
  }
  svg.box(area, {.stroke = "#777777"});
  Lettering label = small;
  label.size = 13;
  svg.text({area.centre(), area.bottom() + 40}, frame.plot.x.label, label, area.width);
  // The y axis is named above its upper end: text that stands upright is read at a glance.
  label.anchor = Anchor::start;
  svg.text({frame.origin.x + 12, area.y - 9}, frame.plot.y.label, label, area.width / 2);
}

void draw_mark(Svg& svg, Point at, const PlotSeries& series) {
  const char* colour = colour_of(series);
  if (series.mark == Mark::hollow)
    svg.dot(at, 3.2, {.fill = "#ffffff", .stroke = colour, .width = 1.3, .opacity = 0.9});
  else
    svg.dot(at, 2.8, {.fill = colour, .opacity = 0.75});
}

bool is_line(const PlotSeries& series) {
  return series.mark == Mark::line || series.mark == Mark::dashed;
}

void draw_series(Svg& svg, const Frame& frame, const PlotSeries& series) {
  if (!is_line(series)) {
    for (const Point& p : series.points)
      if (frame.inside(p)) draw_mark(svg, frame.at(p), series);
    return;
  }
  const Paint paint{
      .stroke = colour_of(series), .width = 1.6, .dashed = series.mark == Mark::dashed};
  for (std::size_t i = 1; i < series.points.size(); ++i)
    if (frame.inside(series.points[i - 1]) && frame.inside(series.points[i]))
      svg.line(frame.at(series.points[i - 1]), frame.at(series.points[i]), paint);
}

void draw_legend(Svg& svg, const Frame& frame) {
  const Box area = frame.area();
  double y = area.y + 6;
  for (const PlotSeries& series : frame.plot.series) {
    if (series.label.empty() || y > area.bottom()) continue;
    const double x = area.right() + 14;
    if (is_line(series))
      svg.line({x, y}, {x + 18, y},
               {.stroke = colour_of(series), .width = 1.8, .dashed = series.mark == Mark::dashed});
    else
      draw_mark(svg, {x + 9, y}, series);
    svg.text({x + 24, y + 4}, series.label, {.size = 12}, right_edge - 46);
    y += legend_step;
  }
}

void draw(Svg& svg, const Plot& plot, Point origin) {
  const Frame frame = frame_of(plot, origin);
  const double room = plot_width - 24;
  svg.text({origin.x + 12, origin.y + 17}, plot.title, {.size = 15, .bold = true}, room);
  svg.text({origin.x + 12, origin.y + 33}, plot.note, {.size = 12, .fill = "#555555"}, room);
  draw_axes(svg, frame);
  // Lines under points: what was measured stays visible.
  for (const PlotSeries& series : plot.series)
    if (is_line(series)) draw_series(svg, frame, series);
  for (const PlotSeries& series : plot.series)
    if (!is_line(series)) draw_series(svg, frame, series);
  draw_legend(svg, frame);
}

// Powers of `base` from low to high, thinned to at most `most`.
std::vector<double> powers(double base, double low, double high, int most) {
  const auto first = static_cast<int>(std::ceil(std::log(low) / std::log(base) - 1e-9));
  const auto last = static_cast<int>(std::floor(std::log(high) / std::log(base) + 1e-9));
  const int step = std::max(1, (last - first + most) / most);
  std::vector<double> ticks;
  for (int power = first; power <= last; power += step) ticks.push_back(std::pow(base, power));
  return ticks;
}

std::vector<double> log_ticks(double low, double high) {
  constexpr int most = 9;
  std::vector<double> ticks;
  for (const std::vector<double>& digits :
       {std::vector<double>{1, 2, 5}, std::vector<double>{1, 3}, std::vector<double>{1}}) {
    ticks.clear();
    for (int power = static_cast<int>(std::floor(std::log10(low))); std::pow(10, power) <= high;
         ++power)
      for (const double digit : digits)
        if (const double tick = digit * std::pow(10, power); tick >= low && tick <= high)
          ticks.push_back(tick);
    if (ticks.size() <= most) return ticks;
  }
  return powers(10, low, high, most);
}

}  // namespace

bool Plot::empty() const {
  for (const PlotSeries& s : series)
    for (const Point& p : s.points)
      if (drawable(x, p.x) && drawable(y, p.y)) return false;
  return true;
}

std::vector<double> axis_ticks(const PlotAxis& axis, double low, double high) {
  constexpr int most_bytes = 8;
  if (axis.logarithmic) return axis.bytes ? powers(2, low, high, most_bytes) : log_ticks(low, high);
  const double rough = (high - low) / 6;
  const double power = std::pow(10, std::floor(std::log10(rough)));
  double step = 10 * power;
  for (const double digit : {1.0, 2.0, 5.0})
    if (digit * power >= rough) {
      step = digit * power;
      break;
    }
  std::vector<double> ticks;
  const auto first = static_cast<std::int64_t>(std::ceil(low / step - 1e-9));
  const auto last = static_cast<std::int64_t>(std::floor(high / step + 1e-9));
  for (std::int64_t i = first; i <= last; ++i) ticks.push_back(static_cast<double>(i) * step);
  return ticks;
}

std::string tick_label(const PlotAxis& axis, double value) {
  if (!axis.bytes) return fmt::format("{:g}", value);
  constexpr std::array<const char*, 5> units = {"B", "KiB", "MiB", "GiB", "TiB"};
  std::size_t unit = 0;
  while (value >= 1024 && unit + 1 < units.size()) {
    value /= 1024;
    ++unit;
  }
  return fmt::format("{:g} {}", value, units[unit]);
}

std::string plots_svg(const std::string& heading, const std::vector<Plot>& plots, int columns) {
  const auto wide = std::max(1, std::min(columns, static_cast<int>(plots.size())));
  const auto rows = (static_cast<int>(plots.size()) + wide - 1) / wide;
  const double top = heading.empty() ? 0 : heading_height;
  Svg svg(plot_width * wide, top + plot_height * rows);
  svg.box({.width = plot_width * wide, .height = top + plot_height * rows}, {.fill = "#ffffff"});
  if (!heading.empty())
    svg.text({12, 29}, heading, {.size = 19, .bold = true}, plot_width * wide - 24);
  for (int i = 0; i < static_cast<int>(plots.size()); ++i) {
    const int row = i / wide;
    draw(svg, plots[static_cast<std::size_t>(i)],
         {plot_width * (i % wide), top + plot_height * row});
  }
  return svg.finish();
}

}  // namespace orrery
