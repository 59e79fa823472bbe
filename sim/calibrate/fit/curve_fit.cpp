// SPDX-License-Identifier: Apache-2.0
// Fits one curve to its rows, and measures how far the fit can be trusted.
#include "sim/calibrate/fit/curve_fit.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>

#include "sim/base/errors/check.h"
#include "sim/base/statistics.h"
#include "sim/calibrate/fit/score.h"

namespace orrery {

namespace {

using Rows = std::vector<OperatorRow>;

// What few rows show stays where it is expected, as if a row of this weight said so: twice as much
// weighs as an error of 8% in one row.
constexpr double expected_weight = 0.05;

// Tables hold many short kernels and few long ones, but long ones make a step: each half decade of
// time counts by the square root of its rows.
std::vector<double> row_weights(const Rows& rows) {
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
Rows short_rows(const Rows& rows) {
  Rows brief;
  for (const OperatorRow& row : rows)
    if (row.measured.si() * row.replays < 60e-3) brief.push_back(row);
  return brief.empty() ? rows : brief;
}

Rows thin(const Rows& rows, std::size_t most) {
  if (rows.size() <= most) return rows;
  Rows few;
  for (std::size_t i = 0; i < most; ++i) few.push_back(rows[i * rows.size() / most]);
  return few;
}

// The work that a row's table is about: an expert layer has two products.
const Work& main_work(const OperatorRow& row, WorkKind kind) {
  for (int i = 0; i < row.count; ++i) {
    const Work& work = row.kernels[static_cast<std::size_t>(i)].work;
    if (work.kind == kind) return work;
  }
  return row.kernels[0].work;
}

Region region_of(const Rows& rows, WorkKind kind) {
  Region region;
  for (const OperatorRow& row : rows)
    for (int i = 0; i < row.count; ++i) {
      const Work& work = row.kernels[static_cast<std::size_t>(i)].work;
      if (work.kind == kind) include(region, work);
    }
  return region;
}

RegionError error_where(const std::string& name, const Rows& rows,
                        const std::vector<double>& log_errors, auto&& inside) {
  std::vector<double> errors;
  for (std::size_t i = 0; i < rows.size(); ++i)
    if (inside(rows[i])) errors.push_back(std::abs(std::expm1(log_errors[i])));
  RegionError result{.name = name, .rows = static_cast<int>(errors.size())};
  if (errors.empty()) return result;
  result.median = median(errors);
  result.p90 = percentile(errors, 90);
  return result;
}

// Thirds of a kind's main axis, at round places.
std::vector<RegionError> by_region(const Rows& rows, const std::vector<double>& log_errors,
                                   WorkKind kind) {
  const bool product = is_product(kind), attention = is_attention(kind);
  const Axis axis = product ? Axis::m : attention ? Axis::kv_length : Axis::bytes;
  const double low = product ? 128 : attention ? 1024 : 4e6;
  const double high = product ? 2048 : attention ? 8192 : 128e6;
  const auto at = [&](const OperatorRow& row) {
    return position(main_work(row, kind), axis).value_or(1);
  };
  const std::string what = axis == Axis::bytes ? "" : std::string(to_text(axis)) + " ";
  const auto size = [&](double value) {
    return axis == Axis::bytes ? fmt::format("{:.0f} MB", value / 1e6)
                               : fmt::format("{:.0f}", value);
  };
  return {error_where(what + "under " + size(low), rows, log_errors,
                      [&](const OperatorRow& r) { return at(r) < low; }),
          error_where(what + size(low) + " to " + size(high), rows, log_errors,
                      [&](const OperatorRow& r) { return at(r) >= low && at(r) < high; }),
          error_where(what + "from " + size(high), rows, log_errors,
                      [&](const OperatorRow& r) { return at(r) >= high; })};
}

std::vector<double> magnitudes(const std::vector<double>& log_errors) {
  std::vector<double> errors;
  for (const double e : log_errors) errors.push_back(std::abs(std::expm1(e)));
  return errors;
}

// What another run of the same programs may give: two standard errors, of the fit and of the
// boards.
void set_range(Sourced<double>& scale, const FitRow& row) {
  const double error = 2 * std::hypot(row.spread, row.runs.spread);
  if (error <= 0) return;
  scale.low = std::exp(-error);
  scale.high = std::exp(error);
  scale.reason = row.runs.runs > 1
                     ? fmt::format("two standard errors: of the fit, and of {} runs", row.runs.runs)
                     : "two standard errors of the fit; boards differ by more";
}

template <class Q>
void forget_texts(Sourced<Q>& sourced) {
  sourced.source.clear();
  sourced.reason.clear();
}

// Energy of an operation over that of plain products. H200 at its limit: 0.91 pJ in products; 1.16
// in cuDNN's attention and 1.99 in FlashAttention-2, whose operands pass through registers
// (measured/run-4/framework.jsonl); 1.30 in cuDNN's backward (validation/measurements/
// h200_power.jsonl). FlashAttention-3 as estimated before (1.07 over 0.90).
double attention_energy(const OperatorTable& table) {
  if (table.library == Library::flash2) return 2.18;
  if (table.library != Library::cudnn_attention) return 1.19;
  return table.kind == WorkKind::attention_backward ? 1.43 : 1.27;
}

}  // namespace

CurveFit::CurveFit(const ResolvedDevice& device, const Calibration& known,
                   const OperatorTable& table, const FitOptions& options)
    : device_(device),
      cold_(without_cache(device)),
      table_(table),
      options_(options),
      known_(known),
      free_(free_parameters(table)) {
  for (const OperatorRow& row : table.rows) (is_held_out(row) ? held_ : fitted_).push_back(row);
  if (fitted_.empty()) std::swap(fitted_, held_);  // few rows: all are fitted, none is kept out
  sample_ = thin(short_rows(fitted_), static_cast<std::size_t>(options.max_rows));
  curve_ = first_curve();
  for (Free& f : free_)
    if (f.expected && f.in(curve_) > 0) f.start = f.in(curve_);
  put_curve(known_, curve_);
  if (table.converts) {
    conversion_.emplace();
    conversion_->kind = WorkKind::quantise;
    conversion_->format = table.format;
    conversion_->library = table.library;
    conversion_->memory_efficiency = 0.5;
    conversion_->fixed_seconds = 2e-6;
    set_evidence(*conversion_);
    put_curve(known_, *conversion_);
  }
  complete(known_);
}

void CurveFit::set_evidence(Curve& curve) const {
  curve.scale = {.value = 1.0,
                 .low = {},
                 .high = {},
                 .evidence = Evidence::measured,
                 .source = table_.source,
                 .reason = ""};
  curve.present = true;
}

Curve CurveFit::first_curve() const {
  Curve curve;
  const bool streams = !is_product(table_.kind) && !is_attention(table_.kind);
  if (table_.refine || streams) curve = known_.curve(table_.kind, table_.format, table_.library);
  // A library's tiles are its own: rather its bf16 kernels than another's of this format.
  if (table_.twin || (table_.refine && curve.library != table_.library))
    curve = known_.curve(table_.kind, Format::bf16, table_.library);
  curve.kind = table_.kind;
  curve.format = table_.format;
  curve.library = table_.library;
  curve.quality = {};
  if (!streams) set_tiles(curve, device_.architecture);
  const bool own = std::any_of(table_.rows.begin(), table_.rows.end(),
                               [](const OperatorRow& row) { return row.cold; });
  if (streams && own) {
    // What the L2 gives is the device's: copies that stayed in it say so for all kernels.
    const Curve& copy = known_.curve(WorkKind::copy, table_.format, Library::own);
    curve.l2_efficiency = copy.l2_efficiency;
    curve.fixed_seconds = copy.fixed_seconds;
    const Curve& other = known_.curve(WorkKind::elementwise, table_.format, Library::own);
    if (curve.stream_width == 0) curve.stream_width = other.stream_width;
    if (curve.kind == WorkKind::router)
      curve.l2_efficiency = curve.saturation_bytes = curve.stream_width = 0;
  }
  if (!table_.refine && !table_.twin && is_product(table_.kind)) {
    // Aligned forward products cannot show these; timed on H200 with training's own kernels.
    curve.misaligned_factor = 2.7;
    curve.accumulate_exposed = 0.53;
    const Curve& plain = known_.curve(WorkKind::gemm, Format::bf16, Library::cublas);
    curve.sector_factor = plain.sector_factor > 1 ? plain.sector_factor : 1.08;
  }
  if (is_attention(table_.kind)) curve.energy_factor = attention_energy(table_);
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

Calibration CurveFit::slim(const Rows& rows) const {
  Calibration few;
  few.tensor_energy = known_.tensor_energy;
  few.memory_energy = known_.memory_energy;
  few.busy_share = known_.busy_share;
  few.graph_latency = known_.graph_latency;
  visit_calibration(few, [](const std::string&, auto& sourced) { forget_texts(sourced); });
  const auto add = [&](WorkKind kind, Format format, Library library) {
    const std::size_t slot = Calibration::slot(kind, format, library);
    const Curve& curve = known_.curve(kind, format, library);
    auto place = few.curves.begin();
    while (place != few.curves.end() &&
           (place->kind != curve.kind || place->format != curve.format ||
            place->library != curve.library))
      ++place;
    few.index[slot] = static_cast<std::uint16_t>(place - few.curves.begin());
    if (place != few.curves.end()) return;
    few.curves.push_back(curve);
    few.curves.back().quality = {};
    forget_texts(few.curves.back().scale);
  };
  // The curve itself comes first, its conversion second: see set().
  add(table_.kind, table_.format, table_.library);
  if (conversion_) add(WorkKind::quantise, table_.format, table_.library);
  for (const OperatorRow& row : rows)
    for (int i = 0; i < row.count; ++i) {
      const Kernel& kernel = row.kernels[static_cast<std::size_t>(i)];
      add(kernel.work.kind, kernel.work.input, kernel.library);
    }
  return few;
}

void CurveFit::set(Calibration& calibration, std::span<const double> x) const {
  for (std::size_t i = 0; i < free_.size(); ++i)
    free_[i].in(calibration.curves[free_[i].quantise ? 1 : 0]) = x[i];
}

LeastSquaresProblem CurveFit::problem(const Rows& rows) const {
  LeastSquaresProblem p;
  for (const Free& f : free_) p.free.push_back({.low = f.low, .high = f.high, .start = f.start});
  p.rows = rows.size();
  p.weights = row_weights(rows);
  for (const OperatorRow& row : rows) p.families.push_back(row.family);
  for (const Free& f : free_) {
    if (!f.expected) continue;
    ++p.rows;
    p.weights.push_back(expected_weight);
    p.families.push_back(0);
  }
  p.residuals = [this, &rows, few = slim(rows)](std::span<const double> x,
                                                std::span<double> residuals) {
    Calibration calibration = few;
    set(calibration, x);
    for (std::size_t i = 0; i < rows.size(); ++i)
      residuals[i] = std::log(predict(rows[i], device_, cold_, calibration) / rows[i].measured);
    std::size_t next = rows.size();
    for (std::size_t i = 0; i < free_.size(); ++i)
      if (free_[i].expected) residuals[next++] = std::log(x[i] / free_[i].start);
  };
  return p;
}

LeastSquaresOptions CurveFit::search() const {
  return {.starts = options_.starts, .refits = options_.refits, .threads = options_.threads};
}

std::vector<double> CurveFit::log_errors(const Rows& rows, std::span<const double> x) const {
  Calibration calibration = slim(rows);
  set(calibration, x);
  std::vector<double> errors;
  for (const OperatorRow& row : rows)
    errors.push_back(std::log(predict(row, device_, cold_, calibration) / row.measured));
  return errors;
}

void CurveFit::cross_validate(FitRow& row, std::span<const double> x) const {
  constexpr std::uint64_t folds = 5;
  Rows all = fitted_;
  all.insert(all.end(), held_.begin(), held_.end());
  all = thin(short_rows(all), static_cast<std::size_t>(options_.max_rows));
  const LeastSquaresProblem whole = problem(all);
  Rows predicted;
  std::vector<double> signed_errors;
  for (std::uint64_t fold = 0; fold < folds; ++fold) {
    const auto in_fold = [&](const OperatorRow& r) { return r.family / 10 % folds == fold; };
    std::vector<double> weights = whole.weights;
    Rows unseen;
    for (std::size_t i = 0; i < all.size(); ++i)
      if (in_fold(all[i])) {
        weights[i] = 0;
        unseen.push_back(all[i]);
      }
    if (unseen.empty() || unseen.size() == all.size()) continue;
    const auto at = refit_least_squares(whole, x, weights, search());
    const std::vector<double> of_fold = log_errors(unseen, at);
    signed_errors.insert(signed_errors.end(), of_fold.begin(), of_fold.end());
    predicted.insert(predicted.end(), unseen.begin(), unseen.end());
  }
  if (predicted.empty()) return;
  const std::vector<double> errors = magnitudes(signed_errors);
  row.regions = by_region(predicted, signed_errors, table_.kind);
  row.cross_validated = median(errors);
  row.cross_validated_p90 = percentile(errors, 90);
}

// For each end of each axis: the rows of the outermost octave, predicted by a fit without them.
double CurveFit::growth_outside(const Region& region, std::span<const double> x) const {
  const LeastSquaresProblem whole = problem(sample_);
  const std::vector<double> inside = magnitudes(log_errors(sample_, x));
  std::vector<double> growth;
  for (const Extent& extent : region.extents) {
    for (const bool high : {false, true}) {
      Rows inner, outer;
      std::vector<double> weights = whole.weights, seen;
      for (std::size_t i = 0; i < sample_.size(); ++i) {
        const double at = position(main_work(sample_[i], table_.kind), extent.axis).value_or(1);
        const bool outermost = high ? at > extent.high / 2 : at < extent.low * 2;
        (outermost ? outer : inner).push_back(sample_[i]);
        if (!outermost) continue;
        weights[i] = 0;
        seen.push_back(inside[i]);
      }
      if (outer.size() < 5 || inner.size() < std::max(2 * free_.size(), outer.size())) continue;
      const Region known = region_of(inner, table_.kind);
      const auto at = refit_least_squares(whole, x, weights, search());
      const std::vector<double> unseen = magnitudes(log_errors(outer, at));
      std::vector<double> octaves;
      for (const OperatorRow& row : outer)
        octaves.push_back(octaves_outside(main_work(row, table_.kind), known));
      const double distance = std::max(0.5, median(octaves));
      growth.push_back(std::max(0.0, median(unseen) - median(seen)) / distance);
    }
  }
  return growth.empty() ? 0 : mean(growth);
}

double CurveFit::spread_of(const std::vector<std::vector<double>>& refits) const {
  if (refits.size() < 2) return 0;
  const Rows rows = thin(sample_, 200);
  std::vector<double> sum(rows.size(), 0.0), squares(rows.size(), 0.0), spread;
  for (const auto& x : refits) {
    const std::vector<double> errors = log_errors(rows, x);
    for (std::size_t i = 0; i < rows.size(); ++i) {
      sum[i] += errors[i];
      squares[i] += errors[i] * errors[i];
    }
  }
  const auto n = static_cast<double>(refits.size());
  for (std::size_t i = 0; i < rows.size(); ++i)
    spread.push_back(std::sqrt(std::max(0.0, (squares[i] - sum[i] * sum[i] / n) / (n - 1))));
  return median(spread);
}

void CurveFit::describe(FitRow& row, const LeastSquaresFit& fit) {
  const std::vector<double> errors = log_errors(held_, fit.values);
  const auto every = [](const OperatorRow&) { return true; };
  const auto is_long = [](const OperatorRow& r) { return r.measured.si() > short_kernel; };
  const auto is_short = [&](const OperatorRow& r) { return !is_long(r); };
  const RegionError all = error_where("all", held_, errors, every);
  row.over = error_where("over 20 us", held_, errors, is_long);
  row.under = error_where("under 20 us", held_, errors, is_short);
  row.median = all.median;
  row.p90 = all.p90;
  cross_validate(row, fit.values);
  row.spread = spread_of(fit.refits);
  row.runs = spread_between_runs(table_.rows);
  set_range(curve_.scale, row);
  FitQuality& quality = curve_.quality;
  quality.fitted = row.n_fit;
  quality.held_out = row.n_held;
  // Where no row could be kept out, each fifth of the families stands in.
  quality.median = row.n_held > 0 ? row.median : row.cross_validated;
  quality.p90 = row.n_held > 0 ? row.p90 : row.cross_validated_p90;
  quality.region = region_of(table_.rows, table_.kind);
  row.per_octave = growth_outside(quality.region, fit.values);
  quality.region.per_octave = row.per_octave;
  for (std::size_t i = 0; i < free_.size(); ++i)
    if (!free_[i].quantise && fit.values[i] > 0)
      quality.spread.push_back(
          {.name = free_[i].name(), .relative_error = fit.errors[i] / fit.values[i]});
}

FitRow CurveFit::run() {
  FitRow row{.kind = table_.kind,
             .format = table_.format,
             .library = table_.library,
             .variant = table_.variant,
             .n_fit = static_cast<int>(fitted_.size()),
             .n_held = static_cast<int>(held_.size()),
             .note = table_.note};
  if (sample_.empty())
    throw Error({.file = "calibrate fit",
                 .path = fmt::format("{}.{}.{}", to_text(table_.kind), to_text(table_.format),
                                     to_text(table_.library)),
                 .found = "no row to fit" + (table_.note.empty() ? "" : " (" + table_.note + ")"),
                 .expected = "rows that are not left out"});
  const LeastSquaresFit fit = fit_least_squares(problem(sample_), search());
  for (std::size_t i = 0; i < free_.size(); ++i)
    free_[i].in(free_[i].quantise ? *conversion_ : curve_) = fit.values[i];
  // Full-width accumulation was timed for one gradient and holds for both.
  if (table_.refine && table_.format != Format::bf16) curve_.role_factor[2] = curve_.role_factor[1];
  describe(row, fit);
  return row;
}

}  // namespace orrery
