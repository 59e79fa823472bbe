// SPDX-License-Identifier: Apache-2.0
// Knows how points are drawn with letters, and how many values lie where.
#pragma once

#include <string>
#include <vector>

#include "sim/paper/plot.h"

namespace orrery {

struct TextPoint {
  double x = 0, y = 0;
  char mark = 'o';  // of points that share a place the last one's shows
};

// Lines of a picture `width` columns wide with `height` rows of points, axes with ticks and their
// labels. Linear axes begin at 0. Empty where no point can be drawn.
std::vector<std::string> text_plot(const PlotAxis& x, const PlotAxis& y,
                                   const std::vector<TextPoint>& points, std::size_t width,
                                   std::size_t height);

// How many of the values lie in each of equal parts of their range; equal by ratio where the
// largest is ten times the least or more. `edges` has one more than `counts`. Values are above 0.
struct Histogram {
  std::vector<double> edges;
  std::vector<std::size_t> counts;
};
Histogram histogram(const std::vector<double>& values, std::size_t parts);

}  // namespace orrery
