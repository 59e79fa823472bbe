// SPDX-License-Identifier: Apache-2.0
// Draws one scale-up domain.
#include "sim/app/topology/domain_picture.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>

#include "sim/app/report/parts.h"
#include "sim/app/topology/report.h"
#include "sim/base/text/words.h"
#include "sim/base/whole.h"
#include "topologies/torus.h"

namespace orrery {
namespace {

constexpr const char* link_colour = "#7a8694";
constexpr const char* copper_colour = "#8a5a2b";
constexpr const char* optical_colour = "#c2347a";
const Paint switch_paint = {.fill = "#dfe5ec", .stroke = "#40505f", .width = 1.4, .corner = 5};

std::int64_t domains_of(const FabricParts& parts) {
  return std::max<std::int64_t>(1, parts.domains);
}

struct Domain {
  Svg& svg;
  Box area;  // of the drawing alone
  const Fabric& fabric;
  const FabricParts& parts;
  std::int64_t members = 0;

  void accelerator(const Box& at, std::int64_t index) const {
    svg.box(at, {.fill = accelerator_colour(fabric, parts.rails, index),
                 .stroke = "#30404f",
                 .width = 0.8,
                 .corner = std::min(5.0, at.width / 6)});
  }
};

// `n` boxes in a row, at most `pitch` apart, centred; y is their top.
std::vector<Box> row_of_boxes(const Box& area, std::int64_t n, double y, double pitch,
                              double height) {
  std::vector<Box> boxes;
  const double step = std::min(pitch, area.width / to_double(n));
  const double start = area.centre() - step * to_double(n) / 2;
  for (std::int64_t i = 0; i < n; ++i)
    boxes.push_back({.x = start + step * (to_double(i) + 0.14),
                     .y = y,
                     .width = step * 0.72,
                     .height = height});
  return boxes;
}

constexpr std::int64_t most_drawn = 144;
std::int64_t grid_columns(const Domain& d) { return d.members <= 8 ? d.members : 12; }
double grid_pitch(const Domain& d) {
  return std::min(d.area.width / to_double(grid_columns(d)), d.members <= 8 ? 70.0 : 40.0);
}
double grid_height(const Domain& d) {
  const std::int64_t columns = grid_columns(d), shown = std::min(d.members, most_drawn);
  return grid_pitch(d) * to_double((shown + columns - 1) / columns);
}

// Accelerators in rows of at most twelve, from `top` down; returns the boxes of the first row.
std::vector<Box> accelerator_grid(const Domain& d, double top) {
  const std::int64_t shown = std::min(d.members, most_drawn), columns = grid_columns(d);
  const double pitch = grid_pitch(d);
  const double start = d.area.centre() - pitch * to_double(columns) / 2;
  std::vector<Box> first;
  for (std::int64_t i = 0; i < shown; ++i) {
    const Box at = {.x = start + pitch * (to_double(i % columns) + 0.12),
                    .y = top + pitch * to_double(i / columns),
                    .width = pitch * 0.76,
                    .height = pitch * 0.76};
    if (i < columns) first.push_back(at);
    d.accelerator(at, i);
  }
  return first;
}

// The NICs of a small domain under its accelerators, each in the colour of its rail.
void draw_nics(const Domain& d, const std::vector<Box>& accelerators) {
  const std::int64_t nics = d.parts.nics / domains_of(d.parts);
  if (nics < 1 || accelerators.empty()) return;
  const std::int64_t shown = std::min<std::int64_t>(nics, 8);
  const double y = accelerators.front().bottom() + 34;
  const Box row_area = {accelerators.front().x, y,
                        accelerators.back().right() - accelerators.front().x, 22};
  const std::vector<Box> row = row_of_boxes(row_area, shown, y, 60, 22);
  for (std::size_t i = 0; i < accelerators.size(); ++i) {
    const Box& nic = row[i * row.size() / accelerators.size()];
    d.svg.line({accelerators[i].centre(), accelerators[i].bottom()}, {nic.centre(), nic.y},
               {.stroke = link_colour, .width = 1.6});
  }
  for (std::size_t i = 0; i < row.size(); ++i)
    d.svg.box(row[i], {.fill = "#ffffff",
                       .stroke = d.parts.rails > 1
                                     ? rail_colour(static_cast<std::int64_t>(i) % d.parts.rails)
                                     : "#5b7fa6",
                       .width = 2.4,
                       .corner = 4});
  d.svg.text({row_area.centre(), y + 46},
             fmt::format("{}: {}, {}", plural(nics, "NIC"), d.fabric.scale_out.nic,
                         gigabits_text(d.fabric.scale_out.nic_bandwidth.get())),
             {.size = 15, .anchor = Anchor::middle}, d.area.width);
}

void draw_switched(const Domain& d) {
  struct Level {
    const SwitchCount* count;
    double y;
  };
  std::vector<Level> levels;
  for (const SwitchCount& s : d.parts.switches)
    if (!is_scale_out_role(s.role)) levels.push_back({&s, 0});
  const double rows = static_cast<double>(std::max<std::size_t>(1, levels.size()));
  const double grid = grid_height(d) + (d.members <= 8 ? 110 : 0);
  const double step = std::clamp((d.area.height - grid - 60) / rows, 80.0, 190.0);
  const double spare = std::max(0.0, d.area.height - grid - step * rows - 30);
  const double first_y = d.area.y + 34 + spare / 2;
  for (std::size_t i = 0; i < levels.size(); ++i)  // the accelerators' own level lowest
    levels[i].y = first_y + step * static_cast<double>(levels.size() - 1 - i);
  std::vector<Box> below = accelerator_grid(d, first_y + step * rows);
  if (d.members <= 8) draw_nics(d, below);
  for (const Level& level : levels) {
    const std::int64_t each = std::max<std::int64_t>(1, level.count->count / domains_of(d.parts));
    const std::vector<Box> row =
        row_of_boxes({d.area.x + 14, d.area.y, d.area.width - 28, d.area.height},
                     std::min<std::int64_t>(each, 9), level.y, 70, 34);
    for (const Box& low : below)
      for (const Box& high : row)
        d.svg.line({low.centre(), low.y}, {high.centre(), high.bottom()},
                   {.stroke = link_colour, .width = 0.8, .opacity = 0.55});
    for (const Box& box : row) d.svg.box(box, switch_paint);
    if (each > 9) d.svg.text({row.back().right() + 6, row.back().y + 22}, "…", {.size = 20}, 24);
    const std::string part = level.count->part.empty() ? level.count->role : level.count->part;
    d.svg.text({d.area.centre(), level.y - 10}, fmt::format("{} × {}", grouped(each), part),
               {.size = 16, .anchor = Anchor::middle, .bold = true}, d.area.width);
    below = row;
  }
}

void draw_mesh(const Domain& d) {
  const std::int64_t n = std::min<std::int64_t>(d.members, 16);
  const double radius = std::min(d.area.width, d.area.height) / 2 - 40;
  const Point middle = {d.area.centre(), d.area.y + d.area.height / 2};
  std::vector<Point> at;
  for (std::int64_t i = 0; i < n; ++i) {
    const double angle =
        2 * std::numbers::pi * (to_double(i) + 0.5) / to_double(n) - std::numbers::pi / 2;
    at.push_back({middle.x + radius * std::cos(angle), middle.y + radius * std::sin(angle)});
  }
  for (std::size_t i = 0; i < at.size(); ++i)
    for (std::size_t j = i + 1; j < at.size(); ++j)
      d.svg.line(at[i], at[j], {.stroke = link_colour, .width = 1.6, .opacity = 0.8});
  const double half = std::min(22.0, radius / 5);
  for (std::size_t i = 0; i < at.size(); ++i) {
    d.accelerator({at[i].x - half, at[i].y - half, 2 * half, 2 * half},
                  static_cast<std::int64_t>(i));
    d.svg.text({at[i].x, at[i].y + half * 0.3}, fmt::format("{}", i),
               {.size = half * 0.85, .anchor = Anchor::middle, .bold = true, .fill = "#ffffff"},
               2 * half);
  }
}

// A block of points with its links inside: x to the right, y into the depth, z upwards.
class Cube {
 public:
  Cube(const Box& area, std::array<std::int64_t, 3> size) : size_(size) {
    const double across = to_double(size[0] - 1) + 0.52 * to_double(size[1] - 1);
    const double tall = to_double(size[2] - 1) + 0.36 * to_double(size[1] - 1);
    pitch_ = std::min((area.width - 40) / std::max(across, 1.0),
                      (area.height - 40) / std::max(tall, 1.0));
    pitch_ = std::min(pitch_, 90.0);
    origin_ = {area.centre() - pitch_ * across / 2, area.y + area.height / 2 + pitch_ * tall / 2};
  }
  Point at(double x, double y, double z) const {
    return {origin_.x + pitch_ * (x + 0.52 * y), origin_.y - pitch_ * (z + 0.36 * y)};
  }
  double pitch() const { return pitch_; }
  void draw(const Domain& d) const {
    const Paint link = {.stroke = copper_colour, .width = 1.6, .opacity = 0.75};
    for (std::int64_t y = size_[1] - 1; y >= 0; --y)  // the far ones first
      for (std::int64_t z = 0; z < size_[2]; ++z)
        for (std::int64_t x = 0; x < size_[0]; ++x) {
          const Point here = at(to_double(x), to_double(y), to_double(z));
          if (x + 1 < size_[0])
            d.svg.line(here, at(to_double(x + 1), to_double(y), to_double(z)), link);
          if (y + 1 < size_[1])
            d.svg.line(here, at(to_double(x), to_double(y + 1), to_double(z)), link);
          if (z + 1 < size_[2])
            d.svg.line(here, at(to_double(x), to_double(y), to_double(z + 1)), link);
        }
    const double r = std::min(9.0, pitch_ * 0.17);
    for (std::int64_t y = size_[1] - 1; y >= 0; --y)
      for (std::int64_t z = 0; z < size_[2]; ++z)
        for (std::int64_t x = 0; x < size_[0]; ++x)
          d.svg.dot(at(to_double(x), to_double(y), to_double(z)), r,
                    {.fill = "#5b7fa6", .stroke = "#30404f", .width = 0.8});
  }

 private:
  std::array<std::int64_t, 3> size_;
  double pitch_ = 0;
  Point origin_;
};

void draw_circuits(const Domain& d, const Cube& cube, const Box& row_area, std::int64_t edge) {
  const std::int64_t count =
      std::max<std::int64_t>(1, d.parts.switch_count("ocs") / domains_of(d.parts));
  const std::vector<Box> row = row_of_boxes(row_area, 5, row_area.y + 30, 76, 30);
  const double last = to_double(edge - 1);
  // Opposite faces meet at the same circuit switch: one pair of links of each axis is drawn.
  const Paint fibre = {.stroke = optical_colour, .width = 1.6, .opacity = 0.9, .dashed = true};
  const auto foot = [&](std::size_t i, double shift) -> Point {
    return {row[i].centre() + shift, row[i].bottom()};
  };
  for (const double x : {0.0, last}) d.svg.line(cube.at(x, last, last), foot(0, x), fibre);
  for (const double y : {0.0, last}) d.svg.line(cube.at(1, y, last), foot(2, y), fibre);
  const Point low = cube.at(last, last, 0), high = cube.at(last, last, last);
  d.svg.line(high, foot(4, 0), fibre);
  d.svg.curve(low, {low.x + 70, (low.y + high.y) / 2}, foot(4, 14), fibre);
  for (const Box& box : row)
    d.svg.box(box, {.fill = "#f6dbe8", .stroke = optical_colour, .width = 1.4, .corner = 5});
  d.svg.text({row_area.centre(), row_area.y + 18},
             fmt::format("{} optical circuit switches", grouped(count)),
             {.size = 16, .anchor = Anchor::middle, .bold = true}, row_area.width);
}

void draw_flat_torus(const Domain& d, const TorusShape& shape) {
  const auto axis = [&](std::size_t i) {
    return i < shape.axes.size() ? shape.axes[i].size : INT64_C(1);
  };
  const std::int64_t across = std::min<std::int64_t>(axis(0), 8);
  const std::int64_t down = std::min<std::int64_t>(axis(1), 8);
  const double pitch =
      std::min((d.area.width - 90) / to_double(across), (d.area.height - 90) / to_double(down));
  const double left = d.area.centre() - pitch * to_double(across - 1) / 2;
  const double top = d.area.y + d.area.height / 2 - pitch * to_double(down - 1) / 2;
  const auto at = [&](std::int64_t x, std::int64_t y) -> Point {
    return {left + pitch * to_double(x), top + pitch * to_double(y)};
  };
  const Paint link = {.stroke = copper_colour, .width = 1.6, .opacity = 0.75};
  for (std::int64_t y = 0; y < down; ++y) {
    for (std::int64_t x = 0; x + 1 < across; ++x) d.svg.line(at(x, y), at(x + 1, y), link);
    if (!shape.axes.empty() && shape.axes[0].ring)
      d.svg.curve(at(0, y), {d.area.centre(), at(0, y).y - pitch * 0.9}, at(across - 1, y),
                  {.stroke = copper_colour, .width = 1, .opacity = 0.5});
  }
  for (std::int64_t x = 0; x < across; ++x) {
    for (std::int64_t y = 0; y + 1 < down; ++y) d.svg.line(at(x, y), at(x, y + 1), link);
    if (shape.axes.size() > 1 && shape.axes[1].ring)
      d.svg.curve(at(x, 0), {at(x, 0).x + pitch * 0.9, d.area.y + d.area.height / 2},
                  at(x, down - 1), {.stroke = copper_colour, .width = 1, .opacity = 0.5});
  }
  const double r = std::min(11.0, pitch * 0.2);
  for (std::int64_t y = 0; y < down; ++y)
    for (std::int64_t x = 0; x < across; ++x)
      d.svg.dot(at(x, y), r, {.fill = "#5b7fa6", .stroke = "#30404f", .width = 0.8});
}

std::string axes_text(const TorusShape& shape) {
  std::string text;
  for (const TorusAxis& axis : shape.axes)
    text += fmt::format("{}{}{}", text.empty() ? "" : " × ", axis.size, axis.ring ? "" : " open");
  return text;
}

void draw_torus(const Domain& d) {
  const TorusShape shape = torus_slice(d.fabric.scale_up, d.members);
  const bool solid = shape.axes.size() >= 3 && shape.axes[2].size > 1;
  std::string label = "torus of " + axes_text(shape);
  if (!solid) {
    draw_flat_torus(d, shape);
    const bool cut = std::any_of(shape.axes.begin(), shape.axes.end(),
                                 [](const TorusAxis& axis) { return axis.size > 8; });
    if (cut) label += "; 8 of an axis drawn";
  } else if (shape.cube > 0) {
    const std::int64_t edge = std::min<std::int64_t>(shape.cube, 4);
    const Box below = {d.area.x - 10, d.area.y + 120, d.area.width - 30, d.area.height - 155};
    const Cube cube(below, {edge, edge, edge});
    if (d.parts.switch_count("ocs") > 0)
      draw_circuits(d, cube, {d.area.x, d.area.y, d.area.width, 80}, edge);
    cube.draw(d);
    label += fmt::format("; one cube of {0} × {0} × {0} drawn", shape.cube);
  } else {
    const Cube cube({d.area.x, d.area.y, d.area.width, d.area.height - 36},
                    {std::min<std::int64_t>(shape.axes[0].size, 4),
                     std::min<std::int64_t>(shape.axes[1].size, 4),
                     std::min<std::int64_t>(shape.axes[2].size, 4)});
    cube.draw(d);
    label += "; rings close each full axis";
  }
  d.svg.text({d.area.centre(), d.area.bottom() - 6}, label,
             {.size = 16, .anchor = Anchor::middle, .bold = true}, d.area.width);
}

void draw_none(const Domain& d) {
  const Box host = {d.area.x + 20, d.area.y + 50, d.area.width - 40, 44};
  const std::vector<Box> row = accelerator_grid(d, d.area.y + 190);
  if (d.members <= 8) draw_nics(d, row);
  for (const Box& box : row)
    d.svg.line({box.centre(), box.y}, {box.centre(), host.bottom()},
               {.stroke = link_colour, .width = 2});
  d.svg.box(host, switch_paint);
  d.svg.text({host.centre(), host.y + 28}, "host: " + d.fabric.scale_up.link,
             {.size = 18, .anchor = Anchor::middle, .bold = true}, host.width - 20);
}

}  // namespace

const char* rail_colour(std::int64_t rail) {
  static constexpr std::array<const char*, 8> colours = {
      "#4477aa", "#ee6677", "#228833", "#ccbb44", "#66ccee", "#aa3377", "#ee8866", "#777777"};
  return colours[static_cast<std::size_t>(rail) % colours.size()];
}

std::int64_t rail_of(const Fabric& fabric, std::int64_t rails, std::int64_t accelerator) {
  const Sourced<double>& share = fabric.scale_out.nics_per_accelerator;
  if (!share.known() || share.get() >= 1) return accelerator % rails;
  return static_cast<std::int64_t>(std::floor(to_double(accelerator) * share.get())) % rails;
}

const char* accelerator_colour(const Fabric& fabric, std::int64_t rails, std::int64_t accelerator) {
  return rails > 1 ? rail_colour(rail_of(fabric, rails, accelerator)) : "#5b7fa6";
}

void draw_domain(Svg& svg, const Box& area, const Fabric& fabric, const FabricParts& parts) {
  const ScaleUp& up = fabric.scale_up;
  const std::int64_t members = std::min(parts.accelerators, up.domain);
  svg.box(area, {.fill = "#fbfbfc", .stroke = "#c9d1d9", .width = 1.2, .corner = 10});
  const double left = area.x + 20, room = area.width - 40;
  svg.text({left, area.y + 32}, "One scale-up domain", {.size = 20, .bold = true}, room);
  svg.text({left, area.y + 57},
           fmt::format("{} accelerators, {}, {} each way", grouped(members), up.link,
                       to_text(up.bandwidth.get())),
           {.size = 15}, room);
  std::vector<std::string> lines;
  for (const CableRun& run : parts.cables)
    if (is_scale_up_run(run) && lines.size() < 4)
      lines.push_back(
          fmt::format("{} to {}: {} × {}, {}", run.from, run.to,
                      grouped(std::max<std::int64_t>(1, run.cables / domains_of(parts))),
                      gigabits_text(run.rate), to_text(run.medium)));
  // Small switched domains have theirs drawn.
  const bool nics_drawn =
      members <= 8 && up.kind != ScaleUpKind::mesh && up.kind != ScaleUpKind::torus;
  if (parts.nics > 0 && !nics_drawn)
    lines.push_back(fmt::format(
        "{} NICs: {}, {}", grouped(std::max<std::int64_t>(1, parts.nics / domains_of(parts))),
        fabric.scale_out.nic, gigabits_text(fabric.scale_out.nic_bandwidth.get())));
  if (parts.scale_up_bisection.si() > 0) {
    const bool torus = up.kind == ScaleUpKind::torus, one = parts.scale_up_diameter == 1;
    const char* unit = torus ? (one ? "hop" : "hops") : one ? "switch" : "switches";
    lines.push_back(
        fmt::format("bisection {}, {}", to_text(parts.scale_up_bisection),
                    parts.scale_up_diameter == 0
                        ? std::string("every pair directly")
                        : fmt::format("diameter {} {}", parts.scale_up_diameter, unit)));
  }
  const double foot = area.bottom() - 14 - 22 * static_cast<double>(lines.size());
  for (std::size_t i = 0; i < lines.size(); ++i)
    svg.text({left, foot + 22 * static_cast<double>(i + 1) - 6}, lines[i], {.size = 14}, room);
  const Box inside = {left, area.y + 80, room, foot - area.y - 96};
  const Domain domain{svg, inside, fabric, parts, members};
  switch (up.kind) {
    case ScaleUpKind::switched:
      return draw_switched(domain);
    case ScaleUpKind::mesh:
      return draw_mesh(domain);
    case ScaleUpKind::torus:
      return draw_torus(domain);
    case ScaleUpKind::none:
      return draw_none(domain);
  }
}

}  // namespace orrery
