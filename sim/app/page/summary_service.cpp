// SPDX-License-Identifier: Apache-2.0
// Sums up a served model by the point that bears the load, or by the first that no other beats.
#include <fmt/format.h>

#include <cmath>

#include "sim/app/charts/spec.h"
#include "sim/app/page/summary.h"
#include "sim/base/text/words.h"
#include "sim/base/units/units.h"

namespace orrery {
namespace {

Document behind_steps(const JsonValue& point) {
  Document document(true);
  if (!point.at("bottleneck").text().empty()) document.paragraph(point.at("bottleneck").text());
  const JsonValue steps = point.at("steps");
  document.paragraph(fmt::format("{} steps of {} sequences in the mean.",
                                 grouped(steps.at("count").integer()),
                                 fmt::format("{:.3g}", steps.at("mean_batch").number())));
  Table table({"of a decode step", "s"}, {Align::left, Align::right});
  for (const auto& [key, value] : steps.at("parts").members())
    if (value.is_number() && value.number() > 0)
      table.add({key_words(key), fmt::format("{:.3g}", value.number())});
  if (!table.empty()) document.table(std::move(table));
  for (const JsonValue& note : point.at("notes").items()) document.item(note.text());
  return document;
}

std::string mean_range(const JsonValue& ranges, const char* what) {
  const auto one = ranges.find(what);
  if (!one || !one->find("mean_low_s")) return "";
  return fmt::format("90% range of the mean {} to {}", time_text(one->at("mean_low_s").number()),
                     time_text(one->at("mean_high_s").number()));
}

std::vector<KeyNumber> service_numbers(const JsonValue& point) {
  const Document behind = behind_steps(point);
  const JsonValue latency = point.at("latency"), throughput = point.at("throughput"),
                  ranges = point.at("ranges");
  std::vector<KeyNumber> numbers;
  for (const auto& [key, label] :
       {std::pair{"ttft", "first token (TTFT)"}, {"tpot", "token (TPOT)"}}) {
    const JsonValue one = latency.at(key);
    numbers.push_back({std::string(label) + ", median", time_text(one.at("p50_s").number()),
                       "95th percentile " + time_text(one.at("p95_s").number()), behind});
    if (const std::string range = mean_range(ranges, key); !range.empty())
      numbers.back().detail += "; " + range;
  }
  numbers.push_back(
      {"output tokens/s of a GPU",
       grouped(std::round(throughput.at("output_tokens_per_s_per_gpu").number())),
       grouped(std::round(throughput.at("output_tokens_per_s").number())) + " tokens/s in all",
       behind});
  const auto cost = point.find("cost");
  if (const auto price = cost ? cost->find("per_million_usd") : std::nullopt)
    numbers.push_back({"price of a million output tokens", fmt::format("${:.3g}", price->number()),
                       "at the load that was served",
                       said(fmt::format("Output tokens pay for all, at ${:.2f} a GPU-hour.",
                                        cost->at("gpu_hour_usd").number()))});
  return numbers;
}

// The point that answers: of the least GPUs that bears the load; else the first marked as best.
std::size_t answering(const JsonValue& answer, const std::vector<JsonValue>& points) {
  if (const auto load = answer.find("load"))
    if (const auto chosen = load->find("point"))
      return static_cast<std::size_t>(
          chosen->integer(0, static_cast<std::int64_t>(points.size()) - 1));
  for (std::size_t i = 0; i < points.size(); ++i)
    if (const auto best = points[i].find("best"); best && best->boolean()) return i;
  return 0;
}

}  // namespace

Summary service_summary(const JsonValue& answer) {
  const JsonValue question = answer.at("question");
  Summary summary{.title = fmt::format("Served: {} on {}", question.at("model").reference(),
                                       question.at("cluster").reference()),
                  .good = answer.at("verdict").at("fits").boolean(),
                  .verdict = answer.at("verdict").at("why").text()};
  const std::vector<JsonValue> points = answer.at("points").items();
  if (points.empty()) return summary;
  const JsonValue& point = points.at(answering(answer, points));
  if (const auto refusal = point.find("refusal"); refusal && !refusal->text().empty())
    return summary;
  if (const auto load = answer.find("load")) summary.verdict = load->at("says").text();
  if (summary.verdict.empty())
    summary.verdict =
        fmt::format("{} GPUs of {}{}.", grouped(point.at("deployment").at("gpus").integer()),
                    question.at("cluster").reference(),
                    point.at("varied").text().empty() ? "" : ": " + point.at("varied").text());
  summary.numbers = service_numbers(point);
  return summary;
}

}  // namespace orrery
