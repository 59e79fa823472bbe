// SPDX-License-Identifier: Apache-2.0
// Makes tables of trainings.
#include "sim/app/schedule/training_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "sim/app/schedule/event_rows.h"
#include "sim/app/schedule/point_names.h"
#include "sim/base/text/words.h"
#include "sim/question/rl/rl_settings.h"

namespace orrery {
namespace {

std::string gpus_cell(const ClusterJob& job) {
  return job.is_part() ? gpus_text(job.milli) : grouped(job.gpus);
}

constexpr std::size_t most_rows = 24;

// What it held, if it may have several sizes and began.
const SizedUse* use_of(const SchedulePoint& p, std::size_t job) {
  for (const SizedUse& use : p.record.sized)
    if (use.job == job) return &use;
  return nullptr;
}

std::vector<std::string> result_cells(const SchedulePoint& p, const FleetTraining& training,
                                      const JobRecord& record, std::size_t place) {
  const SizedUse* use = use_of(p, place);
  std::vector<std::string> cells = {
      training.id,
      use != nullptr ? grouped(std::llround(mean_gpus(*use))) : gpus_cell(training.job),
      use != nullptr ? grouped(use->moves) : "0"};
  if (record.start == fleet_never) {
    cells.insert(cells.end(), {"never started", "", ""});
    return cells;
  }
  const FleetTime waited = record.start - training.job.submit + record.waited_again;
  cells.push_back(to_text(waited));
  if (record.end > p.record.last_end) {
    cells.insert(cells.end(), {"not reached", ""});
    return cells;
  }
  const FleetTime took = record.end - training.job.submit;
  cells.push_back(to_text(took));
  cells.push_back(fmt::format("{:.2f}", static_cast<double>((took - waited).us) /
                                            static_cast<double>(training.job.length.us)));
  return cells;
}

}  // namespace

void add_trainings(Document& document, const Scheduled& s) {
  if (s.points.front().asked.jobs->trainings.empty()) return;
  Table table({"training", "GPUs", "layout", "step", "alone", "saves every"},
              {Align::left, Align::right, Align::left, Align::right, Align::right, Align::right});
  const auto add = [&](const std::string& id, const FleetTraining& t) {
    table.add({id, gpus_cell(t.job), to_text(t.scenario.layout),
               to_text(seconds(static_cast<double>(t.step_ps) * 1e-12)),
               to_text(to_seconds(t.job.length)),
               t.save_interval > Seconds{} ? to_text(t.save_interval) : "never"});
  };
  for (const FleetTraining& t : s.points.front().asked.jobs->trainings) {
    add(t.id, t);
    for (const FleetTraining& size : t.sizes) add("or", size);
  }
  document.heading("Trainings");
  document.table(table);
}

void add_post_trainings(Document& document, const Scheduled& s) {
  const std::vector<PostTraining>& jobs = s.points.front().asked.jobs->post_trainings;
  if (jobs.empty()) return;
  Table table(
      {"job of RL", "GPUs", "model", "step", "90%", "rollout", "trains", "weights", "alone"},
      {Align::left, Align::right, Align::left, Align::right, Align::left, Align::right,
       Align::right, Align::right, Align::right});
  for (const PostTraining& job : jobs)
    table.add({job.id, grouped(job.job.gpus), job.model, to_text(job.step.step),
               fmt::format("{} to {}", to_text(job.range.low * job.step.step),
                           to_text(job.range.high * job.step.step)),
               to_text(job.step.rollout.time), to_text(job.step.trains),
               to_text(job.step.sync.time()), to_text(job.job.length)});
  document.heading("Post-training by RL");
  document.table(table);
  document.note(
      "trains: probabilities, updates, copies of states, host; weights: their way to the engines. "
      "Steps "
      "are those of GPUs side by side.");
}

Json post_trainings_json(const FleetJobs& jobs) {
  Json out = Json::array();
  for (const PostTraining& job : jobs.post_trainings)
    out.push_back({{"id", job.id},
                   {"model", job.model},
                   {"gpus", job.job.gpus},
                   {"step", rl_step_json(job.step, job.range)},
                   {"length_s", to_seconds(job.job.length).si()},
                   {"save_interval_s",
                    job.save_interval > Seconds{} ? Json(job.save_interval.si()) : Json(nullptr)}});
  return out;
}

void add_training_results(Document& document, const Scheduled& s) {
  const std::vector<FleetTraining>& trainings = s.points.front().asked.jobs->trainings;
  const std::vector<const SchedulePoint*> points = run_points(s);
  if (trainings.empty() || (trainings.size() * points.size() > most_rows && !document.full()))
    return;
  std::vector<std::string> head;
  std::vector<Align> align;
  name_columns(s, head, align);
  for (const char* name : {"training", "mean GPUs", "moves", "waited", "to its end", "x alone"})
    head.emplace_back(name);
  align.push_back(Align::left);
  align.resize(head.size(), Align::right);
  Table table(head, align);
  for (std::size_t t = 0; t < trainings.size(); ++t)
    for (const SchedulePoint* p : points) {
      const FleetTraining& training = p->asked.jobs->trainings[t];
      const auto place = place_of(training, *p->list);
      if (!place) continue;
      std::vector<std::string> row = name_cells(*p);
      for (std::string& cell : result_cells(*p, training, p->trainings[t], *place))
        row.push_back(std::move(cell));
      table.add(row);
    }
  document.heading("What became of trainings");
  document.table(table);
  document.note(
      "moves: it left its place for another size or place; waited: stops included; x alone: "
      "the rest over its length on the GPUs that it asks for.");
}

}  // namespace orrery
