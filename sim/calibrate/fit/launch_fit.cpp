// SPDX-License-Identifier: Apache-2.0
// Knows how costs of launches and links, each a sum of a few terms, are fitted and cross-checked.
#include "sim/calibrate/fit/launch_fit.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <iterator>
#include <map>
#include <span>
#include <utility>

#include "sim/base/statistics.h"
#include "sim/calibrate/log/measured_tables.h"

namespace orrery {

namespace {

// Rows explained by a sum of terms: time = sum of value[i] * terms[i].
struct LaunchRow {
  std::vector<double> terms;
  double seconds = 0;
  std::uint64_t group = 0;
  int run = 0;  // of a program on a host
};

struct SumFit {
  std::vector<Fitted> values;
  LeftOutError error;
};

// Parameters of a typical kernel: pointers and extents.
constexpr double usual_parameters = 8;
constexpr double large_copy = 16 << 20;

double predicted(const LaunchRow& row, std::span<const double> values) {
  double sum = 0;
  for (std::size_t i = 0; i < values.size(); ++i) sum += values[i] * row.terms[i];
  return sum;
}

LeastSquaresProblem problem_of(const std::vector<LaunchRow>& rows, std::vector<FreeNumber> free) {
  LeastSquaresProblem problem{.free = std::move(free), .rows = rows.size()};
  for (const LaunchRow& row : rows) problem.families.push_back(row.group);
  problem.residuals = [&rows](std::span<const double> x, std::span<double> residuals) {
    for (std::size_t i = 0; i < rows.size(); ++i)
      residuals[i] = std::log(predicted(rows[i], x) / rows[i].seconds);
  };
  return problem;
}

// Each group by a fit of the others. A single group cannot be checked so.
LeftOutError left_out(const std::vector<LaunchRow>& rows, const LeastSquaresProblem& problem,
                      std::span<const double> start) {
  std::vector<double> errors;
  std::map<std::uint64_t, int> groups;
  for (const LaunchRow& row : rows) ++groups[row.group];
  if (groups.size() < 2) return {};
  for (const auto& [group, count] : groups) {
    std::vector<double> weights;
    for (const LaunchRow& row : rows) weights.push_back(row.group == group ? 0 : 1);
    const std::vector<double> x = refit_least_squares(problem, start, weights);
    for (const LaunchRow& row : rows)
      if (row.group == group) errors.push_back(std::abs(predicted(row, x) / row.seconds - 1));
  }
  return {.rows = static_cast<int>(errors.size()),
          .median = median(errors),
          .p90 = percentile(errors, 90)};
}

// The first term is constant; others that no row varies cannot be told from it: they stay at their
// start.
std::vector<FreeNumber> shown(const std::vector<LaunchRow>& rows, std::vector<FreeNumber> free) {
  for (std::size_t i = 1; i < free.size(); ++i) {
    const bool alike = std::all_of(rows.begin(), rows.end(), [&](const LaunchRow& row) {
      return row.terms[i] == rows.front().terms[i];
    });
    if (!alike) continue;
    const double still = std::max(free[i].start, free[i].low);
    free[i] = {.low = still, .high = still + 1e-15, .start = still};
  }
  return free;
}

// Standard deviation of each value between runs that are fitted one by one; empty: a single run.
std::vector<double> spread_of_runs(const std::vector<LaunchRow>& rows,
                                   const std::vector<FreeNumber>& free) {
  std::map<int, std::vector<LaunchRow>> runs;
  for (const LaunchRow& row : rows) runs[row.run].push_back(row);
  if (runs.size() < 2) return {};
  std::vector<std::vector<double>> values(free.size());
  for (const auto& [run, own] : runs) {
    const LeastSquaresProblem problem = problem_of(own, shown(own, free));
    const LeastSquaresFit fit = fit_least_squares(problem, {.starts = 4, .refits = 0});
    for (std::size_t i = 0; i < free.size(); ++i) values[i].push_back(fit.values[i]);
  }
  std::vector<double> out;
  for (const std::vector<double>& of : values) {
    double sum = 0, squares = 0;
    const auto n = static_cast<double>(of.size());
    for (const double v : of) sum += v;
    for (const double v : of) squares += (v - sum / n) * (v - sum / n);
    out.push_back(std::sqrt(squares / (n - 1)));
  }
  return out;
}

std::optional<SumFit> fit_sum(const std::vector<LaunchRow>& rows,
                              const std::vector<FreeNumber>& free) {
  if (rows.empty()) return std::nullopt;
  const LeastSquaresProblem problem = problem_of(rows, shown(rows, free));
  const LeastSquaresFit fit = fit_least_squares(problem, {.starts = 4});
  SumFit out{.values = {}, .error = left_out(rows, problem, fit.values)};
  // Hosts and boards differ by more than the scatter of one.
  const std::vector<double> spread = spread_of_runs(rows, free);
  for (std::size_t i = 0; i < free.size(); ++i)
    out.values.push_back({fit.values[i], std::max(fit.errors.empty() ? 0 : fit.errors[i],
                                                  spread.empty() ? 0 : spread[i])});
  return out;
}

std::uint64_t mixed(std::uint64_t a, double b) {
  return (a ^ static_cast<std::uint64_t>(std::llround(16 * b))) * 0x9e3779b97f4a7c15ull;
}

double number_or(const Sample& sample, const std::string& key, double other) {
  const auto found = sample.numbers.find(key);
  return found == sample.numbers.end() ? other : found->second;
}

// Rows of one variant and of its kernels that run for a while: terms each, per parameter, once a
// chain, body (whose clock the program read beside it, not in it).
std::optional<LaunchCost> fit_chain(const MeasuredLog& log, const std::string& variant) {
  std::vector<LaunchRow> rows;
  for (const Sample& s : log.samples) {
    if (s.kind != "launch" || (s.variant != variant && s.variant != variant + "-busy")) continue;
    const double parameters = number_or(s, "parameters", usual_parameters);
    const double nodes = std::max(1.0, number_or(s, "nodes", std::max(1, s.calls)));
    const double body = number_or(s, "body_us", 0) * 1e-6;
    // Grids of many blocks drain longer: that is theirs, not the launch's.
    if (number_or(s, "blocks", 1) > 1) continue;
    rows.push_back({{1, parameters, 1 / nodes, body},
                    s.time.si(),
                    mixed(mixed(mixed(1, parameters), nodes), 1e7 * body),
                    s.conditions});
  }
  const auto fit =
      fit_sum(rows, {{1e-7, 1e-4, 1.5e-6}, {0, 1e-7, 0}, {0, 5e-5, 0}, {0.8, 1.25, 1}});
  if (!fit) return std::nullopt;
  return LaunchCost{.each = fit->values[0],
                    .per_parameter = fit->values[1],
                    .once = fit->values[2],
                    .error = fit->error};
}

std::optional<LaunchCost> fit_host(const MeasuredLog& log) {
  std::vector<LaunchRow> rows;
  for (const Sample& s : log.samples)
    if (s.kind == "launch" && s.variant == "host") {
      const double parameters = number_or(s, "parameters", usual_parameters);
      rows.push_back({{1, parameters}, s.time.si(), mixed(1, parameters), s.conditions});
    }
  const auto fit = fit_sum(rows, {{1e-7, 1e-4, 2e-6}, {0, 1e-6, 0}});
  if (!fit) return std::nullopt;
  return LaunchCost{
      .each = fit->values[0], .per_parameter = fit->values[1], .once = {}, .error = fit->error};
}

std::optional<LaunchCost> fit_graph_host(const MeasuredLog& log) {
  std::vector<LaunchRow> rows;
  for (const Sample& s : log.samples)
    if (s.kind == "launch" && s.variant == "graph-host") {
      const double nodes = s.number("nodes");
      rows.push_back({{1, nodes}, s.time.si(), mixed(1, nodes), s.conditions});
    }
  // Since constant-time launches of straight graphs a node costs the host about a nanosecond.
  const auto fit = fit_sum(rows, {{1e-7, 1e-3, 5e-6}, {0, 1e-5, 2e-9}});
  if (!fit) return std::nullopt;
  return LaunchCost{
      .each = fit->values[1], .per_parameter = {}, .once = fit->values[0], .error = fit->error};
}

using Chosen = std::function<bool(const Sample&)>;

double bytes_of(const Sample& s) {
  const Work& work = s.kernel.work;
  // Both directions at once: `bytes` is one's.
  return s.is_work ? number_or(s, "bytes", work.bytes_read + work.bytes_written)
                   : s.number("bytes");
}

std::optional<LinkCost> fit_link(const MeasuredLog& log, double bandwidth, const Chosen& chosen) {
  if (bandwidth <= 0) return std::nullopt;
  std::vector<LaunchRow> rows;
  LinkCost cost{.efficiency = {}, .fixed = {}, .bandwidth = bandwidth, .error = {}};
  for (const Sample& s : log.samples) {
    if (!chosen(s)) continue;
    const double bytes = bytes_of(s);
    cost.least_bytes = rows.empty() ? bytes : std::min(cost.least_bytes, bytes);
    cost.most_bytes = std::max(cost.most_bytes, bytes);
    rows.push_back({{1, bytes / bandwidth},
                    s.time.si(),
                    mixed(1, std::floor(std::log2(std::max(1.0, bytes)))),
                    s.conditions});
  }
  // The second value is the inverse of the efficiency: times are sums of terms.
  const auto fit = fit_sum(rows, {{1e-7, 1e-3, 5e-6}, {0.8, 50, 1.2}});
  if (!fit) return std::nullopt;
  const Fitted slow = fit->values[1];
  cost.efficiency = {1 / slow.value, slow.error / (slow.value * slow.value)};
  cost.fixed = fit->values[0];
  cost.error = fit->error;
  return cost;
}

Chosen host_copies(const std::string& variant) {
  return [variant](const Sample& s) {
    return s.is_work && s.kernel.work.kind == WorkKind::host_copy && s.variant == variant;
  };
}
Chosen peer_copies(const std::string& variant) {
  return [variant](const Sample& s) { return s.kind == "peer-copy" && s.variant == variant; };
}

// What `both` takes against `there` and `back`, one at a time, with as many bytes.
std::optional<double> both_loss(const MeasuredLog& log, const Chosen& there, const Chosen& back,
                                const Chosen& both) {
  std::map<double, std::vector<double>> up, down;
  for (const Sample& s : log.samples) {
    if (there(s)) up[bytes_of(s)].push_back(s.time.si());
    if (back(s)) down[bytes_of(s)].push_back(s.time.si());
  }
  std::vector<double> losses;
  for (const Sample& s : log.samples) {
    const double bytes = both(s) ? bytes_of(s) : 0;
    if (bytes < large_copy || !up.contains(bytes) || !down.contains(bytes)) continue;
    const double alone = 1 / median(up[bytes]) + 1 / median(down[bytes]);
    losses.push_back(1 - 2 / s.time.si() / alone);
  }
  if (losses.empty()) return std::nullopt;
  return median(losses);
}

Sourced<Seconds> gap(const LaunchCost& cost, const std::string& source) {
  const double value = cost.seconds(usual_parameters);
  Sourced<Seconds> out{.value = Seconds(value),
                       .evidence = Evidence::measured,
                       .source = source,
                       .reason = "fitted"};
  if (const double error = cost.each.error; error > 0) {
    out.low = Seconds(std::max(0.0, value - 2 * error));
    out.high = Seconds(value + 2 * error);
    out.reason = "fitted; range: two standard errors, between runs where there are several";
  }
  return out;
}

double relative(const Fitted& f) { return f.value > 0 ? f.error / f.value : 0; }

std::string line_of(const std::string& name, const LaunchCost& c) {
  return fmt::format(
      "{:<22} {:.2f} +- {:.2f} us, {:+.1f} ns a parameter, {:.1f} us once; left out: {:.1f}% "
      "median, {:.1f}% p90 of {}\n",
      name, 1e6 * c.each.value, 1e6 * c.each.error, 1e9 * c.per_parameter.value, 1e6 * c.once.value,
      100 * c.error.median, 100 * c.error.p90, c.error.rows);
}
// A node costs the host so little that microseconds would say nothing.
std::string graph_line_of(const std::string& name, const LaunchCost& c) {
  return fmt::format(
      "{:<22} {:.2f} +- {:.2f} us, {:+.1f} +- {:.1f} ns a node; left out: {:.1f}% median, "
      "{:.1f}% p90 of {}\n",
      name, 1e6 * c.once.value, 1e6 * c.once.error, 1e9 * c.each.value, 1e9 * c.each.error,
      100 * c.error.median, 100 * c.error.p90, c.error.rows);
}
std::string line_of(const std::string& name, const LinkCost& c) {
  return fmt::format(
      "{:<22} {:.1f} +- {:.1f}% of {:.0f} GB/s, {:.2f} us fixed; left out: {:.1f}% median, "
      "{:.1f}% p90 of {}\n",
      name, 100 * c.efficiency.value, 100 * c.efficiency.error, 1e-9 * c.bandwidth,
      1e6 * c.fixed.value, 100 * c.error.median, 100 * c.error.p90, c.error.rows);
}

}  // namespace

LaunchFit fit_launches(const MeasuredLog& log, const ResolvedDevice& device) {
  const double host = device.host_bandwidth.si(), peer = device.scale_up_bandwidth.si();
  const auto up = host_copies("to-device"), down = host_copies("to-host");
  LaunchFit fit{.stream = fit_chain(log, "stream"),
                .graph = fit_chain(log, "graph"),
                .host = fit_host(log),
                .graph_host = fit_graph_host(log),
                .to_device = fit_link(log, host, up),
                .to_host = fit_link(log, host, down),
                .host_link = fit_link(log, host, [&](const Sample& s) { return up(s) || down(s); }),
                .peer = fit_link(log, peer, peer_copies("one-way")),
                .peer_read = fit_link(log, peer, peer_copies("kernel-read")),
                .host_both_loss = both_loss(log, up, down, host_copies("both")),
                .peer_both_loss = both_loss(log, peer_copies("one-way"), peer_copies("one-way"),
                                            peer_copies("both")),
                .source = measured_source(device.name)};
  return fit;
}

void put(const LaunchFit& fit, Calibration& calibration) {
  if (fit.stream) calibration.launch_latency = gap(*fit.stream, fit.source);
  if (fit.graph) calibration.graph_latency = gap(*fit.graph, fit.source);
  if (!fit.host_link) return;
  const LinkCost& link = *fit.host_link;
  Curve curve{.memory_efficiency = link.efficiency.value, .fixed_seconds = link.fixed.value};
  curve.kind = WorkKind::host_copy;
  curve.library = Library::fused;
  curve.present = true;
  curve.scale = {.value = 1.0, .evidence = Evidence::measured, .source = fit.source};
  curve.quality = {
      .fitted = link.error.rows,
      .held_out = link.error.rows,
      .median = link.error.median,
      .p90 = link.error.p90,
      .spread = {{parameter_name(&Curve::memory_efficiency), relative(link.efficiency)},
                 {parameter_name(&Curve::fixed_seconds), relative(link.fixed)}}};
  for (const double bytes : {link.least_bytes, link.most_bytes})
    include(curve.quality.region, {.kind = WorkKind::host_copy, .bytes_read = bytes});
  put_curve(calibration, curve);
}

std::string launches_text(const LaunchFit& fit) {
  std::string text;
  const auto add = [&text](const char* name, const auto& cost) {
    if (cost) text += line_of(name, *cost);
  };
  add("launch, stream", fit.stream);
  add("launch, graph", fit.graph);
  add("launch, host", fit.host);
  if (fit.graph_host) text += graph_line_of("graph launch, host", *fit.graph_host);
  add("copy to the device", fit.to_device);
  add("copy to the host", fit.to_host);
  add("copy to a peer", fit.peer);
  add("read from a peer", fit.peer_read);
  if (fit.host_both_loss)
    text += fmt::format("host link, both ways: {:.0f}% lost\n", 100 * *fit.host_both_loss);
  if (fit.peer_both_loss)
    text += fmt::format("peers, both ways: {:.0f}% lost\n", 100 * *fit.peer_both_loss);
  return text;
}

}  // namespace orrery
