// SPDX-License-Identifier: Apache-2.0
// Advises one job on several clusters.
#include "sim/app/ask/advise_machines.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "hw_models/catalog.h"
#include "sim/advise/advisor.h"
#include "sim/app/answer/answer.h"
#include "sim/app/line/result.h"
#include "sim/app/report/parts.h"
#include "sim/base/errors/cannot_exist.h"
#include "sim/base/errors/interrupt.h"
#include "sim/base/json/tree.h"
#include "sim/engine/cluster.h"
#include "sim/explain/machine_tie.h"
#include "sim/outcome/simulate.h"
#include "sim/question/settings/inline_files.h"
#include "sim/question/settings/settings.h"

namespace orrery {
namespace {

struct Machine {
  std::string name, title;
  bool runs = false;
  std::string why;  // it does not
  Device device;
  Layout layout;
  Prediction prediction;                                   // of the best layout
  double score = std::numeric_limits<double>::infinity();  // least is best; what is unknown is last
  std::optional<std::int64_t> stopped_after;  // batches of a search that did not come to its end
};

struct Machines {
  std::vector<Machine> ranked;
  // Of each cluster that was looked at, in the order of the question: Machine::stopped_after.
  std::vector<std::optional<std::int64_t>> stopped_after;
  bool stopped_early = false;
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

Machine advise_on(const JsonValue& settings, const std::string& cluster, const AskedWith& with,
                  const ModelError& error) {
  SortedJson own = settings.raw();
  own["cluster"] = cluster;
  const JsonValue asked = JsonValue::from(own, settings.file());
  Machine machine{.name = cluster};
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

Json json_of(const Machines& machines) {
  Json list = Json::array();
  for (const Machine& m : machines.ranked) {
    Json one = {{"cluster", m.name}, {"runs", m.runs}};
    if (!m.runs) {
      one["why"] = m.why;
    } else {
      const Prediction& p = m.prediction;
      one["layout"] = layout_json(m.layout);
      one["step_time_s"] = p.step_time.si();
      one["step_time_low_s"] = p.low.si();
      one["step_time_high_s"] = p.high.si();
      one["tokens_per_s_per_gpu"] = p.tokens_per_second_per_gpu;
      one["mfu"] = p.mfu;
      one["energy_per_step_j"] = p.energy_per_step.si();
      const double dollars = p.dollars_per_million_tokens.si();
      one["cost_per_million_tokens_usd"] = dollars > 0 ? Json(dollars) : Json(nullptr);
    }
    list.push_back(std::move(one));
  }
  Json out = {{"clusters", list}, {"stopped_early", machines.stopped_early}};
  if (machines.stopped_early) out["stopped_after"] = stopped_json(machines.stopped_after);
  return out;
}

Document document_of(const Machines& found, bool full) {
  const std::vector<Machine>& machines = found.ranked;
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
  if (found.stopped_early)
    document.gap().paragraph(
        "Stopped early: clusters that were not reached are missing, and a better layout may "
        "exist.");
  bool heading = false;
  for (const Machine& m : machines) {
    if (m.runs) continue;
    if (!heading) document.gap().label("Where it does not run:");
    heading = true;
    document.item(m.name + ": " + m.why);
  }
  for (std::size_t i = 1; i < machines.size() && machines[i].runs; ++i) {
    const Machine &a = machines[i - 1], &b = machines[i];
    const double ratio =
        b.prediction.tokens_per_second_per_gpu / a.prediction.tokens_per_second_per_gpu;
    if (const std::string tie = machine_tie(a.device, b.device, ratio); !tie.empty())
      document.gap().paragraph(tie);
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
    const std::string name = part.reference();
    load_cluster(name, 1);  // a name that is none is an error, not a machine left out
    if (std::find(names.begin(), names.end(), name) != names.end()) part.fail("each cluster once");
    names.push_back(name);
  }
  if (names.empty()) cluster->fail("a cluster, several with commas, or all");
  return names;
}

namespace {

Machines advise_on_each(const JsonValue& settings, const std::vector<std::string>& clusters,
                        const AskedWith& with) {
  for (const char* key : {"like", "changes", "pareto", "variants", "top"})
    if (const auto v = settings.find(key))
      v->fail("nothing: on several clusters only the best of each is compared");
  const ModelError error = load_model_error(data_root() / "validation/model_error.json");
  const auto& before = with.stop_after;
  Machines found;
  std::vector<Machine>& machines = found.ranked;
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
  std::stable_sort(machines.begin(), machines.end(), [](const Machine& a, const Machine& b) {
    return a.runs != b.runs ? a.runs : a.score < b.score;
  });
  return found;
}

bool any_runs(const std::vector<Machine>& machines) {
  return !machines.empty() && machines.front().runs;
}

ExitCode code_of(const Machines& machines) {
  return any_runs(machines.ranked) || machines.stopped_early ? ExitCode::answer
                                                             : ExitCode::cannot_exist;
}

// Of the best; where nothing was found on any, why not on the first.
AnswerVerdict verdict_of(const std::vector<Machine>& machines) {
  if (any_runs(machines))
    return {
        .fits = true, .runs = true, .probability = machines.front().prediction.memory.probability};
  return {.fits = false, .why = machines.empty() ? "" : machines.front().why, .probability = 0.0};
}

// The list as a list, with what files hold in it.
JsonValue standing_alone(const JsonValue& settings) {
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

}  // namespace

MachineAnswer machines_for_machines(const JsonValue& settings, const AskedWith& with) {
  const JsonValue whole = standing_alone(settings);
  const Machines machines = advise_on_each(whole, several_clusters(whole), with);
  return {.json = answer_json({.command = "advise", .question = whole.raw()},
                              verdict_of(machines.ranked), json_of(machines)),
          .code = code_of(machines)};
}

ExitCode advise_machines(const JsonValue& settings, const CommonFlags& common) {
  Catalogues catalogues;
  const AskedWith with{.catalogues = catalogues, .threads = common.threads};
  if (common.json) {
    const MachineAnswer answer = machines_for_machines(settings, with);
    write_result(indented_text(answer.json));
    return unless_stopped(answer.code);
  }
  const Machines machines = advise_on_each(settings, several_clusters(settings), with);
  write_result(page(document_of(machines, common.markdown), common));
  return unless_stopped(code_of(machines));
}

}  // namespace orrery
