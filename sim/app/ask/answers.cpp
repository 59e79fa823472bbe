// SPDX-License-Identifier: Apache-2.0
// Puts the head that all answers share before what a command found.
#include "sim/app/ask/answers.h"
#include "sim/base/json/tree.h"

#include "sim/app/ask/advise_machines.h"
#include "sim/app/plan/report.h"
#include "sim/app/report/refusal.h"
#include "sim/app/report/report.h"
#include "sim/outcome/verdict.h"
#include "sim/question/machines.h"

namespace orrery {
namespace {

// What a prediction draws hashes with; none where it draws nothing.
std::optional<std::uint64_t> seed_of(const Scenario& scenario) {
  if (scenario.network == NetworkMode::ideal) return std::nullopt;
  return scenario.conditions.seed;
}

// What an answer says it was asked: where it was written besides is no part of it.
SortedJson question_of(const JsonValue& settings) {
  SortedJson question = settings.raw();
  question.erase("trace_out");
  return question;
}

}  // namespace

Json to_json(const Planned& p) {
  return answer_json({.command = "plan",
                      .question = p.file.question,
                      .seed = p.file.plan.seed,
                      .catalogue = p.catalogue},
                     verdict_of(p.file, p.result, p.detail), plan_json(p.file, p.result, p.detail));
}

Json to_json(const Simulated& s) {
  return answer_json(
      {.command = "simulate",
       .question = question_of(s.settings),
       .seed = seed_of(s.scenario),
       .catalogue = s.catalogue},
      answer_verdict(s.refused ? s.refused->verdict : verdict_of(s.prediction.memory)),
      s.refused ? refusal_json(*s.refused) : prediction_json(s.scenario, s.prediction, s.reasons));
}

Json to_json(const Advised& a) {
  return answer_json(
      {.command = "advise", .question = question_of(a.settings), .catalogue = a.catalogue},
      answer_verdict(a.refused ? a.refused->verdict : verdict_of(a.advice)),
      a.refused ? refused_advice_json(*a.refused) : advice_json(a.question, a.advice));
}

MachineAnswer answer_for_machines(const std::string& command, const JsonValue& settings,
                                  const AskedWith& with) {
  if (command == "plan") {
    Planned planned = plan_settings(settings, with);
    planned.catalogue = with.catalogues.version();
    return {.json = to_json(planned), .code = code_of(planned.exists())};
  }
  if (command == "advise" && !several_clusters(settings).empty())
    return machines_for_machines(settings, with);
  if (command == "advise") {
    Advised advised = advise_settings(settings, with);
    advised.catalogue = with.catalogues.version();
    return {.json = to_json(advised), .code = code_of(advised.exists())};
  }
  Simulated simulated = simulate_settings(settings, with);
  simulated.catalogue = with.catalogues.version();
  return {.json = to_json(simulated), .code = code_of(simulated.exists())};
}

}  // namespace orrery
