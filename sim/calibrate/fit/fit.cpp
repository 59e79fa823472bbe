// SPDX-License-Identifier: Apache-2.0
// Knows in which order a device's tables are fitted, and how the result is written down.
#include "sim/calibrate/fit/fit.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>

#include "hw_models/catalog.h"
#include "sim/base/errors/check.h"
#include "sim/base/json/tree.h"
#include "sim/base/statistics.h"
#include "sim/calibrate/fit/curve_fit.h"
#include "sim/calibrate/fit/score.h"
#include "sim/calibrate/log/measured_tables.h"

namespace orrery {

namespace {

// What tells a row's shape apart, whatever its table calls it.
using ShapeKey = std::array<std::int64_t, 13>;
ShapeKey shape_key(const OperatorRow& row) {
  const Work& w = row.kernels[static_cast<std::size_t>(row.count - 1)].work;
  return {w.m,        w.n,     w.k,        w.groups, w.pool,  static_cast<std::int64_t>(w.role),
          w.batch,    w.heads, w.kv_heads, w.qk_dim, w.v_dim, w.q_length,
          w.kv_length};
}

// How much slower `b` is than `a` at the shapes that both have: the median, or 1 where few are.
struct Disagreement {
  double slower = 1;
  std::size_t shapes = 0;
};
Disagreement disagreement(const OperatorTable& a, const OperatorTable& b) {
  constexpr std::size_t fewest = 20;
  std::map<ShapeKey, double> times;
  for (const OperatorRow& row : a.rows) times.emplace(shape_key(row), row.measured.si());
  std::vector<double> ratios;
  for (const OperatorRow& row : b.rows)
    if (const auto found = times.find(shape_key(row)); found != times.end())
      ratios.push_back(row.measured.si() / found->second);
  if (ratios.size() < fewest) return {};
  return {.slower = median(ratios), .shapes = ratios.size()};
}

// Joins a table of the same kernel. Where both disagree at equal shapes, a board was throttled or a
// column is mislabelled: the faster one stays.
void join(OperatorTable& into, const OperatorTable& table) {
  constexpr double most = 1.25;
  const auto add_note = [&into](const std::string& text) {
    if (!text.empty()) into.note += (into.note.empty() ? "" : "; ") + text;
  };
  const Disagreement d = disagreement(into, table);
  if (d.slower > most || d.slower < 1 / most) {
    if (d.slower < 1) into.rows = table.rows;
    add_note(
        fmt::format("a table that is {:.2f} times slower at {} equal shapes is left out: "
                    "throttled or mislabelled",
                    std::max(d.slower, 1 / d.slower), d.shapes));
    return;
  }
  into.rows.insert(into.rows.end(), table.rows.begin(), table.rows.end());
  into.host_bound = into.host_bound && table.host_bound;
  add_note(table.note);
}

// Tables of one kind, format and library are fitted together; refinements come after them.
std::vector<OperatorTable> joined(const std::vector<OperatorTable>& tables) {
  std::vector<OperatorTable> result;
  for (const bool refine : {false, true}) {
    for (const OperatorTable& table : tables) {
      if (table.refine != refine) continue;
      const auto same = std::find_if(result.begin(), result.end(), [&](const OperatorTable& t) {
        return t.kind == table.kind && t.format == table.format && t.library == table.library &&
               t.variant == table.variant && t.refine == refine;
      });
      if (same == result.end())
        result.push_back(table);
      else
        join(*same, table);
    }
  }
  return result;
}

// A refined curve replaces the one that it started from: what it then says of that one's rows.
void rescore(const std::vector<OperatorTable>& tables, const ResolvedDevice& device,
             const Calibration& known, std::vector<FitRow>& rows) {
  for (std::size_t i = 0; i < tables.size(); ++i) {
    if (rows[i].n_held == 0) continue;
    std::vector<OperatorRow> held;
    for (const OperatorRow& row : tables[i].rows)
      if (is_held_out(row)) held.push_back(row);
    Calibration used = known;
    use_variant(used, tables[i].kind, tables[i].format, tables[i].library, tables[i].variant);
    const Score s = score(tables[i], held, device, used);
    rows[i].median = s.median;
    rows[i].p90 = s.p90;
  }
}

std::string fit_note(const FitReport& report) {
  std::string note = "Fitted by orrery calibrate fit; errors are on rows that the fit never saw.";
  for (std::size_t i = 0; i < report.rows.size(); ++i) {
    const FitRow& row = report.rows[i];
    const bool refined = std::any_of(report.rows.begin() + static_cast<std::ptrdiff_t>(i) + 1,
                                     report.rows.end(), [&](const FitRow& later) {
                                       return later.kind == row.kind &&
                                              later.format == row.format &&
                                              later.library == row.library;
                                     });
    if (refined)
      note += fmt::format(
          " {}.{}.{} was then refined on training's kernels: {:.1f}% (median) and "
          "{:.1f}% (90th percentile) on the {} rows kept out of its first fit.",
          to_text(row.kind), to_text(row.format), to_text(row.library), 100 * row.median,
          100 * row.p90, row.n_held);
  }
  for (const FitRow& row : report.rows)
    if (!row.note.empty())
      note += fmt::format(" {}.{}.{}: {}.", to_text(row.kind), to_text(row.format),
                          to_text(row.library), row.note);
  return note;
}

// Fits the tables one after the other: what one says of a kernel, the next ones use. `known` holds
// everything that is known, `report` what was fitted.
void fit_curves(const ResolvedDevice& device, const std::vector<OperatorTable>& groups,
                const FitOptions& options, Calibration& known, FitReport& report) {
  for (const OperatorTable& table : groups) {
    CurveFit fit(device, known, table, options);
    report.rows.push_back(fit.run());
    Curve curve = fit.curve();
    curve.variant = table.variant;
    put_curve(report.calibration, curve);
    put_curve(known, curve);
    if (const auto& conversion = fit.conversion()) {
      put_curve(known, *conversion);
      if (!table.host_bound) put_curve(report.calibration, *conversion);
    }
    complete(known);
  }
  if (!report.calibration.curves.empty()) complete(report.calibration);
  rescore(groups, device, known, report.rows);
}

// What launches, links and energy cost, each where the log tells it.
void fit_costs(const MeasuredLog& log, const ResolvedDevice& device, Calibration& known,
               FitReport& report) {
  report.launches = fit_launches(log, device);
  put(report.launches, known);
  complete(known);
  put(report.launches, report.calibration);
  const bool has_power = std::any_of(log.samples.begin(), log.samples.end(), [](const Sample& s) {
    return s.kind == "power" && s.variant != "idle";
  });
  if (!has_power || device.power_limit.si() <= 0) return;
  report.power = fit_power(log, device);
  put(report.power, known, measured_source(device.name));
  put(report.power, report.calibration, measured_source(device.name));
}

std::vector<SustainedRow> check_sustained(const MeasuredLog& log, const ResolvedDevice& device,
                                          const Calibration& known) {
  std::vector<SustainedRow> rows;
  for (const OperatorTable& table : sustained_tables(log)) {
    const Score s = score(table, table.rows, device, known);
    rows.push_back({.kind = table.kind,
                    .format = table.format,
                    .library = table.library,
                    .rows = s.rows,
                    .median = s.median,
                    .p90 = s.p90});
  }
  return rows;
}

// What was measured under which conditions; programs of one run stand together.
Json measured_section(const MeasuredLog& log) {
  std::vector<Json> runs;
  for (const RunConditions& c : log.conditions) {
    Json run;
    run["device"] = c.device;
    run["driver"] = c.driver;
    run["cuda"] = c.cuda;
    run["host"] = c.host;
    run["date"] = c.date;
    run["gpus"] = c.gpus;
    run["power_limit_w"] = c.power_limit_w;
    run["max_clock_mhz"] = c.max_clock_mhz;
    run["memory_clock_mhz"] = c.memory_clock_mhz;
    const auto same = std::find_if(runs.begin(), runs.end(), [&](const Json& other) {
      return std::all_of(run.items().begin(), run.items().end(),
                         [&](const auto& item) { return other.at(item.first) == item.second; });
    });
    const bool is_new = same == runs.end();
    if (is_new) {
      run["programs"] = Json::array();
      run["libraries"] = Json::object();
    }
    Json& all = is_new ? runs.emplace_back(std::move(run)) : *same;
    Json& programs = all["programs"];
    if (std::find(programs.begin(), programs.end(), c.program) == programs.end())
      programs.push_back(c.program);
    for (const auto& [name, version] : c.libraries) all["libraries"][name] = version;
  }
  return runs;
}

}  // namespace

FitReport fit_tables(const ResolvedDevice& device, const Calibration& start,
                     const std::vector<OperatorTable>& tables, const FitOptions& options) {
  FitReport report;
  report.device = device.name;
  report.calibration.device = device.name;
  report.calibration.borrowed_from = options.based_on;
  Calibration known = start;
  fit_curves(device, joined(tables), options, known, report);
  report.json = to_json_text(report.calibration, fit_note(report));
  return report;
}

FitReport fit_log(const Device& device, const MeasuredLog& log, const FitOptions& options) {
  const ResolvedDevice resolved = device.resolved();
  FitReport report;
  report.device = device.name;
  report.calibration.device = device.name;
  Calibration known = load_estimates(device);
  // Gaps and energies first: kernels in graphs have gaps between them.
  fit_costs(log, resolved, known, report);
  std::vector<OperatorTable> tables = joined(measured_tables(log));
  if (report.launches.host_link)
    std::erase_if(tables, [](const auto& t) { return t.kind == WorkKind::host_copy; });
  // Copies first: they tell what the L2 gives to all streams.
  std::stable_partition(tables.begin(), tables.end(), [](const OperatorTable& t) {
    return t.kind == WorkKind::copy && t.library == Library::own;
  });
  std::stable_partition(tables.begin(), tables.end(), [](const auto& t) { return !t.twin; });
  const std::vector<OperatorTable> parts = variant_tables(tables);
  tables.insert(tables.end(), parts.begin(), parts.end());
  fit_curves(resolved, tables, options, known, report);
  report.sustained = check_sustained(log, resolved, known);
  Json json = Json::parse(to_json_text(report.calibration, fit_note(report)));
  report.collectives = fit_collectives(log, device.name, {.source = measured_source(device.name)});
  if (const auto section = collectives_section(report.collectives); !section.is_null())
    json["collectives"] = section;
  report.overlaps = overlap_costs(overlap_pairs(log));
  if (const auto section = overlap_section(report.overlaps); !section.is_null())
    json["overlap"] = section;
  json["measured"] = measured_section(log);
  report.json = json.dump(1) + "\n";
  return report;
}

FitReport fit_device(const std::string& device, const std::vector<std::filesystem::path>& files,
                     const FitOptions& options) {
  std::vector<std::filesystem::path> csv, lines;
  for (const auto& file : files) (file.extension() == ".csv" ? csv : lines).push_back(file);
  if (files.empty() || (!csv.empty() && !lines.empty()))
    throw Error({.file = "calibrate fit",
                 .found = files.empty() ? "no files" : "tables (*.csv) and samples together",
                 .expected = "either tables or samples (*.jsonl)"});
  if (csv.empty()) {
    const MeasuredLog log = read_measured_log(lines);
    const std::string measured = measured_device(log);
    if (!device.empty() && load_device(device).name != measured)
      throw Error({.file = lines.front().string(),
                   .found = "samples of " + measured,
                   .expected = "some of " + device});
    return fit_log(load_device(measured), log, options);
  }
  const Device catalogued = load_device(device);
  const ResolvedDevice resolved = catalogued.resolved();
  std::vector<OperatorTable> tables;
  for (const auto& file : csv) {
    for (OperatorTable& table : read_operator_tables(file)) {
      if (table.device != catalogued.name)
        throw Error({.file = file.string(),
                     .found = "a table of " + table.device,
                     .expected = "one of " + catalogued.name});
      drop_cached(table, resolved.l2_capacity, resolved.memory_bandwidth);
      tables.push_back(std::move(table));
    }
  }
  if (tables.empty())
    throw Error(
        {.file = csv.front().string(), .found = "nothing to fit", .expected = "a table with rows"});
  return fit_tables(resolved, load_estimates(catalogued), tables, options);
}

}  // namespace orrery
