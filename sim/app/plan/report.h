// SPDX-License-Identifier: Apache-2.0
// Knows how a plan looks to a person and to a machine.
#pragma once

#include <optional>
#include <string>

#include "sim/app/answer/answer.h"
#include "sim/base/json/tree.h"
#include "sim/paper/document.h"
#include "sim/paper/tables.h"
#include "sim/plan/plan.h"
#include "sim/question/plan/question.h"

namespace orrery {

// Where models, tokens or budgets vary: for each such job, in the order of the question, the point
// that answers it best among those that meet all limits; nothing for one that none meets. One entry
// where there is one job.
std::vector<std::optional<std::size_t>> job_answers(const PlanFile& file, const PlanResult& result);
bool same_job(const PlanChoice& a, const PlanChoice& b);

inline const PlanChoice& choice_of(const PlanFile& file, const PlanPoint& p) {
  return file.plan.choices[p.choice];
}

Document plan_document(const PlanFile& file, const PlanResult& result,
                       const std::optional<PlanDetail>& detail, std::size_t width = page_width);
// SI units in the key names; what follows an answer's head.
Json plan_json(const PlanFile& file, const PlanResult& result,
               const std::optional<PlanDetail>& detail);
// Of one point, as it stands there.
Json point_json(const PlanFile& file, const PlanPoint& point);
AnswerVerdict verdict_of(const PlanFile& file, const PlanResult& result,
                         const std::optional<PlanDetail>& detail);

// "12.3 million USD", "41 days", "4.1 t CO2e": numbers as the report writes them.
// That no point meets the limits, and by what the nearest misses them.
std::string missed_text(const PlanFile& file, const PlanPoint& nearest);
std::string money_text(double dollars);
std::string days_text(Seconds time);
std::string excess_text(double factor);  // of needed over allowed: "2.1", "1.002"
std::string carbon_text(double kilograms);
std::string tokens_text(double tokens);
std::string energy_text(double joules);  // in kWh and its multiples, as it is paid for
// "price and power of long-haul, price of fibre-long-haul": what a cost leaves out.
std::string unknown_text(const std::vector<std::string>& unknown);

// Parts of the document.
void add_point_table(Document& document, const PlanFile& file, const PlanResult& result);
void add_front(Document& document, const PlanFile& file, const PlanResult& result);
void add_power_curve(Document& document, const PlanFile& file, const PlanResult& result);
void add_speedups(Document& document, const PlanFile& file, const PlanResult& result);
void add_detail(Document& document, const PlanFile& file, const PlanPoint& point,
                const PlanDetail& detail);
// How likely the best point misses its deadline after all, and which would not; nothing where its
// whole range meets it.
void add_risk(Document& document, const PlanFile& file, const PlanResult& result,
              const PlanDetail& detail);
// Points that never end, and what would make them; points that are one machine, and others that the
// objective hardly tells from the best.
void add_stalls(Document& document, const PlanFile& file, const PlanResult& result);
void add_ties(Document& document, const PlanFile& file, const PlanResult& result);
// What would bring a late job to its deadline; nothing where it is not late.
void add_need(Document& document, const PlanDetail& detail);
// Under the answer: a site that cannot hold it, what its contract commits to.
void add_conditions(Document& document, const PlanFile& file, const PlanResult& result,
                    const PlanDetail& detail);
// Under the table: the same of all points, and limits that larger machines would not break.
void add_table_marks(Document& document, const PlanFile& file, const PlanResult& result);
// How often spot machines are taken back, as a row of what a plan rests on.
void add_spot(Table& table, const PlanFile& file, const PlanPoint& point, const PlanDetail& detail);
// "8,192 GPUs of gb300-nvl72 (precision fp8)".
std::string point_name(const PlanFile& file, const PlanPoint& point);

}  // namespace orrery
