// SPDX-License-Identifier: Apache-2.0
// Writes what became of a cluster's jobs for people.
#include "sim/app/schedule/report.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "sim/app/schedule/best_report.h"
#include "sim/app/schedule/deadline_report.h"
#include "sim/app/schedule/event_rows.h"
#include "sim/app/schedule/incident_report.h"
#include "sim/app/schedule/point_names.h"
#include "sim/app/schedule/power_report.h"
#include "sim/app/schedule/served_report.h"
#include "sim/app/schedule/share_parts.h"
#include "sim/app/schedule/store_report.h"
#include "sim/app/schedule/training_report.h"
#include "sim/base/text/words.h"
#include "workloads/cluster_job/job_dependencies.h"

namespace orrery {
namespace {

constexpr std::size_t most_heads = 5;  // of a story, for a terminal

std::string shape_sentence(const SlotShape& shape) {
  std::string text = fmt::format("{} of {} GPUs", plural(shape.hosts, "host"), shape.gpus_per_host);
  for (const SlotLevel& level : shape.levels)
    text +=
        fmt::format(", {} of {}", plural((shape.hosts + level.reach - 1) / level.reach, level.name),
                    plural(level.reach, "host"));
  return text + ".";
}

const PointCase& first_case(const Scheduled& s) { return s.points.front().asked; }

const FleetMeasures& first_run(const SchedulePoint& p) { return p.measures.front(); }

// A time of nobody is not known.
std::string mean_time(const SchedulePoint& p, TimeSpread FleetMeasures::*times,
                      double (*of)(const TimeSpread&)) {
  const auto any = [&](const FleetMeasures& m) { return (m.*times).count > 0; };
  if (!std::all_of(p.measures.begin(), p.measures.end(), any)) return "-";
  return to_text(seconds(mean_of(p, [&](const FleetMeasures& m) { return of(m.*times); })));
}

double mean_s(const TimeSpread& t) { return t.mean().si(); }

void add_points(Document& document, const Scheduled& s) {
  std::vector<std::string> head;
  std::vector<Align> align;
  name_columns(s, head, align);
  const bool compared = s.seeds > 1;
  for (const char* name : {"mean wait", "median", "90%", "99%", "completion", "useful %"})
    head.emplace_back(name);
  if (compared) head.insert(head.end(), {"runs", "best in %"});
  align.resize(head.size(), Align::right);
  Table table(head, align);
  for (const SchedulePoint* p : run_points(s)) {
    std::vector<std::string> row = name_cells(*p);
    const auto wait = [&](double (*of)(const TimeSpread&)) {
      row.push_back(mean_time(*p, &FleetMeasures::wait, of));
    };
    wait(mean_s);
    wait([](const TimeSpread& w) { return to_seconds(w.p50).si(); });
    wait([](const TimeSpread& w) { return to_seconds(w.p90).si(); });
    wait([](const TimeSpread& w) { return to_seconds(w.p99).si(); });
    row.push_back(mean_time(*p, &FleetMeasures::completion, mean_s));
    row.push_back(percent_figure(mean_share(*p, &FleetShares::useful)));
    if (compared) {
      row.push_back(grouped(p->measures.size()));
      row.push_back(chance_cell(*p));
    }
    table.add(row);
  }
  document.gap();
  document.table(table);
  const auto run = std::count_if(s.points.begin(), s.points.end(),
                                 [](const SchedulePoint& p) { return !p.measures.empty(); });
  if (const auto shown = static_cast<std::ptrdiff_t>(run_points(s).size()); shown < run)
    document.note(fmt::format("The best {} of {} points that were run; --json has all.", shown,
                              grouped(run)));
  document.note(std::string("completion: mean, wait and run.") +
                (compared ? " best in %: the chance that no other point is better." : ""));
}

// Where GPU-time went: the parts that are not nothing, a column a point.
void add_shares(Document& document, const Scheduled& s) {
  std::vector<std::string> head = {"% of GPU-time"};
  std::vector<Align> align = {Align::left};
  // All of many points would make a table that nobody reads.
  constexpr std::size_t most_columns = 6;
  std::vector<const SchedulePoint*> points = run_points(s);
  if (points.size() > most_columns) points = {&s.points[s.best]};
  for (const SchedulePoint* p : points) {
    head.push_back(point_name(*p));
    align.push_back(Align::right);
  }
  Table table(head, align);
  std::vector<std::string> meanings;
  for (const SharePart& part : share_parts()) {
    std::vector<std::string> row = {part.name};
    double most = 0;
    for (const SchedulePoint* p : points) {
      most = std::max(most, mean_share(*p, part.member));
      row.push_back(percent_figure(mean_share(*p, part.member)));
    }
    if (most <= 0) continue;
    table.add(row);
    meanings.push_back(std::string(part.name) + ": " + part.meaning);
  }
  document.heading("Where GPU-time went");
  document.table(table);
  document.note(joined(meanings, "; ") + ".");
}

// What broke in the first run.
void add_breakdowns(Document& document, const SchedulePoint& p) {
  const std::vector<BreakdownKind>& kinds = p.asked.question.breakdowns.kinds;
  if (kinds.empty()) return;
  Table table({"what broke", "times", "jobs stopped", "that lost a host"},
              {Align::left, Align::right, Align::right, Align::right});
  for (std::size_t i = 0; i < kinds.size(); ++i) {
    const BreakdownCount& count = p.record.breakdowns[i];
    if (count.struck > 0)
      table.add(
          {kinds[i].name, grouped(count.struck), grouped(count.stopped), grouped(count.requeued)});
  }
  document.heading("What broke, " + point_name(p));
  document.table(table);
  const FleetMeasures& m = first_run(p);
  document.paragraph(fmt::format(
      "Jobs were stopped {} times by what broke and {} times by others; for places again they "
      "waited {}, all together.",
      grouped(m.stops), grouped(m.preemptions), to_text(m.waited_again)));
}

// Jobs that left their places for better ones, or for a head.
void add_moves(Document& document, const SchedulePoint& p) {
  if (!p.asked.question.policy.defragments) return;
  const FleetMeasures& m = first_run(p);
  document.paragraph(fmt::format("{}: jobs were moved {} while they ran, of {} that started.",
                                 point_name(p), plural(m.moves, "time"),
                                 grouped(m.finished + m.running)));
}

void add_gangs(Document& document, const SchedulePoint& p) {
  if (p.asked.question.policy.fit != JobFit::gang_timeout) return;
  const GangParts& gangs = p.record.gangs;
  const auto all = static_cast<double>(std::max<GpuMicros>(1, p.record.use.all));
  document.paragraph(fmt::format(
      "{}: gangs held {:.1f}% of GPU-time before they were whole, and gave up {}.", point_name(p),
      100 * static_cast<double>(gangs.held) / all, plural(gangs.given_up, "time")));
}

// Of the first run of each point.
void add_lemons(Document& document, const Scheduled& s) {
  std::vector<std::string> head;
  std::vector<Align> align;
  name_columns(s, head, align);
  for (const char* name : {"lemons", "they broke", "of", "exchanged", "that were lemons"})
    head.emplace_back(name);
  align.resize(head.size(), Align::right);
  Table table(head, align);
  bool any = false;
  for (const SchedulePoint* p : run_points(s)) {
    const LemonHosts& lemons = p->asked.question.breakdowns.lemons;
    any = any || lemons.hosts > 0;
    std::int64_t struck = 0;
    for (const BreakdownCount& count : p->record.breakdowns) struck += count.struck;
    std::vector<std::string> row = name_cells(*p);
    const LemonCount& count = p->record.lemons;
    for (const std::int64_t figure : {std::int64_t{lemons.hosts}, count.struck, struck,
                                      count.exchanged, count.lemons_exchanged})
      row.push_back(grouped(figure));
    table.add(row);
  }
  if (!any) return;
  document.heading("Hosts that fail more often");
  document.table(table);
  document.note(
      "they broke: under jobs, so many times of all; exchanged: hosts that failed so often that "
      "others took their places.");
}

// At most a dozen rows.
void add_timeline(Document& document, const SchedulePoint& p) {
  constexpr std::size_t most_rows = 12;
  const FleetTimeline& timeline = p.record.timeline;
  if (timeline.parts.size() < 2) return;
  const std::size_t joined_parts = (timeline.parts.size() + most_rows - 1) / most_rows;
  Table table(
      {"from", "held %", "blocked %", "idle %", "spare %", "repair %", "jobs waiting", "MW"},
      {Align::right, Align::right, Align::right, Align::right, Align::right, Align::right,
       Align::right, Align::right});
  for (std::size_t i = 0; i < timeline.parts.size(); i += joined_parts) {
    TimelinePart sum;
    for (std::size_t k = i; k < std::min(i + joined_parts, timeline.parts.size()); ++k)
      sum.add(timeline.parts[k]);
    const auto all =
        static_cast<double>(sum.held + sum.blocked + sum.idle + sum.spare + sum.repair);
    const double us = all / static_cast<double>(p.asked.shape.gpus());
    const auto share = [&](GpuMicros part) {
      return percent_figure(static_cast<double>(part) / all);
    };
    table.add({to_text(FleetTime{timeline.length.us * static_cast<std::int64_t>(i)}),
               share(sum.held), share(sum.blocked), share(sum.idle), share(sum.spare),
               share(sum.repair), fmt::format("{:.1f}", static_cast<double>(sum.waiting) / us),
               fmt::format("{:.3f}", static_cast<double>(sum.milliwatts) / us * 1e-9)});
  }
  document.heading("Over time, " + point_name(p));
  document.table(table);
  document.note("blocked: free while somebody waits.");
}

void add_groups(Document& document, const std::string& what, const SchedulePoint& p,
                const std::vector<FleetGroup>& groups) {
  Table table({"jobs of", "jobs", "% of GPU-time", "mean wait", "median", "90%", "99%"},
              {Align::left, Align::right, Align::right, Align::right, Align::right, Align::right,
               Align::right});
  for (const FleetGroup& g : groups)
    if (g.wait.count > 0)
      table.add({g.name, grouped(g.jobs), percent_figure(g.held_share), to_text(g.wait.mean()),
                 to_text(g.wait.p50), to_text(g.wait.p90), to_text(g.wait.p99)});
    else
      table.add({g.name, grouped(g.jobs), percent_figure(g.held_share), "-", "-", "-", "-"});
  document.heading(what + ", " + point_name(p));
  document.table(table);
}

std::string gpu_words(const ClusterJob& job) {
  return job.is_part() ? gpus_text(job.milli) + " of a GPU" : plural(job.gpus, "GPU");
}

std::string jobs_called(std::vector<std::string> ids) {
  constexpr std::size_t most = 5;
  const std::string noun = ids.size() == 1 ? "job " : "jobs ";
  if (ids.size() > most) {
    const std::size_t more = ids.size() - most;
    ids.resize(most);
    ids.push_back(grouped(more) + " more");
  }
  return noun + enumeration(ids);
}

// Whether it was eligible to start at some time.
bool add_dependencies_of(Document& document, const ClusterJobs& list, std::size_t job,
                         const JobRecord& record) {
  const std::vector<std::string> before = ids_before(list, job);
  if (before.empty()) return true;
  if (record.cancelled) {
    document.paragraph(fmt::format("It comes after {}, and was cancelled: {} did not complete.",
                                   jobs_called(before),
                                   before.size() > 1 ? "one of them" : "that"));
    return false;
  }
  document.paragraph(fmt::format("It comes after {}, and was held {}{}.", jobs_called(before),
                                 record.still_held ? "until the run ended" : "for ",
                                 record.still_held ? "" : to_text(record.held)));
  return !record.still_held;
}

void add_dependencies(Document& document, const Scheduled& s) {
  std::vector<std::string> head;
  std::vector<Align> align;
  name_columns(s, head, align);
  for (const char* name : {"after others", "cancelled", "still held", "held", "median", "90%"})
    head.emplace_back(name);
  align.resize(head.size(), Align::right);
  Table table(head, align);
  bool any = false;
  for (const SchedulePoint* p : run_points(s)) {
    const FleetDependencies& d = first_run(*p).dependencies;
    any = any || d.jobs > 0;
    std::vector<std::string> row = name_cells(*p);
    for (const std::int64_t figure : {d.jobs, d.cancelled, d.still_held})
      row.push_back(grouped(figure));
    const auto held = [&](const auto& time) { return d.held.count > 0 ? to_text(time) : "-"; };
    row.insert(row.end(), {held(d.held.mean()), held(d.held.p50), held(d.held.p90)});
    table.add(row);
  }
  if (!any) return;
  document.heading("Jobs that come after others");
  document.table(table);
  document.note(
      "held: from the submission until all that a job comes after had ended, in the mean; waits "
      "and completions count from then. cancelled: one of these did not complete. still held: as "
      "the run ended.");
}

void add_story(Document& document, const SchedulePoint& p) {
  const std::size_t job = *p.watched_at;
  const ClusterJobs& list = *p.list;
  const ClusterJob& asked = list.jobs[job];
  const JobRecord& record = *p.watched;
  const WaitStory& story = *p.record.story;
  document.heading(fmt::format("Job {}, {}", list.id_of(job), point_name(p)));
  if (record.rejected) {
    document.paragraph(fmt::format("It asks for {} GPUs and is rejected: the cluster has {}.",
                                   grouped(asked.gpus), grouped(p.asked.shape.gpus())));
    return;
  }
  if (!add_dependencies_of(document, list, job, record)) return;
  if (record.start == fleet_never) {
    document.paragraph("It did not start before the run was stopped.");
    return;
  }
  const FleetTime wait = record.start - eligible(asked, record);
  document.paragraph(fmt::format(
      "It asks for {} for {}. As it {}, {} waited before it and {} were free. It waited {}.",
      gpu_words(asked), to_text(asked.length), record.held.us > 0 ? "was eligible" : "came",
      plural(story.ahead, "job"), plural(story.free_then, "GPU"), to_text(wait)));
  if (wait.us == 0) return;
  Table table({"it waited", "for", "% of it"}, {Align::left, Align::right, Align::right});
  const auto add = [&](const std::string& what, FleetTime t) {
    if (t.us > 0)
      table.add({what, to_text(t),
                 percent_figure(static_cast<double>(t.us) / static_cast<double>(wait.us))});
  };
  add("for cheap or clean hours", story.delayed);
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
    add(fmt::format("behind job {}, which asks for {}", list.id_of(heads[i].job),
                    gpu_words(list.jobs[heads[i].job])),
        heads[i].time);
  }
  add(fmt::format("behind {} more", heads.size() - shown), others);
  document.table(table);
}

void add_notes(Document& document, const Scheduled& s, const SchedulePoint& best) {
  for (const std::string& note : s.jobs.notes) document.paragraph(note + ".");
  if (first_run(best).rejected > 0)
    document.paragraph(fmt::format("Rejected, asking for more GPUs than the cluster has: {}.",
                                   plural(first_run(best).rejected, "job")));
  const PointCase& asked = first_case(s);
  if (!asked.reliability.empty()) document.paragraph("What fails: " + asked.reliability + ".");
  if (asked.question.horizon != fleet_never)
    document.paragraph("The run ends after " + to_text(asked.question.horizon) + ", whoever runs.");
  if (s.stopped && !s.search.out_of_time)
    document.paragraph("Stopped early: figures are of what was simulated until then.");
  if (s.seeds > 1) document.paragraph("Means of several runs, with seeds of their own.");
}

std::string not_modelled(const Scheduled& s) {
  const auto some = [&](const auto& is) {
    return std::any_of(s.points.begin(), s.points.end(),
                       [&](const SchedulePoint& p) { return is(p.asked); });
  };
  std::string text;
  if (!some([](const PointCase& asked) { return asked.caps != nullptr; }))
    text = some([](const PointCase& asked) { return asked.scatter_cost > 1; })
               ? "Recorded jobs meet nobody on links. "
               : "Recorded jobs run for as long as they are recorded, wherever they are placed. ";
  text += some([](const PointCase& asked) { return asked.store.has_value(); })
              ? "Saves share the store by their means, not at every instant."
              : "Jobs do not share storage.";
  if (first_case(s).jobs->sizes.empty()) text += " Nobody is resized.";
  if (first_case(s).reliability.empty())
    text += first_case(s).question.breakdowns.incidents.empty() ? " Nothing fails."
                                                                : " Nothing else fails.";
  if (some([](const PointCase& asked) {
        return asked.question.policy.place == JobPlace::fragmentation;
      }))
    text += " The place fragmentation knows the sizes of all jobs, later ones included.";
  std::set<std::string> told;
  for (const SchedulePoint& point : s.points) {
    const auto& preset = point.asked.preset;
    if (!preset || !told.insert(preset->name).second) continue;
    text += fmt::format(" {} ({}, release {}): {}.", preset->name, preset->title, preset->release,
                        fmt::join(preset->not_modelled, ". "));
  }
  return text;
}

}  // namespace

Document schedule_document(const Scheduled& s, bool full, std::size_t width) {
  Document document(full, width);
  const PointCase& first = first_case(s);
  const bool one_size = std::all_of(s.points.begin(), s.points.end(), [&](const SchedulePoint& p) {
    return p.asked.shape.gpus() == first.shape.gpus() && p.asked.cluster.name == first.cluster.name;
  });
  // Replicas come and go; what they serve is one model.
  const std::size_t jobs = first.jobs->served.empty()
                               ? s.jobs.jobs.size()
                               : without_replicas(s.jobs, *first.jobs).jobs.size();
  document.title(one_size ? fmt::format("{} on {} GPUs of {}", plural(jobs, "job"),
                                        grouped(first.shape.gpus()), first.cluster.title)
                          : fmt::format("{} on several machines", plural(jobs, "job")));
  if (one_size) document.paragraph(shape_sentence(first.shape));
  const SchedulePoint& best = s.points[s.best];
  add_notes(document, s, best);
  add_points(document, s);
  add_best(document, s);
  add_reasons(document, s);
  add_differences(document, s);
  add_shares(document, s);
  add_trainings(document, s);
  add_training_results(document, s);
  add_post_trainings(document, s);
  add_served(document, s);
  add_batches(document, s);
  add_groups(document, "Waits by size", best, first_run(best).groups.by_size);
  if (first.jobs->several_kinds() && first_run(best).groups.by_queue.size() > 1)
    add_groups(document, "Waits by queue", best, first_run(best).groups.by_queue);
  add_timeline(document, best);
  add_breakdowns(document, best);
  add_lemons(document, s);
  for (const SchedulePoint* point : run_points(s)) {
    add_moves(document, *point);
    add_gangs(document, *point);
  }
  add_incidents(document, s);
  add_store(document, s);
  add_power(document, s);
  add_deadlines(document, s);
  add_dependencies(document, s);
  if (s.watches)
    for (const SchedulePoint* p : run_points(s)) add_story(document, *p);
  document.heading("Not modelled");
  document.paragraph(not_modelled(s));
  return document;
}

}  // namespace orrery
