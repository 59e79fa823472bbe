// SPDX-License-Identifier: Apache-2.0
// Reads settings and runs what they ask for.
#include "sim/question/ask.h"

#include <fmt/format.h>

#include <algorithm>
#include <mutex>

#include "sim/base/errors/cannot_exist.h"
#include "sim/base/output_file.h"
#include "sim/chakra/step_trace.h"
#include "sim/outcome/simulate.h"
#include "sim/outcome/trace.h"
#include "sim/outcome/verdict.h"
#include "sim/question/settings/inline_files.h"
#include "sim/question/settings/settings.h"

namespace orrery {

bool Simulated::exists() const { return !refused && verdict_of(prediction.memory).exists(); }

bool Advised::exists() const { return !refused && (!advice.best.empty() || advice.stopped_early); }

Simulated simulate_settings(const JsonValue& asked, const AskedWith& with) {
  const JsonValue given = with_input_inline(asked);
  Simulated out{.settings = given, .scenario = read_scenario(given, with.catalogues)};
  // Errors name the user's files; what follows is of the question that stands alone.
  if (const auto whole = with_files_inline(given)) {
    out.settings = *whole;
    out.scenario = read_scenario(*whole, with.catalogues);
  }
  Scenario& scenario = out.scenario;
  if (with.seed && scenario.network == NetworkMode::ideal)
    throw Error({.file = "--seed",
                 .found = fmt::format("{}", *with.seed),
                 .expected = "nothing without --network flow, which draws hashes"});
  scenario.conditions.seed = with.seed.value_or(scenario.conditions.seed);
  out.refused = refusal(scenario);
  if (out.refused) return out;
  SimulateOptions options = read_simulate_options(out.settings);
  options.model_error = &with.catalogues.model_error();
  const auto trace = out.settings.find("trace_out");
  if (trace) check_writable_file(trace->text());
  const auto chakra = out.settings.find("chakra_out");
  if (chakra) check_step_traces(scenario, chakra->text());
  out.prediction = simulate(scenario, options);
  if (trace) write_file(trace->text(), trace_json(scenario, out.prediction));
  if (chakra) write_step_traces(scenario, chakra->text());
  const auto reasons = out.settings.find("reasons");
  if (!reasons || reasons->boolean())
    out.reasons = reasons_for(scenario, {.memory_reserve = read_memory_reserve(out.settings)});
  const auto timeline = out.settings.find("timeline");
  if (timeline && timeline->boolean()) out.timeline = step_timeline(scenario);
  return out;
}

Advised advise_settings(const JsonValue& asked, const AskedWith& with) {
  const JsonValue given = with_input_inline(asked);
  Advised out{.settings = given, .question = read_question(given, with.catalogues)};
  std::optional<Scenario> like = read_like(given, out.question.job);
  if (const auto whole = with_files_inline(given)) {
    out.settings = *whole;
    out.question = read_question(*whole, with.catalogues);
    like = read_like(*whole, out.question.job);
  }
  check_wiring(out.question.cluster);
  out.refused = refusal(out.question);
  if (out.refused) return out;
  AdviseOptions options = read_advise_options(out.settings);
  if (with.most_batches > 0) options.time_limit = Seconds{};
  options.most_batches = with.most_batches;
  if (with.stop_after && !with.stop_after->empty()) options.stop_after = with.stop_after->front();
  options.like = std::move(like);
  options.threads = with.threads;
  options.progress = with.progress;
  options.model_error = &with.catalogues.model_error();
  options.tasks = with.tasks;
  if (with.tasks != nullptr && options.time_limit > Seconds{})
    throw Error({.file = "time_limit",
                 .found = "a limit of a search that processes share",
                 .expected = "none: each goes through its part, and may be stopped and go on"});
  out.advice = advise(out.question, options);
  if (!goes_on(with.tasks)) return out;
  // Nothing to advise, whatever the memory.
  if (out.advice.best.empty() && out.advice.considered == 0 && !out.advice.stopped_early)
    throw CannotExist({.file = "advise",
                       .found = "no layout to search: " + out.advice.why,
                       .expected = "limits that leave at least one layout"});
  return out;
}

bool Planned::exists() const { return result.stopped_early() || verdict_of(result).exists(); }

Planned plan_settings(const JsonValue& asked, const AskedWith& with) {
  const JsonValue question = with_input_inline(asked);
  Planned out{.file = read_plan(question)};
  if (const auto whole = with_files_inline(question)) out.file = read_plan(*whole);
  out.file.plan.seed = with.seed.value_or(out.file.plan.seed);
  PlanOptions options{.threads = with.threads, .tasks = with.tasks};
  if (with.stop_after) options.stop_after = *with.stop_after;
  std::mutex mutex;
  if (with.progress)
    options.progress = [&](std::int64_t done, std::int64_t all) {
      const std::scoped_lock lock(mutex);
      with.progress(static_cast<double>(done) / static_cast<double>(std::max<std::int64_t>(1, all)),
                    done);
    };
  out.result = plan(out.file.plan, options);
  if (!goes_on(with.tasks)) return out;
  if (const auto point = detailed_point(out.result))
    out.detail =
        plan_detail(out.file.plan, out.result.points[*point], &with.catalogues.model_error());
  return out;
}

PlannedPart plan_part(const PlanPoints& points, std::size_t from, std::size_t to,
                      const AskedWith& with) {
  PlannedPart out{.part = points.read(from, to)};
  out.part.file.plan.seed = with.seed.value_or(out.part.file.plan.seed);
  out.result = plan(out.part.file.plan, {.threads = with.threads, .full_batches = 0});
  return out;
}

}  // namespace orrery
