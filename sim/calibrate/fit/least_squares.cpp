// SPDX-License-Identifier: Apache-2.0
// Knows the method of Levenberg and Marquardt in a box, on residuals that may have kinks.
#include "sim/calibrate/fit/least_squares.h"

#include <Eigen/Dense>
#include <algorithm>
#include <cmath>
#include <map>

#include "sim/base/errors/check.h"
#include "sim/base/parallel.h"
#include "sim/base/random.h"

namespace orrery {

namespace {

using Vector = Eigen::VectorXd;
using Matrix = Eigen::MatrixXd;

// The box as the unit cube: shares of each range, logarithmic where it spans decades.
class Box {
 public:
  explicit Box(const std::vector<FreeNumber>& free) : free_(free) {}
  double inside(std::size_t i, double share) const {
    const FreeNumber& f = free_[i];
    if (logarithmic(f)) return f.low * std::pow(f.high / f.low, share);
    return f.low + (f.high - f.low) * share;
  }
  double share(std::size_t i, double value) const {
    const FreeNumber& f = free_[i];
    const double x = std::clamp(value, f.low, f.high);
    if (logarithmic(f)) return std::log(x / f.low) / std::log(f.high / f.low);
    return (x - f.low) / (f.high - f.low);
  }
  std::vector<double> inside(const Vector& shares) const {
    std::vector<double> x(free_.size());
    for (std::size_t i = 0; i < x.size(); ++i)
      x[i] = inside(i, shares[static_cast<Eigen::Index>(i)]);
    return x;
  }
  Vector shares(std::span<const double> values) const {
    Vector u(static_cast<Eigen::Index>(values.size()));
    for (std::size_t i = 0; i < values.size(); ++i)
      u[static_cast<Eigen::Index>(i)] = share(i, values[i]);
    return u;
  }

 private:
  static bool logarithmic(const FreeNumber& f) { return f.low > 0 && f.high > 10 * f.low; }
  const std::vector<FreeNumber>& free_;
};

// One search: the problem with weights of its own.
class Search {
 public:
  Search(const LeastSquaresProblem& problem, std::span<const double> weights,
         const LeastSquaresOptions& options)
      : problem_(problem), weights_(weights), options_(options), box_(problem.free) {
    home_.resize(static_cast<Eigen::Index>(problem.free.size()));
    for (std::size_t i = 0; i < problem.free.size(); ++i)
      home_[static_cast<Eigen::Index>(i)] = box_.share(i, problem.free[i].start);
  }

  // Walks down from `u` and returns the cost that it reached.
  double descend(Vector& u, int iterations) {
    Vector r = residuals(u);
    double cost = cost_of(u, r);
    double damping = 1e-2;
    for (int i = 0; i < iterations; ++i) {
      const double before = cost;
      if (!step(u, r, cost, damping)) break;
      if (before - cost < 1e-7 * before) break;
    }
    return cost;
  }

  // Tries each coordinate up and down in steps that shrink: what a Jacobian cannot see.
  double polish(Vector& u, int rounds) {
    double cost = cost_of(u, residuals(u));
    double width = 0.02;
    for (int round = 0; round < rounds; ++round, width /= 3) {
      for (Eigen::Index i = 0; i < u.size(); ++i) {
        for (const double direction : {width, -width}) {
          Vector trial = u;
          trial[i] = std::clamp(trial[i] + direction, 0.0, 1.0);
          const double at = cost_of(trial, residuals(trial));
          if (at >= cost) continue;
          cost = at;
          u = trial;
          break;
        }
      }
    }
    return cost;
  }

  double cost_of(const Vector& u, const Vector& r) const {
    const double s = options_.softness;
    double sum = options_.ridge * (u - home_).squaredNorm();
    for (Eigen::Index i = 0; i < r.size(); ++i) {
      const double x = r[i] / s;
      sum += weight(i) * 2 * s * s * (std::sqrt(1 + x * x) - 1);
    }
    return sum;
  }
  Vector residuals(const Vector& u) {
    ++evaluations_;
    Vector r(static_cast<Eigen::Index>(problem_.rows));
    problem_.residuals(box_.inside(u), {r.data(), problem_.rows});
    for (Eigen::Index i = 0; i < r.size(); ++i)
      r[i] = std::isfinite(r[i]) ? std::clamp(r[i], -1e3, 1e3) : 1e3;
    return r;
  }
  const Box& box() const { return box_; }
  int evaluations() const { return evaluations_; }

 private:
  double weight(Eigen::Index row) const {
    return weights_.empty() ? 1.0 : weights_[static_cast<std::size_t>(row)];
  }

  // Residuals have kinks where a tile or a split changes: a step of a hundredth of the range looks
  // over the small ones.
  Matrix jacobian(const Vector& u, const Vector& r) {
    Matrix j(r.size(), u.size());
    for (Eigen::Index i = 0; i < u.size(); ++i) {
      constexpr double width = 0.005;
      Vector moved = u;
      moved[i] += u[i] + width <= 1 ? width : -width;
      j.col(i) = (residuals(moved) - r) / (moved[i] - u[i]);
    }
    return j;
  }

  // One accepted step, or false when no damping finds a better point.
  bool step(Vector& u, Vector& r, double& cost, double& damping) {
    const Matrix j = jacobian(u, r);
    Vector w(r.size());
    for (Eigen::Index i = 0; i < r.size(); ++i)
      w[i] = weight(i) / std::sqrt(1 + std::pow(r[i] / options_.softness, 2));
    const Vector gradient = j.transpose() * w.cwiseProduct(r) + options_.ridge * (u - home_);
    Matrix normal = j.transpose() * w.asDiagonal() * j;
    normal.diagonal().array() += options_.ridge;
    // A number at its bound that wants to leave the box stands still.
    for (Eigen::Index i = 0; i < u.size(); ++i) {
      const bool held = (u[i] <= 0 && gradient[i] > 0) || (u[i] >= 1 && gradient[i] < 0);
      if (!held) continue;
      normal.row(i).setZero();
      normal.col(i).setZero();
      normal(i, i) = -1;  // marks it; the diagonal is never negative otherwise
    }
    const double ground = 1e-9 * (normal.diagonal().cwiseAbs().maxCoeff() + 1e-30);
    for (int attempt = 0; attempt < 12; ++attempt) {
      Matrix damped = normal;
      Vector wanted = -gradient;
      for (Eigen::Index i = 0; i < u.size(); ++i) {
        if (normal(i, i) < 0) {
          damped(i, i) = 1;
          wanted[i] = 0;
        } else {
          damped(i, i) += damping * normal(i, i) + ground;
        }
      }
      const Vector trial = (u + damped.ldlt().solve(wanted)).cwiseMax(0.0).cwiseMin(1.0);
      const Vector at = residuals(trial);
      const double reached = cost_of(trial, at);
      if (reached < cost) {
        u = trial;
        r = at;
        cost = reached;
        damping = std::max(1e-7, damping / 5);
        return true;
      }
      damping = std::min(1e7, damping * 4);
    }
    return false;
  }

  const LeastSquaresProblem& problem_;
  std::span<const double> weights_;
  const LeastSquaresOptions& options_;
  Box box_;
  Vector home_;  // the given start
  int evaluations_ = 0;
};

void check(const LeastSquaresProblem& problem) {
  for (const FreeNumber& f : problem.free)
    CHECK_THAT(f.low < f.high, "a free number needs a range");
  CHECK_THAT(problem.weights.empty() || problem.weights.size() == problem.rows,
             "one weight for each row");
  CHECK_THAT(problem.families.empty() || problem.families.size() == problem.rows,
             "one family for each row");
}

// Weights of a bootstrap: families are drawn with replacement, so that rows which err together are
// drawn together.
std::vector<double> drawn_weights(const LeastSquaresProblem& problem, std::uint64_t seed,
                                  std::size_t draw) {
  std::map<std::uint64_t, std::size_t> place;
  std::vector<std::size_t> family(problem.rows);
  for (std::size_t row = 0; row < problem.rows; ++row) {
    const std::uint64_t key = problem.families.empty() ? row : problem.families[row];
    family[row] = place.emplace(key, place.size()).first->second;
  }
  std::vector<double> times(place.size(), 0.0);
  RandomStream random(seed, 1000 + draw);
  for (std::size_t i = 0; i < times.size(); ++i) ++times[random.below(times.size())];
  std::vector<double> weights(problem.rows);
  for (std::size_t row = 0; row < problem.rows; ++row)
    weights[row] = times[family[row]] * (problem.weights.empty() ? 1.0 : problem.weights[row]);
  return weights;
}

// The first start is the given point, the second mixes it with the box, others fill the box.
Vector start_point(const Box& box, const LeastSquaresProblem& problem, std::uint64_t seed,
                   std::size_t attempt) {
  RandomStream random(seed, attempt);
  Vector u(static_cast<Eigen::Index>(problem.free.size()));
  const double reach = attempt == 0 ? 0 : attempt % 2 == 0 ? 1 : 0.4;
  for (std::size_t i = 0; i < problem.free.size(); ++i) {
    const double given = box.share(i, problem.free[i].start);
    const double drawn = 0.02 + 0.96 * random.uniform();
    u[static_cast<Eigen::Index>(i)] = given + reach * (drawn - given);
  }
  return u;
}

void add_errors(const LeastSquaresProblem& problem, const LeastSquaresOptions& options,
                LeastSquaresFit& fit) {
  const auto draws = static_cast<std::size_t>(options.refits);
  fit.refits.resize(draws);
  fit.errors.assign(problem.free.size(), 0.0);
  parallel_for(draws, options.threads, [&](std::size_t draw) {
    const auto weights = drawn_weights(problem, options.seed, draw);
    fit.refits[draw] = refit_least_squares(problem, fit.values, weights, options);
  });
  if (draws < 2) return;
  for (std::size_t i = 0; i < problem.free.size(); ++i) {
    double sum = 0, squares = 0;
    for (const auto& x : fit.refits) sum += x[i];
    const double centre = sum / static_cast<double>(draws);
    for (const auto& x : fit.refits) squares += (x[i] - centre) * (x[i] - centre);
    fit.errors[i] = std::sqrt(squares / static_cast<double>(draws - 1));
  }
}

}  // namespace

LeastSquaresFit fit_least_squares(const LeastSquaresProblem& problem,
                                  const LeastSquaresOptions& options) {
  check(problem);
  LeastSquaresFit fit;
  fit.errors.assign(problem.free.size(), 0.0);
  for (const FreeNumber& f : problem.free) fit.values.push_back(std::clamp(f.start, f.low, f.high));
  if (problem.free.empty() || problem.rows == 0) return fit;
  const auto starts = static_cast<std::size_t>(std::max(1, options.starts));
  std::vector<Vector> reached(starts);
  std::vector<double> cost(starts);
  std::vector<int> evaluations(starts);
  parallel_for(starts, options.threads, [&](std::size_t attempt) {
    Search search(problem, problem.weights, options);
    reached[attempt] = start_point(search.box(), problem, options.seed, attempt);
    cost[attempt] = search.descend(reached[attempt], options.iterations);
    evaluations[attempt] = search.evaluations();
  });
  const auto best =
      static_cast<std::size_t>(std::min_element(cost.begin(), cost.end()) - cost.begin());
  Search search(problem, problem.weights, options);
  Vector u = reached[best];
  search.polish(u, options.polish);
  search.descend(u, options.iterations);
  fit.cost = search.polish(u, options.polish);
  fit.values = search.box().inside(u);
  for (const int e : evaluations) fit.evaluations += e;
  fit.evaluations += search.evaluations();
  add_errors(problem, options, fit);
  return fit;
}

std::vector<double> refit_least_squares(const LeastSquaresProblem& problem,
                                        std::span<const double> start,
                                        std::span<const double> weights,
                                        const LeastSquaresOptions& options) {
  check(problem);
  CHECK_THAT(weights.empty() || weights.size() == problem.rows, "one weight for each row");
  CHECK_THAT(start.size() == problem.free.size(), "one start for each free number");
  if (problem.free.empty() || problem.rows == 0) return {start.begin(), start.end()};
  Search search(problem, weights, options);
  Vector u = search.box().shares(start);
  search.descend(u, std::max(1, options.iterations / 4));
  return search.box().inside(u);
}

}  // namespace orrery
