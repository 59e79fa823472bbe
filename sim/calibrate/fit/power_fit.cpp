// SPDX-License-Identifier: Apache-2.0
// Fits energies: linear least squares again and again, until each sample is on its
// side of the model's maximum.
#include "sim/calibrate/fit/power_fit.h"

#include <fmt/format.h>

#include <Eigen/Dense>
#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <set>

#include "sim/base/errors/check.h"
#include "sim/base/statistics.h"

namespace orrery {

namespace {

using Vector = Eigen::VectorXd;
using Matrix = Eigen::MatrixXd;

// Unknowns: J/B, busy power, then J/FLOP of each format. Scaled so that all are near one.
constexpr int memory_column = 0, busy_column = 1, first_format = 2;
constexpr int columns = first_format + format_count;
constexpr double joules_per_byte = 1e-11, busy_watts = 100, joules_per_flop = 1e-12;

// What one sample did, per second.
struct Draw {
  std::string variant;
  double watts = 0;  // of the board
  Format format = Format::bf16;
  double flop_rate = 0, byte_rate = 0;  // of tensor work; of memory traffic
  double tensor_share = 0;              // of the tensor peak
  bool occupied = true;
  int run = 0;
  bool product = false;  // a sustained product of another program, not of the power program
  bool in_model() const { return occupied && (flop_rate > 0 || byte_rate > 0); }
};

bool has_tensor_work(Format format, const ResolvedDevice& device) {
  return format != Format::fp32 && format != Format::fp64 &&
         device.tensor_rate[static_cast<std::size_t>(format)].si() > 0;
}

// A board that lowers its clock is at its limit; its sensor then reads some 2% less (H200).
bool at_limit(const Sample& s, double max_clock_mhz, const ResolvedDevice& device) {
  return s.clock_after_mhz > 0 && s.clock_after_mhz < 0.97 * max_clock_mhz &&
         s.power_w > 0.93 * device.power_limit.si();
}

std::optional<Draw> draw_of(const Sample& s, double max_clock_mhz, const ResolvedDevice& device) {
  const bool product = s.is_work && is_product(s.kernel.work.kind) && s.mode == "sustained";
  if (!product && s.kind != "power") return std::nullopt;
  if (s.power_w <= 0 || s.time.si() <= 0) return std::nullopt;
  Draw d{.variant = s.variant,
         .watts = at_limit(s, max_clock_mhz, device) ? device.power_limit.si() : s.power_w,
         .run = s.conditions,
         .product = product};
  const auto number = [&](const char* key, double other) {
    const auto at = s.numbers.find(key);
    return at == s.numbers.end() ? other : at->second;
  };
  double flop = 0, bytes = 0;
  if (product) {
    d.format = s.kernel.work.input;
    d.variant = "gemm " + s.shape;
    flop = tensor_flop(s.kernel.work);
    bytes = minimum_bytes(s.kernel.work);
  } else {
    d.format = format_text.find(s.text_or("input", "fp32")).value_or(Format::fp32);
    d.occupied = number("occupied", 1) != 0;
    bytes = number("bytes", 0);
    flop = number("flop", 0);
  }
  if (!has_tensor_work(d.format, device)) flop = 0;  // arithmetic of the vector units: busy
  if (flop > 0) {
    d.variant += " " + std::string(to_text(d.format));
    d.flop_rate = flop / s.time.si();
    d.tensor_share = d.flop_rate / device.tensor_rate[static_cast<std::size_t>(d.format)].si();
  }
  d.byte_rate = bytes / s.time.si();
  return d;
}

int column_of(Format format) { return first_format + static_cast<int>(format); }

// The unknowns that these samples can tell.
struct Solution {
  Vector x = Vector::Zero(columns), error = Vector::Zero(columns);
  std::array<int, columns> n{};  // samples behind each; 0: unknown
  double cost = 0;
  bool tensor_bound(const Draw& d) const {
    const int c = column_of(d.format);
    if (d.flop_rate <= 0 || n[static_cast<std::size_t>(c)] == 0) return false;
    return d.flop_rate * x[c] * joules_per_flop > x[busy_column] * busy_watts;
  }
};

// Ordinary least squares on `active` columns; a negative unknown is set to zero and left out.
Vector solve_not_negative(const Matrix& a, const Vector& y, std::vector<int> active) {
  while (!active.empty()) {
    Matrix part(a.rows(), static_cast<Eigen::Index>(active.size()));
    for (std::size_t c = 0; c < active.size(); ++c)
      part.col(static_cast<Eigen::Index>(c)) = a.col(active[c]);
    const Vector found = part.colPivHouseholderQr().solve(y);
    Eigen::Index worst = 0;
    if (found.minCoeff(&worst) < 0) {
      active.erase(active.begin() + worst);
      continue;
    }
    Vector x = Vector::Zero(a.cols());
    for (std::size_t c = 0; c < active.size(); ++c)
      x[active[c]] = found[static_cast<Eigen::Index>(c)];
    return x;
  }
  return Vector::Zero(a.cols());
}

// Solves with each sample on the side that `tensor` says.
Solution solve_sides(const std::vector<Draw>& draws, const std::vector<bool>& tensor, double idle) {
  const auto rows = static_cast<Eigen::Index>(draws.size());
  Matrix a = Matrix::Zero(rows, columns);
  Vector y(rows);
  Solution s;
  int busy_with_traffic = 0;
  for (Eigen::Index r = 0; r < rows; ++r) {
    const Draw& d = draws[static_cast<std::size_t>(r)];
    const bool on_tensor = tensor[static_cast<std::size_t>(r)];
    const int main = on_tensor ? column_of(d.format) : busy_column;
    a(r, main) = (on_tensor ? d.flop_rate * joules_per_flop : busy_watts) / d.watts;
    a(r, memory_column) = d.byte_rate * joules_per_byte / d.watts;
    y[r] = (d.watts - idle) / d.watts;
    ++s.n[static_cast<std::size_t>(main)];
    busy_with_traffic += !on_tensor && d.byte_rate > 0 ? 1 : 0;
  }
  // A product's traffic goes with its operations: only work bound by the memory, next to other
  // busy work, tells the two apart.
  const bool tells_memory = busy_with_traffic > 0 && s.n[busy_column] >= 2;
  s.n[memory_column] = tells_memory ? busy_with_traffic : 0;
  std::vector<int> unknown;
  for (int c = 0; c < columns; ++c)
    if (s.n[static_cast<std::size_t>(c)] > 0) unknown.push_back(c);
  s.x = solve_not_negative(a, y, unknown);
  const Vector residual = y - a * s.x;
  s.cost = residual.squaredNorm();
  // Also of an unknown that was pushed to zero: how far from it the truth may be.
  Matrix part(rows, static_cast<Eigen::Index>(unknown.size()));
  for (std::size_t c = 0; c < unknown.size(); ++c)
    part.col(static_cast<Eigen::Index>(c)) = a.col(unknown[c]);
  const double freedom = std::max(1.0, static_cast<double>(rows - part.cols()));
  // The sensor itself is good to half a percent: with few samples the rest may be less by luck.
  const double variance = std::max(s.cost / freedom, 0.005 * 0.005);
  const Matrix spread =
      variance * (part.transpose() * part).completeOrthogonalDecomposition().pseudoInverse();
  for (std::size_t c = 0; c < unknown.size(); ++c) {
    const auto at = static_cast<Eigen::Index>(c);
    s.error[unknown[c]] = std::sqrt(std::max(0.0, spread(at, at)));
  }
  return s;
}

// From two guesses of the sides: products above a share of the tensor peak are on its side.
Solution solve(const std::vector<Draw>& draws, double idle) {
  std::optional<Solution> best;
  for (const double share : {0.25, 0.05}) {
    std::vector<bool> tensor;
    for (const Draw& d : draws) tensor.push_back(d.tensor_share > share);
    for (int round = 0; round < 50; ++round) {
      const Solution s = solve_sides(draws, tensor, idle);
      std::vector<bool> next;
      for (const Draw& d : draws) next.push_back(s.tensor_bound(d));
      // Only a solution that agrees with its own sides is one of the model.
      if (next == tensor) {
        if (!best || s.cost < best->cost) best = s;
        break;
      }
      tensor = std::move(next);
    }
  }
  if (best) return *best;
  // No agreement: a product near the boundary changes sides for ever. The first guess stands.
  std::vector<bool> tensor;
  for (const Draw& d : draws) tensor.push_back(d.tensor_share > 0.25);
  return solve_sides(draws, tensor, idle);
}

double predicted_watts(const Draw& d, const Solution& s, double idle) {
  const double tensor = d.flop_rate * s.x[column_of(d.format)] * joules_per_flop;
  return idle + std::max(tensor, s.x[busy_column] * busy_watts) +
         d.byte_rate * s.x[memory_column] * joules_per_byte;
}

// Whether a fit can say anything of the sample at all.
bool can_predict(const Draw& d, const Solution& s) {
  if (d.flop_rate > 0) return s.n[static_cast<std::size_t>(column_of(d.format))] > 0;
  return s.n[busy_column] > 0 && (d.byte_rate <= 0 || s.n[memory_column] > 0);
}

void hold_out_each(const std::vector<Draw>& draws, double idle, PowerFit& fit) {
  std::vector<double> errors;
  std::size_t at = 0;
  for (PowerRow& row : fit.rows) {
    if (!row.fitted) continue;
    std::vector<Draw> others = draws;
    others.erase(others.begin() + static_cast<std::ptrdiff_t>(at));
    const Draw& d = draws[at++];
    if (others.empty()) continue;
    const Solution s = solve(others, idle);
    if (!can_predict(d, s)) continue;
    row.held_out = Watts(predicted_watts(d, s, idle));
    errors.push_back(std::abs(row.held_out.si() / d.watts - 1));
  }
  fit.held_out = static_cast<int>(errors.size());
  if (errors.empty()) return;
  fit.median = median(errors);
  fit.p90 = percentile(errors, 90);
}

FittedValue value_at(const Solution& s, int column, double unit) {
  return {.value = s.x[column] * unit,
          .error = s.error[column] * unit,
          .n = s.n[static_cast<std::size_t>(column)]};
}

// Boards differ by more than the scatter of one: what each run by itself says of every unknown.
void add_spread_of_runs(const std::vector<Draw>& draws, double idle, Solution& s, PowerFit& fit) {
  std::map<int, std::vector<Draw>> runs;
  for (const Draw& d : draws) runs[d.run].push_back(d);
  fit.runs = static_cast<int>(runs.size());
  std::array<std::vector<double>, columns> values;
  for (const auto& [run, own] : runs) {
    const Solution alone = solve(own, idle);
    for (int c = 0; c < columns; ++c)
      if (alone.n[static_cast<std::size_t>(c)] > 0)
        values[static_cast<std::size_t>(c)].push_back(alone.x[c]);
  }
  for (int c = 0; c < columns; ++c) {
    const std::vector<double>& found = values[static_cast<std::size_t>(c)];
    if (found.size() < 2) continue;
    const auto n = static_cast<double>(found.size());
    double sum = 0, squares = 0;
    for (const double v : found) sum += v;
    for (const double v : found) squares += (v - sum / n) * (v - sum / n);
    s.error[c] = std::max(s.error[c], std::sqrt(squares / (n - 1)));
  }
}

FittedValue mean_of(const std::vector<double>& values) {
  if (values.empty()) return {};
  const auto n = static_cast<double>(values.size());
  double sum = 0, squares = 0;
  for (const double v : values) sum += v;
  for (const double v : values) squares += (v - sum / n) * (v - sum / n);
  const double error = n > 1 ? std::sqrt(squares / (n - 1) / n) : 0.05 * sum;
  return {.value = sum / n, .error = error, .n = static_cast<int>(values.size())};
}

template <class Q>
Sourced<Q> sourced(const FittedValue& v, int runs, const std::string& source) {
  return {
      .value = Q(v.value),
      .low = Q(std::max(0.0, v.value - 2 * v.error)),
      .high = Q(v.value + 2 * v.error),
      .evidence = Evidence::measured,
      .source = source,
      .reason = fmt::format("least squares, {} samples of sustained work in {} runs; range: two "
                            "standard errors",
                            v.n, runs)};
}

}  // namespace

PowerFit fit_power(const MeasuredLog& log, const ResolvedDevice& device) {
  const double idle = device.idle_power.si(), budget = device.power_limit.si() - idle;
  if (budget <= 0)
    throw Error({.file = device.name,
                 .path = "power.limit",
                 .found = "no power limit above idle power",
                 .expected = "both, to fit the energy of work"});
  std::vector<Draw> all, fitted;
  std::vector<double> rest;
  // Formats that the power program itself asked about: sustained products of these stay unseen, to
  // check the fit by.
  std::set<Format> asked;
  const auto draw_in = [&](const Sample& s) {
    const auto at = static_cast<std::size_t>(s.conditions);
    const double top = at < log.conditions.size() ? log.conditions[at].max_clock_mhz : 0;
    return draw_of(s, top, device);
  };
  for (const Sample& s : log.samples)
    if (const auto draw = draw_in(s); draw && !draw->product && draw->flop_rate > 0)
      asked.insert(draw->format);
  for (const Sample& s : log.samples) {
    auto draw = draw_in(s);
    if (!draw) continue;
    if (draw->variant == "idle") {
      rest.push_back(draw->watts);
      continue;
    }
    if (draw->product && asked.contains(draw->format)) draw->occupied = false;
    all.push_back(*draw);
    if (draw->in_model()) fitted.push_back(*draw);
  }
  if (fitted.empty())
    throw Error(
        {.file = log.conditions.empty() ? device.name : log.conditions.front().file,
         .found = fmt::format("{} samples, none of sustained work with power", log.samples.size()),
         .expected = "samples of kind \"power\" or sustained products"});
  Solution s = solve(fitted, idle);
  PowerFit fit;
  add_spread_of_runs(fitted, idle, s, fit);
  fit.idle_power = mean_of(rest);
  fit.memory_energy = value_at(s, memory_column, joules_per_byte);
  fit.busy_share = value_at(s, busy_column, busy_watts / budget);
  for (int f = 0; f < format_count; ++f)
    fit.tensor_energy[static_cast<std::size_t>(f)] = value_at(s, first_format + f, joules_per_flop);
  for (const Draw& d : all)
    fit.rows.push_back({.variant = d.variant,
                        .measured = Watts(d.watts),
                        .predicted = Watts(predicted_watts(d, s, idle)),
                        .fitted = d.in_model()});
  hold_out_each(fitted, idle, fit);
  return fit;
}

void put(const PowerFit& fit, Calibration& calibration, const std::string& source) {
  for (std::size_t f = 0; f < format_count; ++f)
    if (fit.tensor_energy[f].known())
      calibration.tensor_energy[f] = sourced<JoulesPerFlop>(fit.tensor_energy[f], fit.runs, source);
  if (fit.memory_energy.known())
    calibration.memory_energy = sourced<JoulesPerByte>(fit.memory_energy, fit.runs, source);
  if (fit.busy_share.known())
    calibration.busy_share = sourced<double>(fit.busy_share, fit.runs, source);
}

}  // namespace orrery
