// Advises one job on several clusters.
#include "sim/app/advise_machines.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

#include "hw_models/catalog.h"
#include "sim/advise/advisor.h"
#include "sim/app/answer.h"
#include "sim/app/report_parts.h"
#include "sim/app/result.h"
#include "sim/app/settings.h"
#include "sim/base/cannot_exist.h"
#include "sim/base/interrupt.h"
#include "sim/engine/cluster.h"
#include "sim/outcome/simulate.h"

namespace orrery {
namespace {

struct Machine {
  std::string name, title;
  bool runs = false;
  std::string why;  // it does not
  Layout layout;
  Prediction prediction;                                   // of the best layout
  double score = std::numeric_limits<double>::infinity();  // least is best; what is unknown is last
};

double score_of(const Prediction& p, Objective objective) {
  switch (objective) {
    case Objective::time:
      return p.step_time.si();
    case Objective::energy:
      return p.energy_per_step.si();
    case Objective::cost:
      break;
  }
  const double dollars = p.dollars_per_step.si();
  return dollars > 0 ? dollars : std::numeric_limits<double>::infinity();
}

Machine advise_on(const JsonValue& settings, const std::string& cluster, const CommonFlags& common,
                  const ModelError& error) {
  nlohmann::json own = settings.raw();
  own["cluster"] = cluster;
  const JsonValue asked = JsonValue::from(own, settings.file());
  Machine machine{.name = cluster};
  const Question question = read_question(asked);
  machine.title = question.cluster.title;
  check_wiring(question.cluster);
  AdviseOptions options = read_advise_options(asked);
  options.threads = common.threads;
  options.brief = true;
  options.top = 1;
  const Advice advice = advise(question, options);
  if (advice.best.empty()) {
    machine.why = advice.why.empty() ? "the search was stopped before it" : advice.why;
    return machine;
  }
  Scenario scenario{.cluster = question.cluster,
                    .model = question.model,
                    .job = question.job,
                    .layout = advice.best.front().layout};
  scenario.stack = catalogue_stack(question.stack_name, scenario.cluster, scenario.model,
                                   scenario.job, scenario.layout.precision);
  machine.runs = true;
  machine.layout = scenario.layout;
  SimulateOptions simulated = read_simulate_options(asked);
  simulated.model_error = &error;
  machine.prediction = simulate(scenario, simulated);
  machine.score = score_of(machine.prediction, question.objective);
  return machine;
}

nlohmann::ordered_json json_of(const std::vector<Machine>& machines) {
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (const Machine& m : machines) {
    nlohmann::ordered_json one = {{"cluster", m.name}, {"runs", m.runs}};
    if (!m.runs) {
      one["why"] = m.why;
    } else {
      const Prediction& p = m.prediction;
      one["layout"] = layout_json(m.layout);
      one["step_time_s"] = p.step_time.si();
      one["low_s"] = p.low.si();
      one["high_s"] = p.high.si();
      one["tokens_per_gpu_per_s"] = p.tokens_per_second_per_gpu;
      one["mfu"] = p.mfu;
      one["energy_per_step_j"] = p.energy_per_step.si();
      const double dollars = p.dollars_per_million_tokens.si();
      one["cost_per_million_tokens_usd"] =
          dollars > 0 ? nlohmann::ordered_json(dollars) : nlohmann::ordered_json(nullptr);
    }
    list.push_back(std::move(one));
  }
  return {{"clusters", list}};
}

Document document_of(const std::vector<Machine>& machines, bool full) {
  Document document(full, terminal_width());
  Table table({"", "cluster", "step s", "90% range", "tok/s/GPU", "MFU%", "$/Mtok", "layout"},
              {Align::right, Align::left, Align::right, Align::left, Align::right, Align::right,
               Align::right, Align::left});
  int place = 0;
  for (const Machine& m : machines) {
    if (!m.runs) continue;
    const Prediction& p = m.prediction;
    const double dollars = p.dollars_per_million_tokens.si();
    table.add({std::to_string(++place), m.name, fmt::format("{:.3f}", p.step_time.si()),
               fmt::format("{:.3g} to {:.3g}", p.low.si(), p.high.si()),
               grouped(std::round(p.tokens_per_second_per_gpu)), fmt::format("{:.1f}", 100 * p.mfu),
               dollars > 0 ? fmt::format("{:.3f}", dollars) : "unknown", to_text(m.layout)});
  }
  if (!table.empty()) document.table(std::move(table), "");
  bool heading = false;
  for (const Machine& m : machines) {
    if (m.runs) continue;
    if (!heading) document.gap().label("Where it does not run:");
    heading = true;
    document.item(m.name + ": " + m.why);
  }
  if (place > 0)
    document.gap().paragraph(fmt::format("The same question with --cluster {} explains the first.",
                                         machines.front().name));
  return document;
}

}  // namespace

std::vector<std::string> several_clusters(const JsonValue& settings) {
  const auto cluster = settings.find("cluster");
  if (!cluster) return {};
  if (cluster->is_string() && cluster->text() == "all") return cluster_names();
  const bool several = cluster->is_array() || (cluster->is_string() && !cluster->text().empty() &&
                                               cluster->text().find(',') != std::string::npos);
  if (!several) return {};
  std::vector<std::string> names;
  for (const JsonValue& part : cluster->listed()) {
    load_cluster(part.text(), 1);  // a name that is none is an error, not a machine left out
    if (std::find(names.begin(), names.end(), part.text()) != names.end())
      part.fail("each cluster once");
    names.push_back(part.text());
  }
  if (names.empty()) cluster->fail("a cluster, several with commas, or all");
  return names;
}

ExitCode advise_machines(const JsonValue& settings, const std::vector<std::string>& clusters,
                         const CommonFlags& common) {
  for (const char* key : {"like", "changes", "pareto", "variants", "top"})
    if (const auto v = settings.find(key))
      v->fail("nothing: on several clusters only the best of each is compared");
  const ModelError error = load_model_error(data_root() / "validation/model_error.json");
  std::vector<Machine> machines;
  std::optional<Error> first;
  std::size_t refusals = 0;
  for (const std::string& cluster : clusters) {
    if (interrupted()) break;
    try {
      machines.push_back(advise_on(settings, cluster, common, error));
    } catch (const CannotExist& refused) {
      machines.push_back({.name = cluster, .why = refused.message()});
    } catch (const Error& refused) {
      machines.push_back({.name = cluster, .why = refused.message()});
      if (!first) first = refused;
      ++refusals;
    }
  }
  // What every machine refuses is wrong with the question.
  if (first && refusals == machines.size()) throw Error(*first);
  std::stable_sort(machines.begin(), machines.end(), [](const Machine& a, const Machine& b) {
    return a.runs != b.runs ? a.runs : a.score < b.score;
  });
  write_result(common.json ? answer_text({.command = "advise", .question = settings.raw()}, {},
                                         json_of(machines))
                           : page(document_of(machines, common.markdown), common));
  const bool found = !machines.empty() && machines.front().runs;
  return unless_stopped(found ? ExitCode::answer : ExitCode::cannot_exist);
}

}  // namespace orrery
