// SPDX-License-Identifier: Apache-2.0
// Joins lists of jobs of several kinds to one.
#include "sim/question/schedule/fleet_jobs.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "sim/base/text/words.h"
#include "sim/engine/jobs/job_run.h"
#include "sim/outcome/fleet/job_months.h"
#include "sim/question/rules/share_entry.h"
#include "sim/question/schedule/inline_jobs.h"
#include "sim/question/schedule/settings.h"
#include "workloads/cluster_job/job_clock.h"
#include "workloads/cluster_job/job_dependencies.h"

namespace orrery {
namespace {

constexpr std::int64_t most_days = 365'000;
constexpr std::size_t most_works = 10'000;  // below 2^16: ClusterJob::work
constexpr std::int16_t highest_priority = 1000;

void read_deadline(const JsonValue& entry, EntryRank& rank) {
  if (const auto deadline = entry.find("deadline")) rank.deadline = read_entry_time(*deadline);
  const auto slack = entry.find("slack");
  if (!slack) return;
  if (rank.deadline) slack->fail("nothing beside deadline");
  if (slack->is_string()) {
    rank.slack = read_entry_time(*slack);
    return;
  }
  constexpr double most_share = 1000;
  rank.slack_share = slack->number();
  if (!(*rank.slack_share >= 0 && *rank.slack_share <= most_share))
    slack->fail("a time beyond the limit (\"6 h\"), or a share of the limit from 0 to 1,000");
}

// The number of a level that is named, from 1.
std::uint16_t read_within(const JsonValue& named, FleetJobs& out) {
  const std::string name = named.text();
  const auto at = std::find_if(out.within.begin(), out.within.end(),
                               [&](const JsonValue& other) { return other.text() == name; });
  const auto place = at - out.within.begin();
  if (at == out.within.end()) out.within.push_back(named);
  return static_cast<std::uint16_t>(place + 1);
}

EntryRank read_rank(const JsonValue& entry, FleetJobs& out) {
  EntryRank rank;
  if (const auto queue = entry.find("queue")) rank.queue = queue->text();
  if (const auto priority = entry.find("priority"))
    rank.priority =
        static_cast<std::int16_t>(priority->integer(-highest_priority, highest_priority));
  if (const auto preemptible = entry.find("preemptible")) rank.preemptible = preemptible->boolean();
  if (const auto within = entry.find("within")) rank.within = read_within(*within, out);
  read_deadline(entry, rank);
  return rank;
}

// What its jobs ask of a GPU, if they ask for parts of one.
void read_uses(const JsonValue& entry, bool parts, EntryRank& rank, FleetJobs& out) {
  const auto uses = entry.find("uses");
  if (!uses) return;
  if (!parts) uses->fail("nothing here: none of these jobs asks for a part of a GPU");
  out.uses.push_back(read_gpu_use(*uses));
  rank.uses = static_cast<std::uint16_t>(out.uses.size());
}

bool any_part(const ClusterJobs& list) {
  return std::any_of(list.jobs.begin(), list.jobs.end(),
                     [](const ClusterJob& job) { return job.is_part(); });
}

// Error where a single job takes longer than it has.
EntryRank read_rank_of(const JsonValue& entry, const ClusterJob& job, FleetJobs& out) {
  if (const auto after = entry.find("after")) out.dependencies.add(entry.at("id").text(), *after);
  EntryRank rank = read_rank(entry, out);
  if (rank.deadline && *rank.deadline < job.length)
    entry.at("deadline")
        .fail(fmt::format("at least the {:.3g} h that it takes alone",
                          to_seconds(job.length).si() / 3600));
  return rank;
}

void set_rank(ClusterJob& job, const EntryRank& rank) {
  job.priority = rank.priority;
  job.preemptible = rank.preemptible;
  job.within = rank.within;
  job.uses = rank.uses;
  if (rank.deadline) job.deadline = *rank.deadline;
  if (rank.slack) job.deadline = job.limit + *rank.slack;
  if (rank.slack_share)
    job.deadline =
        job.limit + to_fleet_time(Seconds(to_seconds(job.limit).si() * *rank.slack_share));
}

// The number of a further kind of work.
std::uint16_t add_work(const JsonValue& entry, const JobWork& work, FleetJobs& out) {
  if (out.works.size() >= most_works)
    entry.fail(fmt::format("at most {} trainings, with each of their sizes, and served models",
                           grouped(most_works)));
  out.works.push_back(work);
  return static_cast<std::uint16_t>(out.works.size() - 1);
}

// A kind of work for each of its sizes.
void add_works(const JsonValue& entry, FleetTraining& training, FleetJobs& out) {
  std::vector<WorkSize> sizes;
  const auto add = [&](FleetTraining& on) {
    on.job.work = add_work(entry, on.work, out);
    sizes.push_back({on.job.gpus, on.job.work, steps_of(on.work, on.job.length)});
  };
  add(training);
  for (FleetTraining& size : training.sizes) add(size);
  if (sizes.size() == 1) return;
  std::sort(sizes.begin(), sizes.end(),
            [](const WorkSize& a, const WorkSize& b) { return a.gpus < b.gpus; });
  out.sizes.push_back(std::move(sizes));
  training.job.sizes = static_cast<std::uint16_t>(out.sizes.size());
}

// Nobody stops replicas, and they go before all others, if the entry does not say otherwise.
EntryRank read_replica_rank(const JsonValue& entry, FleetJobs& out) {
  EntryRank rank = read_rank(entry, out);
  if (!entry.has("priority")) rank.priority = highest_priority;
  if (!entry.has("preemptible")) rank.preemptible = false;
  return rank;
}

void read_served_entry(const JsonValue& entry, const FleetJobsCase& with, Catalogues& catalogues,
                       int threads, FleetJobs& out) {
  const ServedCase served{.cluster = with.cluster,
                          .profile = with.profile,
                          .store = with.store,
                          .scale = with.scale,
                          .end = with.horizon ? with.horizon : out.days,
                          .replicas = *with.replicas,
                          .catalogues = catalogues,
                          .threads = threads};
  if (entry.has("serve")) {
    out.served.push_back(read_served_model(entry, served));
    out.served.back().service.work = add_work(entry, out.served.back().work, out);
    out.served_ranks.push_back(read_replica_rank(entry, out));
    return;
  }
  out.batches.push_back(read_batch(entry, served));
  out.batches.back().job.work = add_work(entry, out.batches.back().work, out);
  out.batch_ranks.push_back(read_rank_of(entry, out.batches.back().job, out));
}

void read_rl_entry(const JsonValue& entry, const FleetJobsCase& with, Catalogues& catalogues,
                   int threads, FleetJobs& out) {
  out.post_trainings.push_back(read_post_training(entry, {.cluster = with.cluster,
                                                          .profile = with.profile,
                                                          .save_interval = with.save_interval,
                                                          .milliwatts = with.recorded_milliwatts,
                                                          .catalogues = catalogues,
                                                          .threads = threads}));
  out.post_trainings.back().job.work = add_work(entry, out.post_trainings.back().work, out);
  out.post_training_ranks.push_back(read_rank_of(entry, out.post_trainings.back().job, out));
}

void read_entry(const JsonValue& entry, const FleetJobsCase& with, Catalogues& catalogues,
                int threads, FleetJobs& out) {
  if (entry.has("trace")) {
    entry.expect_only(
        {"trace", "queue", "priority", "preemptible", "within", "deadline", "slack", "uses"});
    out.traces.push_back({traced_jobs(entry.at("trace")), read_rank(entry, out)});
    read_uses(entry, any_part(out.traces.back().list), out.traces.back().rank, out);
    return;
  }
  if (entry.has("mix")) {
    entry.expect_only({"mix", "per_day", "queue", "priority", "preemptible", "within", "deadline",
                       "slack", "uses"});
    const double per_day = entry.at("per_day").number();
    if (!(per_day > 0)) entry.at("per_day").fail("jobs a day, above 0");
    out.mixes.push_back(
        {.mix = mix_of_jobs(entry.at("mix")), .per_day = per_day, .rank = read_rank(entry, out)});
    read_uses(entry, least_size(out.mixes.back().mix) < 1, out.mixes.back().rank, out);
    return;
  }
  if (entry.has("serve") || entry.has("batch")) {
    read_served_entry(entry, with, catalogues, threads, out);
    return;
  }
  if (entry.has("rl")) {
    read_rl_entry(entry, with, catalogues, threads, out);
    return;
  }
  FleetTraining training = read_training(entry, {.cluster = with.cluster,
                                                 .profile = with.profile,
                                                 .store = with.store,
                                                 .save_interval = with.save_interval,
                                                 .catalogues = catalogues,
                                                 .threads = threads});
  add_works(entry, training, out);
  out.training_ranks.push_back(read_rank_of(entry, training.job, out));
  read_uses(entry, training.job.is_part(), out.training_ranks.back(), out);
  out.trainings.push_back(std::move(training));
}

std::string name_of(const FleetJobs& jobs) {
  std::vector<std::string> parts;
  for (const TracedJobs& trace : jobs.traces) parts.push_back(trace.list.name);
  for (const DrawnJobs& drawn : jobs.mixes)
    parts.push_back(fmt::format("{:.6g} jobs a day like {}", drawn.per_day, drawn.mix.name));
  if (!jobs.trainings.empty()) parts.push_back(plural(jobs.trainings.size(), "training"));
  if (!jobs.served.empty()) parts.push_back(plural(jobs.served.size(), "served model"));
  if (!jobs.batches.empty()) parts.push_back(plural(jobs.batches.size(), "batch of requests"));
  if (!jobs.post_trainings.empty())
    parts.push_back(plural(jobs.post_trainings.size(), "job") + " of RL");
  return joined(parts, ", ");
}

std::int32_t number_of(std::vector<std::string>& names, const std::string& name) {
  const auto at = std::find(names.begin(), names.end(), name);
  if (at != names.end()) return static_cast<std::int32_t>(at - names.begin());
  names.push_back(name);
  return static_cast<std::int32_t>(names.size() - 1);
}

// Adds a list to another, whose queues and users are numbered anew, so much later.
void append(ClusterJobs& all, const ClusterJobs& more, const EntryRank& rank,
            const std::string& prefix, FleetTime later) {
  std::vector<std::int32_t> queues, users;
  for (const std::string& queue : more.queues)
    queues.push_back(number_of(all.queues, rank.queue.empty() ? queue : rank.queue));
  for (const std::string& user : more.users) users.push_back(number_of(all.users, user));
  const auto base = static_cast<std::uint32_t>(all.jobs.size());
  for (const JobDependency& one : more.dependencies)
    all.dependencies.push_back({base + one.job, base + one.after, one.any, one.think});
  for (std::size_t i = 0; i < more.jobs.size(); ++i) {
    ClusterJob job = more.jobs[i];
    job.submit += later;
    job.queue = queues[static_cast<std::size_t>(job.queue)];
    if (job.user >= 0) job.user = users[static_cast<std::size_t>(job.user)];
    set_rank(job, rank);
    all.jobs.push_back(job);
    all.ids.push_back(prefix + more.id_of(i));
  }
  for (const std::string& note : more.notes) all.notes.push_back(prefix + " " + note);
}

void keep_days(ClusterJobs& list, FleetTime end) {
  const auto first = std::find_if(list.jobs.begin(), list.jobs.end(),
                                  [&](const ClusterJob& job) { return job.submit >= end; });
  const std::int64_t left_out =
      keep_first(list, static_cast<std::size_t>(first - list.jobs.begin()));
  if (left_out > 0)
    list.notes.push_back(
        fmt::format("{} after such as are submitted later than the days asked "
                    "for, and {} left out",
                    plural(left_out, "job") + (left_out == 1 ? " comes" : " come"),
                    left_out == 1 ? "was" : "were"));
}

void append_ranked(ClusterJobs& all, ClusterJob job, const EntryRank& rank,
                   const std::string& queue, std::string id) {
  job.queue = number_of(all.queues, rank.queue.empty() ? queue : rank.queue);
  set_rank(job, rank);
  all.jobs.push_back(job);
  all.ids.push_back(std::move(id));
}

void append_trainings(ClusterJobs& all, const FleetJobs& jobs) {
  for (std::size_t i = 0; i < jobs.trainings.size(); ++i) {
    ClusterJob job = jobs.trainings[i].job;
    job.row = static_cast<std::uint32_t>(i + 1);
    append_ranked(all, job, jobs.training_ranks[i], "training", jobs.trainings[i].id);
  }
}

// Replicas are called chat:2.1, chat:2.2, ..: the second one, when it comes the first time.
void append_replicas(ClusterJobs& all, const FleetJobs& jobs) {
  for (std::size_t i = 0; i < jobs.served.size(); ++i) {
    const FleetServedModel& model = jobs.served[i];
    std::map<std::int64_t, int> times;
    std::uint32_t row = 0;
    for (const ReplicaLife& life : model.lives) {
      const FleetTime length = life.until - life.submit - model.service.rule.start;
      append_ranked(all,
                    {.submit = life.submit,
                     .length = length,
                     .limit = length,
                     .gpus = model.service.gpus,
                     .row = ++row,
                     .work = model.service.work},
                    jobs.served_ranks[i], "serving",
                    fmt::format("{}:{}.{}", model.service.id, life.replica, ++times[life.replica]));
    }
    all.notes.insert(all.notes.end(), model.notes.begin(), model.notes.end());
  }
}

void append_batches(ClusterJobs& all, const FleetJobs& jobs) {
  for (std::size_t i = 0; i < jobs.batches.size(); ++i)
    append_ranked(all, jobs.batches[i].job, jobs.batch_ranks[i], "batch", jobs.batches[i].id);
}

void append_post_trainings(ClusterJobs& all, const FleetJobs& jobs) {
  for (std::size_t i = 0; i < jobs.post_trainings.size(); ++i)
    append_ranked(all, jobs.post_trainings[i].job, jobs.post_training_ranks[i], "rl",
                  jobs.post_trainings[i].id);
}

void resolve_dependencies(FleetJobs& jobs) {
  std::vector<std::string> ids;
  for (const FleetTraining& training : jobs.trainings) ids.push_back(training.id);
  for (const BatchInference& batch : jobs.batches) ids.push_back(batch.id);
  for (const PostTraining& job : jobs.post_trainings) ids.push_back(job.id);
  jobs.dependencies.resolve(ids, [&](const std::string& id) {
    return std::any_of(jobs.traces.begin(), jobs.traces.end(), [&](const TracedJobs& trace) {
      const std::string prefix = trace.list.name + ":";
      if (!id.starts_with(prefix)) return false;
      for (std::size_t i = 0; i < trace.list.jobs.size(); ++i)
        if (trace.list.id_of(i) == std::string_view(id).substr(prefix.size())) return true;
      return false;
    });
  });
}

void check_ids(const FleetJobs& jobs, const JsonValue& settings) {
  std::set<std::string> ids;
  const auto add = [&](const std::string& id) {
    if (!ids.insert(id).second) settings.at("jobs").fail("each id once", in_quotes(id) + " twice");
  };
  for (const FleetTraining& training : jobs.trainings) add(training.id);
  for (const FleetServedModel& model : jobs.served) add(model.service.id);
  for (const BatchInference& batch : jobs.batches) add(batch.id);
  for (const PostTraining& job : jobs.post_trainings) add(job.id);
}

}  // namespace

FleetJobs read_fleet_jobs(const JsonValue& settings, const FleetJobsCase& with,
                          Catalogues& catalogues, int threads) {
  FleetJobs out;
  // Where nothing fails saves cost nothing, and count when a job is stopped by another.
  out.works = {with.profile ? recorded_work(*with.profile, with.save_interval)
                            : JobWork{.save_steps = std::llround(1e6 * with.save_interval.si())}};
  out.works.front().milliwatts = with.recorded_milliwatts;
  if (const auto days = settings.find("days"))
    out.days = FleetTime{days->integer(1, most_days) * day_us};
  if (const auto trace = settings.find("trace")) out.traces.push_back({traced_jobs(*trace), {}});
  if (const auto jobs = settings.find("jobs"))
    for (const JsonValue& entry : jobs->items()) read_entry(entry, with, catalogues, threads, out);
  if (with.profile && with.store) {
    share_saves(out.trainings, *with.profile, *with.store);
    for (const FleetTraining& training : out.trainings) {
      out.works[training.job.work] = training.work;
      for (const FleetTraining& size : training.sizes) out.works[size.job.work] = size.work;
    }
  }
  if (out.traces.empty() && out.mixes.empty() && out.works.size() == 1)
    throw Error({.file = settings.file(),
                 .path = "trace",
                 .found = "nothing",
                 .expected = "the jobs: a trace of the catalogue, or a file; or \"jobs\""});
  if (!out.mixes.empty() && !out.days)
    throw Error({.file = settings.file(),
                 .path = "days",
                 .found = "nothing",
                 .expected = "for how many days jobs are drawn"});
  check_ids(out, settings);
  resolve_dependencies(out);
  out.name = name_of(out);
  return out;
}

bool FleetJobs::has_deadlines() const {
  const auto some = [](const std::vector<EntryRank>& ranks) {
    return std::any_of(ranks.begin(), ranks.end(), [](const auto& r) { return r.has_deadline(); });
  };
  return some(training_ranks) || some(batch_ranks) || some(post_training_ranks) ||
         std::any_of(mixes.begin(), mixes.end(),
                     [](const DrawnJobs& drawn) { return drawn.rank.has_deadline(); }) ||
         std::any_of(traces.begin(), traces.end(), [](const TracedJobs& trace) {
           return trace.rank.has_deadline() ||
                  std::any_of(trace.list.jobs.begin(), trace.list.jobs.end(),
                              [](const ClusterJob& job) { return job.deadline != fleet_never; });
         });
}

bool FleetJobs::has_parts() const {
  return std::any_of(trainings.begin(), trainings.end(),
                     [](const FleetTraining& one) { return one.job.is_part(); }) ||
         std::any_of(traces.begin(), traces.end(),
                     [](const TracedJobs& trace) { return any_part(trace.list); }) ||
         std::any_of(mixes.begin(), mixes.end(),
                     [](const DrawnJobs& drawn) { return least_size(drawn.mix) < 1; });
}

std::vector<FleetService> FleetJobs::services() const {
  std::vector<FleetService> out;
  for (const FleetServedModel& model : served) out.push_back(model.service);
  return out;
}

ClusterJobs without_replicas(const ClusterJobs& list, const FleetJobs& jobs) {
  std::vector<std::uint32_t> others;
  for (std::uint32_t i = 0; i < list.jobs.size(); ++i) {
    const bool replica = std::any_of(
        jobs.served.begin(), jobs.served.end(),
        [&](const FleetServedModel& model) { return model.service.work == list.jobs[i].work; });
    if (!replica) others.push_back(i);
  }
  ClusterJobs out = list;
  out.ids.clear();
  rearrange(out, others);
  return out;
}

std::optional<std::size_t> place_of(const FleetTraining& training, const ClusterJobs& list) {
  const auto at = std::find_if(list.jobs.begin(), list.jobs.end(), [&](const ClusterJob& job) {
    return job.work == training.job.work;
  });
  if (at == list.jobs.end()) return std::nullopt;
  return static_cast<std::size_t>(at - list.jobs.begin());
}

ClusterJobs jobs_of_seed(const FleetJobs& jobs, std::uint64_t seed) {
  ClusterJobs list;
  list.queues.clear();
  if (jobs.traces.size() == 1 && jobs.mixes.empty() && jobs.works.size() == 1 &&
      jobs.traces.front().rank.queue.empty()) {
    list = jobs.traces.front().list;  // whose jobs keep their names
    for (ClusterJob& job : list.jobs) set_rank(job, jobs.traces.front().rank);
  } else {
    for (const TracedJobs& trace : jobs.traces)
      append(list, trace.list, trace.rank, trace.list.name + ":", {});
    for (std::size_t i = 0; i < jobs.mixes.size(); ++i) {
      const DrawnJobs& drawn = jobs.mixes[i];
      const ClusterJobs more = draw_jobs(drawn.mix, *jobs.days, drawn.per_day,
                                         seed + (static_cast<std::uint64_t>(i) << 32U));
      append(list, more, drawn.rank, drawn.mix.name + ":",
             *more.began - FleetTime{first_monday_us});
    }
    append_trainings(list, jobs);
    append_batches(list, jobs);
    append_post_trainings(list, jobs);
    jobs.dependencies.join(list);
    sort_by_submission(list);
  }
  list.name = jobs.name;
  if (jobs.days) keep_days(list, *jobs.days);
  if (jobs.served.empty()) return list;
  append_replicas(list, jobs);  // they come until the end, though no others do
  sort_by_submission(list);
  return list;
}

}  // namespace orrery
