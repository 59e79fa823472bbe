// SPDX-License-Identifier: Apache-2.0
// Writes what several clusters do for one job.
#include "sim/app/ask/advise_machines.h"

#include <fmt/format.h>

#include <cmath>

#include "sim/app/line/result.h"
#include "sim/app/page/outputs.h"
#include "sim/app/report/parts.h"
#include "sim/base/json/tree.h"
#include "sim/base/text/words.h"
#include "sim/explain/machine_tie.h"
#include "sim/question/machines.h"

namespace orrery {
namespace {

Json json_of(const AdvisedMachines& machines) {
  Json list = Json::array();
  for (const AdvisedMachine& m : machines.ranked) {
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
      one["mfu"] = p.utilisation.mfu;
      one["energy_per_step_j"] = p.energy_per_step.si();
      const double dollars = p.price.per_million_tokens.si();
      one["cost_per_million_tokens_usd"] = dollars > 0 ? Json(dollars) : Json(nullptr);
    }
    list.push_back(std::move(one));
  }
  Json out = {{"clusters", list}, {"stopped_early", machines.stopped_early}};
  if (machines.stopped_early) out["stopped_after"] = stopped_json(machines.stopped_after);
  return out;
}

Document document_of(const AdvisedMachines& found, bool full) {
  const std::vector<AdvisedMachine>& machines = found.ranked;
  Document document(full, terminal_width());
  Table table({"", "cluster", "step s", "90% range", "tok/s/GPU", "MFU%", "$/Mtok", "layout"},
              {Align::right, Align::left, Align::right, Align::left, Align::right, Align::right,
               Align::right, Align::left});
  int place = 0;
  for (const AdvisedMachine& m : machines) {
    if (!m.runs) continue;
    const Prediction& p = m.prediction;
    const double dollars = p.price.per_million_tokens.si();
    table.add({std::to_string(++place), m.name, fmt::format("{:.3f}", p.step_time.si()),
               fmt::format("{:.3g} to {:.3g}", p.low.si(), p.high.si()),
               grouped(std::round(p.tokens_per_second_per_gpu)),
               fmt::format("{:.1f}", 100 * p.utilisation.mfu),
               dollars > 0 ? fmt::format("{:.3f}", dollars) : "unknown", to_text(m.layout)});
  }
  if (!table.empty()) document.table(std::move(table), "");
  if (found.stopped_early)
    document.gap().paragraph(
        "Stopped early: clusters that were not reached are missing, and a better layout may "
        "exist.");
  bool heading = false;
  for (const AdvisedMachine& m : machines) {
    if (m.runs) continue;
    if (!heading) document.gap().label("Where it does not run:");
    heading = true;
    document.item(m.name + ": " + m.why);
  }
  for (std::size_t i = 1; i < machines.size() && machines[i].runs; ++i) {
    const AdvisedMachine &a = machines[i - 1], &b = machines[i];
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

bool any_runs(const std::vector<AdvisedMachine>& machines) {
  return !machines.empty() && machines.front().runs;
}

ExitCode code_of_machines(const AdvisedMachines& machines) {
  return any_runs(machines.ranked) || machines.stopped_early ? ExitCode::answer
                                                             : ExitCode::cannot_exist;
}

// Of the best; where nothing was found on any, why not on the first.
AnswerVerdict verdict_of(const std::vector<AdvisedMachine>& machines) {
  if (any_runs(machines))
    return {
        .fits = true, .runs = true, .probability = machines.front().prediction.memory.probability};
  return {.fits = false, .why = machines.empty() ? "" : machines.front().why, .probability = 0.0};
}

WholeAnswer whole_of(const JsonValue& whole, const AdvisedMachines& machines) {
  return {{.json = answer_json({.command = "advise", .question = whole.raw()},
                               verdict_of(machines.ranked), json_of(machines)),
           .code = code_of_machines(machines)},
          document_of(machines, true)};
}

}  // namespace

WholeAnswer whole_answer_of_machines(const JsonValue& settings, const AskedWith& with) {
  const JsonValue whole = with_clusters_listed(settings);
  return whole_of(whole, advise_on_each(whole, several_clusters(whole), with));
}

MachineAnswer machines_for_machines(const JsonValue& settings, const AskedWith& with) {
  return whole_answer_of_machines(settings, with).machines;
}

ExitCode advise_machines(const JsonValue& settings, const Given& given, const CommonFlags& common) {
  check_looks(given);
  Catalogues catalogues;
  const AskedWith with{.catalogues = catalogues, .threads = common.threads};
  const JsonValue whole = with_clusters_listed(settings);
  const AdvisedMachines machines = advise_on_each(whole, several_clusters(whole), with);
  write_looks(given, [&] { return whole_of(whole, machines); });
  if (common.json)
    write_result(indented_text(whole_of(whole, machines).machines.json));
  else
    write_result(page(document_of(machines, common.markdown), common));
  return unless_stopped(code_of_machines(machines));
}

}  // namespace orrery
