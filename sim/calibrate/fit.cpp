// Knows how to fit a device's efficiency curves to measured operators, keeping some rows unseen.
#include "sim/calibrate/fit.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "hw_models/catalog.h"
#include "sim/base/random.h"
#include "sim/calibrate/free_parameters.h"
#include "sim/calibrate/score.h"

namespace orrery {

namespace {

// Tables hold many short kernels and few long ones, but long ones make a step: each half decade of
// time counts by the square root of its rows.
std::vector<double> row_weights(const std::vector<OperatorRow>& rows) {
  const auto bin = [](const OperatorRow& row) {
    return static_cast<int>(std::floor(2 * std::log10(row.measured.si())));
  };
  std::map<int, int> counts;
  for (const OperatorRow& row : rows) ++counts[bin(row)];
  std::vector<double> weights;
  for (const OperatorRow& row : rows)
    weights.push_back(1 / std::sqrt(static_cast<double>(counts[bin(row)])));
  return weights;
}

// Rows that say something of burst speed: replays beyond some 60 ms ran under the power limit, by
// how much depends on the board and on what ran before.
std::vector<OperatorRow> short_rows(const std::vector<OperatorRow>& rows) {
  std::vector<OperatorRow> brief;
  for (const OperatorRow& row : rows)
    if (row.measured.si() * row.replays < 60e-3) brief.push_back(row);
  return brief.empty() ? rows : brief;
}

std::vector<OperatorRow> thin(const std::vector<OperatorRow>& rows, std::size_t most) {
  if (rows.size() <= most) return rows;
  std::vector<OperatorRow> few;
  for (std::size_t i = 0; i < most; ++i) few.push_back(rows[i * rows.size() / most]);
  return few;
}

// Grows like the square near zero and like the absolute value beyond 10%: outliers do not pull.
double robust(double log_ratio) {
  const double x = log_ratio / 0.1;
  return std::sqrt(1 + x * x) - 1;
}

class TableFit {
 public:
  TableFit(const ResolvedDevice& device, Calibration start, const OperatorTable& table,
           const FitOptions& options)
      : device_(device), table_(table), calibration_(std::move(start)) {
    for (const OperatorRow& row : table.rows) (is_held_out(row) ? held_ : fitted_).push_back(row);
    sample_ = thin(short_rows(fitted_), static_cast<std::size_t>(options.max_rows));
    weights_ = row_weights(sample_);
    put_curve(calibration_, first_curve());
    if (converts()) {
      Curve conversion;
      conversion.kind = WorkKind::quantise;
      conversion.format = table.format;
      conversion.library = table_.library;
      conversion.memory_efficiency = 0.5;
      conversion.fixed_seconds = 2e-6;
      set_evidence(conversion);
      put_curve(calibration_, conversion);
    }
    complete(calibration_);
  }

  void run(const FitOptions& options) {
    const auto free = free_parameters(table_);
    std::vector<double> low, high, start;
    for (const Free& f : free) {
      low.push_back(f.low);
      high.push_back(f.high);
      start.push_back(f.start);
    }
    const auto cost = [&](const std::vector<double>& x) {
      set(free, x);
      double sum = 0;
      for (std::size_t i = 0; i < sample_.size(); ++i)
        sum += weights_[i] *
               robust(std::log(predict(sample_[i], device_, calibration_) / sample_[i].measured));
      return sum;
    };
    // Several starts, and restarts from the best answer, leave the simplex's false minima.
    RandomStream random(1, 0);
    std::vector<double> best = start;
    double best_cost = cost(start);
    for (int attempt = 0; attempt < options.starts; ++attempt) {
      std::vector<double> from = attempt % 2 == 0 ? best : start;
      if (attempt > 0)
        for (std::size_t i = 0; i < from.size(); ++i)
          from[i] += (random.uniform() - 0.5) * (attempt % 2 == 0 ? 0.1 : 0.8) *
                     (high[i] - low[i] > 10 * low[i] ? from[i] : high[i] - low[i]);
      for (std::size_t i = 0; i < from.size(); ++i) from[i] = std::clamp(from[i], low[i], high[i]);
      const auto found = minimise(cost, low, high, from, options.iterations);
      const double found_cost = cost(found);
      if (found_cost < best_cost) {
        best = found;
        best_cost = found_cost;
      }
    }
    set(free, best);
    // Full-width accumulation was timed for one gradient and holds for both.
    if (table_.refine && table_.format != Format::bf16)
      curve().role_factor[2] = curve().role_factor[1];
  }

  FitRow report() {
    const Score s = score(table_, held_, device_, calibration_);
    curve().quality = {.fitted = static_cast<int>(fitted_.size()),
                       .held_out = s.rows,
                       .median = s.median,
                       .p90 = s.p90};
    return {.kind = table_.kind,
            .format = table_.format,
            .library = table_.library,
            .n_fit = static_cast<int>(fitted_.size()),
            .n_held = s.rows,
            .median = s.median,
            .p90 = s.p90,
            .note = table_.note};
  }

  Curve& curve() {
    return calibration_
        .curves[calibration_.index[Calibration::slot(table_.kind, table_.format, table_.library)]];
  }
  Curve& conversion() {
    return calibration_.curves[calibration_.index[Calibration::slot(
        WorkKind::quantise, table_.format, table_.library)]];
  }
  bool converts() const {
    return table_.kind == WorkKind::gemm && table_.format != Format::bf16 && !table_.refine;
  }

 private:
  void set_evidence(Curve& curve) const {
    curve.scale = {.value = 1.0,
                   .low = {},
                   .high = {},
                   .evidence = Evidence::measured,
                   .source = table_.source,
                   .reason = ""};
    curve.present = true;
  }

  Curve first_curve() const {
    Curve curve;
    const bool streams = !is_product(table_.kind) && !is_attention(table_.kind);
    if (table_.refine || streams)
      curve = calibration_.curve(table_.kind, table_.format, table_.library);
    curve.kind = table_.kind;
    curve.format = table_.format;
    curve.library = table_.library;
    if (!streams) set_tiles(curve);
    if (!table_.refine && is_product(table_.kind)) {
      // Aligned forward products cannot show these; timed on H200 with training's own kernels.
      curve.misaligned_factor = 2.7;
      curve.accumulate_exposed = 0.53;
    }
    // H200 at its limit: 1.07 pJ an operation in attention, 0.90 in products.
    if (is_attention(table_.kind)) curve.energy_factor = 1.19;
    if (table_.host_bound) {
      // The same kernels under another framework: 4 to 5 us at least, weights streamed at 73-77%
      // (hardware tables of aiconfigurator, DeepGEMM under SGLang).
      curve.memory_efficiency = 0.75;
      curve.fixed_seconds = 3.5e-6;
      curve.wave_exponent = 0.3;
      curve.tile_loss = 50;
    }
    set_evidence(curve);
    return curve;
  }

  void set(const std::vector<Free>& free, const std::vector<double>& x) {
    for (std::size_t i = 0; i < free.size(); ++i)
      free[i].in(free[i].quantise ? conversion() : curve()) = x[i];
  }

  const ResolvedDevice& device_;
  const OperatorTable& table_;
  Calibration calibration_;
  std::vector<OperatorRow> fitted_, held_, sample_;
  std::vector<double> weights_;
};

// Tables of one kind, format and library are fitted together; refinements come after them.
std::vector<OperatorTable> joined(const std::vector<OperatorTable>& tables) {
  std::vector<OperatorTable> result;
  for (const bool refine : {false, true}) {
    for (const OperatorTable& table : tables) {
      if (table.refine != refine) continue;
      const auto same = std::find_if(result.begin(), result.end(), [&](const OperatorTable& t) {
        return t.kind == table.kind && t.format == table.format && t.library == table.library &&
               t.refine == refine;
      });
      if (same == result.end()) {
        result.push_back(table);
        continue;
      }
      same->rows.insert(same->rows.end(), table.rows.begin(), table.rows.end());
      same->host_bound = same->host_bound && table.host_bound;
      if (!table.note.empty()) same->note += (same->note.empty() ? "" : "; ") + table.note;
    }
  }
  return result;
}

// A refined curve replaces the one that it started from: what it then says of that one's rows.
void rescore(const std::vector<OperatorTable>& tables, const ResolvedDevice& device,
             const Calibration& known, std::vector<FitRow>& rows) {
  for (std::size_t i = 0; i < tables.size(); ++i) {
    std::vector<OperatorRow> held;
    for (const OperatorRow& row : tables[i].rows)
      if (is_held_out(row)) held.push_back(row);
    const Score s = score(tables[i], held, device, known);
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

}  // namespace

FitReport fit_tables(const ResolvedDevice& device, const Calibration& start,
                     const std::vector<OperatorTable>& tables, const FitOptions& options) {
  FitReport report;
  report.device = device.name;
  report.calibration = start;
  report.calibration.curves.clear();
  report.calibration.device = device.name;
  report.calibration.borrowed_from = options.based_on;
  Calibration known = start;
  const std::vector<OperatorTable> groups = joined(tables);
  for (const OperatorTable& table : groups) {
    TableFit fit(device, known, table, options);
    fit.run(options);
    report.rows.push_back(fit.report());
    put_curve(report.calibration, fit.curve());
    put_curve(known, fit.curve());
    if (fit.converts()) put_curve(known, fit.conversion());
    if (fit.converts() && !table.host_bound) put_curve(report.calibration, fit.conversion());
    complete(known);
  }
  if (!report.calibration.curves.empty()) complete(report.calibration);
  rescore(groups, device, known, report.rows);
  report.json = to_json_text(report.calibration, fit_note(report));
  return report;
}

FitReport fit_device(const std::string& device, const std::vector<std::filesystem::path>& files,
                     const FitOptions& options) {
  const Device catalogued = load_device(device);
  std::vector<OperatorTable> tables;
  for (const auto& file : files) {
    for (OperatorTable& table : read_operator_tables(file)) {
      if (table.device != catalogued.name)
        throw Error({.file = file.string(),
                     .path = "",
                     .found = "a table of " + table.device,
                     .expected = "one of " + catalogued.name,
                     .nearest = ""});
      tables.push_back(std::move(table));
    }
  }
  if (tables.empty())
    throw Error({.file = "",
                 .path = "",
                 .found = "no tables",
                 .expected = "at least one file",
                 .nearest = ""});
  return fit_tables(catalogued.resolved(), load_estimates(catalogued), tables, options);
}

}  // namespace orrery
