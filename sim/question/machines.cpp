// SPDX-License-Identifier: Apache-2.0
// Searches on each cluster, simulates what it found and puts the machines in order.
#include "sim/question/machines.h"

#include <algorithm>

#include "hw_models/catalog.h"
#include "sim/advise/advisor.h"
#include "sim/base/errors/cannot_exist.h"
#include "sim/base/errors/interrupt.h"
#include "sim/base/json/tree.h"
#include "sim/base/sorting.h"
#include "sim/engine/cluster.h"
#include "sim/outcome/simulate.h"
#include "sim/question/settings/inline_files.h"
#include "sim/question/settings/settings.h"

namespace orrery {
namespace {

double score_of(const Prediction& p, Objective objective) {
  switch (objective) {
    case Objective::time:
      return p.step_time.si();
    case Objective::energy:
      return p.energy_per_step.si();
    case Objective::cost:
      break;
  }
  const double dollars = p.price.per_step.si();
  return dollars > 0 ? dollars : infinite;
}

AdvisedMachine advise_on(const JsonValue& settings, const std::string& cluster,
                         const AskedWith& with, const ModelError& error) {
  SortedJson own = settings.raw();
  own["cluster"] = cluster;
  const JsonValue asked = JsonValue::from(own, settings.file());
  AdvisedMachine machine{.name = cluster};
  const Question question = read_question(asked);
  machine.name = question.cluster.name;
  machine.title = question.cluster.title;
  machine.device = question.cluster.device;
  check_wiring(question.cluster);
  AdviseOptions options = read_advise_options(asked);
  options.threads = with.threads;
  options.most_batches = with.most_batches;
  if (with.stop_after) options.time_limit = Seconds{};
  options.brief = true;
  options.top = 1;
  const Advice advice = advise(question, options);
  if (advice.stopped_early) machine.stopped_after = advice.batches;
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
    const std::string name = part.reference();
    load_cluster(name, 1);  // a name that is none is an error, not a machine left out
    if (std::find(names.begin(), names.end(), name) != names.end()) part.fail("each cluster once");
    names.push_back(name);
  }
  if (names.empty()) cluster->fail("a cluster, several with commas, or all");
  return names;
}

AdvisedMachines advise_on_each(const JsonValue& settings, const std::vector<std::string>& clusters,
                               const AskedWith& with) {
  for (const char* key : {"like", "changes", "pareto", "variants", "top"})
    if (const auto v = settings.find(key))
      v->fail("nothing: on several clusters only the best of each is compared");
  const ModelError error = load_model_error(data_root() / "validation/model_error.json");
  const auto& before = with.stop_after;
  AdvisedMachines found;
  std::vector<AdvisedMachine>& machines = found.ranked;
  std::optional<Error> first;
  std::size_t refusals = 0;
  for (const std::string& cluster : clusters) {
    const std::size_t at = machines.size();
    if (interrupted() || (before && at == before->size())) {
      found.stopped_early = true;
      break;
    }
    AskedWith own = with;
    if (before) own.most_batches = (*before)[at].value_or(0);
    const std::string name = is_inline_entry(cluster) ? load_cluster(cluster, 1).name : cluster;
    try {
      machines.push_back(advise_on(settings, cluster, own, error));
    } catch (const CannotExist& refused) {
      machines.push_back({.name = name, .why = refused.message()});
    } catch (const Error& refused) {
      machines.push_back({.name = name, .why = refused.message()});
      if (!first) first = refused;
      ++refusals;
    }
    found.stopped_after.push_back(machines.back().stopped_after);
    found.stopped_early = found.stopped_early || machines.back().stopped_after.has_value();
  }
  // What every machine refuses is wrong with the question.
  if (first && refusals == machines.size()) throw Error(*first);
  sort_stably(machines, [](const AdvisedMachine& a, const AdvisedMachine& b) {
    return a.runs != b.runs ? a.runs : a.score < b.score;
  });
  return found;
}

JsonValue with_clusters_listed(const JsonValue& settings) {
  SortedJson whole = settings.raw();
  if (settings.at("cluster").raw() != "all") {
    whole["cluster"] = SortedJson::array();
    for (const JsonValue& part : settings.at("cluster").listed())
      whole["cluster"].push_back(part.raw());
  }
  const JsonValue listed = JsonValue::from(std::move(whole), settings.file());
  const auto inlined = with_files_inline(listed);
  return inlined ? *inlined : listed;
}

}  // namespace orrery
