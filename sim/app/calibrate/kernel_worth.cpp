// SPDX-License-Identifier: Apache-2.0
// Simulates jobs with one kind of kernel replaced.
#include "sim/app/calibrate/kernel_worth.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "sim/base/errors/cannot_exist.h"
#include "sim/base/text/words.h"
#include "sim/calibrate/kernel/feedback.h"
#include "sim/calibrate/kernel/replace.h"
#include "sim/outcome/simulate.h"
#include "sim/plan/plan.h"
#include "sim/question/plan/question.h"
#include "sim/question/refusal.h"
#include "sim/question/settings/catalogues.h"
#include "sim/question/settings/inline_files.h"
#include "sim/question/settings/settings.h"

namespace orrery {
namespace {

constexpr double seconds_per_day = 86400;

Json ranged(double value, double a, double b) {
  return {{"value", value}, {"low", std::min({value, a, b})}, {"high", std::max({value, a, b})}};
}

// The prediction of a job whose kernels of this kind are so many times as fast.
Prediction at_speed(Scenario scenario, const KernelSpec& spec, double speed,
                    const SimulateOptions& options) {
  replace_kernel(scenario.cluster.calibration, spec.kind, spec.roles, 1 / speed);
  return simulate(scenario, options);
}

Json worth_of_job(const WorthQuestion& question, const KernelSpec& spec, const KernelSpeed& speed) {
  const JsonValue settings = with_input_inline(*question.job);
  Catalogues catalogues;
  const Scenario scenario = read_scenario(settings, catalogues);
  if (const auto refused = refusal(scenario))
    throw CannotExist(
        {.file = "--job", .found = refused->verdict.why, .expected = "a job that runs"});
  SimulateOptions options = read_simulate_options(settings);
  options.model_error = &catalogues.model_error();
  const Prediction now = simulate(scenario, options);
  options.with_assumptions = false;
  options.model_error = nullptr;
  std::array<double, 3> saved{};
  std::size_t i = 0;
  for (const double s : {speed.middle, speed.low, speed.high})
    saved[i++] = now.step_time.si() - at_speed(scenario, spec, s, options).step_time.si();
  // Errors of the prediction that it has in common with the one to which it is held scale both.
  const double shortest = now.low / now.step_time, longest = now.high / now.step_time;
  const std::array<double, 3> shares = {saved[0], std::min(saved[1] * shortest, saved[1] * longest),
                                        std::max(saved[2] * shortest, saved[2] * longest)};
  const auto times = [&](double factor) {
    return ranged(shares[0] * factor, shares[1] * factor, shares[2] * factor);
  };
  Json out = {{"step_s", now.step_time.si()},
              {"step_with_it_s", now.step_time.si() - saved[0]},
              {"step_saved_s", times(1)},
              {"faster", times(1 / (now.step_time.si() - saved[0]))},
              {"tokens", nullptr},
              {"run_saved_s", nullptr},
              {"saved_usd", nullptr}};
  if (question.tokens > 0) {
    const double steps = question.tokens / (now.tokens_per_second * now.step_time.si());
    out["tokens"] = question.tokens;
    out["run_saved_s"] = times(steps);
    if (now.price.per_step.si() > 0)
      out["saved_usd"] = times(steps * now.price.per_step.si() / now.step_time.si());
  }
  return out;
}

Plan with_kernel(Plan plan, const KernelSpec& spec, double speed) {
  for (PlanChoice& choice : plan.choices)
    replace_kernel(choice.question.cluster.calibration, spec.kind, spec.roles, 1 / speed);
  return plan;
}

Json worth_of_plan(const WorthQuestion& question, const KernelSpec& spec,
                   const KernelSpeed& speed) {
  const PlanFile file = read_plan(with_input_inline(*question.plan));
  // Layouts of a sweep, with and without the kernel alike.
  const auto points = [&](double s) {
    return plan(with_kernel(file.plan, spec, s), {.full_batches = 0}).points;
  };
  const std::vector<PlanPoint> now = points(1), middle = points(speed.middle),
                               low = points(speed.low), high = points(speed.high);
  Json out = Json::array();
  for (std::size_t i = 0; i < now.size(); ++i) {
    const bool ends = now[i].step.fits && now[i].ends() && middle[i].step.fits && middle[i].ends();
    const auto saved = [&](const auto& value) {
      const double base = value(now[i]);
      return ranged(base - value(middle[i]), base - value(low[i]), base - value(high[i]));
    };
    const auto days = [](const PlanPoint& p) { return p.duration.si(); };
    const auto dollars = [](const PlanPoint& p) { return p.cost; };
    Json values = Json::object();
    for (std::size_t v = 0; v < file.plan.varied.size(); ++v)
      values[file.plan.varied[v]] = file.plan.choices[i].values[v];
    out.push_back(
        {{"values", values},
         {"gpus", now[i].gpus},
         {"step_s", ends ? Json(now[i].step.best.step_time.si()) : Json(nullptr)},
         {"step_with_it_s", ends ? Json(middle[i].step.best.step_time.si()) : Json(nullptr)},
         {"duration_s", ends ? Json(now[i].duration.si()) : Json(nullptr)},
         {"cost_usd", ends ? Json(now[i].cost) : Json(nullptr)},
         {"run_saved_s", ends ? saved(days) : Json(nullptr)},
         {"saved_usd", ends ? saved(dollars) : Json(nullptr)}});
  }
  return out;
}

std::string range_text(const Json& range, const char* unit, double size = 1) {
  const auto figure = [](double value) {
    return std::abs(value) >= 1e6   ? fmt::format("{:.4g} million", value / 1e6)
           : std::abs(value) >= 1e4 ? grouped(value)
                                    : fmt::format("{:.4g}", value);
  };
  return fmt::format("{} {} ({} to {})", figure(range["value"].get<double>() / size), unit,
                     figure(range["low"].get<double>() / size),
                     figure(range["high"].get<double>() / size));
}

std::string saved_text(const Json& one) {
  std::string text;
  if (!one["run_saved_s"].is_null())
    text += ", " + range_text(one["run_saved_s"], "days", seconds_per_day);
  if (!one["saved_usd"].is_null()) text += ", " + range_text(one["saved_usd"], "USD");
  return text;
}

}  // namespace

Json kernel_worth(const WorthQuestion& question, const KernelSpec& spec, const KernelSpeed& speed) {
  Json roles = Json::array();
  for (const GemmRole role : spec.roles) roles.push_back(gemm_role_text[role]);
  return {{"replaces", to_text(spec.kind)},
          {"roles", roles},
          {"speedup", ranged(speed.middle, speed.low, speed.high)},
          {"job", question.job ? worth_of_job(question, spec, speed) : Json(nullptr)},
          {"plan", question.plan ? worth_of_plan(question, spec, speed) : Json(nullptr)}};
}

std::string worth_text(const Json& worth) {
  std::string text;
  if (const Json& job = worth["job"]; !job.is_null())
    text += fmt::format("The job's step takes {} in place of {}: {} steps a second ({} to {}){}.\n",
                        short_time(job["step_with_it_s"].get<double>()),
                        short_time(job["step_s"].get<double>()),
                        signed_percent(job["faster"]["value"].get<double>(), 2),
                        signed_percent(job["faster"]["low"].get<double>(), 2),
                        signed_percent(job["faster"]["high"].get<double>(), 2),
                        saved_text(job).empty() ? "" : "; it saves " + saved_text(job).substr(2));
  if (const Json& plan = worth["plan"]; !plan.is_null())
    for (const Json& point : plan) {
      std::string name;
      for (const auto& [key, value] : point["values"].items()) name += value.text() + ", ";
      text +=
          fmt::format("{}{} accelerators: {}.\n", name, grouped(point["gpus"].get<std::int64_t>()),
                      point["duration_s"].is_null() ? "no run of them ends"
                                                    : "it saves " + saved_text(point).substr(2));
    }
  return text;
}

}  // namespace orrery
