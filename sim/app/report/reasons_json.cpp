// SPDX-License-Identifier: Apache-2.0
// Writes reasons for machines.
#include "sim/app/report/reasons_json.h"

#include "sim/app/answer/answer.h"

namespace orrery {
namespace {

Json limits_json(const std::vector<PhaseLimit>& limits) {
  Json out = Json::array();
  for (const PhaseLimit& p : limits) {
    Json elasticity = Json::object();
    for (int r = 0; r < resource_count; ++r)
      elasticity[json_key(to_text(static_cast<Resource>(r)))] =
          p.elasticity[static_cast<std::size_t>(r)];
    out.push_back({{"phase", p.phase},
                   {"time_s", p.time.si()},
                   {"share", p.share},
                   {"elasticity", elasticity},
                   {"fixed", p.fixed},
                   {"limit", p.limit ? Json(to_text(*p.limit)) : Json(nullptr)},
                   {"sentence", p.sentence}});
  }
  return out;
}

Json levers_json(const std::vector<Counterfactual>& levers) {
  Json out = Json::array();
  for (const Counterfactual& c : levers)
    out.push_back({{"name", c.name},
                   {"applies", c.applies},
                   {"step_time_s", c.step.si()},
                   {"faster", c.faster},
                   {"faster_at_most", c.faster_at_most ? Json(*c.faster_at_most) : Json(nullptr)},
                   {"needs_other_layouts", c.needs_advice},
                   {"note", c.note}});
  return out;
}

Json traps_json(const std::vector<Trap>& traps) {
  Json out = Json::array();
  for (const Trap& t : traps)
    out.push_back({{"id", t.id},
                   {"sentence", t.sentence},
                   {"remedy", t.remedy},
                   {"gain", t.gain ? Json(*t.gain) : Json(nullptr)},
                   {"at_most", t.at_most},
                   {"evidence", t.evidence}});
  return out;
}

Json notes_json(const std::vector<FlagNote>& notes) {
  Json out = Json::array();
  for (const FlagNote& n : notes) out.push_back({{"key", n.key}, {"sentence", n.sentence}});
  return out;
}

Json flags_json(const LaunchFlags& f) {
  Json flags = Json::array();
  for (const LaunchFlag& one : f.flags)
    flags.push_back({{"name", one.name}, {"value", one.value}, {"key", one.key}});
  return {{"program", f.program},
          {"language", f.language},
          {"flags", flags},
          {"environment", f.environment},
          {"missing", notes_json(f.missing)},
          {"implied", notes_json(f.implied)},
          {"note", f.note},
          {"text", f.text},
          {"sources", f.sources}};
}

Json ranking_json(const Ranking& r) {
  Json rivals = Json::array(), changes = Json::array();
  for (const Rival& rival : r.rivals) rivals.push_back(rival_json(rival));
  for (const OrderChange& c : r.changes)
    changes.push_back({{"path", c.path},
                       {"value", c.value},
                       {"end", c.end},
                       {"first", c.first},
                       {"ahead", c.ahead}});
  return {{"values", r.values}, {"rivals", rivals}, {"changes", changes}};
}

}  // namespace

Json rival_json(const Rival& r) {
  return {{"behind", r.behind}, {"low", r.low}, {"high", r.high}, {"may_lead", r.may_lead()}};
}

Json reasons_json(const Reasons& r) {
  return {{"limits", limits_json(r.limits)},
          {"levers", levers_json(r.levers)},
          {"traps", traps_json(r.traps)},
          {"launch", flags_json(r.flags)},
          {"ranking", ranking_json(r.ranking)}};
}

}  // namespace orrery
