// SPDX-License-Identifier: Apache-2.0
// Knows how measured points and fitted curves are drawn: axes, scales, marks and a legend beside.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "sim/paper/svg.h"

namespace orrery {

struct PlotAxis {
  std::string label;
  bool logarithmic = false;
  bool bytes = false;               // ticks at powers of two or 1,024: "64 KiB"
  bool tight = false;               // a linear axis that need not begin at 0
  std::optional<double> low, high;  // ends; absent: those of the data (linear axes begin at 0)
};

enum class Mark { filled, hollow, line, dashed };

// Points in the units of the axes. Lines join their points in order; a point that is not finite, or
// not above 0 on a logarithmic axis, is left out and breaks the line.
struct PlotSeries {
  std::string label;  // in the legend; "": none of its own
  int colour = 0;     // of the palette, repeating
  Mark mark = Mark::filled;
  std::vector<Point> points;
};

struct Plot {
  std::string title, note;  // a sentence under the title
  PlotAxis x, y;
  std::vector<PlotSeries> series;
  bool empty() const;  // no point can be drawn
};

// One SVG document with the plots under each other, `columns` side by side. Nothing overlaps: the
// legend stands right of the axes, text shrinks to its room. An empty heading takes no room.
std::string plots_svg(const std::string& heading, const std::vector<Plot>& plots, int columns);

// Where an axis from `low` to `high` has ticks: 1, 2 or 5 times powers of ten; powers of two or
// four or ... for logarithmic bytes; at most about ten.
std::vector<double> axis_ticks(const PlotAxis& axis, double low, double high);
std::string tick_label(const PlotAxis& axis, double value);

}  // namespace orrery
