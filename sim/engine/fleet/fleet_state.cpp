// SPDX-License-Identifier: Apache-2.0
// Starts, stops and ends jobs on a shared cluster.
#include "sim/engine/fleet/fleet_state.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "sim/base/errors/check.h"

namespace orrery {
namespace {

constexpr GpuPicos ps_of_us = 1'000'000;

bool is_plain(const FleetQuestion& question) {
  const JobWork recorded;
  const auto alike = [&](const JobWork& work) {
    return work.step_ps == recorded.step_ps && !work.priced && work.save_steps == 0 &&
           work.start.us == 0 && work.start_each.us == 0 && work.own_failures.si() == 0 &&
           work.planned_stops.si() == 0 && work.first_read.alone.us == 0;
  };
  const bool limits = question.power_limit_milliwatts > 0 || !question.feeds.empty();
  const bool caps =
      limits && !question.cap_curves.empty() && question.power_policy != PowerPolicy::admit;
  return !may_lose_hosts(question) && !question.policy.preempts && !question.policy.defragments &&
         !caps && question.hours.limits.empty() &&
         std::all_of(question.works.begin(), question.works.end(), alike);
}

// Jobs on one accelerator slow each other.
bool may_slow_parts(const std::vector<ClusterJob>& jobs, const FleetQuestion& question) {
  return question.policy.share != GpuShare::never && question.prices != nullptr &&
         std::any_of(jobs.begin(), jobs.end(),
                     [](const ClusterJob& job) { return job.is_part() && job.uses > 0; });
}

// Of jobs that can be capped.
std::int32_t highest_priority(const std::vector<ClusterJob>& jobs, const FleetQuestion& question) {
  std::optional<std::int32_t> highest;
  for (const ClusterJob& job : jobs)
    if (job.work < question.cap_curves.size() && question.cap_curves[job.work])
      highest = std::max<std::int32_t>(highest.value_or(job.priority), job.priority);
  return highest.value_or(0);
}

PowerRules power_rules(const std::vector<ClusterJob>& jobs, const FleetQuestion& question,
                       std::int64_t gpus) {
  PowerRules rules{.idle = question.idle_milliwatts,
                   .limit = question.power_limit_milliwatts,
                   .most = question.power_limit_milliwatts,
                   .gpus = gpus,
                   .policy = question.power_policy,
                   .feeds = !question.feeds.empty(),
                   .curves = question.cap_curves,
                   .thresholds = question.thresholds};
  for (const JobWork& work : question.works) rules.drawn.push_back(work.milliwatts);
  if (!question.hours.limits.empty()) rules.limit = question.hours.limits.front();
  std::optional<std::int32_t>& high = rules.thresholds.high_from;
  if (rules.policy == PowerPolicy::thresholds && !high) high = highest_priority(jobs, question);
  return rules;
}

// Of all jobs of the list, whenever they come.
std::shared_ptr<const FragmentTable> fragments_for(const std::vector<ClusterJob>& jobs,
                                                   const FleetQuestion& question) {
  if (question.policy.place != JobPlace::fragmentation) return nullptr;
  const std::int32_t of_host = question.shape.gpus_per_host;
  const bool share = question.policy.share != GpuShare::never;
  return std::make_shared<const FragmentTable>(usual_pieces(jobs, of_host, share), of_host);
}

void count_held(SizedUse& use, std::int32_t gpus, FleetTime now) {
  use.held += static_cast<GpuMicros>(gpus) * (now - use.since).us;
  use.time += now - use.since;
}

}  // namespace

ClusterPower::ClusterPower(const std::vector<ClusterJob>& jobs, const FleetQuestion& question,
                           std::int64_t gpus)
    : all(power_rules(jobs, question, gpus)), feeds(question.feeds, question.shape, all) {}

FleetState::FleetState(const std::vector<ClusterJob>& jobs, const FleetQuestion& question)
    : records(jobs.size()),
      sized_{question.sizes.empty() ? std::vector<ClusterJob>{} : jobs, {}},
      jobs_(question.sizes.empty() ? jobs : sized_.now),
      question_(question),
      slots_(question.shape),
      placer_(question.policy.place, question.seed, fragments_for(jobs, question)),
      pool_(question.shape.hosts == 1 && question.policy.place == JobPlace::pool),
      plain_(is_plain(question) && !may_slow_parts(jobs, question)),
      exact_(plain_ && std::all_of(jobs.begin(), jobs.end(),
                                   [](const ClusterJob& job) { return job.limit == job.length; })),
      runs_(jobs.size()),
      clocks_{.held = RequeueHolds(question.policy.requeue)},
      hosted_{.shared = SharedGpus(question.policy.share != GpuShare::never,
                                   may_slow_parts(jobs, question))},
      ranks_(jobs_, question.policy),
      power_(jobs, question, slots_.total()) {
  if (!pool_) grants_.resize(jobs.size());
  if (!exact_) clocks_.promised_ends.resize(jobs.size());
  if (question.policy.fit == JobFit::gang_timeout)
    for (const ClusterJob& job : jobs) clocks_.turns.push_back(job.submit);
  const bool stops = question.policy.preempts || question.policy.defragments ||
                     may_lose_hosts(question) || !question.hours.limits.empty();
  if (stops) clocks_.queued.resize(jobs.size(), fleet_never);
  if (!may_lose_hosts(question) && !question.policy.defragments) return;
  hosted_.by_host.resize(static_cast<std::size_t>(question.shape.hosts));
}

std::int64_t FleetState::extra_milliwatts(std::uint32_t job) const {
  if (draws_part(job)) return power_.all.extra(power_user(job), 1) * jobs_[job].milli / whole_gpu;
  return power_.all.extra(power_user(job), jobs_[job].gpus);
}

bool FleetState::could_have_power(std::uint32_t job) const {
  return power_.all.has_alone(extra_milliwatts(job));
}

std::int64_t FleetState::capped_ps(std::uint32_t job, std::int64_t step_ps) const {
  return std::llround(static_cast<double>(step_ps) * (power_.all.slower(job) - 1));
}

bool FleetState::settle_power(FleetTime now) {
  bool any = false;
  if (!power_.feeds.empty())
    for (const auto& [job, level] : power_.feeds.settle()) power_.all.set_ceiling(job, level);
  for (const std::uint32_t job : power_.all.settle()) {
    any = true;
    if (sharing_.contains(job)) {
      sharers.begun.push_back(job);
      continue;
    }
    const std::int64_t alone = runs_[job].step_ps - runs_[job].capped_ps;
    const std::int64_t capped = capped_ps(job, alone);
    change_speed(job, now, alone + capped, capped);
  }
  return any;
}

void FleetState::wait(std::uint32_t number) { waiting_.insert(waiting_job(number)); }

WaitingJob FleetState::waiting_job(std::uint32_t number) const {
  const ClusterJob& job = jobs_[number];
  std::int64_t key = 0;
  if (question_.policy.order == JobOrder::sjf) key = job.limit.us;
  if (question_.policy.order == JobOrder::deadline) key = due(job).us;
  if (question_.policy.order == JobOrder::priority || question_.policy.order == JobOrder::las)
    key = -std::int64_t{ranks_.priority_of(number)};
  const std::int64_t turn = clocks_.turns.empty() ? 0 : clocks_.turns[number].us;
  return {key,
          turn,
          number,
          job.gpus,
          expected_length(number),
          level_of(number),
          shares(number) ? job.milli : 0};
}

// What a scheduler expects that a job holds its place: its limit, or longer if what it has yet to
// compute, save and start with takes longer where it is well placed.
FleetTime FleetState::expected_length(std::uint32_t number) const {
  const ClusterJob& job = jobs_[number];
  if (plain_) return job.limit;
  const JobWork& work = work_of(number);
  // Of one that was stopped: what it has done, and what its restart takes.
  const JobRun& before = runs_[number];
  const JobRun run{
      .begin = start_overhead(number) + before.begin, .step_ps = work.step_ps, .done = before.done};
  return std::max(job.limit, end_of(work, run, steps_of(work, job.length)));
}

void FleetState::demote(std::uint32_t number) {
  ranks_.count(number, -1);
  ranks_.demote(number);
  ranks_.count(number, 1);
}

void FleetState::end_loan(std::uint32_t number) {
  if (!ranks_.is_lent(number)) return;
  const bool runs = is_running(number);
  if (runs) ranks_.count(number, -1);
  const bool waits = !runs && !clocks_.held.holds(number);
  if (waits) waiting_.take(waiting_job(number));
  ranks_.forget_loan(number);
  if (waits) wait(number);
  if (runs) ranks_.count(number, 1);
}

bool FleetState::find(std::uint32_t job, Grants& out) {
  if (!has_power(milliwatts() + extra_milliwatts(job))) return false;
  if (shares(job))
    if (const auto gpu = gpu_to_join(job)) {
      out.assign(1, {.host = hosted_.shared.host_of(*gpu), .hosts = 1, .gpus = 0});
      return true;
    }
  const std::int64_t each = power_.feeds.empty() ? 0 : power_.all.extra(power_user(job), 1);
  if (each == 0 || !power_.feeds.binds(power_.feeds.loads(), each, jobs_[job].gpus))
    return placer_.find(slots_, jobs_[job].gpus, out, level_of(job), job);
  if (power_.feeds.refuses(power_.feeds.loads(), each, jobs_[job].gpus)) return false;
  Slots view = slots_;
  power_.feeds.narrow(power_.feeds.loads(), each, view);
  return placer_.find(view, jobs_[job].gpus, out, level_of(job), job);
}

FleetTime FleetState::start_overhead(std::uint32_t job) const {
  const JobWork& work = work_of(job);
  return work.start + FleetTime{work.start_each.us * jobs_[job].gpus};
}

// A job goes on from runs_[job].done on the place that it has.
void FleetState::begin_run(std::uint32_t number, FleetTime now, FleetTime overhead,
                           const StoreRead& read) {
  const ClusterJob& job = jobs_[number];
  JobRun& run = runs_[number];
  run = {.placed = now,
         .from = now,
         .begin = now + overhead,
         .step_ps = run.step_ps,
         .capped_ps = run.capped_ps,
         .done = run.done,
         .saved = run.done};
  ask_store(number, read);
  if (!plain_) {
    expect_end(number);
    return;
  }
  records[number].end = now + job.length;
  ends_.insert({records[number].end, number, job.gpus});
  if (exact_) return;
  clocks_.promised_ends[number] = now + job.limit;
  limits_.insert({clocks_.promised_ends[number], number, job.gpus});
}

// Of no time: what it had asked for is void.
void FleetState::ask_store(std::uint32_t number, const StoreRead& read) {
  if (question_.store_bytes_per_s > 0)
    store.asked.push_back({number, runs_[number].begin - read.after - read.alone, read});
}

void FleetState::move_begin(std::uint32_t number, FleetTime begin) {
  forget_run(number);
  runs_[number].begin = begin;
  expect_end(number);
}

void FleetState::expect_end(std::uint32_t number) {
  const ClusterJob& job = jobs_[number];
  FleetTime& end = records[number].end;
  end = end_of(work_of(number), runs_[number], steps_of(work_of(number), job.length));
  ends_.insert({end, number, job.gpus});
  clocks_.promised_ends[number] = std::max(runs_[number].placed + job.limit, end);
  limits_.insert({clocks_.promised_ends[number], number, job.gpus});
}

void FleetState::change_speed(std::uint32_t number, FleetTime now, std::int64_t step_ps,
                              std::int64_t capped_ps) {
  const JobWork& work = work_of(number);
  JobRun& run = runs_[number];
  if (run.step_ps == step_ps && run.capped_ps == capped_ps) return;
  if (clocks_.saves.contains(number)) return;  // it takes no steps
  forget_run(number);
  if (now < run.begin) {
    run.step_ps = step_ps;
    run.capped_ps = capped_ps;
  } else {
    const JobRun next =
        at_other_speed(work, run, steps_of(work, jobs_[number].length), now, step_ps);
    const RunReach reach{.steps = next.done, .saves = saves_between(work, run.done, next.done)};
    account(number, reach, next.done, now, next.lead_ps);
    run = next;
    run.capped_ps = capped_ps;
  }
  expect_end(number);
}

void FleetState::forget_run(std::uint32_t number) {
  ends_.erase({records[number].end, number, jobs_[number].gpus});
  if (!exact_) limits_.erase({clocks_.promised_ends[number], number, jobs_[number].gpus});
}

void FleetState::start(std::uint32_t number, FleetTime now, Grants& grants) {
  if (slots_.out() > 0)
    for (const HostGrant& grant : grants)
      for (std::int32_t host = grant.host; host < grant.host + grant.hosts; ++host)
        CHECK_THAT(!slots_.is_out(host), "a host that is out is not handed out");
  if (jobs_[number].is_part()) begin_part(number, grants);
  slots_.take(grants);
  if (jobs_[number].sizes > 0) sized_.uses[number].since = now;
  draw(number, true);
  if (!power_.feeds.empty()) power_.feeds.begin(number, power_user(number), grants);
  ranks_.count(number, 1);
  if (ranks_.by_service()) holding_changes.push_back({number, true});
  JobRecord& record = records[number];
  FleetTime overhead = plain_ ? FleetTime{} : start_overhead(number);
  if (record.start == fleet_never) {
    record.start = now;
  } else {
    // What a restart takes was put here when the job was stopped.
    overhead += runs_[number].begin;
    record.waited_again += now - clocks_.queued[number];
  }
  take_price(number, grants);
  const auto again = store.later.find(number);
  begin_run(number, now, overhead,
            again != store.later.end() ? again->second : work_of(number).first_read);
  if (again != store.later.end()) store.later.erase(again);
  if (!pool_) {
    record.hosts = record.groups = 0;
    count_groups(grants, record);
    grants_[number].swap(grants);
    if (!hosted_.by_host.empty()) put_on_hosts(number, true);
  }
  tell(FleetEventKind::start, now, number);
}

void FleetState::tell(FleetEventKind kind, FleetTime at, std::uint32_t number,
                      std::string_view cause) const {
  if (!question_.tell) return;
  const bool placed = !pool_ && !grants_[number].empty();
  question_.tell({.at = at,
                  .kind = kind,
                  .job = number,
                  .gpus = jobs_[number].gpus,
                  .cause = cause,
                  .milli = jobs_[number].milli,
                  .place = placed ? &grants_[number] : nullptr});
}

void FleetState::begin_waiting_job(std::uint32_t number, FleetTime now, Grants& grants) {
  if (waiting_.head().job == number)
    waiting_.pop_head();
  else
    waiting_.take(waiting_job(number));
  start(number, now, grants);
}

void FleetState::take_price(std::uint32_t number, const Grants& grants) {
  const JobWork& work = work_of(number);
  runs_[number].step_ps = work.step_ps;
  runs_[number].capped_ps = 0;
  if (!work.priced || question_.prices == nullptr) return;
  PlacePrice price = question_.prices->price(
      jobs_[number].work,
      jobs_[number].is_part() ? Grants{one_gpu_on(grants.front().host)} : grants);
  runs_[number].step_ps = price.step_ps;
  if (price.trunks.empty()) return;
  sharing_.emplace(number, std::move(price));
  sharers.begun.push_back(number);
}

bool FleetState::end_jobs(FleetTime now) {
  bool early = false;
  ended.clear();
  while (next_end() <= now) {
    const std::uint32_t number = ends_.first().job;
    if (const auto save = clocks_.saves.find(number); save != clocks_.saves.end()) {
      const HeldSave held = save->second;
      leave_with(number, held.until, held.cause, cost_of_stop(number, held.until));
      early = true;
      continue;
    }
    ends_.pop_first();
    const ClusterJob& job = jobs_[number];
    if (!exact_) {
      limits_.erase({clocks_.promised_ends[number], number, job.gpus});
      early = early || clocks_.promised_ends[number] != records[number].end;
    }
    // The steps of a plain job are not looked at.
    if (plain_)
      account(number, {}, 0, now);
    else
      account(number, reach_at(number, now), steps_of(work_of(number), job.length), now);
    tell(FleetEventKind::end, now, number);
    give_back(number, now);
    ended.push_back(number);
  }
  return early;
}

void FleetState::give_back(std::uint32_t number, FleetTime now) {
  if (jobs_[number].sizes > 0) count_held(sized_.uses[number], jobs_[number].gpus, now);
  draw(number, false);
  ask_store(number, {});
  ranks_.count(number, -1);
  if (ranks_.by_service()) holding_changes.push_back({number, false});
  if (!sharing_.empty() && sharing_.erase(number) > 0) sharers.left.push_back(number);
  const bool part = jobs_[number].is_part();
  if (pool_) {
    if (part) end_part(number);
    const HostGrant all{.host = 0, .hosts = 1, .gpus = jobs_[number].gpus};
    slots_.give({&all, 1});
    return;
  }
  if (!hosted_.by_host.empty()) put_on_hosts(number, false);
  if (part) end_part(number);
  if (!power_.feeds.empty()) power_.feeds.end(number, power_user(number), grants_[number]);
  slots_.give(grants_[number]);
  Grants().swap(grants_[number]);
}

void FleetState::account(std::uint32_t number, const RunReach& reach, std::int64_t kept,
                         FleetTime at, std::int64_t lead_ps) {
  const ClusterJob& job = jobs_[number];
  const GpuPicos gpus = milli_gpus(job);
  if (plain_) {
    const GpuPicos ps = static_cast<GpuPicos>((at - runs_[number].from).us) * 1'000'000;
    (job.fate == JobFate::completed ? spent.useful : spent.in_vain) += gpus * ps;
    return;
  }
  const RunParts parts = parts_of(work_of(number), runs_[number], reach, kept, at, lead_ps);
  (job.fate == JobFate::completed ? spent.useful : spent.in_vain) += gpus * parts.useful;
  spent.slowed += gpus * parts.slowed;
  spent.capped += gpus * parts.capped;
  spent.saving += gpus * parts.saving;
  spent.starting += gpus * parts.starting;
  spent.lost += gpus * parts.lost;
}

RunReach FleetState::reach_at(std::uint32_t number, FleetTime now) const {
  const JobWork& work = work_of(number);
  return reach_of(work, runs_[number], steps_of(work, jobs_[number].length),
                  clocks_.computes_until(number, now));
}

void FleetState::begin_as(const ClusterJob& sized, std::uint32_t number, FleetTime now,
                          Grants& grants) {
  waiting_.take(waiting_job(number));
  const std::int64_t before = steps_of(work_of(number), jobs_[number].length);
  if (!sized_.now.empty()) sized_.now[number] = sized;
  const std::int64_t steps = steps_of(work_of(number), jobs_[number].length);
  std::int64_t& done = runs_[number].done;
  if (steps != before)
    done = static_cast<std::int64_t>(static_cast<GpuPicos>(done) * steps / before);
  start(number, now, grants);
}

void FleetState::close(FleetTime now) {
  ends_.each([&](const RunningEnd& end) {
    account_whole(end.job, reach_at(end.job, now).steps, now);
    const ClusterJob& job = jobs_[end.job];
    if (job.sizes > 0) count_held(sized_.uses[end.job], job.gpus, now);
    tell(FleetEventKind::cut, now, end.job);
    return true;
  });
}

std::vector<SizedUse> FleetState::sized_uses() const {
  std::vector<SizedUse> out;
  for (const auto& [job, use] : sized_.uses) {
    out.push_back(use);
    out.back().job = job;
  }
  return out;
}

void FleetState::put_on_hosts(std::uint32_t number, bool there) {
  for (const HostGrant& grant : grants_[number])
    for (std::int32_t i = 0; i < grant.hosts; ++i) {
      std::vector<std::uint32_t>& jobs = hosted_.by_host[static_cast<std::size_t>(grant.host + i)];
      if (there)
        jobs.push_back(number);
      else
        jobs.erase(std::find(jobs.begin(), jobs.end(), number));
    }
}

void FleetState::count_groups(const Grants& grants, JobRecord& record) const {
  const auto& levels = slots_.shape().levels;
  std::int32_t last = -1;
  for (const HostGrant& g : grants) {
    record.hosts += g.hosts;
    if (levels.empty()) continue;
    const std::int32_t from = g.host / levels.front().reach;
    const std::int32_t to = (g.host + g.hosts - 1) / levels.front().reach;
    record.groups += to - from + (from == last ? 0 : 1);
    last = to;
  }
}

}  // namespace orrery
