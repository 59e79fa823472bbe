// SPDX-License-Identifier: Apache-2.0
// Solves for the weights and powers of fates by Newton's method.
#include "workloads/cluster_job/fate_tilt.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "sim/base/errors/check.h"

namespace orrery {
namespace {

using Vector = std::vector<double>;

// Of a square system, by elimination with the largest pivot; empty: it has none.
Vector solution(std::vector<Vector> rows) {  // the last column is the right side
  const std::size_t n = rows.size();
  for (std::size_t i = 0; i < n; ++i) {
    const auto pivot = std::max_element(
        rows.begin() + static_cast<std::ptrdiff_t>(i), rows.end(),
        [&](const Vector& a, const Vector& b) { return std::abs(a[i]) < std::abs(b[i]); });
    std::swap(rows[i], *pivot);
    if (rows[i][i] == 0 || !std::isfinite(rows[i][i])) return {};
    for (std::size_t k = 0; k < n; ++k) {
      if (k == i) continue;
      const double factor = rows[k][i] / rows[i][i];
      for (std::size_t j = i; j <= n; ++j) rows[k][j] -= factor * rows[i][j];
    }
  }
  Vector x(n);
  for (std::size_t i = 0; i < n; ++i) x[i] = rows[i][n] / rows[i][i];
  return x;
}

double squares(const Vector& v) { return std::inner_product(v.begin(), v.end(), v.begin(), 0.0); }

// Where the function is 0, from `x` on: Newton's steps, halved until they help. Empty: not found.
template <class Function>
Vector newton(const Function& f, Vector x) {
  constexpr int most_steps = 100, most_halves = 30;
  constexpr double small = 1e-16, difference = 1e-6;
  Vector value = f(x);
  for (int step = 0; step < most_steps && squares(value) > small; ++step) {
    std::vector<Vector> rows(x.size(), Vector(x.size() + 1));
    for (std::size_t j = 0; j < x.size(); ++j) {
      Vector moved = x;
      moved[j] += difference;
      const Vector there = f(moved);
      for (std::size_t i = 0; i < x.size(); ++i) rows[i][j] = (there[i] - value[i]) / difference;
    }
    for (std::size_t i = 0; i < x.size(); ++i) rows[i].back() = -value[i];
    const Vector full = solution(std::move(rows));
    if (full.empty()) return {};
    bool better = false;
    double part = 1;
    for (int half = 0; half < most_halves && !better; ++half, part /= 2) {
      Vector next = x;
      for (std::size_t i = 0; i < x.size(); ++i) next[i] += part * full[i];
      Vector there = f(next);
      better = squares(there) < squares(value);
      if (!better) continue;
      x = std::move(next);
      value = std::move(there);
    }
    if (!better) return {};
  }
  return squares(value) <= small ? x : Vector{};
}

// To a sum of 1.
FateShares normalised(FateShares shares, const char* what, const std::string& name) {
  const double sum = std::accumulate(shares.begin(), shares.end(), 0.0);
  for (double& share : shares) {
    if (!(share >= 0) || !std::isfinite(share))
      throw Error({.file = name,
                   .path = "fates",
                   .found = fmt::format("a share of {} {}", what, share),
                   .expected = "shares of 0 or more"});
    share = sum > 0 ? share / sum : 0;
  }
  return shares;
}

}  // namespace

FateTilt::FateTilt(const std::vector<TiltedPiece>& pieces, FateShares jobs, FateShares gpu_time,
                   const std::string& name) {
  jobs = normalised(jobs, "jobs", name);
  gpu_time = normalised(gpu_time, "GPU-time", name);
  double mean = 0;
  for (const TiltedPiece& piece : pieces) mean += piece.share * piece.gpu_seconds;
  ln_mean_ = std::log(mean);
  const bool timed = std::any_of(gpu_time.begin(), gpu_time.end(), [](double s) { return s > 0; });
  for (std::size_t f = 0; f < jobs.size(); ++f) {
    ends_so_[f] = jobs[f] > 0;
    if (timed && ends_so_[f] != (gpu_time[f] > 0))
      throw Error({.file = name,
                   .path = "fates",
                   .found = fmt::format("{} jobs with one share of 0",
                                        job_fate_text[static_cast<JobFate>(f)]),
                   .expected = "shares of jobs and of GPU-time that are 0 together"});
  }
  const double likeliest = *std::max_element(jobs.begin(), jobs.end());
  if (likeliest <= 0)
    throw Error({.file = name, .path = "fates", .found = "no shares", .expected = "at least one"});
  for (std::size_t f = 0; f < jobs.size(); ++f)
    if (ends_so_[f]) weight_[f] = six_digits(std::log(jobs[f] / likeliest));
  if (timed) solve(pieces, jobs, gpu_time, name);
}

FateShares FateTilt::shares(double ln_time) const {
  FateShares all{};
  double most = -HUGE_VAL, sum = 0;
  for (std::size_t f = 0; f < all.size(); ++f) {
    all[f] = ends_so_[f] ? weight_[f] + power_[f] * (ln_time - ln_mean_) : -HUGE_VAL;
    most = std::max(most, all[f]);
  }
  for (double& share : all) sum += share = std::exp(share - most);
  for (double& share : all) share /= sum;
  return all;
}

double FateTilt::share(JobFate fate, double gpu_seconds) const {
  return shares(std::log(gpu_seconds))[static_cast<std::size_t>(fate)];
}

void FateTilt::solve(const std::vector<TiltedPiece>& pieces, const FateShares& jobs,
                     const FateShares& gpu_time, const std::string& name) {
  std::vector<std::size_t> free;  // fates beside the likeliest
  const auto likeliest =
      static_cast<std::size_t>(std::max_element(jobs.begin(), jobs.end()) - jobs.begin());
  for (std::size_t f = 0; f < jobs.size(); ++f)
    if (f != likeliest && ends_so_[f]) free.push_back(f);
  if (free.empty()) return;
  const auto set = [&](const Vector& x) {
    for (std::size_t i = 0; i < free.size(); ++i) {
      weight_[free[i]] = x[2 * i];
      power_[free[i]] = x[2 * i + 1];
    }
  };
  // Logarithms of what fates have over what they should have.
  const auto off = [&](const Vector& x) {
    set(x);
    FateShares of_jobs{}, of_time{};
    for (const TiltedPiece& piece : pieces) {
      const FateShares here = shares(std::log(piece.gpu_seconds));
      for (std::size_t f = 0; f < here.size(); ++f) {
        of_jobs[f] += piece.share * here[f];
        of_time[f] += piece.share * piece.gpu_seconds * here[f];
      }
    }
    const double time = std::accumulate(of_time.begin(), of_time.end(), 0.0);
    Vector logs;
    for (const std::size_t f : free) {
      logs.push_back(std::log(of_jobs[f] / jobs[f]));
      logs.push_back(std::log(of_time[f] / time / gpu_time[f]));
    }
    return logs;
  };
  Vector start;
  for (const std::size_t f : free) start.insert(start.end(), {weight_[f], 0.0});
  Vector found = newton(off, std::move(start));
  if (found.empty())
    throw Error({.file = name,
                 .path = "fates",
                 .found = "shares of GPU-time that jobs of these sizes and lengths cannot have",
                 .expected = "shares nearer to those of the jobs"});
  for (double& value : found) value = six_digits(value);
  set(found);
}

}  // namespace orrery
