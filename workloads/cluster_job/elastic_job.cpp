// SPDX-License-Identifier: Apache-2.0
// Reads elastic jobs and their measured steps, and reads steps between measured ones.
#include "workloads/cluster_job/elastic_job.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "sim/base/errors/check.h"
#include "sim/base/text/csv.h"
#include "workloads/cluster_job/job_cells.h"

namespace orrery {
namespace {

constexpr const char* elastic_columns_page = "workloads/cluster_job/elastic_job.h";
constexpr double ps_of_second = 1e12;
constexpr double longest_step_s = 86'400;  // a longer one is a mistake of its row
constexpr std::int64_t most_batch = INT64_C(1'000'000'000), most_target_steps = INT64_C(10'000'000);

double on_line(double from, double to, double share) { return from + (to - from) * share; }

std::int64_t shares(std::int64_t all, std::int64_t parts) { return (all + parts - 1) / parts; }

std::int64_t whole(const CsvRow& row, const char* column, std::int64_t most) {
  const double value = row.number(column).value_or(0);
  if (!(value >= 1 && value <= static_cast<double>(most)) || value != std::floor(value))
    row.fail(column, fmt::format("a whole number from 1 to {}", most));
  return static_cast<std::int64_t>(value);
}

std::int64_t picoseconds(const CsvRow& row, const char* column) {
  const double value = row.number(column).value_or(-1);
  if (!(value >= 0 && value <= longest_step_s)) row.fail(column, "seconds from 0 to a day");
  return std::llround(value * ps_of_second);
}

struct SpeedRows {
  std::vector<BatchSteps> batches;
  std::vector<PlacedStep> samples;
};

void add_row(const CsvRow& row, SpeedRows& rows) {
  PlacedStep sample;
  sample.gpus = static_cast<std::int32_t>(whole(row, "gpus", most_job_gpus));
  sample.nodes = static_cast<std::int32_t>(whole(row, "nodes", most_job_gpus));
  if (sample.nodes > sample.gpus) row.fail("nodes", "no more nodes than GPUs");
  sample.batch = whole(row, "batch_size", most_batch);
  if (sample.batch < sample.gpus) row.fail("batch_size", "a sample for each GPU at least");
  sample.micro = whole(row, "micro_steps", most_batch);
  sample.pass_ps = picoseconds(row, "pass_s");
  sample.sync_ps = picoseconds(row, "sync_s");
  if (sample.sync_ps >= sample.pass_ps) row.fail("sync_s", "less than pass_s");
  rows.samples.push_back(sample);
  const BatchSteps steps{sample.batch, whole(row, "steps_to_target", most_target_steps)};
  const auto known = std::find_if(rows.batches.begin(), rows.batches.end(),
                                  [&](const BatchSteps& b) { return b.batch == steps.batch; });
  if (known == rows.batches.end())
    rows.batches.push_back(steps);
  else if (known->steps != steps.steps)
    row.fail("steps_to_target", fmt::format("{}, as another row of that batch says", known->steps));
}

[[noreturn]] void fail_application(const std::string& file, const std::string& name,
                                   const std::string& found, const std::string& expected) {
  throw Error({.file = file, .path = name, .found = found, .expected = expected});
}

// Three sizes between each two, evenly on a scale of factors.
std::vector<std::int64_t> batch_choices(const std::vector<BatchSteps>& measured) {
  constexpr int parts = 4;
  std::vector<std::int64_t> out;
  for (std::size_t i = 0; i < measured.size(); ++i) {
    out.push_back(measured[i].batch);
    if (i + 1 == measured.size()) break;
    const double factor =
        static_cast<double>(measured[i + 1].batch) / static_cast<double>(measured[i].batch);
    for (int part = 1; part < parts; ++part) {
      const auto batch = std::llround(static_cast<double>(measured[i].batch) *
                                      std::pow(factor, static_cast<double>(part) / parts));
      if (batch > out.back() && batch < measured[i + 1].batch) out.push_back(batch);
    }
  }
  return out;
}

ElasticJob read_job(const CsvRow& row, const std::vector<std::string>& names,
                    const std::vector<ElasticApplication>& applications) {
  ElasticJob job{.submit = seconds_in(row, "submit_s"), .id = row.text("job")};
  const auto found = std::find(names.begin(), names.end(), row.text("application"));
  if (found == names.end()) row.fail("application", "an application with measured steps");
  job.application = static_cast<std::uint32_t>(found - names.begin());
  const ElasticApplication& application = applications[job.application];
  job.batch = whole(row, "batch_size", most_batch);
  if (!application.has_batch(job.batch))
    row.fail("batch_size", fmt::format("from {} to {}, as measured", application.batches().front(),
                                       application.batches().back()));
  job.gpus = job_gpus(row, "gpus", row.integer("gpus"));
  if (job.gpus > application.most_gpus(job.batch))
    row.fail("gpus", fmt::format("at most {} for this batch", application.most_gpus(job.batch)));
  job.least = job.most = job.gpus;
  return job;
}

}  // namespace

ElasticApplication::ElasticApplication(std::string name, std::vector<BatchSteps> batches,
                                       std::vector<PlacedStep> samples, const std::string& file)
    : name_(std::move(name)), measured_(std::move(batches)) {
  std::sort(measured_.begin(), measured_.end(),
            [](const BatchSteps& a, const BatchSteps& b) { return a.batch < b.batch; });
  std::stable_sort(samples.begin(), samples.end(), [](const PlacedStep& a, const PlacedStep& b) {
    return a.gpus != b.gpus ? a.gpus < b.gpus : a.batch < b.batch;
  });
  for (const PlacedStep& sample : samples) {
    const std::int64_t local = shares(shares(sample.batch, sample.gpus), sample.micro);
    least_local_ = std::min(least_local_, local);
    most_local_ = std::max(most_local_, local);
    most_gpus_ = std::max(most_gpus_, sample.gpus);
    add(sample.nodes == 1 ? inside_ : across_, sample);
  }
  if (inside_.empty()) fail_application(file, name_, "no step on one node", "one at least");
  if (across_.empty()) across_ = inside_;
  check_steps(file);
  choices_ = batch_choices(measured_);
}

void ElasticApplication::check_steps(const std::string& file) const {
  if (measured_.empty()) fail_application(file, name_, "no batch sizes", "one at least");
  for (std::size_t i = 1; i < measured_.size(); ++i)
    if (measured_[i].steps > measured_[i - 1].steps)
      fail_application(file, name_,
                       fmt::format("more steps at a batch of {} than at {}", measured_[i].batch,
                                   measured_[i - 1].batch),
                       "no more steps as the batch grows");
}

void ElasticApplication::add(MeasuredPlaces& places, const PlacedStep& sample) {
  if (places.empty() || places.back().gpus != sample.gpus) places.push_back({sample.gpus, {}});
  std::vector<LocalPass>& passes = places.back().passes;
  const std::int64_t local = shares(shares(sample.batch, sample.gpus), sample.micro);
  const auto at = std::lower_bound(passes.begin(), passes.end(), local,
                                   [](const LocalPass& p, std::int64_t l) { return p.local < l; });
  // Batches that differ in the number of passes alone share one.
  if (at != passes.end() && at->local == local) return;
  passes.insert(at, {local, static_cast<double>(sample.pass_ps - sample.sync_ps),
                     static_cast<double>(sample.sync_ps)});
}

ElasticApplication::LocalPass ElasticApplication::pass_at(const MeasuredPlace& place,
                                                          std::int64_t local) {
  const std::vector<LocalPass>& p = place.passes;
  const auto at = std::lower_bound(p.begin(), p.end(), local,
                                   [](const LocalPass& a, std::int64_t l) { return a.local < l; });
  if (at != p.end() && at->local == local) return *at;
  // Outside of what was measured computation goes with the share, and the reduction stays.
  if (at == p.begin() || at == p.end()) {
    LocalPass edge = at == p.end() ? p.back() : p.front();
    edge.compute_ps *= static_cast<double>(local) / static_cast<double>(edge.local);
    edge.local = local;
    return edge;
  }
  const LocalPass &low = *(at - 1), &high = *at;
  const double share =
      static_cast<double>(local - low.local) / static_cast<double>(high.local - low.local);
  return {local, on_line(low.compute_ps, high.compute_ps, share),
          on_line(low.sync_ps, high.sync_ps, share)};
}

ElasticApplication::LocalPass ElasticApplication::pass_at(const MeasuredPlaces& places,
                                                          std::int32_t gpus, std::int64_t local) {
  const auto at =
      std::lower_bound(places.begin(), places.end(), gpus,
                       [](const MeasuredPlace& p, std::int32_t g) { return p.gpus < g; });
  if (at == places.end()) return pass_at(places.back(), local);
  if (at->gpus == gpus || at == places.begin()) return pass_at(*at, local);
  const LocalPass low = pass_at(*(at - 1), local), high = pass_at(*at, local);
  const double share =
      static_cast<double>(gpus - (at - 1)->gpus) / static_cast<double>(at->gpus - (at - 1)->gpus);
  return {local, on_line(low.compute_ps, high.compute_ps, share),
          on_line(low.sync_ps, high.sync_ps, share)};
}

bool ElasticApplication::has_batch(std::int64_t batch) const {
  return batch >= measured_.front().batch && batch <= measured_.back().batch;
}

std::int64_t ElasticApplication::steps_to_target(std::int64_t batch) const {
  const auto at =
      std::lower_bound(measured_.begin(), measured_.end(), batch,
                       [](const BatchSteps& b, std::int64_t value) { return b.batch < value; });
  if (at == measured_.end()) return measured_.back().steps;
  if (at->batch == batch || at == measured_.begin()) return at->steps;
  const BatchSteps &low = *(at - 1), &high = *at;
  const double share = std::log(static_cast<double>(batch) / static_cast<double>(low.batch)) /
                       std::log(static_cast<double>(high.batch) / static_cast<double>(low.batch));
  const double steps = std::exp(on_line(std::log(static_cast<double>(low.steps)),
                                        std::log(static_cast<double>(high.steps)), share));
  return std::max<std::int64_t>(1, std::llround(steps));
}

std::int32_t ElasticApplication::most_gpus(std::int64_t batch) const {
  return static_cast<std::int32_t>(std::min<std::int64_t>(most_gpus_, batch / least_local_));
}

std::int64_t ElasticApplication::step_ps(std::int32_t gpus, std::int32_t nodes,
                                         std::int64_t batch) const {
  const std::int64_t share = shares(batch, gpus), micro = shares(share, most_local_);
  const LocalPass pass = pass_at(nodes == 1 ? inside_ : across_, gpus, shares(share, micro));
  const double step = pass.compute_ps * static_cast<double>(micro) + pass.sync_ps;
  return std::max<std::int64_t>(1, std::llround(step));
}

std::int64_t step_worth(const ElasticApplication& application, std::int64_t batch) {
  return shares(elastic_work, application.steps_to_target(batch));
}

std::vector<ElasticApplication> read_elastic_speeds(const std::filesystem::path& file) {
  const CsvTable table = read_csv(file);
  require_columns(table,
                  {"application", "gpus", "nodes", "batch_size", "micro_steps", "pass_s", "sync_s",
                   "steps_to_target"},
                  elastic_columns_page);
  std::vector<std::string> names;
  std::map<std::string, SpeedRows> all;
  for (std::size_t i = 0; i < table.rows.size(); ++i) {
    const CsvRow row(table, i);
    if (row.blank("application")) row.fail("application", "the name of an application");
    const std::string& name = row.text("application");
    if (!all.contains(name)) names.push_back(name);
    add_row(row, all[name]);
  }
  std::vector<ElasticApplication> out;
  out.reserve(names.size());
  for (const std::string& name : names)
    out.emplace_back(name, all[name].batches, all[name].samples, table.file);
  return out;
}

std::vector<ElasticJob> read_elastic_jobs(const std::filesystem::path& file,
                                          const std::string& workload,
                                          const std::vector<ElasticApplication>& applications) {
  const CsvTable table = read_csv(file);
  require_columns(table, {"job", "submit_s", "application", "gpus", "batch_size"},
                  elastic_columns_page);
  std::vector<std::string> names;
  names.reserve(applications.size());
  for (const ElasticApplication& one : applications) names.push_back(one.name());
  std::vector<ElasticJob> jobs;
  std::set<std::string> ids;
  for (std::size_t i = 0; i < table.rows.size(); ++i) {
    const CsvRow row(table, i);
    if (table.has("workload") && row.text("workload") != workload) continue;
    jobs.push_back(read_job(row, names, applications));
    if (jobs.back().id.empty() || !ids.insert(jobs.back().id).second)
      row.fail("job", "a name that no other job of the workload has");
  }
  if (jobs.empty())
    throw Error({.file = table.file, .found = "no jobs", .expected = "jobs of " + workload});
  std::stable_sort(jobs.begin(), jobs.end(),
                   [](const ElasticJob& a, const ElasticJob& b) { return a.submit < b.submit; });
  return jobs;
}

void free_sizes(std::vector<ElasticJob>& jobs, const std::vector<ElasticApplication>& applications,
                std::int32_t most, bool free_batch) {
  for (ElasticJob& job : jobs) {
    if (job.gpus == 1) continue;
    const ElasticApplication& application = applications[job.application];
    const std::int64_t batch = free_batch ? application.batches().back() : job.batch;
    job.free_batch = free_batch;
    job.least = 1;
    job.most = std::min(most, application.most_gpus(batch));
  }
}

}  // namespace orrery
