// SPDX-License-Identifier: Apache-2.0
// Fits the model's error: conformal quantiles of blind residuals, region by region.
#include "sim/calibrate/steps/error_fit.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <optional>
#include <set>

#include "sim/base/errors/check.h"
#include "sim/base/parallel.h"
#include "sim/base/statistics.h"

namespace orrery {
namespace {

using Rows = std::vector<const BlindResidual*>;

double squared(double x) { return x * x; }

// The half-width that does not come from the model's own error, squared.
double explained(const BlindResidual& r, bool above, const ModelError& error) {
  const RangeParts& stated = above ? r.stated.above : r.stated.below;
  return squared(error.stated_share_of(r.run)) *
             (squared(stated.parameters) + squared(stated.extrapolation)) +
         squared(error.blank) * r.run.blanks + squared(error.run_to_run);
}

// The region's width that a range needs to hold the residual on this side; below 0: none.
double needed(const BlindResidual& r, bool above, const ModelError& error) {
  const double off = above ? r.log_error : -r.log_error;
  if (off <= 0) return -1;
  const double rest = squared(off) - explained(r, above, error);
  return rest > 0 ? std::sqrt(rest) / error.scale(r.run) : -1;
}

// What each row counts, by its cell.
std::map<std::string, double> cell_weights(const Rows& rows, double power) {
  std::map<std::string, double> weights;
  for (const BlindResidual* r : rows) weights[r->cell] += 1;
  for (auto& [cell, weight] : weights) weight = std::pow(weight, power - 1);
  return weights;
}

struct Weighted {
  double value = 0, weight = 0;
};

// The least value that at most `tail` of the weight lies above; 0 where that is none.
double quantile_above(const std::vector<Weighted>& sorted, double total, double tail) {
  double above = 0;
  for (auto at = sorted.rbegin(); at != sorted.rend(); ++at) {
    above += at->weight;
    if (above > tail * total) return std::max(0.0, at->value);
  }
  return 0;
}

// Quantiles of one region by its own rows.
struct Quantiles {
  double below = 0, above = 0;
  double rows = 0;  // that err by themselves
};

Quantiles region_quantiles(const Rows& rows, const ModelError& error,
                           const ErrorFitOptions& options) {
  const auto weights = cell_weights(rows, options.cell_power);
  std::vector<Weighted> below, above;
  double total = 0, squares = 0;
  for (const BlindResidual* r : rows) {
    const double w = weights.at(r->cell);
    below.push_back({needed(*r, false, error), w});
    above.push_back({needed(*r, true, error), w});
    total += w;
    squares += w * w;
  }
  const auto by_value = [](const Weighted& a, const Weighted& b) { return a.value < b.value; };
  std::sort(below.begin(), below.end(), by_value);
  std::sort(above.begin(), above.end(), by_value);
  Quantiles best{.rows = total * total / squares};
  const double tails = std::max(0.0, 1 - options.coverage * (1 + 1 / best.rows));
  double shortest = 1e300;
  for (const double share : {0.5, 0.35, 0.65, 0.2, 0.8}) {
    const double low = quantile_above(below, total, tails * share);
    const double high = quantile_above(above, total, tails * (1 - share));
    if (low + high >= shortest) continue;
    shortest = low + high;
    best.below = low;
    best.above = high;
  }
  return best;
}

int source_count(const Rows& rows) {
  std::set<std::string> sources;
  for (const BlindResidual* r : rows) sources.insert(r->source);
  return static_cast<int>(sources.size());
}

// Adds the regions of `rows`, whose runs all have as many, the widest first: a region leans on the
// next wider one.
void add_regions(const Rows& rows, ModelError& error, const ErrorFitOptions& options) {
  const std::size_t depth = options.regions(rows.front()->run).size();
  for (std::size_t level = depth; level-- > 0;) {
    std::map<std::string, Rows> members;
    for (const BlindResidual* r : rows) members[options.regions(r->run)[level]].push_back(r);
    for (const auto& [name, own_rows] : members) {
      const auto names = options.regions(own_rows.front()->run);
      const ErrorRegion& parent =
          level + 1 < depth ? error.regions.at(names[level + 1]) : error.whole;
      const Quantiles own = region_quantiles(own_rows, error, options);
      const double share = own.rows / (own.rows + options.parent_rows);
      error.regions[name] = {.below = share * own.below + (1 - share) * parent.below,
                             .above = share * own.above + (1 - share) * parent.above,
                             .rows = static_cast<int>(own_rows.size()),
                             .sources = source_count(own_rows)};
    }
  }
}

// Fills whole and regions of `error`, whose shared numbers are set.
void fit_regions(const Rows& rows, ModelError& error, const ErrorFitOptions& options) {
  const Quantiles whole = region_quantiles(rows, error, options);
  error.whole = {.below = whole.below,
                 .above = whole.above,
                 .rows = static_cast<int>(rows.size()),
                 .sources = source_count(rows)};
  error.regions.clear();
  add_regions(rows, error, options);
}

double half_width(const BlindResidual& r, bool above, const ErrorRegion& region,
                  const ModelError& error) {
  return std::sqrt(squared(error.scale(r.run) * (above ? region.above : region.below)) +
                   squared(error.beyond_seen(r.run, nullptr)) + explained(r, above, error));
}

// The interval score in logarithms of a range with these sides.
double interval_score(const BlindResidual& r, double below, double above, double coverage) {
  const double missed = std::max({0.0, -below - r.log_error, r.log_error - above});
  return above + below + 2 / (1 - coverage) * missed;
}

// How often ranges hold and how long they are: means over cells, each with its votes.
struct Sharpness {
  double covered = 0, length = 0, votes = 0;

  void add(const Rows& rows, const ModelError& error, const ErrorFitOptions& options) {
    struct Cell {
      double rows = 0, covered = 0, length = 0;
    };
    std::map<std::string, Cell> cells;
    for (const BlindResidual* r : rows) {
      const ErrorRegion& region = error.region(options.regions(r->run));
      const double below = half_width(*r, false, region, error);
      const double above = half_width(*r, true, region, error);
      Cell& cell = cells[r->cell];
      ++cell.rows;
      cell.covered += -below <= r->log_error && r->log_error <= above ? 1 : 0;
      cell.length += below + above;
    }
    for (const auto& [name, cell] : cells) {
      const double vote = std::pow(cell.rows, options.cell_power);
      covered += vote * cell.covered / cell.rows;
      length += vote * cell.length / cell.rows;
      votes += vote;
    }
  }
};

// Of each source's rows with the errors of all others; where runs like them were measured as often
// with their own.
Sharpness sharpness(const Rows& rows, ModelError error, const ErrorFitOptions& options) {
  std::map<std::string, std::pair<Rows, Rows>> sources;  // own rows, others
  for (const BlindResidual* r : rows) sources[r->source].first.push_back(r);
  Sharpness all;
  for (auto& [name, parts] : sources) {
    for (const BlindResidual* r : rows)
      if (r->source != name || sources.size() == 1) parts.second.push_back(r);
    fit_regions(parts.second, error, options);
    all.add(parts.first, error, options);
  }
  if (options.like_measured) {
    fit_regions(rows, error, options);
    all.add(rows, error, options);
  }
  return {all.covered / all.votes, all.length / all.votes, all.votes};
}

// Rows of one cell: the traits and the sizes of their errors.
struct DifficultyCell {
  std::vector<DifficultyTraits> traits;
  std::vector<double> sizes;
};

using Slopes = std::array<double, difficulty_parts.size()>;

double log_scale_of(const DifficultyTraits& traits, const Slopes& slopes) {
  double sum = 0;
  for (std::size_t k = 0; k < slopes.size(); ++k)
    sum += slopes[k] * (traits.*difficulty_parts[k].value);
  return sum;
}

// Minus the log likelihood of errors that are exponential around a size of each cell's own (the
// likeliest one) times exp(slopes * traits); cells count as the root of their rows. Steep slopes
// are held unlikely, so that one that few rows speak for stays near 0.
double unlikelihood(const std::vector<DifficultyCell>& cells, const Slopes& slopes) {
  double sum = 0;
  for (const double slope : slopes) sum += squared(0.1 * slope);
  for (const DifficultyCell& cell : cells) {
    const auto n = static_cast<double>(cell.sizes.size());
    double size = 0, logs = 0;
    for (std::size_t i = 0; i < cell.sizes.size(); ++i) {
      const double log_scale = log_scale_of(cell.traits[i], slopes);
      size += cell.sizes[i] * std::exp(-log_scale) / n;
      logs += log_scale / n;
    }
    sum += std::sqrt(n) * (std::log(size) + logs);
  }
  return sum;
}

// The likeliest slopes, none below 0: what makes a step hard to predict makes no error smaller.
Difficulty fit_difficulty(const Rows& rows) {
  constexpr double exact = 0.003;  // an error that counts as none
  std::map<std::string, DifficultyCell> by_cell;
  Difficulty difficulty;
  for (const BlindResidual* r : rows) {
    DifficultyCell& cell = by_cell[r->cell];
    const DifficultyTraits traits = difficulty_traits(r->run);
    cell.traits.push_back(traits);
    cell.sizes.push_back(std::abs(r->log_error) + exact);
    for (const DifficultyPart& part : difficulty_parts)
      (difficulty.*part.trait).centre += traits.*part.value / static_cast<double>(rows.size());
  }
  std::vector<DifficultyCell> cells;
  for (auto& [name, cell] : by_cell) cells.push_back(std::move(cell));
  Slopes slopes{};
  double least = unlikelihood(cells, slopes);
  // It has one minimum (logarithms of sums of exponentials), so that walking down finds it.
  for (double stride = 1; stride > 0.02;) {
    bool better = false;
    for (std::size_t k = 0; k < slopes.size(); ++k)
      for (const double by : {stride, -stride}) {
        Slopes trial = slopes;
        trial[k] = std::max(0.0, trial[k] + by);
        const double value = unlikelihood(cells, trial);
        if (value >= least) continue;
        least = value;
        slopes = trial;
        better = true;
      }
    if (!better) stride /= 2;
  }
  for (std::size_t k = 0; k < slopes.size(); ++k)
    (difficulty.*difficulty_parts[k].trait).slope = slopes[k];
  return difficulty;
}

// The shares, the blank's where it is not given, with which ranges are shortest among those that
// hold as often as wanted; where none do, those that hold most often.
ModelError sharpest(const Rows& rows, const ModelError& error, const ErrorFitOptions& options) {
  std::vector<double> shares, blanks = {0.0, 0.02, 0.04, 0.06, 0.08};
  for (int tenths = 0; tenths <= 10; ++tenths) shares.push_back(tenths / 10.0);
  if (options.shared != nullptr) blanks = {options.shared->blank};
  std::vector<ModelError> trials;
  for (const double share : shares)
    for (const double blank : blanks) {
      trials.push_back(error);
      trials.back().stated_share = share;
      trials.back().blank = blank;
    }
  std::vector<Sharpness> found(trials.size());
  parallel_for(trials.size(), options.threads,
               [&](std::size_t i) { found[i] = sharpness(rows, trials[i], options); });
  const auto sharper = [&](const Sharpness& a, const Sharpness& b) {
    const double held_a = std::min(a.covered, options.coverage);
    const double held_b = std::min(b.covered, options.coverage);
    return held_a != held_b ? held_a > held_b : a.length < b.length;
  };
  const auto best = std::min_element(found.begin(), found.end(), sharper);
  return trials[static_cast<std::size_t>(best - found.begin())];
}

// Half of a 90% range between runs that are alike in every column.
double twin_spread(std::span<const BlindResidual> residuals) {
  std::map<std::string, std::vector<double>> twins;
  for (const BlindResidual& r : residuals) twins[r.twin].push_back(r.log_error);
  std::vector<double> off;
  for (const auto& [name, errors] : twins) {
    if (errors.size() < 2) continue;
    const double middle = mean(errors), n = static_cast<double>(errors.size());
    for (const double e : errors) off.push_back(std::abs(e - middle) * std::sqrt(n / (n - 1)));
  }
  return off.empty() ? 0 : normal_95 * deviation_of_mad * median(off);
}

// Half of a 90% range between kinds, each in the middle of its rows, around the kinds' middle.
template <class KeyOf>
double spread_between(std::span<const BlindResidual> residuals, KeyOf&& key_of) {
  std::map<std::string, std::vector<double>> kinds;
  for (const BlindResidual& r : residuals) kinds[key_of(r)].push_back(r.log_error);
  std::vector<double> middles;
  for (const auto& [name, errors] : kinds) middles.push_back(median(errors));
  const double centre = median(middles);
  double sum = 0;
  for (const double m : middles) sum += squared(m - centre);
  return normal_95 * std::sqrt(sum / static_cast<double>(middles.size()));
}

// How much the error changes with each doubling of the GPUs, where a source tells several numbers.
double spread_by_doubling(std::span<const BlindResidual> residuals) {
  std::map<std::string, std::map<double, std::vector<double>>> jobs;
  for (const BlindResidual& r : residuals)
    jobs[r.cell + r.run.stack + r.run.kind][r.run.gpus].push_back(r.log_error);
  std::vector<double> slopes;
  for (const auto& [job, scales] : jobs) {
    if (scales.size() < 2) continue;
    const auto& [fewest, first] = *scales.begin();
    const auto& [most, last] = *scales.rbegin();
    slopes.push_back(std::abs(median(last) - median(first)) / std::log2(most / fewest));
  }
  return slopes.empty() ? 0 : normal_95 * median(slopes);
}

SeenRuns seen_in(std::span<const BlindResidual> residuals) {
  SeenRuns seen;
  for (const BlindResidual& r : residuals) {
    seen.devices.insert(r.run.device);
    seen.stacks.insert(r.run.stack);
    seen.precisions.insert(r.run.precision);
    seen.families.insert(family_of(r.run));
    seen.most_gpus = std::max(seen.most_gpus, r.run.gpus);
  }
  return seen;
}

}  // namespace

ModelError fit_model_error(std::span<const BlindResidual> residuals,
                           const ErrorFitOptions& options) {
  CHECK_THAT(!residuals.empty(), "the model's error needs rows that were predicted blind");
  std::vector<BlindResidual> own, others;
  for (const BlindResidual& r : residuals)
    (r.run.program.empty() && !r.run.unscripted ? own : others).push_back(r);
  if (own.empty()) std::swap(own, others);
  Rows rows, apart;
  for (const BlindResidual& r : own) rows.push_back(&r);
  for (const BlindResidual& r : others) apart.push_back(&r);
  ModelError error;
  if (options.shared != nullptr) {
    error.stated_share = options.shared->stated_share;
    error.blank = options.shared->blank;
    error.run_to_run = options.shared->run_to_run;
    error.difficulty = options.shared->difficulty;
  } else {
    error.difficulty = fit_difficulty(rows);
    error.run_to_run = twin_spread(own);
  }
  if (options.shared == nullptr || options.like_measured) error = sharpest(rows, error, options);
  error.new_share = error.stated_share;
  fit_regions(rows, error, options);
  if (!apart.empty()) add_regions(apart, error, options);
  error.unseen = {.device = spread_between(own, [](const auto& r) { return r.run.device; }),
                  .stack = spread_between(own, [](const auto& r) { return r.run.stack; }),
                  .precision = spread_between(own, [](const auto& r) { return r.run.precision; }),
                  .doubling = spread_by_doubling(own)};
  std::vector<BlindResidual> of_stacks(residuals.begin(), residuals.end());
  std::erase_if(of_stacks, [](const BlindResidual& r) { return !r.run.program.empty(); });
  error.seen = seen_in(of_stacks.empty() ? own : of_stacks);
  return error;
}

RangeScore score_range(const BlindResidual& r, const ModelError& error) {
  const ErrorRegion& region = error.region(error.regions_of(r.run));
  const double below = half_width(r, false, region, error);
  const double above = half_width(r, true, region, error);
  return {.covered = -below <= r.log_error && r.log_error <= above,
          .width = std::exp(below) - std::exp(-above),
          .length = above + below,
          .score = interval_score(r, below, above, ErrorFitOptions().coverage)};
}

}  // namespace orrery
