// SPDX-License-Identifier: Apache-2.0
// Predicts a step of RL once, or one of each job that takes turns, and lets it be repeated.
#include "sim/question/schedule/rl_entry.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "hw_models/catalog.h"
#include "sim/base/errors/cannot_exist.h"
#include "sim/engine/jobs/job_run.h"
#include "sim/outcome/fleet/job_months.h"
#include "sim/question/rl/rl_settings.h"
#include "sim/question/schedule/settings.h"

namespace orrery {
namespace {

constexpr double ps_of_second = 1e12;

// Catalogues and engines do not know where the job stands.
ErrorInfo at_entry(ErrorInfo info, const std::string& where) {
  if (info.file.starts_with(where)) return info;
  info.path = info.file + (info.file.empty() || info.path.empty() ? "" : ": ") + info.path;
  info.file = where;
  return info;
}

template <class Make>
auto placed(const std::string& where, Make&& make) {
  try {
    return make();
  } catch (const CannotExist& error) {
    throw CannotExist(at_entry(error.info(), where));
  } catch (const Error& error) {
    throw Error(at_entry(error.info(), where));
  }
}

// Of several each has an id among its settings.
RlJob read_job(const JsonValue& rl, bool several, const PostTrainingCase& with) {
  if (!rl.is_object()) rl.fail("an object: the settings of a job of RL");
  if (rl.has("cluster")) rl.at("cluster").fail("none: all jobs run on the cluster of the question");
  SortedJson settings = rl.raw();
  settings["cluster"] = with.cluster;
  if (several) settings.erase("id");
  return placed(place_of(rl), [&] {
    return read_rl_job(JsonValue::from(std::move(settings), place_of(rl)), with.catalogues);
  });
}

RlMember predict_member(const JsonValue& rl, std::string id, const RlJob& job, int threads) {
  RlMember out{.id = std::move(id), .model = job.model.title};
  out.step = placed(place_of(rl), [&] { return predict_rl_step(job, threads); });
  out.range = rl_range(rl_run(job), load_rl_error(data_root() / "validation/rl_error.json"));
  out.turn = pool_turn(job, out.step);
  return out;
}

// The jobs of an entry, and the pools on which several take turns.
void read_members(const JsonValue& rl, const std::vector<RlJob>& jobs, int threads,
                  PostTraining& out) {
  const std::vector<JsonValue> asked = rl.items();
  std::set<std::string> ids;
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    if (!ids.insert(asked[i].at("id").text()).second) asked[i].at("id").fail("each id once");
    placed(place_of(asked[i]), [&] { check_shares_pools(jobs[i], jobs.front()); });
  }
  EntryPools pools{.rollout_gpus = jobs.front().generation_gpus(),
                   .training_gpus = jobs.front().training_gpus()};
  std::vector<PoolTurn> turns;
  std::vector<RlStep> steps;
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    const RlMember member = predict_member(asked[i], asked[i].at("id").text(), jobs[i], threads);
    pools.range.low = std::min(pools.range.low, member.range.low);
    pools.range.high = std::max(pools.range.high, member.range.high);
    turns.push_back(member.turn);
    steps.push_back(member.step);
    out.members.push_back(member);
  }
  pools.shared = share_pools(turns);
  pools.best = best_order(turns);
  pools.hosts = placed(place_of(rl), [&] { return pool_hosts(jobs, steps); });
  out.pools = pools;
}

// Starts and saves as those of which only a length is recorded.
JobWork work_of(const PostTrainingCase& with, std::int64_t step_ps, Seconds interval) {
  JobWork work = with.profile ? recorded_work(*with.profile, interval) : JobWork{};
  work.step_ps = step_ps;
  work.save_steps = save_steps_of(interval, step_ps);
  work.milliwatts = with.milliwatts;
  return work;
}

FleetTime read_length(const JsonValue& entry, std::int64_t step_ps) {
  if (entry.has("length") == entry.has("steps"))
    entry.fail("one of steps and length (\"3 day\")",
               entry.has("steps") ? "both" : "a job without an end");
  if (const auto length = entry.find("length")) return read_entry_time(*length);
  const double steps = entry.at("steps").number();
  if (!(steps >= 1)) entry.at("steps").fail("at least 1");
  return time_of_steps(entry.at("steps"), steps, step_ps);
}

}  // namespace

PostTraining read_post_training(const JsonValue& entry, const PostTrainingCase& with) {
  entry.expect_only({"id", "rl", "steps", "length", "submit", "save_interval", "queue", "priority",
                     "preemptible", "within", "deadline", "slack", "after"});
  const JsonValue rl = entry.at("rl");
  const bool several = rl.is_array();
  if (several && rl.items().size() < 2)
    rl.fail("two jobs or more that take turns; one alone stands without a list");
  std::vector<RlJob> jobs;
  for (const JsonValue& one : several ? rl.items() : std::vector<JsonValue>{rl})
    jobs.push_back(read_job(one, several, with));
  PostTraining out{.id = entry.at("id").text()};
  if (several)
    read_members(rl, jobs, with.threads, out);
  else
    out.members.push_back(predict_member(rl, out.id, jobs.front(), with.threads));
  const std::int64_t step_ps = std::llround(out.step().si() * ps_of_second);
  out.save_interval = with.save_interval;
  if (const auto interval = entry.find("save_interval"))
    out.save_interval = to_seconds(read_entry_time(*interval));
  out.work = work_of(with, step_ps, out.save_interval);
  if (const auto submit = entry.find("submit")) out.job.submit = read_entry_time(*submit);
  out.job.gpus = static_cast<std::int32_t>(jobs.front().cluster.gpus);
  out.job.length = out.job.limit = read_length(entry, step_ps);
  return out;
}

}  // namespace orrery
