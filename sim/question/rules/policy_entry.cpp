// SPDX-License-Identifier: Apache-2.0
// Lists the short names of policies, and resolves them and presets to rules.
#include "sim/question/rules/policy_entry.h"

#include <algorithm>

#include "sim/question/losses/entry_time.h"

namespace orrery {
namespace {

NamedPolicy in_rounds(const char* name, RoundRule rule) {
  return {name, JobOrder::priority, JobFit::rounds, true, rule};
}

}  // namespace

const std::vector<NamedPolicy>& named_policies() {
  static const std::vector<NamedPolicy> all = {
      {"fifo", JobOrder::fifo, JobFit::block},
      {"sjf", JobOrder::sjf, JobFit::block},
      {"easy", JobOrder::fifo, JobFit::easy},
      {"sjf-easy", JobOrder::sjf, JobFit::easy},
      {"priority", JobOrder::priority, JobFit::block},
      {"priority-easy", JobOrder::priority, JobFit::easy},
      {"preempt", JobOrder::priority, JobFit::easy, true},
      {"las", JobOrder::las, JobFit::any, true},
      {"deadline", JobOrder::deadline, JobFit::easy},
      {"deadline-preempt", JobOrder::deadline, JobFit::easy, true},
      {"gang-timeout", JobOrder::priority, JobFit::gang_timeout},
      {"conservative", JobOrder::fifo, JobFit::conservative},
      in_rounds("goodput", RoundRule::goodput),
      in_rounds("optimus", RoundRule::optimus),
      in_rounds("max-min", RoundRule::max_min),
      in_rounds("fair", RoundRule::fair)};
  return all;
}

namespace {

// A preset may have a delay of its own.
void read_requeue(const JsonValue& s, RequeueDelay& requeue) {
  constexpr const char* expected = "a time of 0 or more, such as \"2 min\"";
  const auto first = s.find("requeue_delay"), most = s.find("requeue_most");
  if (first) requeue = {.first = read_fleet_time(*first, Seconds{}, expected), .most = {}};
  if (!most) return;
  if (requeue.first.us == 0) most->fail("nothing without requeue_delay");
  requeue.most = read_fleet_time(*most, Seconds{}, expected);
  if (requeue.most < requeue.first)
    most->fail("at least the " + to_text(requeue.first) + " of requeue_delay");
}

}  // namespace

std::vector<std::string> policy_names() {
  std::vector<std::string> names;
  for (const NamedPolicy& policy : named_policies()) names.emplace_back(policy.name);
  for (std::string& preset : policy_preset_names()) names.push_back(std::move(preset));
  return names;
}

AskedPolicy read_policy(const JsonValue& s, FleetQuestion& question) {
  AskedPolicy out;
  const auto policy = s.find("policy"), place = s.find("place");
  out.policy = policy ? policy->one_of(policy_names()) : "fifo";
  out.place = place ? place->one_of(job_place_text.names()) : "pack";
  FleetPolicy& rules = question.policy;
  const auto named = std::find_if(named_policies().begin(), named_policies().end(),
                                  [&](const NamedPolicy& one) { return one.name == out.policy; });
  if (named == named_policies().end()) {
    out.preset = load_policy_preset(out.policy);
    rules = out.preset->rules;
    if (!place) out.place = job_place_text[rules.place];
  } else {
    rules.order = named->order;
    rules.fit = named->fit;
    rules.preempts = named->preempts;
    if (named->rounds) question.loops.rounds.rule = *named->rounds;
  }
  rules.place = *job_place_text.find(out.place);
  if (const auto round = s.find("round"))
    question.loops.rounds.every = read_fleet_time(*round, seconds(1), "a time from 1 s on");
  if (const auto after = s.find("preempt_after"))
    rules.preempt_after =
        read_fleet_time(*after, Seconds{}, "a time of 0 or more, such as \"2 h\"");
  if (const auto grace = s.find("grace"))
    rules.grace = read_fleet_time(*grace, Seconds{}, "a time of 0 or more, such as \"30 s\"");
  read_requeue(s, rules.requeue);
  if (const auto timeout = s.find("gang_timeout"))
    rules.gang_timeout =
        read_fleet_time(*timeout, seconds(1), "a time from 1 s on, such as \"10 min\"");
  if (const auto defragment = s.find("defragment"))
    rules.defragments = defragment->one_of({"never", "pays"}) == "pays";
  if (const auto hours = s.find("first_queue")) {
    if (!(hours->number() > 0 && hours->number() < 1e9)) hours->fail("GPU-hours above 0");
    rules.first_queue = static_cast<GpuMicros>(hours->number() * 3.6e9);
  }
  if (const auto meeting = s.find("meeting")) question.meeting = link_meeting_text.from(*meeting);
  return out;
}

void read_priorities(const JsonValue& s, SlurmSettings& slurm) {
  MultifactorSettings& priorities = slurm.multifactor;
  if (const auto weights = s.find("priority_weights")) {
    weights->expect_only({"age", "fairshare", "jobsize", "qos"}, "a weight of Slurm's priorities");
    const auto read = [&](const char* key, double& weight) {
      const auto at = weights->find(key);
      if (!at) return;
      weight = at->number();
      if (!(weight >= 0 && weight <= 1e12)) at->fail("a weight of 0 or more");
    };
    read("age", priorities.age);
    read("fairshare", priorities.fairshare);
    read("jobsize", priorities.jobsize);
    read("qos", priorities.qos);
  }
  const auto time = [&](const char* key, double& seconds_of) {
    if (const auto at = s.find(key))
      seconds_of = to_seconds(read_fleet_time(*at, seconds(1), "a time from 1 s on")).si();
  };
  time("priority_max_age", priorities.max_age);
  time("priority_half_life", priorities.half_life);
}

}  // namespace orrery
