// SPDX-License-Identifier: Apache-2.0
// Makes tables of trainings, those of RL among them.
#include "sim/app/schedule/training_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "sim/app/schedule/event_rows.h"
#include "sim/app/schedule/point_names.h"
#include "sim/base/text/words.h"
#include "sim/outcome/noise.h"
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
  const FleetTime waited = record.start - eligible(training.job, record) + record.waited_again;
  cells.push_back(to_text(waited));
  if (record.end > p.record.last_end) {
    cells.insert(cells.end(), {"not reached", ""});
    return cells;
  }
  const FleetTime took = record.end - eligible(training.job, record);
  cells.push_back(to_text(took));
  cells.push_back(fmt::format("{:.2f}", static_cast<double>((took - waited).us) /
                                            static_cast<double>(training.job.length.us)));
  return cells;
}

std::string range_text(const RlRange& range, Seconds step) {
  return fmt::format("{} to {}", to_text(range.low * step), to_text(range.high * step));
}

// Of all steps, if each takes as long as the job's alone.
Seconds length_alone(const PostTraining& job, const RlMember& member) {
  const Seconds length = to_seconds(job.job.length);
  return job.pools ? member.step.step / job.step() * length : length;
}

double tokens_alone(const PostTraining& job) {
  double tokens = 0, steps = 0;
  for (const RlMember& m : job.members) {
    tokens += m.step.tokens;
    steps += m.step.step.si();
  }
  return tokens / steps / job.job.gpus;
}

// What a job alone leaves of its own pools.
double rollout_busy(const PoolTurn& turn) { return turn.holds_rollout() / turn.alone(); }
double training_busy(const PoolTurn& turn) { return turn.holds_training() / turn.alone(); }

std::string shares_text(const PostTraining& job, double (*share)(const PoolTurn&)) {
  std::vector<std::string> shares;
  for (const RlMember& m : job.members) shares.push_back(percent_figure(share(m.turn), 1));
  return joined(shares, ", ");
}

std::string hosts_text(Bytes states, const PoolHosts& hosts) {
  return hosts.share > Bytes{} ? fmt::format("{} of {}", to_text(states), to_text(hosts.share))
                               : to_text(states);
}

std::string limit_sentence(PoolLimit limit) {
  switch (limit) {
    case PoolLimit::rollout:
      return "training waits for rollouts";
    case PoolLimit::training:
      return "rollouts wait for training";
    case PoolLimit::both:
      break;
  }
  return "either pool waits for the other";
}

std::vector<std::string> ids_of(const PostTraining& job, const PoolOrder& order) {
  std::vector<std::string> ids;
  for (const std::size_t i : order.jobs) ids.push_back(job.members[i].id);
  return ids;
}

void add_pools(Document& document, const PostTraining& job) {
  const EntryPools& pools = *job.pools;
  const SharedPools& shared = pools.shared;
  Table jobs({"in turns", "step", "90%", "x alone"},
             {Align::left, Align::right, Align::left, Align::right});
  for (const RlMember& m : job.members)
    jobs.add({m.id, to_text(shared.period), range_text(pools.range, shared.period),
              fmt::format("{:.2f}", shared.period / m.step.step)});
  Table table({"pool", "GPUs", "busy %", "alone %", "at least", "host memory a GPU"},
              {Align::left, Align::right, Align::right, Align::left, Align::right, Align::left});
  table.add({"rollout", grouped(pools.rollout_gpus), percent_figure(shared.rollout_busy),
             shares_text(job, rollout_busy), to_text(shared.rollout_bound),
             hosts_text(pools.hosts.rollout, pools.hosts)});
  table.add({"training", grouped(pools.training_gpus), percent_figure(shared.training_busy),
             shares_text(job, training_busy), to_text(shared.training_bound),
             hosts_text(pools.hosts.training, pools.hosts)});
  document.heading(fmt::format("Pools of {}", job.id));
  document.table(jobs);
  document.table(table);
  document.note(
      "x alone: over its step with these GPUs to itself; busy: a pool generates or trains, or new "
      "weights go over; alone: of pools of its own; at least: a step of each job, as far as this "
      "pool goes, with copies of states.");
  document.paragraph(fmt::format(
      "In each period {}. Each job alone on as many GPUs, the same steps take {:.2f} times the "
      "GPU-time: {} tokens/s/GPU, {} in turns.",
      limit_sentence(shared.limit), shared.gain, grouped(std::llround(tokens_alone(job))),
      grouped(std::llround(shared.gain * tokens_alone(job)))));
  if (pools.best.period * (1 + least_gain) < shared.period)
    document.paragraph(fmt::format("In the order {} a period takes {}.",
                                   joined(ids_of(job, pools.best), ", "),
                                   to_text(pools.best.period)));
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
    for (const RlMember& m : job.members)
      table.add({m.id, grouped(job.job.gpus), m.model, to_text(m.step.step),
                 range_text(m.range, m.step.step), to_text(m.step.rollout.time),
                 to_text(m.step.trains), to_text(m.step.sync.time()),
                 to_text(length_alone(job, m))});
  document.heading("Post-training by RL");
  document.table(table);
  document.note(
      "trains: probabilities, updates, copies of states, host; weights: their way to the engines. "
      "Steps "
      "are those of GPUs side by side.");
  for (const PostTraining& job : jobs)
    if (job.pools) add_pools(document, job);
}

Json post_trainings_json(const FleetJobs& jobs) {
  Json out = Json::array();
  for (const PostTraining& job : jobs.post_trainings)
    for (const RlMember& m : job.members) {
      Json one = {{"id", m.id},
                  {"model", m.model},
                  {"gpus", job.job.gpus},
                  {"step", rl_step_json(m.step, m.range)},
                  {"length_s", to_seconds(job.job.length).si()},
                  {"save_interval_s",
                   job.save_interval > Seconds{} ? Json(job.save_interval.si()) : Json(nullptr)}};
      if (job.pools) one["pools"] = job.id;
      out.push_back(std::move(one));
    }
  return out;
}

Json shared_pools_json(const FleetJobs& jobs) {
  Json out = Json::array();
  for (const PostTraining& job : jobs.post_trainings) {
    if (!job.pools) continue;
    const EntryPools& pools = *job.pools;
    const SharedPools& shared = pools.shared;
    Json turns = Json::array();
    for (const RlMember& m : job.members)
      turns.push_back({{"id", m.id},
                       {"times_alone", shared.period / m.step.step},
                       {"rollout_busy_alone", rollout_busy(m.turn)},
                       {"training_busy_alone", training_busy(m.turn)}});
    const auto pool = [&](std::int64_t gpus, double busy, Seconds bound, Bytes states) {
      return Json{{"gpus", gpus},
                  {"busy", busy},
                  {"least_step_s", bound.si()},
                  {"host_bytes_per_gpu", states.si()}};
    };
    out.push_back(
        {{"id", job.id},
         {"step_s", shared.period.si()},
         {"step_low_s", pools.range.low * shared.period.si()},
         {"step_high_s", pools.range.high * shared.period.si()},
         {"longest_step_alone_s", shared.longest.si()},
         {"limit", to_text(shared.limit)},
         {"gain", shared.gain},
         {"tokens_per_s_per_gpu", shared.gain * tokens_alone(job)},
         {"tokens_per_s_per_gpu_alone", tokens_alone(job)},
         {"host_share_bytes_per_gpu",
          pools.hosts.share > Bytes{} ? Json(pools.hosts.share.si()) : Json(nullptr)},
         {"rollout_pool",
          pool(pools.rollout_gpus, shared.rollout_busy, shared.rollout_bound, pools.hosts.rollout)},
         {"training_pool", pool(pools.training_gpus, shared.training_busy, shared.training_bound,
                                pools.hosts.training)},
         {"jobs", turns},
         {"best_order", {{"jobs", ids_of(job, pools.best)}, {"step_s", pools.best.period.si()}}}});
  }
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
