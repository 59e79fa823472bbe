// SPDX-License-Identifier: Apache-2.0
// Checks mixes of jobs as files and as summaries: what is read, and what is refused with which
// words.
#include <cmath>
#include <string>

#include <catch2/catch.hpp>

#include "sim/base/input_file.h"
#include "sim/base/random.h"
#include "tests/base/error_text.h"
#include "tests/base/fresh_seed.h"
#include "tests/base/scratch_folder.h"
#include "tests/workloads/job_mixes.h"
#include "workloads/cluster_job/job_mix_file.h"
#include "workloads/cluster_job/job_mix_fit.h"
#include "workloads/cluster_job/job_summary.h"

namespace orrery {
namespace {

using namespace mixes;

std::string refused(const std::string& text) {
  return error_text([&] { parsed(text); });
}

// A key's value exchanged.
std::string changed(std::string text, const std::string& from, const std::string& to) {
  const std::size_t at = text.find(from);
  REQUIRE(at != std::string::npos);
  return text.replace(at, from.size(), to);
}

bool same(const JobMix& a, const JobMix& b) {
  return a.arrivals == b.arrivals && a.parts == b.parts && a.queues == b.queues &&
         a.users == b.users && a.limits == b.limits && a.title == b.title;
}

}  // namespace

TEST_CASE("job mix: what is written is read as the same mix") {
  for (const JobMixEntry& entry : job_mix_entries(catalog)) {
    INFO(entry.name);
    const JobMix mix = load_job_mix(entry.name, catalog);
    CHECK(mix.name == entry.name);
    CHECK(same(parsed(job_mix_text(mix, entry.source)), mix));
  }
  const JobMix mix = fit_job_mix(drawn(parsed(own_mix), 20'000, fresh(10)));
  CHECK(same(parsed(job_mix_text(mix, "x")), mix));
  CHECK(same(parsed(job_mix_text(parsed(own_mix), "x")), parsed(own_mix)));
}

TEST_CASE("job mix: lognormal lengths have their three figures") {
  RandomStream random(fresh(11), 0);
  for (int i = 0; i < 100; ++i) {
    const double median = std::exp(10 * random.uniform()),
                 largest = median * std::exp(3 + 9 * random.uniform());
    // Where the largest is the peak of the normal curve; it cannot be further right.
    const double sigma = std::log(largest / median) / 0.6745;
    const double most = largest * std::exp(sigma * sigma / 2) * std::erfc(sigma / std::sqrt(2));
    const double mean = median + (0.01 + 0.8 * random.uniform()) * (most - median);
    const QuantileTable table = lognormal_lengths({mean, median, largest}, "t", "length");
    INFO(mean << " " << median << " " << largest);
    CHECK(table.mean() == Approx(mean).epsilon(2e-3));
    CHECK(table.share_up_to(median) == Approx(0.5).margin(0.01));
    CHECK(table.largest() <= largest * 1.00001);
  }
  const QuantileTable all = lognormal_lengths({60, 60, 60}, "t", "length");
  CHECK(all == QuantileTable::constant(60));
  const auto bad = [](double mean, double median, double largest) {
    return error_text([&] { lognormal_lengths({mean, median, largest}, "t", "length"); });
  };
  CHECK(bad(10, 60, 20) ==
        "t: length: found mean 10, median 60, largest 20; expected figures above 0, of which none "
        "is above the largest");
  CHECK(bad(10, 0, 20).find("expected figures above 0") != std::string::npos);
  CHECK(bad(30, 60, 3600) ==
        "t: length: found a mean of 30 below the median of 60; expected a mean of at least the "
        "median, as heavy tails have");
  CHECK(
      bad(3000, 60, 3600) ==
      "t: length: found a mean of 3000 and a median of 60; expected a mean that lengths with this "
      "median and largest one have: they reach 460.245");
}

TEST_CASE("job mix: a summary that no mix has is refused with its name") {
  const JobSummary good{.name = "s",
                        .jobs_per_day = 10,
                        .length_s = {1000, 100, 1e6},
                        .gpus = {5, 1, 64},
                        .gpu_seconds = 20'000,
                        .jobs = {0.5, 0.4, 0.1},
                        .gpu_time = {0.3, 0.1, 0.6}};
  const JobFigures figures = figures_of(job_mix_of(good));
  CHECK(figures.gpu_seconds == Approx(20'000).epsilon(1e-3));
  CHECK(figures.gpu_time[2] == Approx(0.6).epsilon(1e-3));
  const auto bad = [&](auto change) {
    JobSummary summary = good;
    change(summary);
    return error_text([&] { (void)job_mix_of(summary); });
  };
  CHECK(bad([](JobSummary& s) { s.jobs_per_day = 0; }) ==
        "s: jobs_per_day: found 0; expected a number above 0");
  CHECK(bad([](JobSummary& s) { s.gpus = {70, 1, 64}; }).find("s: gpus: found mean 70") == 0);
  CHECK(
      bad([](JobSummary& s) {
        s.gpus = {50, 1, 64};
      }).find("s: gpus: found a mean of 50; expected with this median and largest one nearer to") ==
      0);
  CHECK(bad([](JobSummary& s) { s.up_to_median = 0.4; }) ==
        "s: gpus: found 0.4 of the jobs up to the median; expected a share from 0.5 to below 1");
  CHECK(bad([](JobSummary& s) {
          s.length_s = {50, 100, 1000};
        }).find("s: length: found a mean of 50 below") == 0);
  CHECK(bad([](JobSummary& s) {
          s.gpu_seconds = 1e9;
        }).find("s: length: found 1000000000 GPU-seconds of a job") == 0);
  CHECK(bad([](JobSummary& s) {
          s.jobs = {0, 0, 0};
          s.gpu_time = {};
        }) == "s: fates: found no shares; expected at least one");
  CHECK(bad([](JobSummary& s) { s.jobs[1] = -1; }) ==
        "s: fates: found a share of jobs -1; expected shares of 0 or more");
  CHECK(bad([](JobSummary& s) { s.gpu_time[1] = 0; }) ==
        "s: fates: found failed jobs with one share of 0; expected shares of jobs and of GPU-time "
        "that are 0 together");
  CHECK(bad([](JobSummary& s) {
          s.gpu_time = {1e-9, 1e-9, 1};
        })
            .find("s: fates: found shares of "
                  "GPU-time that jobs of these sizes and lengths cannot have") == 0);
}

TEST_CASE("job mix: bad files get one sentence with the place") {
  CHECK(refused(own_mix) == "no error");
  CHECK(refused(changed(own_mix, "\"users\"", "\"user\"")) ==
        "m.json: user: found an unknown key; expected one of title, source, summary, arrivals, "
        "queues, "
        "users, limits, parts; did you mean \"users\"?");
  CHECK(refused(changed(own_mix, "400", "0")) ==
        "m.json: arrivals.jobs_per_day: found 0; expected a number above 0, up to 10^8");
  CHECK(refused(changed(own_mix, "[5,5,5,5,5,1,1]", "[5,5]")) ==
        "m.json: arrivals.by_weekday: found 2; expected 7 shares");
  CHECK(refused(changed(own_mix, "[5,5,5,5,5,1,1]", "[0,0,0,0,0,0,0]"))
            .find("expected shares of which one is above 0") != std::string::npos);
  CHECK(refused(changed(own_mix, "[5,5,5,5,5,1,1]", "[5,5,5,5,5,1,-1]"))
            .find("m.json: arrivals.by_weekday[6]: found -1; expected a share of 0 or more") == 0);
  CHECK(refused(changed(own_mix, "[[1, 3], [8, 1]]", "[[1.5, 3], [8, 1]]")) ==
        "m.json: parts[0].gpus[0][0]: found 1.5; expected whole GPUs between 1 and 10^7, or a part "
        "of one");
  CHECK(refused(changed(own_mix, "\"gpus\": 8", "\"gpus\": 0")).find("parts[1].gpus: found 0") !=
        std::string::npos);
  CHECK(refused(changed(own_mix, "\"failed\"", "\"faild\"")) ==
        "m.json: parts[1].fate: found \"faild\"; expected one of completed, failed, cancelled; did "
        "you mean \"failed\"?");
  CHECK(refused(changed(own_mix, "[0, 60, 600]", "[0, 60]")) ==
        "m.json: parts[1].length_s: found 2 edges and 2 shares; expected one edge more than "
        "shares");
  CHECK(refused(changed(own_mix, "[0, 60, 600]", "[0, 600, 60]"))
            .find("m.json: parts[1].length_s.edges: found") == 0);
  CHECK(refused(changed(own_mix, "[9000]", "[90000]")) ==
        "m.json: parts[2].length_s.means[0]: found 90000; expected a mean from 60 to 86400");
  CHECK(refused(changed(own_mix, "\"mean\": 4000", "\"mean\": 400"))
            .find("m.json: parts[0].length_s: found a mean of 400 below the median of 600") == 0);
  CHECK(refused(changed(own_mix, "\"queues\": [3, 1]", "\"queues\": [3]")) ==
        "m.json: parts[0].queues: found 1; expected a share for each of the 2 queues");
  CHECK(refused(changed(own_mix, "\"factor\": 1.5", "\"factor\": 0.5"))
            .find("m.json: limits[1].factor: found 0.5; expected a number from 1 to") == 0);
  CHECK(refused(changed(own_mix, "\"up_to_s\": 600, ", ""))
            .find("expected \"up_to_s\" that rises, and none in the last item") !=
        std::string::npos);
  CHECK(refused(R"({"arrivals": {"jobs_per_day": 1}, "parts": []})") ==
        "m.json: parts: found an empty list; expected parts of which one has a share above 0");
  CHECK(refused(R"({"parts": []})").find("m.json: found no key \"arrivals\"") != 0);
  const std::string kalos = content_of(catalog / "job_mixes" / "acme-kalos.json");
  CHECK(refused(kalos) == "no error");
  CHECK(refused(changed(kalos, "\"source\": \"acme-trace\",\n", "\"parts\": [], "))
            .find("m.json: parts: found an empty list; expected no such key beside \"summary\"") ==
        0);
  CHECK(refused(changed(kalos, "\"median\"", "\"medium\""))
            .find("expected one of mean, median, largest; did you mean \"median\"?") !=
        std::string::npos);
  CHECK(
      refused(changed(kalos, "1259.689 s", "1259.689")).find("m.json: summary.length.mean.value") ==
      0);
  CHECK(refused(changed(kalos, "1259.689 s", "59 s"))
            .find("m.json: length: found a mean of 59 below") == 0);
  CHECK(refused(changed(kalos, "\"jobs\": {\"value\": 19907", "\"jobs\": {\"value\": 0"))
            .find("m.json: summary.jobs: found") == 0);
}

TEST_CASE("job mix: what cannot be drawn is refused, names and paths are found") {
  const JobMix mix = parsed(own_mix);
  const auto bad = [&](FleetTime span, double rate) {
    return error_text([&] { draw_jobs(mix, span, rate, 1); });
  };
  CHECK(bad({}, 10) == "m: span: found 0 s; expected a time above 0, up to 1,000 years");
  CHECK(bad({most_fleet_time.us + 1}, 10).find("m: span: found 31536000000 s") == 0);
  CHECK(bad(days(1), 0) == "m: jobs_per_day: found 0; expected a number above 0");
  CHECK(bad(days(1), std::nan("")) == "m: jobs_per_day: found nan; expected a number above 0");
  CHECK(bad(days(1), 0.4) == "m: jobs_per_day: found no job in the span; expected at least one");
  CHECK(bad(days(10), 1e8)
            .find("m: jobs_per_day: found 1,000,000,000 jobs; expected at most "
                  "100,000,000 jobs") == 0);
  JobMix night = mix;
  night.arrivals.by_weekday = {0, 1, 1, 1, 1, 1, 1};
  CHECK(error_text([&] { draw_jobs(night, days(0.5), 10, 1); }) ==
        "m: span: found hours in which nothing is submitted; expected a longer span");
  CHECK(error_text([] { load_job_mix("acme-kalo", catalog); }) ==
        "mix: found \"acme-kalo\"; expected a file or a mix of jobs of the catalogue; did you mean "
        "\"acme-kalos\"?");
  const ScratchFolder folder("job-mix");
  const std::string path = folder.add("own.json", own_mix).string();
  CHECK(load_job_mix(path, catalog).name == path);
  CHECK(load_job_mix(path, catalog).title == "A laboratory");
  CHECK(load_job_mix(own_mix, catalog).name == "A laboratory");
  CHECK(same(load_job_mix(own_mix, catalog), mix));
  CHECK(error_text([] {
          load_job_mix("{\"arrivals\": {}}", catalog);
        }).find("mix: arrivals.jobs_per_day: found") == 0);
}

}  // namespace orrery
