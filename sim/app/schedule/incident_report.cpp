// SPDX-License-Identifier: Apache-2.0
// Tabulates who was stopped by what, and what that lost.
#include "sim/app/schedule/incident_report.h"

#include <fmt/format.h>

#include "sim/app/schedule/event_rows.h"
#include "sim/app/schedule/point_names.h"
#include "sim/base/text/words.h"

namespace orrery {
namespace {

constexpr std::size_t most_points = 6;

std::string largest(const SchedulePoint& p, const IncidentCount& count) {
  if (count.largest < 0) return "";
  const auto job = static_cast<std::size_t>(count.largest);
  return fmt::format("{} ({})", p.list->id_of(job), gpus_text(milli_gpus(p.list->jobs[job])));
}

}  // namespace

Json incidents_json(const SchedulePoint& p) {
  Json out = Json::array();
  const std::vector<Incident>& incidents = p.asked.question.breakdowns.incidents;
  for (std::size_t i = 0; i < incidents.size(); ++i) {
    const IncidentCount& count = p.record.incidents[i];
    out.push_back({{"name", incidents[i].name},
                   {"at_s", to_seconds(incidents[i].at).si()},
                   {"for_s", to_seconds(incidents[i].length).si()},
                   {"hosts", incidents[i].hosts.size()},
                   {"happened", count.happened},
                   {"gpus", count.gpus},
                   {"stopped", count.stopped},
                   {"largest", count.largest >= 0
                                   ? Json(p.list->id_of(static_cast<std::size_t>(count.largest)))
                                   : Json(nullptr)},
                   {"lost_gpu_hours", gpu_hours(count.lost)},
                   {"waited_gpu_hours", gpu_hours(count.waited)}});
  }
  return out;
}

void add_incidents(Document& document, const Scheduled& s) {
  std::vector<const SchedulePoint*> points = run_points(s);
  if (points.size() > most_points) points = {&s.points[s.best]};
  std::vector<std::string> head;
  std::vector<Align> align;
  name_columns(s, head, align);
  for (const char* name :
       {"incident", "at", "for", "GPUs out", "jobs stopped", "the largest", "lost", "waited"})
    head.emplace_back(name);
  align.push_back(Align::left);
  align.resize(head.size(), Align::right);
  Table table(head, align);
  bool any = false, later = false;
  for (const SchedulePoint* p : points) {
    const std::vector<Incident>& incidents = p->asked.question.breakdowns.incidents;
    for (std::size_t i = 0; i < incidents.size(); ++i) {
      any = true;
      std::vector<std::string> row = name_cells(*p);
      row.insert(row.end(),
                 {incidents[i].name, to_text(incidents[i].at), to_text(incidents[i].length)});
      const IncidentCount& count = p->record.incidents[i];
      later = later || !count.happened;
      if (count.happened)
        row.insert(row.end(), {grouped(count.gpus), grouped(count.stopped), largest(*p, count),
                               fmt::format("{:.0f}", gpu_hours(count.lost)),
                               fmt::format("{:.0f}", gpu_hours(count.waited))});
      else
        row.insert(row.end(), {"never", "", "", "", ""});
      table.add(row);
    }
  }
  if (!any) return;
  document.heading("Incidents");
  document.table(table);
  document.note(
      std::string("GPUs out: taken out of use; lost: steps of jobs that it stopped, waited: until "
                  "these had places again, both in GPU-hours.") +
      (later ? " never: the run was over by then, or it lasts for no time." : ""));
}

}  // namespace orrery
