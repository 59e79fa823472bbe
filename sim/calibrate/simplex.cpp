// Knows the simplex search of Nelder and Mead, in a box.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "sim/calibrate/fit.h"

namespace orrery {

namespace {

using Point = std::vector<double>;

// The box is mapped to the whole space, geometrically where a coordinate spans a decade.
struct Box {
  const Point& low;
  const Point& high;
  bool logarithmic(std::size_t i) const { return low[i] > 0 && high[i] > 10 * low[i]; }
  double inside(std::size_t i, double y) const {
    const double share = 1 / (1 + std::exp(-y));
    if (logarithmic(i)) return low[i] * std::pow(high[i] / low[i], share);
    return low[i] + (high[i] - low[i]) * share;
  }
  double outside(std::size_t i, double x) const {
    double share = (x - low[i]) / (high[i] - low[i]);
    if (logarithmic(i)) share = std::log(x / low[i]) / std::log(high[i] / low[i]);
    share = std::clamp(share, 0.02, 0.98);
    return std::log(share / (1 - share));
  }
  Point inside(const Point& y) const {
    Point x(y.size());
    for (std::size_t i = 0; i < y.size(); ++i) x[i] = inside(i, y[i]);
    return x;
  }
};

Point blend(const Point& a, const Point& b, double t) {  // a + t (b - a)
  Point p(a.size());
  for (std::size_t i = 0; i < a.size(); ++i) p[i] = a[i] + t * (b[i] - a[i]);
  return p;
}

struct Vertex {
  Point at;
  double value;
};

}  // namespace

std::vector<double> minimise(const std::function<double(const std::vector<double>&)>& cost,
                             const std::vector<double>& low, const std::vector<double>& high,
                             std::vector<double> start, int iterations) {
  const Box box{low, high};
  const std::size_t n = start.size();
  for (std::size_t i = 0; i < n; ++i) start[i] = box.outside(i, start[i]);
  const auto value = [&](const Point& y) { return cost(box.inside(y)); };
  std::vector<Vertex> simplex{{start, value(start)}};
  for (std::size_t i = 0; i < n; ++i) {
    Point p = start;
    p[i] += 0.7;
    simplex.push_back({p, value(p)});
  }
  const auto better = [](const Vertex& a, const Vertex& b) { return a.value < b.value; };
  for (int iteration = 0; iteration < iterations; ++iteration) {
    std::stable_sort(simplex.begin(), simplex.end(), better);
    if (simplex.back().value - simplex.front().value < 1e-7 * std::abs(simplex.front().value))
      break;
    Point centre(n, 0.0);
    for (std::size_t v = 0; v < n; ++v)
      for (std::size_t i = 0; i < n; ++i) centre[i] += simplex[v].at[i] / static_cast<double>(n);
    Vertex& worst = simplex.back();
    const auto attempt = [&](double t) {
      Point p = blend(centre, worst.at, t);
      const double v = value(p);
      return Vertex{std::move(p), v};
    };
    Vertex reflected = attempt(-1);
    if (reflected.value < simplex.front().value) {
      Vertex expanded = attempt(-2);
      worst = expanded.value < reflected.value ? std::move(expanded) : std::move(reflected);
    } else if (reflected.value < simplex[n - 1].value) {
      worst = std::move(reflected);
    } else {
      Vertex contracted = attempt(reflected.value < worst.value ? -0.5 : 0.5);
      if (contracted.value < std::min(reflected.value, worst.value)) {
        worst = std::move(contracted);
      } else {
        for (std::size_t v = 1; v <= n; ++v) {
          simplex[v].at = blend(simplex[0].at, simplex[v].at, 0.5);
          simplex[v].value = value(simplex[v].at);
        }
      }
    }
  }
  std::stable_sort(simplex.begin(), simplex.end(), better);
  return box.inside(simplex.front().at);
}

}  // namespace orrery
