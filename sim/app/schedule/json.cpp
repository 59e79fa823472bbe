// SPDX-License-Identifier: Apache-2.0
// Writes what became of a cluster's jobs for machines, and a row a job.
#include <fmt/format.h>

#include <algorithm>

#include "sim/app/answer/answer.h"
#include "sim/app/answer/csv.h"
#include "sim/app/schedule/best_report.h"
#include "sim/app/schedule/deadline_report.h"
#include "sim/app/schedule/event_rows.h"
#include "sim/app/schedule/incident_report.h"
#include "sim/app/schedule/power_report.h"
#include "sim/app/schedule/report.h"
#include "sim/app/schedule/served_report.h"
#include "sim/app/schedule/share_parts.h"
#include "sim/app/schedule/store_report.h"
#include "sim/app/schedule/training_report.h"
#include "workloads/cluster_job/job_dependencies.h"

namespace orrery {
namespace {

Json spread_json(const TimeSpread& t) {
  const auto time = [&](FleetTime of) { return figure_of(t.count > 0, to_seconds(of).si()); };
  return {{"mean", figure_of(t.count > 0, t.mean().si())},
          {"p50", time(t.p50)},
          {"p90", time(t.p90)},
          {"p99", time(t.p99)},
          {"max", time(t.most)},
          {"sum", t.sum().si()},
          {"jobs", t.count}};
}

Json groups_json(const std::vector<FleetGroup>& groups) {
  Json out = Json::array();
  for (const FleetGroup& g : groups)
    out.push_back({{"name", g.name},
                   {"jobs", g.jobs},
                   {"held_share", g.held_share},
                   {"wait_s", spread_json(g.wait)}});
  return out;
}

Json story_json(const SchedulePoint& p) {
  const std::size_t job = *p.watched_at;
  const ClusterJobs& list = *p.list;
  const JobRecord& record = *p.watched;
  const WaitStory& story = *p.record.story;
  Json heads = Json::array();
  for (const WaitStory::Head& head : story.heads)
    heads.push_back({{"job", list.id_of(head.job)},
                     {"gpus", gpus_json(milli_gpus(list.jobs[head.job]))},
                     {"time_s", to_seconds(head.time).si()}});
  Json wait = nullptr;
  if (record.start != fleet_never)
    wait = to_seconds(record.start - eligible(list.jobs[job], record)).si();
  Json out = {{"job", list.id_of(job)},
              {"gpus", gpus_json(milli_gpus(list.jobs[job]))},
              {"rejected", record.rejected},
              {"wait_s", wait},
              {"ahead", story.ahead},
              {"free_gpus", story.free_then},
              {"short_s", to_seconds(story.short_of).si()},
              {"scattered_s", to_seconds(story.scattered).si()},
              {"delayed_s", to_seconds(story.delayed).si()},
              {"behind_s", to_seconds(story.behind).si()},
              {"heads", heads}};
  if (list.dependencies.empty()) return out;
  out["held_s"] = to_seconds(record.held).si();
  out["cancelled"] = record.cancelled;
  out["after"] = ids_before(list, job);
  return out;
}

Json dependencies_json(const FleetDependencies& d) {
  return {{"jobs", d.jobs},
          {"cancelled", d.cancelled},
          {"still_held", d.still_held},
          {"held_s", spread_json(d.held)}};
}

Json shares_json(const FleetShares& shares, const SchedulePoint& p) {
  Json out = Json::object();
  for (const SharePart& part : share_parts())
    if (!part.of_parts || p.asked.jobs->has_parts()) out[part.key] = shares.*part.member;
  return out;
}

Json breakdowns_json(const SchedulePoint& p) {
  Json out = Json::array();
  const std::vector<BreakdownKind>& kinds = p.asked.question.breakdowns.kinds;
  for (std::size_t i = 0; i < kinds.size(); ++i) {
    const BreakdownCount& count = p.record.breakdowns[i];
    out.push_back({{"name", kinds[i].name},
                   {"struck", count.struck},
                   {"stopped", count.stopped},
                   {"requeued", count.requeued}});
  }
  return out;
}

Json gangs_json(const SchedulePoint& p) {
  if (p.asked.question.policy.fit != JobFit::gang_timeout) return nullptr;
  const GangParts& gangs = p.record.gangs;
  return {{"given_up", gangs.given_up}, {"held_gpu_s", static_cast<double>(gangs.held) * 1e-6}};
}

Json lemons_json(const SchedulePoint& p) {
  const LemonHosts& lemons = p.asked.question.breakdowns.lemons;
  if (lemons.hosts == 0) return nullptr;
  const LemonCount& count = p.record.lemons;
  return {{"hosts", lemons.hosts},
          {"share", lemons.share},
          {"struck", count.struck},
          {"exchanged", count.exchanged},
          {"lemons_exchanged", count.lemons_exchanged}};
}

Json runs_json(const SchedulePoint& p, std::uint64_t seed) {
  Json out = Json::array();
  for (std::size_t i = 0; i < p.measures.size(); ++i) {
    const FleetMeasures& m = p.measures[i];
    out.push_back({{"seed", seed + i},
                   {"wait_s", figure_of(m.wait.count > 0, m.wait.mean().si())},
                   {"completion_s", figure_of(m.completion.count > 0, m.completion.mean().si())},
                   {"gpu_share", shares_json(m.shares, p)}});
  }
  return out;
}

Json training_size_json(const FleetTraining& t) {
  return {{"gpus", gpus_json(milli_gpus(t.job))},
          {"layout", layout_json(t.scenario.layout)},
          {"searched", t.searched},
          {"step_s", static_cast<double>(t.step_ps) * 1e-12},
          {"length_s", to_seconds(t.job.length).si()},
          {"save_interval_s",
           t.save_interval > Seconds{} ? Json(t.save_interval.si()) : Json(nullptr)}};
}

Json trainings_json(const Scheduled& s) {
  Json out = Json::array();
  for (const FleetTraining& t : s.points.front().asked.jobs->trainings) {
    Json one = training_size_json(t);
    one["id"] = t.id;
    one["sizes"] = Json::array();
    for (const FleetTraining& size : t.sizes) one["sizes"].push_back(training_size_json(size));
    out.push_back(std::move(one));
  }
  return out;
}

// Jobs that may have several sizes: what they held.
Json sized_json(const SchedulePoint& p) {
  Json out = Json::array();
  for (const SizedUse& use : p.record.sized)
    out.push_back({{"id", p.list->id_of(use.job)},
                   {"mean_gpus", mean_gpus(use)},
                   {"moves", use.moves},
                   {"gpu_hours", gpu_hours(use.held)}});
  return out;
}

Json shape_json(const PointCase& asked) {
  Json levels = Json::array();
  for (const SlotLevel& level : asked.shape.levels)
    levels.push_back({{"name", level.name}, {"hosts", level.reach}});
  return {{"cluster", asked.cluster.title},
          {"gpus", asked.shape.gpus()},
          {"hosts", asked.shape.hosts},
          {"gpus_per_host", asked.shape.gpus_per_host},
          {"levels", levels}};
}

// Means of each part of the run.
Json timeline_json(const SchedulePoint& p) {
  Json out = Json::array();
  const FleetTimeline& timeline = p.record.timeline;
  const auto gpus = static_cast<double>(p.asked.shape.gpus());
  for (std::size_t i = 0; i < timeline.parts.size(); ++i) {
    const TimelinePart& part = timeline.parts[i];
    const auto all =
        static_cast<double>(part.held + part.blocked + part.idle + part.spare + part.repair);
    const auto share = [&](GpuMicros of) { return static_cast<double>(of) / all; };
    const double us = all / gpus;
    out.push_back(
        {{"from_s", to_seconds(FleetTime{timeline.length.us * static_cast<std::int64_t>(i)}).si()},
         {"held", share(part.held)},
         {"blocked", share(part.blocked)},
         {"idle", share(part.idle)},
         {"spare", share(part.spare)},
         {"repair", share(part.repair)},
         {"waiting", static_cast<double>(part.waiting) / us},
         {"power_w", static_cast<double>(part.milliwatts) / us * 1e-3}});
  }
  return out;
}

// Of the first seed.
Json measured_json(const Scheduled& s, const SchedulePoint& p) {
  if (p.measures.empty()) return nullptr;
  const FleetMeasures& m = p.measures.front();
  Json out = {{"jobs",
               {{"submitted", m.submitted},
                {"finished", m.finished},
                {"failed", m.bad_ends.failed},
                {"cancelled", m.bad_ends.cancelled},
                {"rejected", m.rejected},
                {"running", m.running},
                {"queued", m.queued}}},
              {"wait_s", spread_json(m.wait)},
              {"completion_s", spread_json(m.completion)},
              {"slowdown",
               {{"mean", figure_of(m.finished > 0, m.slowdown.mean)},
                {"p50", figure_of(m.finished > 0, m.slowdown.p50)},
                {"p90", figure_of(m.finished > 0, m.slowdown.p90)},
                {"p99", figure_of(m.finished > 0, m.slowdown.p99)}}},
              {"fairness",
               {{"jain", figure_of(m.finished > 0, m.fairness.jain)},
                {"finish_time_worst", figure_of(m.finished > 0, m.fairness.finish_time_worst)},
                {"unfair_share", figure_of(m.finished > 0, m.fairness.unfair_share)}}},
              {"gpu_share", shares_json(m.shares, p)},
              {"gpu_hours", gpu_hours(m.held)},
              {"scattered_gpu_s", static_cast<double>(m.scattered) * 1e-6},
              {"span_s", to_seconds(m.span).si()},
              {"most_waiting", m.most_waiting},
              {"stopped", p.record.stopped},
              {"stops", m.stops},
              {"preemptions", m.preemptions},
              {"moves", m.moves},
              {"waited_again_s", m.waited_again.si()},
              {"slo", slo_json(p)},
              {"energy_j", m.energy.si()},
              {"cost_usd", m.power.bill ? Json(m.power.bill->dollars) : Json(nullptr)},
              {"carbon_kg", m.power.bill ? Json(m.power.bill->kg) : Json(nullptr)},
              {"power", power_json(p)},
              {"breakdowns", breakdowns_json(p)},
              {"incidents", incidents_json(p)},
              {"lemons", lemons_json(p)},
              {"gangs", gangs_json(p)},
              {"store", store_json(p)},
              {"timeline", timeline_json(p)},
              {"sized", sized_json(p)},
              {"deadlines", deadlines_json(p)},
              {"by_size", groups_json(m.groups.by_size)},
              {"by_queue", groups_json(m.groups.by_queue)},
              {"job", s.watches ? story_json(p) : Json(nullptr)}};
  if (m.dependencies.jobs > 0) out["dependencies"] = dependencies_json(m.dependencies);
  return out;
}

Json point_json(const Scheduled& s, const SchedulePoint& p) {
  Json varied = Json::object();
  for (const auto& [key, words] : p.varied) varied[key] = words;
  return {{"policy", p.asked.policy},
          {"place", p.asked.place},
          {"varied", varied},
          {"shape", shape_json(p.asked)},
          {"kept", p.kept},
          {"turned_away", p.turned_away},
          {"takes_most", p.takes_most},
          {"ruled_out", p.ruled_out},
          {"chance", p.measures.size() > 1 ? Json(p.chance) : Json(nullptr)},
          {"runs", runs_json(p, s.seed)},
          {"first", measured_json(s, p)}};
}

}  // namespace

Json schedule_json(const Scheduled& s) {
  Json points = Json::array();
  for (const SchedulePoint& p : s.points) points.push_back(point_json(s, p));
  const FleetTime horizon = s.points.front().asked.question.horizon;
  Json out = {
      {"jobs", s.jobs.name},
      {"points", points},
      {"best", s.best},
      {"objective", s.objective},
      {"differences", differences_json(s)},
      {"reasons", reasons_json(s)},
      {"search", search_json(s)},
      {"trainings", trainings_json(s)},
      {"post_trainings", post_trainings_json(*s.points.front().asked.jobs)},
      {"served", served_json(*s.points.front().asked.jobs)},
      {"batches", batches_json(*s.points.front().asked.jobs)},
      {"caps", caps_json(s)},
      {"horizon_s", horizon != fleet_never ? Json(to_seconds(horizon).si()) : Json(nullptr)},
      {"stopped", s.stopped},
      {"assumptions", s.jobs.notes}};
  if (Json pools = shared_pools_json(*s.points.front().asked.jobs); !pools.empty())
    out["shared_pools"] = std::move(pools);
  return out;
}

std::string schedule_rows(const Scheduled& s) {
  const bool depends = std::any_of(s.points.begin(), s.points.end(), [](const SchedulePoint& p) {
    return !p.measures.empty() && !p.list->dependencies.empty();
  });
  std::string text =
      "policy,place,id,queue,gpus,submit_s,wait_s,length_s,start_s,end_s,hosts,groups,stops";
  text += depends ? ",held_s,cancelled\n" : "\n";
  const auto seconds = [](FleetTime t) {
    return fmt::format("{}.{:06}", t.us / 1'000'000, t.us % 1'000'000);
  };
  for (const SchedulePoint& p : s.points) {
    if (p.measures.empty()) continue;
    for (std::size_t i = 0; i < p.list->jobs.size(); ++i) {
      const ClusterJob& job = p.list->jobs[i];
      const JobRecord& r = p.record.jobs[i];
      const bool started = r.start != fleet_never;
      text += fmt::format(
          "{},{},{},{},{},{},{},{},{},{},{},{},{}", p.asked.policy, p.asked.place,
          csv_cell(p.list->id_of(i)), csv_cell(p.list->queues[static_cast<std::size_t>(job.queue)]),
          gpus_text(milli_gpus(job)), seconds(job.submit),
          started ? seconds(r.start - eligible(job, r)) : "", seconds(job.length),
          started ? seconds(r.start) : "", started && r.end != fleet_never ? seconds(r.end) : "",
          r.hosts > 0 ? std::to_string(r.hosts) : "", r.groups > 0 ? std::to_string(r.groups) : "",
          r.stops);
      text += depends ? fmt::format(",{},{}\n", seconds(r.held), r.cancelled ? 1 : 0) : "\n";
    }
  }
  return text;
}

}  // namespace orrery
