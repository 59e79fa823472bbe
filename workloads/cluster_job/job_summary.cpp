// SPDX-License-Identifier: Apache-2.0
// Solves for sizes, lengths and fates that have the figures of a summary.
#include "workloads/cluster_job/job_summary.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <numbers>
#include <numeric>

#include "sim/base/errors/check.h"
#include "workloads/cluster_job/fate_tilt.h"

namespace orrery {
namespace {

// Tables begin so many deviations below the median, end at most so many above it (one job in 10^9
// is beyond), and have pieces so wide.
constexpr double lowest_deviation = -4, most_deviation = 6, piece_deviation = 0.25;

constexpr double close_enough = 1e-3;  // of a figure of the summary: a fiftieth of what is promised

struct Place {
  std::string file, path;
  [[noreturn]] void refuse(const std::string& found, const std::string& expected) const {
    throw Error({.file = file, .path = path, .found = found, .expected = expected});
  }
};

// Where a function of one sign at `low` and the other at `high` is 0 (regula falsi with Illinois'
// halving); the end that is nearer to 0 where it has one sign at both.
double root(const std::function<double(double)>& f, double low, double high) {
  constexpr int most_steps = 100;
  constexpr double close = 1e-12;
  double at_low = f(low), at_high = f(high);
  if ((at_low < 0) == (at_high < 0)) return std::abs(at_low) < std::abs(at_high) ? low : high;
  for (int i = 0; i < most_steps && std::abs(high - low) > close * std::abs(high + low); ++i) {
    const double next = (low * at_high - high * at_low) / (at_high - at_low), value = f(next);
    if (value == 0) return next;
    if ((value < 0) == (at_high < 0)) {
      at_low /= 2;
    } else {
      low = high;
      at_low = at_high;
    }
    high = next;
    at_high = value;
  }
  return high;
}

// Of a standard normal variable, the probability of lying between the two.
double normal_between(double low, double high) {
  constexpr double root_two = std::numbers::sqrt2;
  if (low > 0) return (std::erfc(low / root_two) - std::erfc(high / root_two)) / 2;
  return (std::erfc(-high / root_two) - std::erfc(-low / root_two)) / 2;
}

// exp of a normal variable, cut at the largest value and at those deviations.
struct CutLognormal {
  double mu = 0, sigma = 0, largest = 0;

  double highest_deviation() const {
    return std::min((std::log(largest) - mu) / sigma, most_deviation);
  }
  double mass(double low, double high) const { return normal_between(low, high); }
  double mean(double low, double high) const {
    return std::exp(mu + sigma * sigma / 2) * normal_between(low - sigma, high - sigma) /
           mass(low, high);
  }
  double mean() const { return mean(lowest_deviation, highest_deviation()); }
  double share_up_to(double value) const {
    const double at =
        std::clamp((std::log(value) - mu) / sigma, lowest_deviation, highest_deviation());
    return mass(lowest_deviation, at) / mass(lowest_deviation, highest_deviation());
  }
};

// How lengths depend on sizes: median of a job of one GPU, power with which it grows, deviation.
struct LengthModel {
  double median = 0, growth = 0, sigma = 0, largest = 0;
  // No median is above the largest length.
  CutLognormal of(double gpus) const {
    const double mu = std::log(median) + growth * std::log(gpus);
    return {std::min(mu, std::log(largest)), sigma, largest};
  }
};

struct LengthMoments {
  double mean = 0, gpu_seconds = 0, up_to_median = 0;
};

LengthMoments moments(const LengthModel& model, const std::vector<SizeShare>& sizes,
                      double median) {
  LengthMoments sum;
  for (const SizeShare& size : sizes) {
    const CutLognormal lengths = model.of(size.gpus);
    const double mean = lengths.mean();
    sum.mean += size.share * mean;
    sum.gpu_seconds += size.share * size.gpus * mean;
    sum.up_to_median += size.share * lengths.share_up_to(median);
  }
  return sum;
}

// With this growth, the model of the summary's median and, as far as it can, its mean.
LengthModel model_with(double growth, const SpreadFigures& lengths,
                       const std::vector<SizeShare>& sizes) {
  constexpr double least_sigma = 0.01, most_sigma = 20, lowest_median = 1e-6;
  LengthModel model{.growth = growth, .largest = lengths.largest};
  const auto set_median = [&] {
    const double ln = root(
        [&](double ln_median) {
          model.median = std::exp(ln_median);
          return 0.5 - moments(model, sizes, lengths.median).up_to_median;
        },
        std::log(lengths.median * lowest_median), std::log(lengths.largest));
    model.median = std::exp(ln);
  };
  model.sigma = root(
      [&](double sigma) {
        model.sigma = sigma;
        set_median();
        const LengthMoments found = moments(model, sizes, lengths.median);
        // So wide that no median is as high as the summary's: too wide.
        return found.up_to_median - 0.5 > close_enough ? 1 : found.mean / lengths.mean - 1;
      },
      least_sigma, most_sigma);
  set_median();
  return model;
}

// Six digits of what was solved for: the rest depends on the machine's logarithms.
LengthModel rounded(LengthModel model) {
  for (double* value : {&model.median, &model.growth, &model.sigma}) *value = six_digits(*value);
  return model;
}

void check_order(const SpreadFigures& f, const Place& place) {
  if (!(f.median > 0) || !(f.mean > 0) || !(f.largest >= f.mean && f.largest >= f.median) ||
      !std::isfinite(f.largest))
    place.refuse(fmt::format("mean {}, median {}, largest {}", f.mean, f.median, f.largest),
                 "figures above 0, of which none is above the largest");
}

LengthModel solved_lengths(const SpreadFigures& lengths, const std::vector<SizeShare>& sizes,
                           double gpu_seconds, const Place& place) {
  constexpr double least_growth = -1, most_growth = 2;
  if (lengths.mean < lengths.median)
    place.refuse(fmt::format("a mean of {} below the median of {}", lengths.mean, lengths.median),
                 "a mean of at least the median, as heavy tails have");
  double growth = 0;
  if (gpu_seconds > 0)
    growth = root(
        [&](double g) {
          const LengthModel model = model_with(g, lengths, sizes);
          return std::log(moments(model, sizes, lengths.median).gpu_seconds / gpu_seconds);
        },
        least_growth, most_growth);
  const LengthModel model = rounded(model_with(growth, lengths, sizes));
  const LengthMoments found = moments(model, sizes, lengths.median);
  if (gpu_seconds > 0 && !(std::abs(found.gpu_seconds / gpu_seconds - 1) < close_enough))
    place.refuse(fmt::format("{} GPU-seconds of a job", six_digits(gpu_seconds)),
                 "what jobs of these lengths and sizes take in the mean");
  if (!(std::abs(found.mean / lengths.mean - 1) < close_enough) ||
      !(std::abs(found.up_to_median - 0.5) < 2 * close_enough))
    place.refuse(fmt::format("a mean of {} and a median of {}", lengths.mean, lengths.median),
                 fmt::format("a mean that lengths with this median and largest one have: they "
                             "reach {}",
                             six_digits(found.mean)));
  return model;
}

// Its pieces, whose shares of all jobs are `shares_of` (the share in the lengths, their mean).
QuantileTable table_of(const CutLognormal& lengths,
                       const std::function<double(double, double)>& share_of) {
  const double top = lengths.highest_deviation(), all = lengths.mass(lowest_deviation, top);
  std::vector<double> edges, shares, means;
  const auto edge = [&](double deviation) {
    return std::min(std::exp(lengths.mu + deviation * lengths.sigma), lengths.largest);
  };
  for (double low = lowest_deviation; low < top;) {
    // No sliver at the top: its mean would be that of rounding.
    double high = low + piece_deviation;
    if (high > top - piece_deviation / 8) high = top;
    edges.push_back(edge(low));
    means.push_back(std::clamp(lengths.mean(low, high), edge(low), edge(high)));
    shares.push_back(share_of(lengths.mass(low, high) / all, means.back()));
    low = high;
  }
  edges.push_back(edge(top));
  return {std::move(edges), std::move(shares), std::move(means)};
}

// Sizes below the median, from its half on down.
std::vector<double> smaller_sizes(double median) {
  constexpr double smallest_part = 0.125;
  std::vector<double> sizes;
  for (double size = median / 2; size >= (median >= 1 ? 1 : smallest_part); size /= 2)
    sizes.push_back(size >= 1 ? std::floor(size) : size);
  return sizes;
}

std::vector<double> larger_sizes(double median, double largest) {
  std::vector<double> sizes;
  for (double size = 2 * median; size < largest; size *= 2) sizes.push_back(size);
  if (largest > median) sizes.push_back(largest);
  return sizes;
}

// `share` over sizes, each with `factor` times the share of the one before.
void spread(std::vector<SizeShare>& all, const std::vector<double>& sizes, double share,
            double factor) {
  double weight = 1, sum = 0;
  for (std::size_t i = 0; i < sizes.size(); ++i, weight *= factor) sum += weight;
  weight = share / sum;
  for (const double size : sizes) {
    if (weight > 0) all.push_back({size, weight});
    weight *= factor;
  }
}

double mean_of(const std::vector<SizeShare>& sizes) {
  double sum = 0;
  for (const SizeShare& size : sizes) sum += size.gpus * size.share;
  return sum;
}

// Shares sum to 1.
std::vector<SizeShare> solved_sizes(const JobSummary& summary) {
  constexpr double below_median = 0.4, least_factor = 1e-6, most_factor = 8;
  const Place place{summary.name, "gpus"};
  const SpreadFigures& gpus = summary.gpus;
  check_order(gpus, place);
  if (!(summary.up_to_median >= 0.5 && summary.up_to_median < 1))
    place.refuse(fmt::format("{} of the jobs up to the median", summary.up_to_median),
                 "a share from 0.5 to below 1");
  if (gpus.largest == gpus.mean && gpus.mean == gpus.median) return {{gpus.mean, 1}};
  const std::vector<double> below = smaller_sizes(gpus.median),
                            above = larger_sizes(gpus.median, gpus.largest);
  const auto sizes = [&](double up_to_median, double factor) {
    std::vector<SizeShare> all;
    const double smaller = below.empty() ? 0 : below_median;
    spread(all, below, smaller, 0.5);
    all.push_back({gpus.median, up_to_median - smaller});
    spread(all, above, 1 - up_to_median, factor);
    return all;
  };
  const auto off = [&](double up_to_median, double factor) {
    return mean_of(sizes(up_to_median, factor)) / gpus.mean - 1;
  };
  double share = summary.up_to_median;
  double factor = root([&](double f) { return off(share, f); }, least_factor, most_factor);
  // A mean so near to the median that fewer jobs are above it.
  if (factor == least_factor) share = root([&](double s) { return off(s, factor); }, share, 1);
  if (std::abs(off(share, factor)) > close_enough)
    place.refuse(fmt::format("a mean of {}", gpus.mean),
                 fmt::format("with this median and largest one nearer to {}",
                             six_digits(mean_of(sizes(share, factor)))));
  return sizes(share, factor);
}

// The pieces of all lengths of all sizes.
std::vector<TiltedPiece> pieces_of(const LengthModel& model, const std::vector<SizeShare>& sizes) {
  std::vector<TiltedPiece> pieces;
  for (const SizeShare& size : sizes)
    table_of(model.of(size.gpus), [&](double share, double mean) {
      pieces.push_back({size.share * share, mean * size.gpus});
      return share;
    });
  return pieces;
}

void add_parts(JobMix& mix, const LengthModel& model, const std::vector<SizeShare>& sizes,
               const FateTilt& tilt) {
  for (const SizeShare& size : sizes)
    for (int f = 0; f < job_fates; ++f) {
      JobMixPart part{.share = 0, .fate = static_cast<JobFate>(f), .sizes = {{size.gpus, 1}}};
      if (tilt.never(part.fate)) continue;
      part.length_s = table_of(model.of(size.gpus), [&](double share, double mean) {
        const double of_fate = share * tilt.share(part.fate, mean * size.gpus);
        part.share += size.share * of_fate;
        return of_fate;
      });
      part.share = six_digits(part.share);
      mix.parts.push_back(std::move(part));
    }
}

// What the form of the mix takes for granted.
void add_notes(JobMix& mix, const JobSummary& summary, const LengthModel& model) {
  std::string growth = "; they do not depend on sizes";
  if (summary.gpu_seconds > 0)
    growth = fmt::format("; their median is {:.3g} s times GPUs to the power of {:.2g}",
                         model.median, model.growth);
  mix.notes.push_back("Lengths are taken to be lognormal up to the longest" + growth);
  if (summary.jobs[0] == 1) mix.notes.emplace_back("How jobs ended is not known: all complete");
}

}  // namespace

QuantileTable lognormal_lengths(const SpreadFigures& seconds, const std::string& file,
                                const std::string& path) {
  const Place place{file, path};
  check_order(seconds, place);
  if (seconds.mean == seconds.median && seconds.mean == seconds.largest)
    return QuantileTable::constant(seconds.mean);
  const LengthModel model = solved_lengths(seconds, {{1, 1}}, 0, place);
  return table_of(model.of(1), [](double share, double) { return share; });
}

JobMix job_mix_of(const JobSummary& summary) {
  JobMix mix{.name = summary.name};
  if (!(summary.jobs_per_day > 0))
    Place{summary.name, "jobs_per_day"}.refuse(fmt::format("{}", summary.jobs_per_day),
                                               "a number above 0");
  mix.arrivals.jobs_per_day = six_digits(summary.jobs_per_day);
  const std::vector<SizeShare> sizes = solved_sizes(summary);
  const Place place{summary.name, "length"};
  check_order(summary.length_s, place);
  const LengthModel model = solved_lengths(summary.length_s, sizes, summary.gpu_seconds, place);
  const FateTilt tilt(pieces_of(model, sizes), summary.jobs, summary.gpu_time, summary.name);
  add_parts(mix, model, sizes, tilt);
  add_notes(mix, summary, model);
  return mix;
}

}  // namespace orrery
