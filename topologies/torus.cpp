// SPDX-License-Identifier: Apache-2.0
// Knows how a slice of a torus is shaped and what its links add up to.
#include "topologies/torus.h"

#include <algorithm>

#include "sim/base/errors/check.h"

namespace orrery {
namespace {

// The shape with the least sum of edges that holds at least `count` points, each edge at most its
// limit; of these the one with the fewest points. Limits are few and small: at most a few thousand.
std::vector<std::int64_t> squarest(std::int64_t count, const std::vector<std::int64_t>& limits) {
  std::vector<std::int64_t> best(limits.size(), 1);
  std::int64_t best_points = -1, best_sum = 0;
  std::vector<std::int64_t> trial(limits.size(), 1);
  // The last edge follows from the others; edges grow, so that a shape is tried once.
  const auto finish = [&](std::int64_t product) {
    trial.back() = (count + product - 1) / product;
    if (trial.back() > limits.back()) return;
    const std::int64_t points = product * trial.back();
    std::int64_t sum = 0;
    for (const std::int64_t edge : trial) sum += edge;
    if (best_points >= 0 && (points > best_points || (points == best_points && sum >= best_sum)))
      return;
    best = trial;
    best_points = points;
    best_sum = sum;
  };
  const auto place = [&](const auto& self, std::size_t axis, std::int64_t product) -> void {
    if (axis + 1 == limits.size()) return finish(product);
    for (std::int64_t edge = 1; edge <= limits[axis]; ++edge) {
      trial[axis] = edge;
      self(self, axis + 1, product * edge);
      if (product * edge >= count) break;
    }
  };
  place(place, 0, 1);
  CHECK_THAT(best_points >= count, "a slice is larger than its torus");
  return best;
}

BytesPerSecond link_of(const ScaleUp& up, std::size_t axis) {
  if (!up.axis_links.empty()) return up.axis_links[axis].get();
  return up.bandwidth.get() / (2 * static_cast<double>(up.torus_axes));
}

// The whole domain's edges.
std::vector<std::int64_t> whole_edges(const ScaleUp& up) {
  const auto axes = static_cast<std::size_t>(up.torus_axes);
  if (axes == 1) return {up.domain};
  if (axes == 3) {
    const auto edges = most_cube_like(up.domain);
    return {edges.begin(), edges.end()};
  }
  std::int64_t low = 1;
  for (std::int64_t edge = 1; edge * edge <= up.domain; ++edge)
    if (up.domain % edge == 0) low = edge;
  return {low, up.domain / low};
}

bool equal_links(const ScaleUp& up) {
  return std::all_of(up.axis_links.begin(), up.axis_links.end(),
                     [&](const auto& link) { return link.get() == up.axis_links.front().get(); });
}

// Axes of unequal links fill one after the other, the fastest first.
std::vector<std::int64_t> fastest_first(std::int64_t count, const ScaleUp& up,
                                        const std::vector<std::int64_t>& whole) {
  std::vector<std::size_t> order(whole.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return link_of(up, a) > link_of(up, b); });
  std::vector<std::int64_t> edges(whole.size(), 1);
  for (const std::size_t axis : order) {
    edges[axis] = std::min(whole[axis], count);
    count = (count + edges[axis] - 1) / edges[axis];
  }
  return edges;
}

}  // namespace

std::array<std::int64_t, 3> most_cube_like(std::int64_t units) {
  CHECK_THAT(units >= 1, "a torus of nothing");
  std::array<std::int64_t, 3> best = {1, 1, units};
  for (std::int64_t a = 1; a * a * a <= units; ++a) {
    if (units % a != 0) continue;
    const std::int64_t rest = units / a;
    for (std::int64_t b = a; b * b <= rest; ++b) {
      if (rest % b != 0) continue;
      const std::array<std::int64_t, 3> trial = {a, b, rest / b};
      if (trial[0] + trial[1] + trial[2] < best[0] + best[1] + best[2]) best = trial;
    }
  }
  return best;
}

std::int64_t TorusShape::points() const {
  std::int64_t product = 1;
  for (const TorusAxis& axis : axes) product *= axis.size;
  return product;
}

std::int64_t TorusShape::links_on(std::size_t axis) const {
  const TorusAxis& a = axes[axis];
  return points() / a.size * (a.ring ? a.size : a.size - 1);
}

std::int64_t TorusShape::links() const {
  std::int64_t sum = 0;
  for (std::size_t i = 0; i < axes.size(); ++i) sum += links_on(i);
  return sum;
}

int TorusShape::diameter() const {
  std::int64_t hops = 0;
  for (const TorusAxis& axis : axes) hops += axis.ring ? axis.size / 2 : axis.size - 1;
  return static_cast<int>(hops);
}

BytesPerSecond TorusShape::bisection() const {
  const bool halves = std::any_of(axes.begin(), axes.end(),
                                  [](const TorusAxis& axis) { return axis.size % 2 == 0; });
  std::int64_t longest = 1;
  for (const TorusAxis& axis : axes) longest = std::max(longest, axis.size);
  BytesPerSecond least(0);
  for (const TorusAxis& axis : axes) {
    if (axis.size == 1 || (halves ? axis.size % 2 != 0 : axis.size != longest)) continue;
    const double across = static_cast<double>(points() / axis.size * (axis.ring ? 2 : 1));
    const BytesPerSecond cut = axis.link * across;
    if (least.si() == 0 || cut < least) least = cut;
  }
  return least;
}

std::int64_t TorusShape::cubes() const {
  if (cube == 0) return 0;
  for (const TorusAxis& axis : axes)
    if (axis.size % cube != 0) return 0;
  std::int64_t block = 1;
  for (std::size_t i = 0; i < axes.size(); ++i) block *= cube;
  return points() / block;
}

std::int64_t TorusShape::optical_links() const {
  std::int64_t face = 1;
  for (std::size_t i = 1; i < axes.size(); ++i) face *= cube;
  return cubes() * 2 * static_cast<std::int64_t>(axes.size()) * face;
}

std::int64_t TorusShape::circuit_switches() const {
  const std::int64_t count = cubes();
  return count == 0 ? 0 : optical_links() / count / 2;
}

TorusShape torus_slice(const ScaleUp& up, std::int64_t accelerators) {
  CHECK_THAT(accelerators >= 1 && accelerators <= up.domain, "a slice is part of one domain");
  const auto axes = static_cast<std::size_t>(up.torus_axes);
  TorusShape shape{.axes = std::vector<TorusAxis>(axes), .cube = up.cube};
  for (std::size_t i = 0; i < axes; ++i) shape.axes[i].link = link_of(up, i);
  std::int64_t block = up.cube == 0 ? 0 : 1;
  for (std::size_t i = 0; i < axes; ++i) block *= up.cube;

  std::vector<std::int64_t> edges;
  if (block > 0 && accelerators >= block && axes == 3) {
    const auto cubes = most_cube_like((accelerators + block - 1) / block);
    for (const std::int64_t n : cubes) edges.push_back(n * up.cube);
  } else if (block > 0 && accelerators < block) {
    edges = squarest(accelerators, std::vector<std::int64_t>(axes, up.cube));
  } else {
    const auto whole = whole_edges(up);
    edges =
        equal_links(up) ? squarest(accelerators, whole) : fastest_first(accelerators, up, whole);
  }
  const auto whole = whole_edges(up);
  for (std::size_t i = 0; i < axes; ++i) {
    shape.axes[i].size = edges[i];
    const bool closes = block > 0 ? accelerators >= block : edges[i] == whole[i];
    shape.axes[i].ring = closes && edges[i] >= 3;
  }
  return shape;
}

}  // namespace orrery
