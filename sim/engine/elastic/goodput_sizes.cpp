// SPDX-License-Identifier: Apache-2.0
// Computes speedups and their costs.
#include "sim/engine/elastic/goodput_sizes.h"

#include <algorithm>
#include <cmath>

namespace orrery {
namespace {

constexpr double cost_unit = 1e9, least_speedup = 1e-3;

// GPUs of an equal share, as far as the job can use them.
std::int32_t fair_gpus(const RoundView& view, const RoundJob& job) {
  const auto jobs = static_cast<std::int64_t>(view.jobs.size());
  const std::int64_t share = (view.gpus + jobs - 1) / jobs;
  return static_cast<std::int32_t>(std::min<std::int64_t>(share, job.asked->most));
}

std::int32_t most_now(const RoundView& view, const RoundJob& job) {
  const std::int64_t most = std::max({1, 2 * job.most_run, job.asked->least});
  return static_cast<std::int32_t>(
      std::min({most, static_cast<std::int64_t>(job.asked->most), view.gpus}));
}

// Part of its age that a job did not spend on restarts, were it to restart now.
double restart_factor(const RoundJob& job) {
  const double age = static_cast<double>(job.age.us);
  const double restart = static_cast<double>(job.restart.us);
  if (age + restart <= 0) return 0;
  return std::max(0.0, age - job.restarts * restart) / (age + restart);
}

// What is known of its pace.
JobPace expected_pace(const RoundView& view, const RoundJob& job, std::int32_t gpus) {
  return view.paces.pace(*job.asked, gpus, job.ran_across && gpus > view.question.gpus_per_host);
}

// Over an equal share, which is taken on one host, as in the published simulator.
double speedup_of(const RoundView& view, const RoundJob& job, std::int32_t gpus) {
  const std::int32_t fair = fair_gpus(view, job);
  if (job.most_run == 0) return static_cast<double>(gpus) / fair;
  return expected_pace(view, job, gpus).rate() / view.paces.share_rate(*job.asked, fair);
}

std::int64_t cost_of(double speedup) { return std::llround(cost_unit / (speedup + least_speedup)); }

// Sizes between the fewest and the most, ascending.
std::vector<std::int32_t> sizes_of(const RoundView& view, const RoundJob& job) {
  const std::int32_t most = most_now(view, job), host = view.question.gpus_per_host;
  const std::int32_t least = std::max(1, job.asked->least);
  std::vector<std::int32_t> out;
  if (!job.asked->sizes.empty()) {
    for (const std::int32_t g : job.asked->sizes)
      if (g <= most) out.push_back(g);
    return out;
  }
  // Sizes of which all that is set aside is used, and the smallest.
  for (std::int32_t g = least; g <= most; g = set_aside(g + 1, host, view.question.apart))
    out.push_back(g);
  return out;
}

}  // namespace

std::int32_t set_aside(std::int32_t gpus, std::int32_t gpus_per_host, bool apart) {
  const std::int32_t whole = gpus / gpus_per_host * gpus_per_host, rest = gpus - whole;
  if (rest == 0) return whole;
  if (apart && whole > 0) return whole + gpus_per_host;
  std::int32_t size = gpus_per_host;
  while (size % 2 == 0 && size / 2 >= rest) size /= 2;
  return whole + (size % 2 != 0 && rest == 1 ? 1 : size);
}

GoodputSizes goodput_sizes(const RoundView& view, const RoundJob& job) {
  GoodputSizes out{.options = {{0, cost_of(0)}}, .gpus = {0}};
  const double factor = restart_factor(job);
  const std::int32_t now = gpus_of_place(*job.place);
  for (const std::int32_t gpus : sizes_of(view, job)) {
    if (view.packed_pace(job, gpus).batch == 0) continue;
    const double speedup = speedup_of(view, job, gpus) / view.question.gpus_per_host;
    out.options.push_back({set_aside(gpus, view.question.gpus_per_host, view.question.apart),
                           cost_of(gpus == now ? speedup : speedup * factor)});
    out.gpus.push_back(gpus);
  }
  return out;
}

std::vector<std::int32_t> choose_goodput_sizes(const RoundView& view) {
  std::vector<std::vector<SizeOption>> options;
  std::vector<std::vector<std::int32_t>> gpus;
  for (const RoundJob& job : view.jobs) {
    GoodputSizes sizes = goodput_sizes(view, job);
    options.push_back(std::move(sizes.options));
    gpus.push_back(std::move(sizes.gpus));
  }
  const std::vector<std::size_t> chosen = choose_sizes(options, view.gpus);
  std::vector<std::int32_t> out;
  out.reserve(chosen.size());
  for (std::size_t i = 0; i < chosen.size(); ++i) out.push_back(gpus[i][chosen[i]]);
  return out;
}

}  // namespace orrery
