// SPDX-License-Identifier: Apache-2.0
// Checks mixes of jobs: what a fit keeps, and what is drawn.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include <catch2/catch.hpp>

#include "sim/base/random.h"
#include "tests/base/error_text.h"
#include "tests/base/fresh_seed.h"
#include "tests/workloads/job_mixes.h"
#include "workloads/cluster_job/job_clock.h"
#include "workloads/cluster_job/job_mix_file.h"
#include "workloads/cluster_job/job_mix_fit.h"
#include "workloads/job_traces/job_trace.h"

namespace orrery {
namespace {

using namespace mixes;

std::string digest(const ClusterJobs& list) {
  std::uint64_t hash = 14'695'981'039'346'656'037U;  // FNV-1a, of whole numbers
  const auto add = [&](std::int64_t value) {
    hash = (hash ^ static_cast<std::uint64_t>(value)) * 1'099'511'628'211U;
  };
  for (const ClusterJob& job : list.jobs)
    for (const std::int64_t value :
         {job.submit.us, job.length.us, job.limit.us, std::int64_t{job.gpus},
          std::int64_t{job.queue}, std::int64_t{job.user}, std::int64_t{job.row},
          static_cast<std::int64_t>(job.fate)})
      add(value);
  return fmt::format("{:016x}", hash);
}

}  // namespace

TEST_CASE("job mix: submissions follow hours and weekdays") {
  JobMix mix = load_job_mix("philly", catalog);
  mix.arrivals.day_swing = mix.arrivals.hour_swing = {};
  constexpr double jobs = 400'000;
  const JobsByHour counted = jobs_by_hour(drawn(mix, jobs, fresh(2)));
  CHECK(counted.weekday(0) == 0);  // a Monday
  std::array<double, 24> by_hour{};
  std::array<double, 7> by_weekday{};
  for (std::size_t i = 0; i < counted.jobs.size(); ++i) {
    by_hour[counted.hour_of_day(i)] += counted.jobs[i];
    by_weekday[counted.weekday(i)] += counted.jobs[i];
  }
  const auto check = [&](const auto& found, const auto& shares) {
    double sum = 0;
    for (const double share : shares) sum += share;
    for (std::size_t i = 0; i < found.size(); ++i) {
      const double p = shares[i] / sum;
      INFO(i << ": " << found[i] / jobs << " in place of " << p);
      // Five deviations, and half a week's part that is not whole.
      CHECK(std::abs(found[i] - jobs * p) < 5 * std::sqrt(jobs * p) + 0.005 * jobs * p);
    }
  };
  check(by_hour, mix.arrivals.by_hour);
  check(by_weekday, mix.arrivals.by_weekday);
}

TEST_CASE("job mix: days and hours swing as in the trace") {
  const auto spread = [](const QuantileTable& factor) {
    double squares = 0;
    for (int i = 0; i < 1000; ++i) squares += std::pow(factor.at((i + 0.5) / 1000) - 1, 2);
    return std::sqrt(squares / 1000);
  };
  const JobMix mix = load_job_mix("philly", catalog);
  const JobMix again = fit_job_mix(drawn(mix, 2e6, fresh(3)));
  CHECK(spread(mix.arrivals.day_swing) == Approx(1.0).epsilon(0.1));
  CHECK(spread(again.arrivals.day_swing) == Approx(spread(mix.arrivals.day_swing)).epsilon(0.1));
  // Hours of a day are drawn apart and made to sum to it: that takes some of their swing.
  CHECK(spread(again.arrivals.hour_swing) == Approx(spread(mix.arrivals.hour_swing)).epsilon(0.3));
  CHECK(mix.arrivals.day_swing.mean() == Approx(1).epsilon(1e-4));
  CHECK(mix.arrivals.hour_swing.mean() == Approx(1).epsilon(1e-4));
  // A Poisson process has none.
  JobMix even = mix;
  even.arrivals.day_swing = even.arrivals.hour_swing = {};
  const JobArrivals found = fit_job_mix(drawn(even, 2e5, fresh(4))).arrivals;
  CHECK((found.day_swing.empty() || spread(found.day_swing) < 0.03));
  CHECK((found.hour_swing.empty() || spread(found.hour_swing) < 0.05));
}

TEST_CASE("job mix: the same seed draws the same bytes, on every machine") {
  const JobMix mix = parsed(own_mix);
  const ClusterJobs list = draw_jobs(mix, days(30), 400, 7);
  CHECK(list.jobs.size() == 12'000);
  CHECK(digest(list) == digest(draw_jobs(mix, days(30), 400, 7)));
  CHECK(digest(list) == "556bd9790a8d562b");
  CHECK(digest(draw_jobs(load_job_mix("philly", catalog), days(7), 755, 7)) == "288a7c9bbfd52f92");
  CHECK(digest(draw_jobs(load_job_mix("acme-kalos", catalog), days(7), 755, 7)) ==
        "b890fa743427653c");
  CHECK(digest(list) != digest(draw_jobs(mix, days(30), 400, 8)));
  // Another rate or span has the same jobs at other times.
  const ClusterJobs more = draw_jobs(mix, days(90), 800, 7);
  REQUIRE(more.jobs.size() == 72'000);
  for (std::size_t i = 0; i < list.jobs.size(); ++i) {
    const ClusterJob &a = list.jobs[i], &b = more.jobs[i];
    REQUIRE((a.length == b.length && a.limit == b.limit && a.gpus == b.gpus && a.fate == b.fate &&
             a.queue == b.queue && a.user == b.user && a.row == b.row));
  }
}

TEST_CASE("job mix: what is drawn is a list of jobs like any other") {
  const JobMix mix = parsed(own_mix);
  const ClusterJobs list = draw_jobs(mix, days(365.3), 400, fresh(5));
  CHECK(list.jobs.size() == 146'120);
  CHECK(list.name == "m");
  CHECK(list.queues == std::vector<std::string>{"research", "product"});
  CHECK(list.users == std::vector<std::string>{"user 1", "user 2", "user 3"});
  CHECK(list.notes.empty());
  CHECK(list.jobs.front().submit.us == 0);
  REQUIRE(list.began);
  CHECK(list.began->us >= first_monday_us);
  CHECK(list.began->us + list.jobs.back().submit.us < first_monday_us + days(365.3).us);
  FateShares jobs{};
  double eight = 0, product = 0, first_user = 0;
  for (std::size_t i = 0; i < list.jobs.size(); ++i) {
    const ClusterJob& job = list.jobs[i];
    const double length = to_seconds(job.length).si(), limit = to_seconds(job.limit).si();
    REQUIRE((i == 0 || list.jobs[i - 1].submit <= job.submit));
    REQUIRE(job.limit >= job.length);
    REQUIRE((length > 600 || limit <= 10.0001 * length));
    REQUIRE((length > 600 || limit >= 1.9999 * length));
    REQUIRE((length <= 600 || limit == Approx(1.5 * length)));
    REQUIRE((job.fate != JobFate::failed || (length <= 600 && job.queue == 0 && job.gpus == 8)));
    REQUIRE((job.fate != JobFate::cancelled || (job.queue == 1 && job.gpus == 64)));
    jobs[place(job.fate)] += 1.0 / 146'120;
    if (job.fate == JobFate::completed) {
      eight += job.gpus == 8 ? 1 : 0;
      product += job.queue == 1 ? 1 : 0;
    }
    first_user += job.user == 0 ? 1.0 / 146'120 : 0;
  }
  CHECK(jobs[0] == Approx(9 / 12.0).epsilon(0.02));
  CHECK(jobs[1] == Approx(2 / 12.0).epsilon(0.03));
  CHECK(jobs[2] == Approx(1 / 12.0).epsilon(0.05));
  CHECK(eight / (jobs[0] * 146'120) == Approx(0.25).epsilon(0.03));
  CHECK(product / (jobs[0] * 146'120) == Approx(0.25).epsilon(0.03));
  CHECK(first_user == Approx(4 / 7.0).epsilon(0.02));
}

TEST_CASE("job mix: parts of a GPU are drawn as parts") {
  const JobMix mix = parsed(
      R"({"arrivals": {"jobs_per_day": 10},
        "parts": [{"gpus": [[0.25, 1], [2, 1]], "length_s": 60}]})");
  const ClusterJobs list = draw_jobs(mix, days(100), 10, fresh(6));
  double quarters = 0, asked = 0;
  for (const ClusterJob& job : list.jobs) {
    CHECK((job.gpus == 1 || job.gpus == 2));
    CHECK(job.length == FleetTime{60'000'000});
    CHECK(job.milli == (job.gpus == 1 ? 250 : 0));
    quarters += job.is_part() ? 1 : 0;
    asked += gpus_asked(job);
  }
  CHECK(quarters / 1000 == Approx(0.5).epsilon(0.2));
  CHECK(figures_of(list).mean_gpus == Approx(asked / 1000));
  CHECK(figures_of(list).mean_gpus == Approx(2 - 1.75 * quarters / 1000));
  CHECK(figures_of(mix).mean_gpus == Approx(1.125));
  REQUIRE(list.notes.size() == 2);
  CHECK(list.notes[0] == "Drawn jobs come evenly over hours and days");
  CHECK(list.notes[1] == "Drawn jobs have no limits: lengths stand for them");
}

TEST_CASE("law: a mix that is fitted to its own draw has the same figures") {
  const JobMix philly = load_job_mix("philly", catalog), own = parsed(own_mix),
               kalos = load_job_mix("acme-kalos", catalog);
  for (const JobMix* mix : {&philly, &own, &kalos}) {
    const ClusterJobs list = drawn(*mix, 300'000, fresh(7));
    const JobMix again = fit_job_mix(list);
    const JobFigures of_list = figures_of(list), fit = figures_of(again), of_mix = figures_of(*mix);
    INFO(mix->name);
    // What was drawn is kept, but for six digits and quantiles between edges.
    CHECK(fit.mean_s == Approx(of_list.mean_s).epsilon(1e-4));
    CHECK(fit.mean_gpus == Approx(of_list.mean_gpus).epsilon(1e-4));
    CHECK(fit.largest_s == Approx(of_list.largest_s).epsilon(1e-5));
    CHECK(fit.largest_gpus == of_list.largest_gpus);
    CHECK(fit.median_s == Approx(of_list.median_s).epsilon(0.02));
    CHECK(fit.p99_s == Approx(of_list.p99_s).epsilon(0.03));
    CHECK(fit.gpu_seconds == Approx(of_list.gpu_seconds).epsilon(0.05));
    for (std::size_t f = 0; f < fit.jobs.size(); ++f) {
      CHECK(fit.jobs[f] == Approx(of_list.jobs[f]).margin(1e-5));
      CHECK(fit.gpu_time[f] == Approx(of_list.gpu_time[f]).margin(0.02));
      CHECK(fit.jobs[f] == Approx(of_mix.jobs[f]).margin(0.005));
    }
    // And what was drawn is the mix.
    CHECK(fit.mean_s == Approx(of_mix.mean_s).epsilon(0.08));
    CHECK(fit.median_s == Approx(of_mix.median_s).epsilon(0.03));
    CHECK(fit.p99_s == Approx(of_mix.p99_s).epsilon(0.06));
    CHECK(fit.mean_gpus == Approx(of_mix.mean_gpus).epsilon(0.03));
    CHECK(fit.jobs_per_day == Approx(of_mix.jobs_per_day).epsilon(0.01));
    CHECK(again.queues == mix->queues);
    CHECK(again.users.size() == mix->users.size());
  }
  const JobMix again = fit_job_mix(drawn(own, 300'000, fresh(8)));
  CHECK(again.users[0] == Approx(4 / 7.0).epsilon(0.02));
  REQUIRE(again.limits.size() == 6);
  CHECK(again.limits[1].up_to_s == 100);
  CHECK(again.limits[1].factor.mean() == Approx(6).epsilon(0.02));
  CHECK(again.limits[4].factor.least() == Approx(1.5).epsilon(1e-4));
  CHECK(again.limits[4].factor.largest() == Approx(1.5).epsilon(1e-4));
}

TEST_CASE("law: a table of samples has their mean, ends and quantiles, and finds them again") {
  RandomStream random(fresh(9), 0);
  for (int i = 0; i < 300; ++i) {
    std::vector<WeightedValue> samples;
    const std::uint64_t n = 1 + random.below(i < 100 ? 20 : 3000);
    const double tail = 1 + 2 * random.uniform();
    double sum = 0;
    std::vector<double> values;
    for (std::uint64_t k = 0; k < n; ++k) {
      values.push_back(std::exp(tail * random.normal(0, 1)));
      if (random.below(3) == 0) values.back() = std::round(values.back());  // ties
      samples.push_back({values.back(), 1});
      sum += values.back();
    }
    std::sort(values.begin(), values.end());
    const QuantileTable table = quantiles_of(samples);
    INFO(n << " samples");
    CHECK(table.mean() == Approx(sum / static_cast<double>(n)).epsilon(1e-5));
    CHECK(table.least() == Approx(values.front()).epsilon(1e-5));
    CHECK(table.largest() == Approx(values.back()).epsilon(1e-5));
    double below = 0;
    for (std::size_t k = 0; k < table.shares().size(); ++k) {
      const auto rank = static_cast<std::size_t>(std::lround(below * static_cast<double>(n)));
      CHECK(table.edges()[k] == Approx(values[rank]).epsilon(1e-5));
      below += table.shares()[k];
    }
    double before = 0, mean = 0;
    for (int k = 0; k < 2000; ++k) {
      const double share = (k + 0.5) / 2000, value = table.at(share);
      REQUIRE(value >= before);
      // Of several shares with one value, the largest.
      REQUIRE(table.share_up_to(value) >= share - 1e-9);
      REQUIRE(table.share_up_to(value - 1e-6 * value - 1e-12) <= share + 1e-3);
      before = value;
      mean += value / 2000;
    }
    CHECK(mean == Approx(table.mean()).epsilon(0.06));
  }
}

TEST_CASE("job mix: few jobs, no clock and jobs of no length are fitted too") {
  const auto fitted = [](const std::string& rows) {
    return fit_job_mix(parse_jobs("submit_s,length_s,gpus\n" + rows, JobTraceFormat::orrery, "t"));
  };
  const JobMix one = fitted("0,30,4\n");
  CHECK(one.arrivals.jobs_per_day == 24);  // one in the hour that is known
  CHECK(one.parts.size() == 1);
  CHECK(figures_of(one).mean_s == 30);
  CHECK(figures_of(one).mean_gpus == 4);
  CHECK(draw_jobs(one, days(1), 24, 1).jobs.size() == 24);
  const JobMix none = fitted("0,0,1\n86400,0,1\n");
  CHECK(figures_of(none).largest_s == 0);
  CHECK(none.limits.empty());
  CHECK(draw_jobs(none, days(1), 24, 1).jobs.back().limit.us == 0);
  // 345600 s after 1970 begins is a Monday.
  CHECK(fitted("349200,1,1\n").arrivals.by_hour[1] == fitted("349200,1,1\n").arrivals.by_hour[2]);
  const JobMix two = fitted("349200,1,1\n349300,1,1\n356400,1,1\n");
  CHECK(two.arrivals.by_hour[1] == Approx(2 * two.arrivals.by_hour[3]).epsilon(1e-4));
  CHECK(two.arrivals.by_hour[2] == 0);
  ClusterJobs list =
      parse_jobs("1 0 0 60 4 -1 -1 8 120 -1 1 3 1 -1 2 -1 -1 -1\n", JobTraceFormat::swf, "t");
  CHECK_FALSE(list.began);
  CHECK(jobs_by_hour(list).weekday(0) == 0);
  CHECK(jobs_by_hour(list).hour_of_day(0) == 0);
  list.jobs.clear();
  CHECK(error_text([&] { fit_job_mix(list); }) == "t: found no jobs; expected at least one");
  CHECK(error_text([&] { (void)figures_of(list); }) == "t: found no jobs; expected at least one");
}

TEST_CASE("job mix: sizes are joined until there are enough jobs, ends are kept apart") {
  std::string text = "submit_s,length_s,gpus,fate\n";
  const auto add = [&](int jobs, int gpus, int length, const char* fate) {
    for (int i = 0; i < jobs; ++i) text += fmt::format("{},{},{},{}\n", i, length, gpus, fate);
  };
  add(60, 1, 100, "completed");
  add(40, 1, 10, "failed");
  add(30, 2, 200, "completed");
  add(30, 4, 200, "");
  add(10, 8, 300, "cancelled");
  const JobMix mix = fit_job_mix(parse_jobs(text, JobTraceFormat::orrery, "t"));
  REQUIRE(mix.parts.size() == 4);
  CHECK(mix.parts[0].share == Approx(60 / 170.0).epsilon(1e-5));
  CHECK(mix.parts[1].fate == JobFate::failed);
  CHECK(mix.parts[1].length_s.mean() == Approx(10));
  CHECK(mix.parts[2].sizes == std::vector<SizeShare>{{2, 0.5}, {4, 0.5}});
  CHECK(mix.parts[3].fate == JobFate::cancelled);
  CHECK(mix.parts[3].length_s.mean() == Approx(300));
}

}  // namespace orrery
