// SPDX-License-Identifier: Apache-2.0
// Reads the points of a question, has them run, and holds them against the best.
#include "sim/question/schedule/schedule.h"

#include <fmt/format.h>

#include <algorithm>
#include <exception>
#include <set>

#include "sim/base/content_hash.h"
#include "sim/base/errors/cannot_exist.h"
#include "sim/base/errors/interrupt.h"
#include "sim/question/plan/combinations.h"
#include "sim/question/schedule/contest.h"
#include "sim/question/schedule/inline_jobs.h"
#include "sim/question/schedule/listed_names.h"
#include "sim/question/schedule/search_values.h"
#include "sim/question/schedule/why_best.h"

namespace orrery {
namespace {

// Of a search that says nothing of them: four looks of a race, each with twice the seeds.
constexpr std::int64_t searched_seeds = 8 * Contest::first_seeds;
constexpr double searched_confidence = 0.95;

// Settings that may be several, in the order of the table.
std::vector<std::string> varied_keys() {
  const std::set<std::string> alone = {
      "trace", "jobs",      "days",       "horizon", "queues", "incidents",  "seeds",
      "job",   "objective", "confidence", "limits",  "search", "time_limit", "like"};
  std::vector<std::string> keys;
  for (const Setting& setting : schedule_settings())
    if (!alone.contains(setting.key)) keys.emplace_back(setting.key);
  return keys;
}

std::size_t job_called(const ClusterJobs& list, const JsonValue& id) {
  for (std::size_t i = 0; i < list.jobs.size(); ++i)
    if (list.id_of(i) == id.reference()) return i;
  id.fail(list.ids.empty() ? "the row of a job, from 1" : "the id of a job");
}

void check_some_fit(const ClusterJobs& list, std::int64_t gpus) {
  const auto least =
      std::min_element(list.jobs.begin(), list.jobs.end(),
                       [](const ClusterJob& a, const ClusterJob& b) { return a.gpus < b.gpus; });
  if (least == list.jobs.end())
    throw Error({.file = list.name, .found = "no job in those days", .expected = "some jobs"});
  if (least->gpus <= gpus) return;
  throw CannotExist(
      {.file = list.name,
       .found = fmt::format("no job of fewer than {} GPUs", least->gpus),
       .expected = fmt::format("jobs of at most {}, all that the cluster has", gpus)});
}

SchedulePoint read_point(PointReader& reader, QuestionPoint&& point) {
  SchedulePoint one{.hash = content_hash(point.settings.raw().dump()),
                    .asked = reader.read(point.settings)};
  for (auto& value : point.values)
    if (value.first != "policy" && value.first != "place") one.varied.push_back(std::move(value));
  return one;
}

std::vector<std::string> name_of(const SchedulePoint& point) {
  std::vector<std::string> name = {point.asked.policy, point.asked.place};
  for (const auto& [key, words] : point.varied) name.push_back(words);
  return name;
}

std::string words_of(const JsonValue& settings, const std::string& key) {
  const auto value = settings.find(key);
  if (!value) return "-";
  return value->is_string() ? value->text() : value->raw().dump();
}

void leave_out(ScheduleSearch& search, const Error& error) {
  const std::string why = fmt::format("{}: {}", error.info().path, error.info().expected);
  const auto at = std::find_if(search.left_out.begin(), search.left_out.end(),
                               [&](const LeftOutPoints& one) { return one.why == why; });
  if (at == search.left_out.end())
    search.left_out.push_back({why, 1});
  else
    ++at->points;
}

// A combination of searched values that the question does not allow is no point, and where a
// policy places by itself one place stands for all.
void read_points(PointReader& reader, Catalogues& catalogues, Scheduled& out) {
  for (const std::string& key : varied_keys())
    if (const auto list = out.settings.find(key); list && list->is_array()) check_each_once(*list);
  const JsonValue asked = with_searched_values(without_jobs(out.settings), catalogues);
  std::set<std::vector<std::string>> names;
  std::exception_ptr refusal;
  for (QuestionPoint& point : combinations_of(asked, varied_keys())) {
    std::optional<SchedulePoint> one;
    try {
      one = read_point(reader, std::move(point));
    } catch (const Error& error) {
      if (!out.search.searches) throw;
      if (!refusal) refusal = std::current_exception();
      leave_out(out.search, error);
      continue;
    }
    if (names.insert(name_of(*one)).second || !out.search.searches)
      out.points.push_back(std::move(*one));
  }
  if (out.points.empty()) std::rethrow_exception(refusal);
}

// The cluster as it is run now ("like"): a point more, unless it is one of them.
void add_now(PointReader& reader, Scheduled& out) {
  const auto like = out.settings.find("like");
  if (!like) return;
  SortedJson said = like->is_string() ? JsonValue::load(like->text()).raw() : like->raw();
  if (said.is_object()) said.erase("name");  // of its file
  const JsonValue now = JsonValue::from(std::move(said), "--like");
  const std::vector<std::string> keys = varied_keys();
  now.expect_only(keys, "a setting of the machine, the policy or what breaks");
  SortedJson single = without_jobs(out.settings).raw();
  single.update(now.raw());
  // Of what takes several values in the question, it says one, or nothing.
  for (const auto& [key, words] : out.points.front().varied)
    if (!now.has(key)) single.erase(key);
  for (const char* key : {"policy", "place"})
    if (const auto given = out.settings.find(key); given && given->is_array() && !now.has(key))
      single.erase(key);
  const JsonValue asked = JsonValue::from(std::move(single), now.file());
  if (combinations_of(asked, keys).size() > 1)
    like->fail("one value of each setting: how the cluster is run now");
  SchedulePoint one = read_point(reader, {.varied = "", .settings = asked});
  std::set<std::string> told = {"policy", "place"};
  for (const auto& [key, words] : out.points.front().varied) {
    told.insert(key);
    one.varied.emplace_back(key, words_of(asked, key));
  }
  for (const std::string& key : keys) {
    if (!now.has(key) || told.contains(key)) continue;
    one.varied.emplace_back(key, words_of(asked, key));
    for (SchedulePoint& point : out.points)
      point.varied.emplace_back(key, words_of(out.settings, key));
  }
  const auto same = std::find_if(out.points.begin(), out.points.end(),
                                 [&](const auto& point) { return name_of(point) == name_of(one); });
  out.search.now = static_cast<std::size_t>(same - out.points.begin());
  if (same == out.points.end()) out.points.push_back(std::move(one));
}

// What no point uses is a mistake.
void check_all_is_used(const Scheduled& out) {
  const bool fails = out.settings.has("reliability");
  const auto some = [&](const auto& is) {
    return std::any_of(out.points.begin(), out.points.end(),
                       [&](const SchedulePoint& p) { return is(p.asked.question.policy); });
  };
  const bool rounds = some([](const FleetPolicy& p) { return p.fit == JobFit::rounds; });
  const bool stops =
      some([](const FleetPolicy& p) { return p.preempts && p.fit != JobFit::rounds; });
  const bool moves = some([](const FleetPolicy& p) { return p.defragments; });
  const auto useless = [&](const char* key, const char* why) {
    if (const auto v = out.settings.find(key)) v->fail(why);
  };
  if (!some([](const FleetPolicy& p) { return p.fit == JobFit::slurm; }))
    for (const char* key : {"priority_weights", "priority_half_life", "priority_max_age"})
      useless(key, "nothing without a preset that has Slurm's loops");
  const bool serves = std::any_of(out.points.begin(), out.points.end(), [](const SchedulePoint& p) {
    return !p.asked.jobs->served.empty();
  });
  const bool caps = std::any_of(out.points.begin(), out.points.end(),
                                [](const SchedulePoint& p) { return p.asked.caps != nullptr; });
  if (!caps)
    useless("cap_response",
            "nothing without a power_policy that caps: proportional, priority or thresholds");
  const bool steps = std::any_of(out.points.begin(), out.points.end(), [](const SchedulePoint& p) {
    return p.asked.thresholds.has_value();
  });
  if (!steps) useless("power_thresholds", "nothing without power_policy thresholds");
  if (!some([](const FleetPolicy& p) { return p.order == JobOrder::las; }))
    useless("first_queue", "nothing without las");
  const bool meets = std::any_of(out.points.begin(), out.points.end(), [](const SchedulePoint& p) {
    return !p.asked.jobs->trainings.empty();
  });
  if (!meets) useless("meeting", "nothing without trainings: other jobs meet nobody");
  if (!serves) useless("scale", "nothing without a served model among the jobs");
  if (!rounds) useless("round", "nothing without a policy that decides in rounds, as goodput");
  if (!stops)
    useless("preempt_after", "nothing without a policy that stops jobs: preempt, las or a preset");
  const bool happens = std::any_of(
      out.points.begin(), out.points.end(),
      [](const SchedulePoint& p) { return does_something(p.asked.question.breakdowns.incidents); });
  const bool suspends =
      std::any_of(out.points.begin(), out.points.end(),
                  [](const SchedulePoint& p) { return !p.asked.question.hours.limits.empty(); });
  const bool loses_power =
      std::any_of(out.points.begin(), out.points.end(), [](const SchedulePoint& p) {
        const std::vector<Incident>& all = p.asked.question.breakdowns.incidents;
        return std::any_of(all.begin(), all.end(),
                           [](const Incident& one) { return one.feed >= 0; });
      });
  const bool one_by_one = some([](const FleetPolicy& p) { return p.fit != JobFit::rounds; });
  if (!one_by_one || !(stops || suspends || loses_power))
    useless("grace",
            "nothing without a policy that stops jobs, but not in rounds, or power that falls");
  const bool gangs = some([](const FleetPolicy& p) { return p.fit == JobFit::gang_timeout; });
  if (!gangs) useless("gang_timeout", "nothing without gang-timeout");
  if (!one_by_one || !(stops || fails || happens || suspends || gangs))
    for (const char* key : {"requeue_delay", "requeue_most"})
      useless(key,
              "nothing without reliability, incidents or a policy that stops jobs, but not in "
              "rounds");
  if (!stops && !rounds && !moves && !fails && !happens && !suspends)
    useless("save_interval",
            "nothing without reliability, incidents or a policy that stops or moves jobs");
}

// A queue that does not borrow cannot hold more than there is.
void check_quotas(const JsonValue& s, const ClusterJobs& list, std::int64_t most) {
  const std::vector<QueueQuota> quotas = read_quotas(s, list);
  for (std::size_t queue = 0; queue < quotas.size(); ++queue) {
    const QueueQuota& quota = quotas[queue];
    if (quota.borrows || quota.gpus == INT64_MAX || quota.gpus <= most) continue;
    s.at("queues")
        .at(list.queues[queue])
        .at("gpus")
        .fail(fmt::format("at most the {} GPUs of the cluster, or \"borrows\": true", most));
  }
}

void read_seeds(const ScheduleWith& with, Scheduled& out) {
  const JsonValue& s = out.settings;
  if (with.seed && !out.draws)
    throw Error({.file = s.file(),
                 .path = "seed",
                 .found = fmt::format("{}", *with.seed),
                 .expected = "a seed where something is drawn: failures, mixes, random places"});
  if (const auto seeds = s.find("seeds")) {
    out.seeds = seeds->integer(1, most_seeds);
    if (out.seeds > 1 && !out.draws)
      seeds->fail("one run: nothing is drawn, and all would be the same");
  }
  const auto confidence = s.find("confidence");
  if (!confidence && out.search.searches && out.draws) {
    if (!s.find("seeds")) out.seeds = searched_seeds;
    if (out.seeds >= Contest::first_seeds) out.confidence = searched_confidence;
  }
  if (!confidence) return;
  out.confidence = confidence->number();
  if (!(*out.confidence > 0.5 && *out.confidence < 1))
    confidence->fail("a chance above 0.5 and below 1, such as 0.95");
  if (out.seeds < Contest::first_seeds)
    confidence->fail(fmt::format("at least {} seeds beside it (--seeds)", Contest::first_seeds));
}

// A share of requests is of served models.
void check_figures(const Scheduled& out, const FleetFigure& objective,
                   const std::optional<JsonValue>& limits) {
  if (!out.points.front().asked.jobs->served.empty()) return;
  constexpr const char* expected = "another figure than slo: no model is served";
  if (objective.of_services) out.settings.at("objective").fail(expected);
  if (!limits) return;
  for (const FleetLimit& limit : read_limits(*limits))
    if (limit.figure->of_services) limits->fail(expected);
}

// "5 min", or seconds as the other commands have them.
void read_time_limit(const ScheduleWith& with, Scheduled& out) {
  const auto at = out.settings.find("time_limit");
  if (!at) return;
  constexpr const char* expected = "a time above 0 and up to 30 days, such as \"5 min\"";
  constexpr double most_s = 30 * 86'400.0;
  if (at->is_string() && at->text().ends_with('m')) at->fail(expected);
  const Seconds limit = at->is_number() ? Seconds(at->number()) : at->quantity<Seconds>();
  if (!(limit.si() > 0 && limit.si() <= most_s)) at->fail(expected);
  if (with.tasks != nullptr)
    at->fail("no limit of time where processes share the work: what is known then differs");
  out.search.time_limit = limit;
}

// Which run is next depends on all that came before: other processes see a race as one task, which
// is done once the race is over. Its runs are kept one by one.
void run_race(Contest& contest, Tasks* tasks, const Scheduled& out) {
  const std::uint64_t task = content_hash("race");
  if (goes_on(tasks)) contest.race();
  static_cast<void>(task_result(tasks, task, [&]() -> std::optional<std::string> {
    if (!goes_on(tasks) || out.stopped || interrupted()) return std::nullopt;
    return fmt::format("{}", out.runs);
  }));
}

}  // namespace

double ScheduleProgress::share() const {
  const double part = end.us > 0 ? to_seconds(reached).si() / to_seconds(end).si() : 0;
  return (static_cast<double>(done) + std::min(part, 1.0)) / static_cast<double>(most);
}

Scheduled schedule_jobs(const JsonValue& settings, const ScheduleWith& with) {
  Scheduled out{.settings = with_jobs_inline(settings),
                .seed = with.seed.value_or(0),
                .catalogue = with.catalogues.version()};
  PointReader reader(with.catalogues, with.threads, out.settings);
  out.search.searches = out.settings.has("search");
  read_time_limit(with, out);
  read_points(reader, with.catalogues, out);
  add_now(reader, out);
  for (const SchedulePoint& point : out.points)
    out.draws = out.draws || point.asked.jobs->draws() || !point.asked.reliability.empty() ||
                point.asked.question.policy.place == JobPlace::random;
  check_all_is_used(out);
  read_seeds(with, out);
  const auto objective = settings.find("objective");
  const FleetFigure& figure = objective ? figure_called(*objective) : fleet_figures().front();
  out.objective = figure.name;
  const auto limits = settings.find("limits");
  check_figures(out, figure, limits);
  PointRuns runs(out, reader, with);
  Contest contest(out, runs, figure, limits ? read_limits(*limits) : std::vector<FleetLimit>{});
  const ClusterJobs& list = runs.list(out.points.front(), 0);
  std::int64_t most = 0;
  for (const SchedulePoint& point : out.points) most = std::max(most, point.asked.shape.gpus());
  check_some_fit(list, most);
  check_quotas(settings, list, most);  // errors before the work
  for (SchedulePoint& point : out.points) point.list = runs.first_list(point);
  if (const auto job = settings.find("job")) {
    out.watches = true;
    for (SchedulePoint& point : out.points) point.watched_at = job_called(*point.list, *job);
  }
  out.jobs = list;
  if (with.listener != nullptr && goes_on(with.tasks)) with.listener->begin(out);
  if (out.confidence) {
    run_race(contest, with.tasks, out);
  } else {
    contest.run_all();
  }
  if (!goes_on(with.tasks)) return out;
  contest.choose();
  if (out.points[out.best].measures.empty())
    settings.at("time_limit").fail("more time: no run began by then");
  out.differences = differences_of(out, figure);
  out.reasons = reasons_of(out, figure);
  return out;
}

}  // namespace orrery
