// SPDX-License-Identifier: Apache-2.0
// Lists the settings of schedule, and lays flags over those of a file.
#include "sim/question/schedule/settings.h"

#include <fmt/format.h>

#include <cmath>

#include "sim/engine/jobs/job_run.h"

namespace orrery {
namespace {

constexpr const char* machine = "Machine";
constexpr const char* jobs = "Jobs";
constexpr const char* policy = "Policy";
constexpr const char* compare = "Which is the best";
constexpr const char* breaks = "What breaks, and power";

std::vector<Setting> of_jobs() {
  using enum SettingKind;
  return {
      {"cluster", text, machine, "cluster of the catalogue, or a file", SettingOf::both,
       "catalog cluster"},
      {"gpus", integer, machine, "accelerators of it"},
      {"trace", text, jobs,
       "a trace of the catalogue (philly), or a file: sacct -P, squeue (a cluster as it is now), "
       "the Standard Workload Format, columns of Philly, Helios, Acme or openb, or submit_s, "
       "length_s, gpus",
       SettingOf::both, "file"},
      {"jobs", json, jobs,
       "several at once: {\"trace\": ..}, {\"mix\": .., \"per_day\": 400}, a training: {\"id\": "
       ".., "
       "\"submit\": \"2 day\", \"tokens\": 1e12, \"model\": .., \"gpus\": ..}, a served model: "
       "{\"id\": .., \"serve\": {..}, \"load\": \"40/s\"}, requests that wait: "
       "{\"id\": .., \"batch\": {..}, \"requests\": 1e6}, or RL: {\"id\": .., \"rl\": {..}, "
       "\"steps\": 1000}"},
      {"days", integer, jobs, "those submitted in the first so many days"},
      {"horizon", quantity, jobs, "the run ends then, whoever runs (\"90 day\")"},
  };
}

std::vector<Setting> of_policies() {
  using enum SettingKind;
  return {
      {"policy", text, policy,
       "who is next, who may pass, whom a head stops: fifo, sjf, easy, sjf-easy, conservative, "
       "priority, priority-easy, preempt, las, deadline, deadline-preempt, gang-timeout, or a "
       "preset (`orrery catalog list "
       "policies`); how "
       "many accelerators jobs get: "
       "goodput, "
       "optimus, max-min, fair (fifo)",
       SettingOf::both,
       "fifo sjf easy sjf-easy conservative priority priority-easy preempt las deadline "
       "deadline-preempt gang-timeout goodput "
       "optimus "
       "max-min fair"},
      {"place", text, policy,
       "where a gang goes: pool, pack, spread, least-level, fragmentation, least-contention, "
       "random (pack)",
       SettingOf::both, "pool pack spread least-level fragmentation least-contention random"},
      {"preempt_after", quantity, policy,
       "preempt: jobs are stopped once they have run for so long (\"2 h\")"},
      {"grace", quantity, policy,
       "whoever is stopped for others, or for want of power, holds its place while it saves, if "
       "that takes no longer (\"30 s\"), else loses what is not saved (without it saves take no "
       "time, and are paid as jobs start again)"},
      {"requeue_delay", quantity, policy,
       "whoever was stopped and gave its place back waits for another after so long (\"2 min\"; at "
       "once, or as the preset has it)"},
      {"requeue_most", quantity, policy,
       "requeue_delay doubles for each stop in a row, up to this (it stays as it is)"},
      {"gang_timeout", quantity, policy,
       "gang-timeout: a gang that is not whole after so long gives back what it holds, and goes "
       "behind (\"5 min\")"},
      {"defragment", text, policy,
       "running jobs move together for a head that lacks whole hosts, and to better places: never, "
       "pays (where less time is lost than won) (never)",
       SettingOf::both, "never pays"},
      {"delay", text, policy,
       "jobs with a deadline or slack wait for the hours of grid in which they end by it and that "
       "are cheapest or cleanest: none, price, carbon (none)",
       SettingOf::both, "none price carbon"},
      {"priority_weights", json, policy,
       "Slurm's loops: weights of factors of a priority, {\"age\": .., \"fairshare\": .., "
       "\"jobsize\": .., \"qos\": ..}; without them the oldest is first"},
      {"priority_half_life", quantity, policy,
       "Slurm's loops: usage counts half after so long (\"7 day\")"},
      {"priority_max_age", quantity, policy,
       "Slurm's loops: a job that waited so long has all of the weight of age (\"7 day\")"},
      {"first_queue", number, policy,
       "las: GPU-hours after which a job stands behind those that had less (16)"},
      {"round", quantity, policy,
       "goodput, optimus, max-min, fair: they decide every so often (\"6 min\")"},
      {"scale", text, policy,
       "replicas of served models: fixed (as many as the peak needs), expected (as the load that "
       "comes), observed (as the load that was) (expected)",
       SettingOf::both, "fixed expected observed"},
      {"queues", json, policy,
       "what queues may hold: {\"research\": {\"gpus\": 512, \"borrows\": true}}"},
      {"scatter_cost", number, jobs,
       "recorded jobs take so many times as long for each level of switches that their hosts stand "
       "under beyond need (1: as they are recorded, wherever they are)"},
      {"meeting", text, policy,
       "how trainings meet on links that have not enough for all: random, aligned, shifted, "
       "priority (random)",
       SettingOf::both, "random aligned shifted priority"},
  };
}

std::vector<Setting> of_sharing() {
  using enum SettingKind;
  return {
      {"share", text, policy,
       "jobs that ask for parts of a GPU: never (each has one of its own), best-fit (they share "
       "one: that with the least room that suffices) (best-fit)",
       SettingOf::both, "never best-fit"},
      {"sharing", text, policy,
       "how jobs that say what they use run on one GPU: time-slices (they take turns), mps "
       "(kernels "
       "of all in one queue), mps-limits (each on its part of the processors) (time-slices)",
       SettingOf::both, "time-slices mps mps-limits"},
  };
}

std::vector<Setting> of_what_breaks() {
  using enum SettingKind;
  return {
      {"reliability", text, breaks,
       "failure rates: a profile of the catalogue; without it nothing fails", SettingOf::both,
       "catalog reliability"},
      {"failure_rate", number, breaks, "of everything that fails: a factor of the profile's rates"},
      {"spares", integer, breaks, "accelerators that stand in for those under repair (0)"},
      {"repair_crews", integer, breaks, "repairs at a time; without it as many as there are"},
      {"incidents", settings, breaks,
       "what happens when, the same for all policies: a list, or a file with one, "
       "[{\"at\": \"100 h\", \"for\": \"6 h\", \"what\": \"leaf\", \"which\": 12}, ..]; parts: "
       "host, domain, leaf, pod, core, cluster, or \"hosts\": \"16-23\"; \"drain\": true lets jobs "
       "save before",
       SettingOf::both, "file"},
      {"lemons", text, breaks,
       "hosts that fail more often than others: even (all fail alike), return (they come back from "
       "repairs as they were), out (they are exchanged once they failed so often) (return, where "
       "the profile of reliability knows how many they are)",
       SettingOf::both, "even return out"},
      {"lemon_failures", integer, breaks,
       "failures within lemon_time after which a host is exchanged (3)"},
      {"lemon_time", quantity, breaks, "that time (\"28 day\")"},
      {"store", quantity, breaks,
       "what a store gives all jobs that read their states at a time (\"500 GB/s\"); without it "
       "each reads as if it were alone"},
      {"store_write", quantity, breaks, "what it takes of all that save (as store)"},
      {"store_host", quantity, breaks,
       "what a host reads or writes at most (as the profile of reliability says)"},
      {"save_interval", quantity, breaks,
       "between saves of jobs of which only a length is recorded (\"1 h\", where something stops "
       "jobs); "
       "\"0 s\": never"},
      {"power_limit", quantity, breaks, "accelerators and hosts draw at most so much (\"12 MW\")"},
      {"feeds", json, breaks,
       "limits of single feeds of power: {\"halls\": {\"count\": 2, \"limit\": \"9 MW\", "
       "\"redundancy\": \"2N\"}, \"rows\": .., \"racks\": {\"hosts\": 4, \"limit\": \"40 kW\"}}"},
      {"power_policy", text, breaks,
       "under that limit: admit (no job starts beyond it), proportional (all that run are capped "
       "alike), priority (those of the lowest priority first), thresholds (clocks fall in steps as "
       "shares of the limit are passed, as POLCA) (admit)",
       SettingOf::both, "admit proportional priority thresholds"},
      {"power_thresholds", json, breaks,
       "of that policy, in place of POLCA's: shares of a limit, {\"first\": 0.8, \"second\": 0.89, "
       "\"release\": 0.05}, and of the full clock, {\"low\": 0.904, \"lower\": 0.787, \"high\": "
       "0.926}; \"high_priority\": 1"},
      {"cap_response", text, breaks,
       "what a cap below their draw does to jobs of which only a length is recorded: none, clock "
       "(as to kernels that keep tensor units busy), proportional (to what it takes) (clock)",
       SettingOf::both, "none clock proportional"},
      {"site", text, breaks,
       "where it stands, for prices and carbon of electricity: a site of the catalogue",
       SettingOf::both, "catalog site"},
      {"grid", text, breaks,
       "what electricity costs and emits by the hour, in place of the site's values: a file with "
       "hour (0, 1, ..), usd_per_kwh, kg_per_kwh, and perhaps limit_mw, that may be drawn then",
       SettingOf::both, "file"},
  };
}

std::vector<Setting> of_comparing() {
  using enum SettingKind;
  return {
      {"seeds", integer, compare, "runs of each point with seeds of their own, at most (1)"},
      {"confidence", number, compare,
       "run no more seeds once a point is the best with this chance (0.95); without it all"},
      {"objective", text, compare,
       "by which the best is found: completion.mean, completion.p90, completion.p99, wait.mean, "
       "wait.p90, wait.p99, useful, energy, deadlines, slo (completion.mean)",
       SettingOf::both,
       "completion.mean completion.p90 completion.p99 wait.mean wait.p90 wait.p99 useful energy "
       "deadlines slo"},
      {"limits", text, compare, "what a point must keep: wait.p99=4h,useful=0.5,slo=0.99"},
      {"search", text, compare,
       "settings that take all values that make sense here, without lists of their own: policy, "
       "place, spares, gpus, power_limit, power_policy, defragment, delay, scale, meeting, lemons",
       SettingOf::both,
       "policy place spares gpus power_limit power_policy defragment delay scale meeting lemons"},
      {"like", SettingKind::settings, compare,
       "how the cluster is run now, a file or JSON: what the best point gains against it",
       SettingOf::both, "file"},
      {"time_limit", quantity, compare,
       "the work ends then, with what is known: seconds, or \"5 min\""},
      {"job", text, policy, "why this job waited"},
  };
}

}  // namespace

const std::vector<Setting>& schedule_settings() {
  static const std::vector<Setting> all = [] {
    std::vector<Setting> list;
    for (const auto& part :
         {of_jobs(), of_policies(), of_sharing(), of_what_breaks(), of_comparing()})
      list.insert(list.end(), part.begin(), part.end());
    return list;
  }();
  return all;
}

bool is_one_value_of_schedule(const std::string& key) {
  return key == "limits" || key == "search" || key == "trace" || key == "job" || key == "jobs" ||
         key == "queues" || key == "priority_weights" || key == "grid" || key == "incidents" ||
         key == "feeds" || key == "power_thresholds";
}

std::string place_of(const JsonValue& at) { return fmt::format("{}: {}", at.file(), at.path()); }

FleetTime time_of_steps(const JsonValue& at, double steps, std::int64_t step_ps) {
  const double whole = std::floor(steps);
  if (whole * static_cast<double>(step_ps) / 1e6 > static_cast<double>(most_fleet_time.us))
    at.fail("less than 1,000 years of steps");
  return length_of(static_cast<std::int64_t>(whole), step_ps);
}

JsonValue merge_schedule_settings(const std::string& file, const SortedJson& flags) {
  return merge_schedule_settings(file.empty()
                                     ? JsonValue::from(SortedJson::object(), command_line_place)
                                     : JsonValue::load(file),
                                 flags);
}

JsonValue merge_schedule_settings(const JsonValue& document, const SortedJson& flags) {
  std::vector<std::string> keys;
  for (const Setting& setting : schedule_settings()) keys.emplace_back(setting.key);
  document.expect_only(keys, "a setting of schedule");
  SortedJson merged = document.raw();
  merged.update(flags);
  return JsonValue::from(without_nulls(merged), document.file());
}

}  // namespace orrery
