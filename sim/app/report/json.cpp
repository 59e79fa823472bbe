// SPDX-License-Identifier: Apache-2.0
// Writes results for machines.

#include "sim/app/answer/answer.h"
#include "sim/app/report/network_report.h"
#include "sim/app/report/parts.h"
#include "sim/app/report/reasons_json.h"
#include "sim/app/report/report.h"
#include "sim/base/json/tree.h"
#include "sim/outcome/notes.h"

namespace orrery {
namespace {

Json breakdown(const StageBreakdown& stage) {
  Json out = Json::object();
  for (int i = 0; i < label_count; ++i)
    out[json_key(to_text(static_cast<Label>(i))) + "_s"] =
        to_seconds(stage.label[static_cast<std::size_t>(i)]).si();
  return out;
}

Json memory(const MemoryVerdict& m) {
  Json stages = Json::array();
  for (const StageMemory& stage : m.stages) {
    Json categories = Json::object();
    for (int i = 0; i < memory_category_count; ++i)
      categories[json_key(to_text(static_cast<MemoryCategory>(i))) + "_bytes"] =
          stage.bytes[static_cast<std::size_t>(i)].si();
    stages.push_back({{"allocated_bytes", stage.peak().si()},
                      {"static_bytes", stage.static_bytes().si()},
                      {"offloaded_bytes", stage.offloaded.si()},
                      {"in_flight", stage.in_flight},
                      {"categories", categories}});
  }
  return {{"fits", m.fits},
          {"worst_stage", m.worst_stage},
          {"allocated_bytes", m.peak.si()},
          {"reserved_bytes", m.reserved.si()},
          {"needed_bytes", m.needed.si()},
          {"capacity_bytes", m.capacity.si()},
          {"margin", m.margin},
          {"standing", to_text(m.standing)},
          {"probability", m.probability},
          {"needed_low_bytes", m.needed_low.si()},
          {"needed_high_bytes", m.needed_high.si()},
          {"reason", m.reason},
          {"stages", stages}};
}

Json range_side(const RangeParts& side) {
  return {{"parameters", side.parameters},
          {"model", side.model},
          {"run_to_run", side.run_to_run},
          {"extrapolation", side.extrapolation},
          {"total", side.total()}};
}

// Half-widths as logarithms of ratios of times; the parts are joined in quadrature.
Json range_json(const PredictionRange& range) {
  return {{"below", range_side(range.below)},
          {"above", range_side(range.above)},
          {"region", range.region},
          {"widened", range.widened}};
}

// By the peak of the format that the layers' products run in; null where MFU counts by it.
Json product_json(const Device& device, PrecisionRecipe precision, const Prediction& p) {
  const std::optional<ProductUse> use = product_use(device, precision, p);
  if (!use) return nullptr;
  return {{"format", to_text(use->format)},
          {"peak_flop_per_s", use->peak.si()},
          {"utilisation", use->utilisation}};
}

Json prediction(const Prediction& p, const Device& device, PrecisionRecipe precision) {
  Json stages = Json::array();
  for (const StageBreakdown& stage : p.stages) stages.push_back(breakdown(stage));
  Json assumptions = Json::array();
  for (const Assumption& a : p.assumptions)
    assumptions.push_back({{"path", a.path},
                           {"value", a.value},
                           {"low", a.low},
                           {"high", a.high},
                           {"evidence", to_text(a.evidence)},
                           {"source", a.source},
                           {"effect_low", a.effect_low},
                           {"effect_high", a.effect_high}});
  Json extrapolations = Json::array();
  for (const Extrapolation& e : p.extrapolations) extrapolations.push_back(extrapolation_json(e));
  return {
      {"kind", p.training() ? "training" : "inference"},
      {"step_time_s", p.step_time.si()},
      {"step_time_low_s", p.range ? Json(p.low.si()) : Json(nullptr)},
      {"step_time_high_s", p.range ? Json(p.high.si()) : Json(nullptr)},
      {"range", p.range ? range_json(*p.range) : Json(nullptr)},
      {"latency", p.inference() ? Json(json_key(to_text(p.inference()->latency))) : Json(nullptr)},
      {"tokens_per_s", p.tokens_per_second},
      {"tokens_per_s_per_gpu", p.tokens_per_second_per_gpu},
      {"model_flop_per_token", p.utilisation.model_flop_per_token.si()},
      {"mfu", p.utilisation.mfu},
      {"hfu", p.hfu()},
      {"products", product_json(device, precision, p)},
      {"energy_per_step_j", p.energy_per_step.si()},
      {"energy_per_token_j", p.energy_per_token.si()},
      {"mean_power_per_gpu_w", p.mean_power_per_gpu.si()},
      {"throttle", p.throttle},
      {"scale_up_bytes", p.scale_up_bytes.si()},
      {"scale_out_bytes", p.scale_out_bytes.si()},
      {"rental_per_gpu_hour_usd", p.price.rental_per_gpu.si() * seconds_per_hour},
      {"contract", p.price.contract},
      {"cost_per_step_usd", p.price.per_step.si()},
      {"cost_per_million_tokens_usd", p.price.per_million_tokens.si()},
      {"bottleneck_stage", p.bottleneck_stage},
      {"bottleneck", p.bottleneck},
      {"stages", stages},
      {"memory", memory(p.memory)},
      {"assumptions", assumptions},
      {"extrapolations", extrapolations}};
}

Json flags_json(const std::vector<FlagChange>& flags) {
  Json out = Json::array();
  for (const FlagChange& f : flags)
    out.push_back({{"name", f.name}, {"now", f.was}, {"advised", f.is}});
  return out;
}

Json comparison(const Comparison& c) {
  Json out = {
      {"layout", layout_json(c.now.layout)},
      {"stack", c.now.stack.name + "@" + c.now.stack.release},
      {"prediction", prediction(c.prediction, c.now.cluster.device, c.now.layout.precision)}};
  if (c.where.empty()) return out;
  out["advised_faster"] = c.faster;
  out["behind"] = rival_json(c.rival);
  out["difference"] = c.difference;
  out["where_now"] = breakdown(c.where[0]);
  out["where_advised"] = breakdown(c.where[1]);
  out["flags_to_change"] = flags_json(c.flags);
  Json singles = Json::array();
  for (const SingleChange& one : c.singles)
    singles.push_back({{"sentence", one.sentence}, {"faster", one.faster}, {"fits", one.fits}});
  out["single_changes"] = singles;
  return out;
}

Json candidate(const Candidate& c) {
  return {{"layout", layout_json(c.layout)},
          {"step_time_s", c.step_time.si()},
          {"tokens_per_s_per_gpu", c.tokens_per_second_per_gpu},
          {"energy_per_step_j", c.energy_per_step.si()},
          {"peak_memory_bytes", c.peak_memory.si()}};
}

// What was taken back from the exact layout, and what each would have gained.
Json left_json(const Simplified& s) {
  Json out = Json::array();
  for (const LeftAtDefault& l : s.left)
    out.push_back({{"key", to_text(l.knob)}, {"setting", l.setting}, {"gain", l.gain}});
  return out;
}

Json ladder_json(const Ladder& ladder) {
  Json rungs = Json::array();
  for (const Rung& r : ladder.rungs) {
    Json one = {{"changes", r.changes}, {"better", r.better}};
    if (!r.difference.empty()) {
      one.update(candidate(r.candidate));
      Json what = Json::array();
      for (const Decision d : r.what) what.push_back(to_text(d));
      one["what"] = what;
      one["difference"] = r.difference;
      one["faster"] = r.faster;
      one["flags_to_change"] = flags_json(r.flags);
    }
    rungs.push_back(one);
  }
  return {{"rungs", rungs},
          {"searches", ladder.searches},
          {"considered", ladder.considered},
          {"forced", ladder.forced},
          {"stopped_early", ladder.stopped_early}};
}

}  // namespace

Json extrapolation_json(const Extrapolation& e) {
  Json sides = Json::array();
  for (const Extrapolation::Side& side : e.sides)
    sides.push_back({{"axis", to_text(side.axis)},
                     {"used", side.used},
                     {"measured_low", side.low},
                     {"measured_high", side.high}});
  return {{"curve", e.curve},          {"outside", sides},           {"octaves", e.octaves},
          {"share_of_curve", e.share}, {"per_octave", e.per_octave}, {"growth", e.growth}};
}

Json prediction_json(const Scenario& s, const Prediction& p, const std::optional<Reasons>& reasons,
                     const std::optional<Timeline>& timeline) {
  Json out = {{"model", s.model.name},
              {"cluster", s.cluster.name},
              {"accelerator", s.cluster.device.name},
              {"gpus", s.cluster.gpus},
              {"stack", s.stack.name + "@" + s.stack.release},
              {"task", to_text(s.job.task)},
              {"notes", notes_of(s)},
              {"layout", layout_json(s.layout)},
              {"prediction", prediction(p, s.cluster.device, s.layout.precision)}};
  if (s.network == NetworkMode::flow) out["network"] = network_json(p);
  if (timeline) out["timeline"] = timeline_json(*timeline);
  out["reasons"] = reasons ? reasons_json(*reasons) : Json(nullptr);
  return out;
}

Json advice_json(const Question& q, const Advice& a) {
  Json best = Json::array(), pareto = Json::array(), rejections = Json::array();
  for (const Candidate& c : a.best) best.push_back(candidate(c));
  for (std::size_t i = 0; i < a.simplified.size(); ++i) {
    best[i]["exact"] = candidate(a.simplified[i].exact.candidate);
    best[i]["left_at_default"] = left_json(a.simplified[i]);
  }
  for (const Candidate& c : a.pareto) pareto.push_back(candidate(c));
  for (const Rejection& r : a.rejections)
    rejections.push_back({{"family", r.family},
                          {"layouts", r.layouts},
                          {"fits", r.fits},
                          {"slower", r.fits && r.run ? Json(r.slower) : Json(nullptr)},
                          {"margin", r.fits ? Json(nullptr) : Json(r.margin)},
                          {"reason", r.reason}});
  const Json winner = a.best.empty()
                          ? Json(nullptr)
                          : prediction(a.winner, q.cluster.device, a.best.front().layout.precision);
  Json out = {
      {"model", q.model.name},
      {"cluster", q.cluster.name},
      {"gpus", q.cluster.gpus},
      {"stack", a.stack.name + "@" + a.stack.release},
      {"notes", notes_of({.cluster = q.cluster, .model = q.model, .job = q.job, .stack = a.stack})},
      {"fits_from_gpus", a.fits_from > 0 ? Json(a.fits_from) : Json(nullptr)},
      {"considered", a.considered},
      {"invalid", a.invalid},
      {"rejected_for_memory", a.rejected_for_memory},
      {"pruned", a.pruned},
      {"simulated", a.simulated},
      {"memory_reserve", a.memory_reserve},
      {"stopped_early", a.stopped_early},
      {"batches", a.batches},
      {"left", a.left},
      {"left_out", a.left_out},
      {"gap", a.gap},
      {"best", best},
      {"pareto", pareto},
      {"why", a.why},
      {"differences", a.differences},
      {"rejections", rejections},
      {"reasons", a.best.empty() ? Json(nullptr) : reasons_json(a.reasons)},
      {"like", a.like ? comparison(*a.like) : Json(nullptr)},
      {"small_steps", a.ladder.asked > 0 ? ladder_json(a.ladder) : Json(nullptr)},
      {"winner", winner}};
  if (a.stopped_after) out["stopped_after"] = stopped_json({a.stopped_after});
  return out;
}

}  // namespace orrery
