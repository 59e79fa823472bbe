// SPDX-License-Identifier: Apache-2.0
// Writes scores of predictions as JSON: DESIGN section 7 fixes the keys.
#include "sim/app/validate/json.h"

#include <cmath>

#include "sim/app/answer/answer.h"
#include "sim/app/report/parts.h"
#include "sim/base/json/tree.h"
#include "sim/validate/parts/collectives_report.h"
#include "sim/validate/parts/kernels.h"
#include "sim/validate/score/ranking.h"
#include "sim/validate/score/report.h"

namespace orrery {
namespace {

Json or_null(const std::optional<double>& value) { return value ? Json(*value) : Json(nullptr); }
Json when(bool known, double value) { return known ? Json(value) : Json(nullptr); }

// What a row is mainly about: its speed where that is scored, else its memory.
void add_main_quantity(Json& out, const ScoredRow& s) {
  const MeasuredRun& m = s.row->measured;
  const RowPrediction& p = s.prediction;
  const auto set = [&](const char* quantity, const char* unit, double predicted,
                       const std::optional<double>& measured, const std::optional<double>& error,
                       const Json& low, const Json& high) {
    out["quantity"] = quantity;
    out["unit"] = unit;
    out["predicted"] = when(p.made, predicted);
    out["measured"] = or_null(measured);
    out["error"] = or_null(error);
    out["low"] = low;
    out["high"] = high;
  };
  const Json none = nullptr;
  if (m.step_seconds) {
    const double scale = p.made ? p.step_seconds * p.tokens_per_second_per_gpu : 0;
    set("step_time", "s", p.step_seconds, m.step_seconds, s.speed_error,
        when(p.made, scale / p.high_tokens), when(p.made, scale / p.low_tokens));
  } else if (m.tokens_per_second_per_gpu && s.row->unfit_for_time.empty()) {
    set("tokens_s_gpu", "tokens/s/GPU", p.tokens_per_second_per_gpu, m.tokens_per_second_per_gpu,
        s.speed_error, when(p.made, p.low_tokens), when(p.made, p.high_tokens));
  } else if (m.peak_gibibytes) {
    set("peak_memory", "GiB", p.peak_gibibytes, m.peak_gibibytes, s.peak_error, none, none);
  } else if (m.reserved_gibibytes) {
    set("reserved_memory", "GiB", p.reserved_gibibytes, m.reserved_gibibytes, s.reserved_error,
        none, none);
  } else if (m.static_gibibytes) {
    set("static_memory", "GiB", p.static_gibibytes, m.static_gibibytes, s.static_error, none, none);
  } else if (m.out_of_memory) {
    set("oom", "", p.out_of_memory ? 1 : 0, *m.out_of_memory ? 1.0 : 0.0, std::nullopt, none, none);
  } else {
    set("tokens_s_gpu", "tokens/s/GPU", p.tokens_per_second_per_gpu, std::nullopt, std::nullopt,
        when(p.made, p.low_tokens), when(p.made, p.high_tokens));
  }
}

Json row_json(const ScoredRow& s) {
  const PreparedRow& row = *s.row;
  const MeasuredRun& m = row.measured;
  const RowPrediction& p = s.prediction;
  Json out = {{"id", row.id}};
  add_main_quantity(out, s);
  out["group"] = {{"source", row.source}, {"gpu", row.gpu}};
  out["skipped"] = row.skipped.empty() ? Json(nullptr) : Json(row.skipped);
  out["predicted_tokens_s_gpu"] = when(p.made, p.tokens_per_second_per_gpu);
  out["measured_tokens_s_gpu"] = or_null(m.tokens_per_second_per_gpu);
  out["low_tokens_s_gpu"] = when(p.made, p.low_tokens);
  out["high_tokens_s_gpu"] = when(p.made, p.high_tokens);
  out["predicted_step_time_s"] = when(p.made, p.step_seconds);
  out["predicted_peak_memory_gib"] = when(p.made, p.peak_gibibytes);
  out["measured_peak_memory_gib"] = or_null(m.peak_gibibytes);
  out["predicted_reserved_memory_gib"] = when(p.made, p.reserved_gibibytes);
  out["measured_reserved_memory_gib"] = or_null(m.reserved_gibibytes);
  out["predicted_static_memory_gib"] = when(p.made, p.static_gibibytes);
  out["measured_static_memory_gib"] = or_null(m.static_gibibytes);
  out["predicted_oom"] = p.made ? Json(p.out_of_memory) : Json(nullptr);
  out["measured_oom"] = m.out_of_memory ? Json(*m.out_of_memory) : Json(nullptr);
  out["bottleneck"] = p.made ? Json(p.bottleneck) : Json(nullptr);
  out["outside"] = row.outside.empty() ? Json(nullptr) : Json(row.outside);
  out["remark"] = row.remark.empty() ? Json(nullptr) : Json(row.remark);
  out["time_not_scored"] = row.unfit_for_time.empty() ? Json(nullptr) : Json(row.unfit_for_time);
  out["layout"] = p.made ? layout_json(row.layout) : Json(nullptr);
  out["stack"] = row.release.empty() ? Json(nullptr) : Json(row.release);
  out["cluster"] = row.cluster != nullptr ? Json(row.cluster->cluster.name) : Json(nullptr);
  out["assumed"] = row.assumed;
  out["extrapolations"] = Json::array();
  for (const Extrapolation& e : p.extrapolations)
    out["extrapolations"].push_back(extrapolation_json(e));
  return out;
}

Json group_json(const GroupScore& g, const char* kind) {
  Json skipped = Json::array();
  for (const auto& [reason, count] : g.skipped)
    skipped.push_back({{"reason", reason}, {"rows", count}});
  return {{"kind", kind},
          {"source", g.source},
          {"gpu", g.gpu},
          {"rows", g.rows},
          {"predicted", g.predicted},
          {"skipped", skipped},
          {"speed", numbers_json(g.speed)},
          {"peak_memory", numbers_json(g.peak)},
          {"reserved_memory", numbers_json(g.reserved)},
          {"static_memory", numbers_json(g.static_memory)},
          {"oom",
           {{"true_positive", g.oom_found},
            {"false_negative", g.oom_missed},
            {"false_positive", g.oom_false},
            {"true_negative", g.fit_found}}}};
}

}  // namespace

Json report_json(const std::vector<ScoredRow>& rows,
                 const std::vector<ScoredCollective>& collectives,
                 const std::vector<ScoredKernel>& kernels) {
  Json list = Json::array(), groups = Json::array();
  for (const ScoredRow& s : rows) list.push_back(row_json(s));
  for (const GroupScore& g : group_rows(rows)) groups.push_back(group_json(g, "source and gpu"));
  for (const GroupScore& g : overall_groups(rows)) groups.push_back(group_json(g, "overall"));
  add_collectives_json(collectives, list, groups);
  add_kernels_json(kernels, list, groups);
  Json out = {{"rows", list}, {"groups", groups}};
  if (!rank_groups(rows).empty()) out["ranking"] = ranking_json(rows);
  return out;
}

Json report_json(const std::vector<ScoredRow>& rows,
                 const std::vector<ScoredCollective>& collectives) {
  return report_json(rows, collectives, {});
}

Json report_json(const std::vector<ScoredRow>& rows) { return report_json(rows, {}, {}); }

Json left_out_json(const std::vector<LeftOut>& groups, const std::string& kind) {
  Json list = Json::array();
  for (const LeftOut& g : groups)
    list.push_back({{"kind", kind},
                    {"group", g.group},
                    {"subtotal", g.subtotal},
                    {"rows", g.rows},
                    {"without", numbers_json(g.without)},
                    {"shipped", numbers_json(g.shipped)}});
  return {{"left_out", list}};
}

}  // namespace orrery
