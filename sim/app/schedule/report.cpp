// SPDX-License-Identifier: Apache-2.0
// Writes what became of a cluster's jobs.
#include "sim/app/schedule/report.h"

#include <fmt/format.h>

#include <algorithm>

#include "sim/app/answer/answer.h"
#include "sim/base/text/words.h"

namespace orrery {
namespace {

constexpr std::size_t most_heads = 5;  // of a story, for a terminal

std::string time_text(FleetTime t) { return to_text(to_seconds(t)); }

double gpu_hours(GpuMicros t) { return static_cast<double>(t) / 3.6e9; }

std::string shape_sentence(const SlotShape& shape) {
  std::string text = fmt::format("{} of {} GPUs", plural(shape.hosts, "host"), shape.gpus_per_host);
  for (const SlotLevel& level : shape.levels)
    text +=
        fmt::format(", {} of {}", plural((shape.hosts + level.reach - 1) / level.reach, level.name),
                    plural(level.reach, "host"));
  return text + ".";
}

std::string point_name(const SchedulePoint& p) { return p.policy + ", " + p.place; }

void add_points(Document& document, const Scheduled& s) {
  Table table({"policy", "place", "mean wait", "median", "90%", "99%", "completion", "useful %",
               "short %", "scattered %", "idle %"},
              {Align::left, Align::left, Align::right, Align::right, Align::right, Align::right,
               Align::right, Align::right, Align::right, Align::right, Align::right});
  for (const SchedulePoint& p : s.points) {
    const FleetMeasures& m = p.measures;
    table.add({p.policy, p.place, to_text(m.wait.mean()), time_text(m.wait.p50),
               time_text(m.wait.p90), time_text(m.wait.p99), to_text(m.completion.mean()),
               percent_figure(m.shares.useful), percent_figure(m.shares.short_of),
               percent_figure(m.shares.scattered), percent_figure(m.shares.idle)});
  }
  document.gap();
  document.table(table);
  document.note(
      "completion: mean, wait and run. GPU-time from the first submission to the last "
      "end: useful: held by jobs; short: free, too few for the next job; scattered: "
      "free, enough for it, but not on the hosts that it needs; idle: nobody waits.");
}

void add_sizes(Document& document, const SchedulePoint& p) {
  Table table({"jobs of", "jobs", "% of GPU-time", "mean wait", "median", "90%", "99%"},
              {Align::left, Align::right, Align::right, Align::right, Align::right, Align::right,
               Align::right});
  for (const FleetGroup& g : p.measures.by_size)
    table.add({g.name, grouped(g.jobs), percent_figure(g.held_share), to_text(g.wait.mean()),
               time_text(g.wait.p50), time_text(g.wait.p90), time_text(g.wait.p99)});
  document.heading("Waits by size, " + point_name(p));
  document.table(table);
}

void add_story(Document& document, const Scheduled& s, const SchedulePoint& p) {
  const std::size_t job = *s.watched;
  const ClusterJob& asked = s.jobs.jobs[job];
  const JobRecord& record = p.record.jobs[job];
  const WaitStory& story = *p.record.story;
  document.heading(fmt::format("Job {}, {}", s.jobs.id_of(job), point_name(p)));
  if (record.rejected) {
    document.paragraph(fmt::format("It asks for {} GPUs and is rejected: the cluster has {}.",
                                   grouped(asked.gpus), grouped(s.shape.gpus())));
    return;
  }
  if (record.start == fleet_never) {
    document.paragraph("It did not start before the run was stopped.");
    return;
  }
  const FleetTime wait = record.start - asked.submit;
  document.paragraph(fmt::format(
      "It asks for {} for {}. As it came, {} waited before it and {} were free. It waited {}.",
      plural(asked.gpus, "GPU"), time_text(asked.length), plural(story.ahead, "job"),
      plural(story.free_then, "GPU"), time_text(wait)));
  if (wait.us == 0) return;
  Table table({"it waited", "for", "% of it"}, {Align::left, Align::right, Align::right});
  const auto add = [&](const std::string& what, FleetTime t) {
    if (t.us > 0)
      table.add({what, time_text(t),
                 percent_figure(static_cast<double>(t.us) / static_cast<double>(wait.us))});
  };
  add("as the next one, while too few GPUs were free", story.short_of);
  add("as the next one, while enough were free on the wrong hosts", story.scattered);
  std::vector<WaitStory::Head> heads = story.heads;
  std::stable_sort(heads.begin(), heads.end(),
                   [](const auto& a, const auto& b) { return b.time < a.time; });
  const std::size_t shown = document.full() ? heads.size() : std::min(heads.size(), most_heads);
  FleetTime others;
  for (std::size_t i = 0; i < heads.size(); ++i) {
    if (i >= shown) {
      others += heads[i].time;
      continue;
    }
    add(fmt::format("behind job {}, which asks for {}", s.jobs.id_of(heads[i].job),
                    plural(s.jobs.jobs[heads[i].job].gpus, "GPU")),
        heads[i].time);
  }
  add(fmt::format("behind {} more", heads.size() - shown), others);
  document.table(table);
}

Json spread_json(const TimeSpread& t) {
  const auto seconds = [](FleetTime time) { return to_seconds(time).si(); };
  return {{"mean", t.mean().si()}, {"p50", seconds(t.p50)},  {"p90", seconds(t.p90)},
          {"p99", seconds(t.p99)}, {"max", seconds(t.most)}, {"sum", t.sum().si()},
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

Json story_json(const Scheduled& s, const SchedulePoint& p) {
  const std::size_t job = *s.watched;
  const JobRecord& record = p.record.jobs[job];
  const WaitStory& story = *p.record.story;
  Json heads = Json::array();
  for (const WaitStory::Head& head : story.heads)
    heads.push_back({{"job", s.jobs.id_of(head.job)},
                     {"gpus", s.jobs.jobs[head.job].gpus},
                     {"time_s", to_seconds(head.time).si()}});
  Json wait = nullptr;
  if (record.start != fleet_never) wait = to_seconds(record.start - s.jobs.jobs[job].submit).si();
  return {{"job", s.jobs.id_of(job)},
          {"gpus", s.jobs.jobs[job].gpus},
          {"rejected", record.rejected},
          {"wait_s", wait},
          {"ahead", story.ahead},
          {"free_gpus", story.free_then},
          {"short_s", to_seconds(story.short_of).si()},
          {"scattered_s", to_seconds(story.scattered).si()},
          {"behind_s", to_seconds(story.behind).si()},
          {"heads", heads}};
}

}  // namespace

Document schedule_document(const Scheduled& s, bool full, std::size_t width) {
  Document document(full, width);
  document.title(fmt::format("{} on {} GPUs of {}", plural(s.jobs.jobs.size(), "job"),
                             grouped(s.shape.gpus()), s.cluster));
  document.paragraph(shape_sentence(s.shape));
  for (const std::string& note : s.jobs.notes) document.paragraph(note + ".");
  const SchedulePoint& best = s.points[s.best];
  if (best.measures.rejected > 0)
    document.paragraph(fmt::format("Rejected, asking for more GPUs than the cluster has: {}.",
                                   plural(best.measures.rejected, "job")));
  if (s.stopped) document.paragraph("Stopped early: figures are of what was simulated until then.");
  add_points(document, s);
  if (s.points.size() > 1)
    document.paragraph(fmt::format("Least mean completion: {}.", point_name(best)));
  add_sizes(document, best);
  if (s.watched)
    for (const SchedulePoint& p : s.points) add_story(document, s, p);
  document.heading("Not modelled");
  document.paragraph(
      "Jobs run for as long as they are recorded, wherever they are placed: neither links nor "
      "power are shared, nothing fails, and nobody is preempted.");
  return document;
}

Json schedule_json(const Scheduled& s) {
  Json levels = Json::array();
  for (const SlotLevel& level : s.shape.levels)
    levels.push_back({{"name", level.name}, {"hosts", level.reach}});
  Json points = Json::array();
  for (const SchedulePoint& p : s.points) {
    const FleetMeasures& m = p.measures;
    Json point = {{"policy", p.policy},
                  {"place", p.place},
                  {"jobs",
                   {{"submitted", m.submitted},
                    {"finished", m.finished},
                    {"rejected", m.rejected},
                    {"running", m.running},
                    {"queued", m.queued}}},
                  {"wait_s", spread_json(m.wait)},
                  {"completion_s", spread_json(m.completion)},
                  {"slowdown_mean", m.slowdown_mean},
                  {"gpu_share",
                   {{"useful", m.shares.useful},
                    {"short", m.shares.short_of},
                    {"scattered", m.shares.scattered},
                    {"idle", m.shares.idle}}},
                  {"gpu_hours", gpu_hours(m.held)},
                  {"scattered_gpu_s", static_cast<double>(m.scattered) * 1e-6},
                  {"span_s", to_seconds(m.span).si()},
                  {"most_waiting", m.most_waiting},
                  {"stopped", p.record.stopped},
                  {"by_size", groups_json(m.by_size)},
                  {"by_queue", groups_json(m.by_queue)},
                  {"job", s.watched ? story_json(s, p) : Json(nullptr)}};
    points.push_back(std::move(point));
  }
  return {{"cluster", s.cluster},
          {"shape",
           {{"gpus", s.shape.gpus()},
            {"hosts", s.shape.hosts},
            {"gpus_per_host", s.shape.gpus_per_host},
            {"levels", levels}}},
          {"jobs", s.jobs.name},
          {"points", points},
          {"best", s.best},
          {"assumptions", s.jobs.notes}};
}

std::string schedule_rows(const Scheduled& s) {
  std::string text =
      "policy,place,id,queue,gpus,submit_s,wait_s,length_s,start_s,end_s,hosts,groups\n";
  const auto seconds = [](FleetTime t) {
    return fmt::format("{}.{:06}", t.us / 1'000'000, t.us % 1'000'000);
  };
  for (const SchedulePoint& p : s.points)
    for (std::size_t i = 0; i < s.jobs.jobs.size(); ++i) {
      const ClusterJob& job = s.jobs.jobs[i];
      const JobRecord& r = p.record.jobs[i];
      const bool started = r.start != fleet_never;
      text += fmt::format(
          "{},{},{},{},{},{},{},{},{},{},{},{}\n", p.policy, p.place, s.jobs.id_of(i),
          s.jobs.queues[static_cast<std::size_t>(job.queue)], job.gpus, seconds(job.submit),
          started ? seconds(r.start - job.submit) : "", seconds(job.length),
          started ? seconds(r.start) : "", started ? seconds(r.end) : "",
          r.hosts > 0 ? std::to_string(r.hosts) : "", r.groups > 0 ? std::to_string(r.groups) : "");
    }
  return text;
}

}  // namespace orrery
