// Knows how to fit a device's efficiency curves to measured operators, keeping some rows unseen.
#include "sim/calibrate/fit.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "hw_models/catalog.h"
#include "sim/calibrate/score.h"

namespace orrery {

namespace {

// One free number of the table's curve, or of the conversion that its rows time as well.
struct Free {
  double Curve::*member;
  double low, high, start;
  bool quantise = false;
};

std::vector<Free> gemm_parameters(const OperatorTable& table) {
  std::vector<Free> free = {{&Curve::tensor_efficiency, 0.05, 1.1, 0.7},
          {&Curve::k_half, 10, 3000, 200},
          {&Curve::wave_exponent, 0.0, 1.0, 0.7},
          {&Curve::tile_loss, 1.0, 1000, 20},
          {&Curve::memory_efficiency, 0.1, 1.0, 0.8},
          {&Curve::saturation_bytes, 1e4, 1e8, 2e6},
          {&Curve::epilogue_exposed, 0.0, 1.0, 0.3},
          {&Curve::split_k, 128, 16384, 512},
          {&Curve::fixed_seconds, 3e-7, 4e-5, 1.5e-6}};
  if (table.host_bound) free.resize(4);  // the rest is set to what other frameworks measured
  if (table.kind == WorkKind::gemm && table.format != Format::bf16) {
    free.push_back({&Curve::memory_efficiency, 0.05, 0.95, 0.4, true});
    if (!table.host_bound) free.push_back({&Curve::fixed_seconds, 3e-7, 2e-5, 2e-6, true});
  }
  return free;
}

std::vector<Free> attention_parameters() {
  return {{&Curve::tensor_efficiency, 0.2, 1.0, 0.75},
          {&Curve::k_half, 10, 2000, 150},
          {&Curve::wave_exponent, 0.0, 1.0, 0.5},
          {&Curve::special_efficiency, 0.1, 1.0, 0.6},
          {&Curve::memory_efficiency, 0.3, 0.95, 0.8},
          {&Curve::saturation_bytes, 1e4, 3e7, 1e6},
          {&Curve::epilogue_exposed, 0.0, 3.0, 1.0},
          {&Curve::energy_factor, 0.5, 2.5, 1.1},
          {&Curve::head_dim_exponent, 0.0, 1.0, 0.2},
          {&Curve::fixed_seconds, 5e-7, 3e-5, 5e-6}};
}

std::vector<Free> decode_parameters() {
  return {{&Curve::tensor_efficiency, 0.02, 1.0, 0.3},
          {&Curve::k_half, 1, 2000, 100},
          {&Curve::memory_efficiency, 0.3, 1.0, 0.9},
          {&Curve::saturation_bytes, 1e4, 1e8, 2e6},
          {&Curve::fixed_seconds, 2e-6, 3e-5, 1e-5}};
}

std::vector<Free> free_parameters(const OperatorTable& table) {
  switch (table.kind) {
    case WorkKind::attention_forward: return attention_parameters();
    case WorkKind::attention_decode: return decode_parameters();
    default: return gemm_parameters(table);
  }
}

// The largest tile of each generation: two processors share 256 rows of a Blackwell tile.
void set_tiles(Curve& curve, const ResolvedDevice& device) {
  const bool wide = device.architecture == Architecture::blackwell ||
                    device.architecture == Architecture::blackwell_ultra;
  curve.tile_m = 128;
  curve.tile_n = curve.kind == WorkKind::attention_forward ? 128 : 256;
  if (wide && is_product(curve.kind)) curve.tile_n = 256;
  if (curve.kind == WorkKind::attention_decode) curve.tile_m = 64;
}

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
    sample_ = thin(fitted_, static_cast<std::size_t>(options.max_rows));
    weights_ = row_weights(sample_);
    Curve curve;
    curve.kind = table.kind;
    curve.format = table.format;
    curve.library = table.library;
    curve.present = true;
    set_tiles(curve, device);
    curve.scale = {.value = 1.0, .low = {}, .high = {}, .evidence = Evidence::measured,
                   .source = options.source, .reason = ""};
    if (table.host_bound) {
      // The same kernels under another framework: 4 to 5 us at least, weights streamed at 73-77%.
      curve.memory_efficiency = 0.75;
      curve.fixed_seconds = 3.5e-6;
    }
    put_curve(calibration_, curve);
    if (converts()) {
      curve.kind = WorkKind::quantise;
      curve.library = Library::eager;
      curve.memory_efficiency = 0.5;
      curve.fixed_seconds = 2e-6;
      curve.tensor_efficiency = 0;
      put_curve(calibration_, curve);
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
    // Restarts from the last answer leave the simplex's false minima.
    for (int restart = 0; restart < options.restarts; ++restart)
      start = minimise(cost, low, high, start, options.iterations);
    set(free, start);
  }

  FitRow report() {
    const Score s = score(table_, held_, device_, calibration_);
    curve().quality = {.fitted = static_cast<int>(fitted_.size()), .held_out = s.rows,
                       .median = s.median, .p90 = s.p90};
    return {.kind = table_.kind, .format = table_.format, .library = table_.library,
            .n_fit = static_cast<int>(fitted_.size()), .n_held = s.rows, .median = s.median,
            .p90 = s.p90, .note = table_.note};
  }

  Curve& curve() {
    return calibration_.curves[calibration_.index[Calibration::slot(table_.kind, table_.format,
                                                                     table_.library)]];
  }
  Curve& conversion() {
    return calibration_.curves[calibration_.index[Calibration::slot(
        WorkKind::quantise, table_.format, Library::eager)]];
  }
  bool converts() const {
    return table_.kind == WorkKind::gemm && table_.format != Format::bf16;
  }

 private:
  void set(const std::vector<Free>& free, const std::vector<double>& x) {
    for (std::size_t i = 0; i < free.size(); ++i)
      (free[i].quantise ? conversion() : curve()).*free[i].member = x[i];
  }

  const ResolvedDevice& device_;
  const OperatorTable& table_;
  Calibration calibration_;
  std::vector<OperatorRow> fitted_, held_, sample_;
  std::vector<double> weights_;
};

}  // namespace

FitReport fit_tables(const ResolvedDevice& device, const Calibration& start,
                     const std::vector<OperatorTable>& tables, const FitOptions& options) {
  FitReport report;
  report.device = device.name;
  report.calibration.device = device.name;
  Calibration known = start;
  for (const OperatorTable& table : tables) {
    TableFit fit(device, known, table, options);
    fit.run(options);
    report.rows.push_back(fit.report());
    put_curve(report.calibration, fit.curve());
    put_curve(known, fit.curve());
    if (fit.converts() && !table.host_bound) put_curve(report.calibration, fit.conversion());
    complete(known);
  }
  complete(report.calibration);
  return report;
}

}  // namespace orrery
