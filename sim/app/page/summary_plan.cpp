// SPDX-License-Identifier: Apache-2.0
// Sums up a plan by the point that answers it.
#include <fmt/format.h>

#include "sim/app/charts/spec.h"
#include "sim/app/page/summary.h"
#include "sim/base/text/words.h"
#include "sim/base/units/units.h"

namespace orrery {
namespace {

std::string dollars(double amount) { return to_text(Dollars(amount)); }

std::string days(double seconds) { return fmt::format("{:.3g} days", seconds / seconds_per_day); }

Document behind_days(const JsonValue& point, const JsonValue& detail) {
  Document document(true);
  document.paragraph(detail.at("why").text());
  document.paragraph(fmt::format("A step takes {}; {} of the time counts.",
                                 to_text(Seconds(point.at("step_time_s").number())),
                                 percent(point.at("effective").number())));
  Table table({"share of the time", "%"}, {Align::left, Align::right});
  for (const auto& [key, share] : detail.at("time_shares").members())
    if (share.number() > 5e-5) table.add({key_words(key), percent_figure(share.number())});
  document.table(std::move(table));
  return document;
}

Document behind_cost(const JsonValue& detail) {
  Document document(true);
  document.paragraph(
      "Prices are the catalogue's, each with its range, unless the question names them.");
  Table table({"of the job", "USD"}, {Align::left, Align::right});
  for (const JsonValue& line : detail.at("job_lines").items())
    table.add({line.at("item").text(), grouped(line.at("amount_usd").number())});
  if (!table.empty()) document.table(std::move(table));
  Table bought({"bought", "USD"}, {Align::left, Align::right});
  for (const auto& [key, amount] : detail.at("capital_by_group").members())
    if (amount.number() > 0)
      bought.add({key_words(key.substr(0, key.rfind("_usd"))), grouped(amount.number())});
  if (!bought.empty()) document.table(std::move(bought));
  return document;
}

std::string range_of(const JsonValue& detail, const char* low, const char* high,
                     std::string (*text)(double)) {
  const auto from = detail.find(low), to = detail.find(high);
  return from && to ? fmt::format("{} to {}", text(from->number()), text(to->number())) : "";
}

std::vector<KeyNumber> plan_numbers(const JsonValue& point, const JsonValue& detail) {
  std::vector<KeyNumber> numbers = {
      {"machine", grouped(point.at("gpus").integer()) + " GPUs", point.at("cluster").text(),
       said(fmt::format("{}, and {} spare. {}", short_layout(point.at("layout")),
                        plural(point.at("spares").integer(), "GPU"), detail.at("why").text()))}};
  if (const auto time = point.find("duration_s"))
    numbers.push_back({"time", days(time->number()),
                       range_of(detail, "duration_low_s", "duration_high_s", days),
                       behind_days(point, detail)});
  if (const auto cost = point.find("cost_usd"))
    numbers.push_back({"cost of the job", dollars(cost->number()),
                       range_of(detail, "cost_low_usd", "cost_high_usd", dollars),
                       behind_cost(detail)});
  if (const auto capital = point.find("capital_usd"); capital && capital->number() > 0)
    numbers.push_back({"to buy it all", dollars(capital->number()), point.at("contract").text(),
                       behind_cost(detail)});
  if (const auto energy = point.find("energy_j"))
    numbers.push_back({"energy", to_text(Joules(energy->number())),
                       to_text(Watts(point.at("facility_peak_w").number())) + " at the peak",
                       said("Accelerators, hosts and network with the site's power usage "
                            "effectiveness, over the whole job.")});
  numbers.push_back({"MFU", percent(point.at("mfu").number()), "of the dense BF16 peak",
                     said(detail.at("why").text())});
  return numbers;
}

}  // namespace

Summary plan_summary(const JsonValue& answer) {
  const std::string title = answer.at("title").text();
  Summary summary{.title = title.empty() ? "Plan" : title,
                  .good = answer.at("verdict").at("fits").boolean(),
                  .verdict = answer.at("verdict").at("why").text()};
  const auto best = answer.find("best"), detail = answer.find("detail");
  if (!best || !detail) return summary;
  const std::vector<JsonValue> points = answer.at("points").items();
  const JsonValue& point = points.at(
      static_cast<std::size_t>(best->integer(0, static_cast<std::int64_t>(points.size()) - 1)));
  summary.verdict = fmt::format(
      "The {} of {}: {} GPUs of {}{}. {}", answer.at("objective").text(),
      plural(points.size(), "point"), grouped(point.at("gpus").integer()),
      point.at("cluster").text(),
      answer.at("stopped_early").boolean() ? ", of what was searched before it was stopped" : "",
      detail->at("why").text());
  summary.numbers = plan_numbers(point, *detail);
  return summary;
}

}  // namespace orrery
