// SPDX-License-Identifier: Apache-2.0
// Draws points on a grid of letters.
#include "sim/paper/text_plot.h"

#include <algorithm>
#include <cmath>

#include "sim/paper/tables.h"

namespace orrery {
namespace {

constexpr double by_ratio = 10;  // from here on parts of a histogram are equal by ratio

// An axis with its ends, in whole cells.
class Scale {
 public:
  Scale(const PlotAxis& axis, const std::vector<double>& values, std::size_t cells)
      : axis_(axis), cells_(cells) {
    const auto [low, high] = std::minmax_element(values.begin(), values.end());
    low_ = axis.logarithmic ? *low / 1.1 : 0;
    high_ = *high * (axis.logarithmic ? 1.1 : 1.05);
    if (!(high_ > low_)) high_ = low_ + 1;
  }
  std::size_t cell(double value) const {
    const double at = axis_.logarithmic ? std::log(value / low_) / std::log(high_ / low_)
                                        : (value - low_) / (high_ - low_);
    const double cell = std::floor(at * static_cast<double>(cells_));
    return static_cast<std::size_t>(std::clamp(cell, 0.0, static_cast<double>(cells_ - 1)));
  }
  std::vector<double> ticks() const { return axis_ticks(axis_, low_, high_); }

 private:
  const PlotAxis& axis_;
  std::size_t cells_;
  double low_ = 0, high_ = 1;
};

std::string padded(const std::string& text, std::size_t width) {
  const std::size_t own = columns(text);
  return std::string(width > own ? width - own : 0, ' ') + text;
}

// Ticks of the lower axis under their cells, those that would touch another left out.
std::string tick_line(const PlotAxis& axis, const Scale& scale, std::size_t width) {
  std::string line(width + 8, ' ');
  std::size_t free = 0;
  for (const double tick : scale.ticks()) {
    const std::string label = tick_label(axis, tick);
    const std::size_t at = scale.cell(tick);
    if (at < free || at + label.size() > line.size()) continue;
    line.replace(at, label.size(), label);
    free = at + label.size() + 2;
  }
  line.erase(line.find_last_not_of(' ') + 1);
  return line;
}

}  // namespace

std::vector<std::string> text_plot(const PlotAxis& x, const PlotAxis& y,
                                   const std::vector<TextPoint>& points, std::size_t width,
                                   std::size_t height) {
  std::vector<double> xs, ys;
  std::vector<TextPoint> drawn;
  for (const TextPoint& p : points) {
    if (!std::isfinite(p.x) || !std::isfinite(p.y) || p.x <= 0 || p.y <= 0) continue;
    drawn.push_back(p);
    xs.push_back(p.x);
    ys.push_back(p.y);
  }
  if (drawn.empty()) return {};
  const Scale across(x, xs, width), up(y, ys, height);
  std::vector<std::string> grid(height, std::string(width, ' '));
  for (const TextPoint& p : drawn) grid[up.cell(p.y)][across.cell(p.x)] = p.mark;
  std::vector<std::string> names(height);
  std::size_t widest = 0;
  for (const double tick : up.ticks()) {
    std::string& name = names[up.cell(tick)];
    if (name.empty()) name = tick_label(y, tick);
    widest = std::max(widest, columns(name));
  }
  std::vector<std::string> lines = {y.label};
  for (std::size_t row = height; row-- > 0;) {
    std::string cells = grid[row];
    cells.erase(cells.find_last_not_of(' ') + 1);
    lines.push_back(padded(names[row], widest) + (names[row].empty() ? " │" : " ┤") + cells);
  }
  std::string floor;
  for (std::size_t i = 0; i < width; ++i) floor += "─";
  lines.push_back(std::string(widest, ' ') + " └" + floor);
  lines.push_back(std::string(widest + 2, ' ') + tick_line(x, across, width));
  lines.push_back(padded(x.label, widest + 2 + width));
  return lines;
}

Histogram histogram(const std::vector<double>& values, std::size_t parts) {
  Histogram out;
  if (values.empty()) return out;
  const auto [low, high] = std::minmax_element(values.begin(), values.end());
  const bool ratio = *low > 0 && *high >= by_ratio * *low;
  if (*low == *high) parts = 1;
  for (std::size_t i = 0; i <= parts; ++i) {
    const double share = static_cast<double>(i) / static_cast<double>(parts);
    out.edges.push_back(ratio ? *low * std::pow(*high / *low, share)
                              : *low + (*high - *low) * share);
  }
  out.edges.back() = *high;
  out.counts.assign(parts, 0);
  for (const double value : values) {
    const auto above = std::upper_bound(out.edges.begin() + 1, out.edges.end() - 1, value);
    ++out.counts[static_cast<std::size_t>(above - out.edges.begin()) - 1];
  }
  return out;
}

}  // namespace orrery
