// SPDX-License-Identifier: Apache-2.0
// Goes from round to round: what ran counts, then the policy decides.
#include "sim/engine/elastic/elastic_run.h"

#include <fmt/format.h>

#include <algorithm>

#include "sim/base/errors/check.h"
#include "sim/engine/elastic/elastic_progress.h"
#include "sim/engine/elastic/round_policy.h"

namespace orrery {
namespace {

constexpr GpuPicos ps_of_gpu_us = 1'000'000;
constexpr std::int64_t all_ppm = 1'000'000;
// Rounds in a row in which jobs wait and nobody runs: more are a mistake of a policy.
constexpr std::int64_t most_idle_rounds = 1'000;

void refuse(const std::string& path, const std::string& found, const std::string& expected) {
  throw Error({.path = path, .found = found, .expected = expected});
}

void check_question(const ElasticQuestion& q) {
  if (q.hosts < 1 || q.gpus_per_host < 1)
    refuse("hosts", fmt::format("{} of {} GPUs", q.hosts, q.gpus_per_host), "1 or more of each");
  if (q.tick.us < 1) refuse("tick", fmt::format("{} s", to_seconds(q.tick).si()), "above 0 s");
  if (q.restart.us < 0)
    refuse("restart", fmt::format("{} s", to_seconds(q.restart).si()), "0 s or more");
  if (q.slice_rounds < 1) refuse("slice", fmt::format("{} rounds", q.slice_rounds), "1 or more");
  if (q.meeting_ppm < 0 || q.meeting_ppm >= all_ppm)
    refuse("meeting", fmt::format("{} millionths", q.meeting_ppm), "from 0 to below a million");
}

void check_job(const ElasticJob& job, std::size_t place,
               const std::vector<ElasticApplication>& applications, const ElasticQuestion& q) {
  const std::string path = job.id.empty() ? fmt::format("job {}", place + 1) : job.id;
  if (job.application >= applications.size())
    refuse(path, fmt::format("application {}", job.application), "one of the list");
  const ElasticApplication& application = applications[job.application];
  const std::int64_t batch = job.free_batch ? application.batches().back() : job.batch;
  if (!application.has_batch(batch))
    refuse(path, fmt::format("a batch of {}", batch), "one between measured ones");
  if (job.least < 1 || job.least > job.most)
    refuse(path, fmt::format("{} to {} GPUs", job.least, job.most), "at least 1, least first");
  const std::int64_t most = std::min<std::int64_t>(q.gpus(), application.most_gpus(batch));
  const std::int32_t asks = std::max(job.gpus, job.least);
  if (job.gpus < 1 || asks > most)
    refuse(path, fmt::format("{} GPUs", asks), fmt::format("1 to {}", most));
}

class ElasticRun {
 public:
  ElasticRun(const std::vector<ElasticJob>& jobs,
             const std::vector<ElasticApplication>& applications, const ElasticQuestion& question)
      : jobs_(jobs),
        question_(question),
        paces_(applications),
        policy_(round_policy(question.rule)),
        progress_(jobs.size()),
        places_(jobs.size()) {
    record_.jobs.resize(jobs.size());
  }
  ElasticRecord run();

 private:
  void admit();
  void decide();
  void move(std::uint32_t job, Grants place);
  void advance();
  void count_idle(FleetTime from, FleetTime to, GpuMicros held);
  std::vector<std::int64_t> slowdowns() const;  // by active job

  const std::vector<ElasticJob>& jobs_;
  const ElasticQuestion& question_;
  PaceTable paces_;
  std::unique_ptr<RoundPolicy> policy_;
  std::vector<ElasticProgress> progress_;
  std::vector<Grants> places_;  // of all, for `look`
  std::vector<std::uint32_t> active_;
  std::size_t admitted_ = 0;
  FleetTime now_;
  std::int64_t idle_rounds_ = 0;
  ElasticRecord record_;
};

void ElasticRun::admit() {
  for (; admitted_ < jobs_.size() && jobs_[admitted_].submit <= now_; ++admitted_)
    active_.push_back(static_cast<std::uint32_t>(admitted_));
}

void ElasticRun::move(std::uint32_t job, Grants place) {
  if (place == progress_[job].place()) return;
  JobPace pace;
  if (!place.empty()) pace = paces_.pace(jobs_[job], gpus_of_place(place), on_several_hosts(place));
  progress_[job].move(std::move(place), pace, now_, question_.restart, record_.jobs[job],
                      record_.gpu_time);
}

void ElasticRun::decide() {
  RoundView view{
      .now = now_, .jobs = {}, .question = question_, .paces = paces_, .gpus = question_.gpus()};
  for (const std::uint32_t job : active_)
    view.jobs.push_back({.number = job,
                         .asked = &jobs_[job],
                         .place = &progress_[job].place(),
                         .age = now_ - jobs_[job].submit,
                         .restarts = record_.jobs[job].restarts,
                         .restart = question_.restart,
                         .most_run = progress_[job].most_run(),
                         .ran_across = progress_[job].ran_across(),
                         .left = progress_[job].left()});
  std::vector<Grants> places(active_.size());
  policy_->decide(view, places);
  bool runs = false;
  for (std::size_t i = 0; i < active_.size(); ++i) {
    runs = runs || !places[i].empty();
    move(active_[i], std::move(places[i]));
  }
  idle_rounds_ = runs ? 0 : idle_rounds_ + 1;
  CHECK_THAT(idle_rounds_ < most_idle_rounds, "a policy lets all jobs wait");
  ++record_.rounds;
  if (!question_.look) return;
  for (std::size_t j = 0; j < jobs_.size(); ++j)
    places_[j] = progress_[j].is_over() ? Grants{} : progress_[j].place();
  question_.look(now_, places_);
}

std::vector<std::int64_t> ElasticRun::slowdowns() const {
  std::vector<std::int64_t> out(active_.size(), 0);
  if (question_.meeting_ppm == 0) return out;
  std::vector<std::int32_t> spread(static_cast<std::size_t>(question_.hosts), 0);
  for (const std::uint32_t job : active_)
    if (on_several_hosts(progress_[job].place()))
      for (const HostGrant& grant : progress_[job].place())
        ++spread[static_cast<std::size_t>(grant.host)];
  for (std::size_t i = 0; i < active_.size(); ++i) {
    const Grants& place = progress_[active_[i]].place();
    if (on_several_hosts(place) && std::any_of(place.begin(), place.end(), [&](const HostGrant& g) {
          return spread[static_cast<std::size_t>(g.host)] > 1;
        }))
      out[i] = question_.meeting_ppm;
  }
  return out;
}

// What nobody held between two times that lie after the first submission.
void ElasticRun::count_idle(FleetTime from, FleetTime to, GpuMicros held) {
  record_.gpu_time.idle +=
      (static_cast<GpuMicros>(question_.gpus()) * (to - from).us - held) * ps_of_gpu_us;
}

void ElasticRun::advance() {
  const FleetTime from = now_;
  const std::vector<std::int64_t> slower = slowdowns();
  GpuMicros held = 0;
  FleetTime last = from;
  for (std::size_t i = 0; i < active_.size(); ++i) {
    const std::uint32_t job = active_[i];
    const GpuMicros before = record_.jobs[job].held;
    progress_[job].advance(from, question_.tick, slower[i], record_.jobs[job], record_.gpu_time);
    held += record_.jobs[job].held - before;
    if (progress_[job].is_over()) last = std::max(last, record_.jobs[job].end);
  }
  std::erase_if(active_, [&](std::uint32_t job) { return progress_[job].is_over(); });
  now_ += question_.tick;
  const bool all_over = active_.empty() && admitted_ == jobs_.size();
  record_.last_end = std::max(record_.last_end, last);
  count_idle(from, all_over ? record_.last_end : now_, held);
}

ElasticRecord ElasticRun::run() {
  const FleetTime first = jobs_.front().submit;
  FleetTime reached = first;
  while (!active_.empty() || admitted_ < jobs_.size()) {
    if (active_.empty()) {
      const std::int64_t submit = std::max(now_, jobs_[admitted_].submit).us;
      now_.us = (submit + question_.tick.us - 1) / question_.tick.us * question_.tick.us;
      count_idle(reached, now_, 0);
    }
    admit();
    decide();
    advance();
    reached = now_;
  }
  record_.gpu_time.all =
      static_cast<GpuPicos>(question_.gpus()) * (record_.last_end - first).us * ps_of_gpu_us;
  return std::move(record_);
}

}  // namespace

ElasticRecord run_elastic(const std::vector<ElasticJob>& jobs,
                          const std::vector<ElasticApplication>& applications,
                          const ElasticQuestion& question) {
  check_question(question);
  if (jobs.empty()) refuse("jobs", "none", "one or more");
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    check_job(jobs[i], i, applications, question);
    if (i > 0 && jobs[i].submit < jobs[i - 1].submit)
      refuse("jobs", "a job submitted before the one in front of it", "order of submission");
  }
  return ElasticRun(jobs, applications, question).run();
}

}  // namespace orrery
