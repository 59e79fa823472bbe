// SPDX-License-Identifier: Apache-2.0
// Puts the head that all answers share before what a command found.
#include "sim/app/ask/answers.h"
#include "sim/base/json/tree.h"

#include "sim/app/ask/advise_machines.h"
#include "sim/app/plan/report.h"
#include "sim/app/report/read_from.h"
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

template <class Found>
MachineAnswer machine_answer(const Found& found) {
  return {.json = to_json(found), .code = code_of(found.exists())};
}

template <class Found>
MachineAnswer machine_answer(Found found, const AskedWith& with) {
  found.catalogue = with.catalogues.version();
  return machine_answer(found);
}

template <class Found>
WholeAnswer with_catalogue(Found found, const AskedWith& with) {
  found.catalogue = with.catalogues.version();
  return whole_answer(found);
}

constexpr bool everything = true;

// What an answer says it was asked: where it was written besides is no part of it.
SortedJson question_of(const JsonValue& settings) {
  SortedJson question = settings.raw();
  for (const char* output : {"trace_out", "chakra_out"}) question.erase(output);
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
      s.refused ? refusal_json(*s.refused)
                : prediction_json(s.scenario, s.prediction, s.reasons, s.timeline));
}

Json to_json(const Advised& a) {
  return answer_json(
      {.command = "advise", .question = question_of(a.settings), .catalogue = a.catalogue},
      answer_verdict(a.refused ? a.refused->verdict : verdict_of(a.advice)),
      a.refused ? refused_advice_json(*a.refused) : advice_json(a.question, a.advice));
}

MachineAnswer answer_for_machines(const std::string& command, const JsonValue& settings,
                                  const AskedWith& with) {
  if (command == "plan") return machine_answer(plan_settings(settings, with), with);
  if (command == "advise" && !several_clusters(settings).empty())
    return machines_for_machines(settings, with);
  if (command == "advise") return machine_answer(advise_settings(settings, with), with);
  return machine_answer(simulate_settings(settings, with), with);
}

Document document_of(const Simulated& s, bool full, std::size_t width) {
  Document document = s.refused ? refusal_document(*s.refused)
                                : prediction_document(s.scenario, s.prediction,
                                                      s.reasons.value_or(Reasons{}), full, width);
  add_read_from(document, s.settings);
  return document;
}

Document document_of(const Advised& a, bool full, std::size_t width) {
  Document document =
      a.refused ? refusal_document(*a.refused) : advice_document(a.question, a.advice, full, width);
  add_read_from(document, a.settings);
  return document;
}

WholeAnswer whole_answer(const Simulated& s) {
  return {machine_answer(s), document_of(s, everything, page_width)};
}

WholeAnswer whole_answer(const Advised& a) {
  return {machine_answer(a), document_of(a, everything, page_width)};
}

WholeAnswer whole_answer(const Planned& p) {
  return {machine_answer(p), plan_document(p.file, p.result, p.detail, page_width)};
}

WholeAnswer whole_answer(const std::string& command, const JsonValue& settings,
                         const AskedWith& with) {
  if (command == "plan") return with_catalogue(plan_settings(settings, with), with);
  if (command == "advise" && !several_clusters(settings).empty())
    return whole_answer_of_machines(settings, with);
  if (command == "advise") return with_catalogue(advise_settings(settings, with), with);
  return with_catalogue(simulate_settings(settings, with), with);
}

}  // namespace orrery
