// SPDX-License-Identifier: Apache-2.0
// Answers some of a capacity question's points as rows.
#include <algorithm>

#include "sim/app/answer/failure.h"
#include "sim/app/plan/report.h"
#include "sim/base/errors/interrupt.h"
#include "sim/python/swept_table.h"
#include "sim/question/ask.h"

namespace orrery {
namespace {

PlanPoints points_of_question(const std::string& question) {
  return PlanPoints(JsonValue::parse(question, "the question"));
}

// One type for all values of a key.
ColumnKind kind_of(const std::vector<SortedJson>& values) {
  const auto all = [&](auto&& is) { return std::all_of(values.begin(), values.end(), is); };
  if (all([](const SortedJson& v) { return v.is_number_integer(); })) return ColumnKind::whole;
  if (all([](const SortedJson& v) { return v.is_number(); })) return ColumnKind::number;
  if (all([](const SortedJson& v) { return v.is_boolean(); })) return ColumnKind::truth;
  return ColumnKind::text;
}

}  // namespace

std::string plan_points(const std::string& question) {
  try {
    const PlanPoints points = points_of_question(question);
    Json varied = Json::array();
    for (const PlanPoints::Varied& one : points.varied()) varied.push_back(one.key);
    return Json({{"points", points.count()}, {"varied", varied}}).dump();
  } catch (const Error& error) {
    return error_json(error.info(), kind_of(error)).dump();
  }
}

Swept sweep_plan(const std::string& question, std::int64_t from, std::int64_t to,
                 const SweepHow& how) {
  std::optional<InterruptWatch> watch;
  if (how.watch) watch.emplace();
  const PlanPoints points = points_of_question(question);
  // What varies stands in columns of its own, not in a text of all values.
  std::vector<AskedColumn> asked;
  std::vector<std::string> left_out = {"values"};
  for (const PlanPoints::Varied& one : points.varied()) {
    asked.push_back({one.key, kind_of(one.values)});
    left_out.push_back(one.key);
  }
  Catalogues catalogues;
  const PlannedPart found =
      plan_part(points, static_cast<std::size_t>(from), static_cast<std::size_t>(to),
                {.catalogues = catalogues, .seed = how.seed, .threads = how.threads});
  TableOfAnswers table("plan", asked, left_out);
  for (std::size_t i = 0; i < found.part.points.size(); ++i) {
    const PlanPart::Point& point = found.part.points[i];
    SweptRow row{.question = Json(point.values), .answer = Json::object()};
    if (point.error)
      row.answer = error_json(point.error->info(), kind_of(*point.error));
    else
      row.answer["row"] = point_json(found.part.file, found.result.points[*point.choice]);
    row.answer["rank"] = from + static_cast<std::int64_t>(i) + 1;
    table.add(row);
  }
  return {.table = table.take(), .stopped = interrupted()};
}

}  // namespace orrery
