// SPDX-License-Identifier: Apache-2.0
// Sums up a network by what it takes, and a validation by how far predictions are off.
#include <fmt/format.h>

#include <cmath>
#include <map>

#include "sim/app/charts/spec.h"
#include "sim/app/page/summary.h"
#include "sim/base/statistics.h"
#include "sim/base/text/words.h"
#include "sim/base/units/units.h"

namespace orrery {
namespace {

// A sum of the bill, with all lows and all highs added.
template <class Q>
KeyNumber bill_number(const JsonValue& bill, const char* key, const std::string& label) {
  const JsonValue sum = bill.at(key);
  const auto text = [&](const char* part) { return to_text(Q(sum.at(part).number())); };
  std::vector<std::string> unknown;
  for (const JsonValue& part : sum.at("unknown").items()) unknown.push_back(part.text());
  Document behind(true);
  behind.paragraph("Each part's count by its own figure: the table of parts names their sources.");
  if (!unknown.empty())
    behind.paragraph("Unknown, and not in the sum: " + enumeration(unknown) + ".");
  return {label, text("value"), fmt::format("{} to {}", text("low"), text("high")), behind};
}

std::string routing_line(const JsonValue& routing) {
  std::string text = routing.at("routing").text();
  if (const auto pairs = routing.find("queue_pairs"))
    text += fmt::format(" with {}", plural(pairs->integer(), "queue pair"));
  return text;
}

// What ways to route make of a pattern.
Summary traffic_summary(const JsonValue& answer, Summary summary) {
  summary.verdict =
      "Shares of the line rate that a flow gets under " + answer.at("traffic").text() + ".";
  for (const JsonValue& routing : answer.at("routings").items()) {
    const auto share = routing.at("collective").find("share");
    if (!share) continue;
    const auto error = routing.at("collective").find("standard_error");
    summary.numbers.push_back(
        {routing_line(routing), percent(share->number()),
         error ? "+- " + percent(error->number()) + " over draws of the hash" : "",
         said("The share of the line rate that the slowest flow of a synchronised collective "
              "gets.")});
  }
  return summary;
}

}  // namespace

Summary network_summary(const JsonValue& answer) {
  const auto cluster = answer.find("cluster"), fabric = answer.find("fabric");
  const std::string name = cluster ? cluster->text() : fabric ? fabric->text() : "a network";
  Summary summary{.title = fmt::format("Network: {} accelerators of {}",
                                       grouped(answer.at("accelerators").integer()), name),
                  .good = std::nullopt,
                  .verdict = ""};
  if (answer.has("routings")) return traffic_summary(answer, std::move(summary));
  double switches = 0, transceivers = 0, cables = 0;
  for (const JsonValue& one : answer.at("switches").items()) switches += one.at("count").number();
  for (const JsonValue& run : answer.at("cables").items()) {
    cables += run.at("cables").number();
    transceivers += run.at("transceivers").number();
  }
  summary.verdict = answer.at("title").text() + ".";
  const JsonValue bill = answer.at("bill");
  summary.numbers = {{"switches", grouped(switches), "inside and outside of scale-up domains",
                      said("Counted from the wiring: ports, tiers and what each tier reaches.")},
                     {"cables", grouped(cables), grouped(transceivers) + " transceivers",
                      said("A transceiver is counted per port: a twin-port module counts as two of "
                           "half its rate.")}};
  if (!bill.at("lines").items().empty()) {
    summary.numbers.push_back(bill_number<Dollars>(bill, "price_usd", "price of the network"));
    summary.numbers.push_back(bill_number<Watts>(bill, "power_w", "power of the network"));
  }
  return summary;
}

Summary validation_summary(const JsonValue& answer) {
  Summary summary{.title = "Predictions against measurements", .good = std::nullopt, .verdict = ""};
  std::map<std::string, std::vector<double>> errors;
  for (const JsonValue& row : answer.at("rows").items()) {
    const auto predicted = row.find("predicted"), measured = row.find("measured");
    if (!predicted || !measured || !row.has("quantity")) continue;
    if (is_verdict(row.at("quantity").text()) || measured->number() <= 0) continue;
    errors[row.at("quantity").text()].push_back(
        std::abs(predicted->number() / measured->number() - 1));
  }
  summary.verdict =
      "Each measured run beside what is predicted for it: the median of the errors' sizes, and the "
      "size that one run in ten passes. These runs are in sight of whoever makes the model: expect "
      "more on others (validate --nested).";
  for (const auto& [quantity, sizes] : errors) {
    summary.numbers.push_back({"error of " + quantity_words(quantity), percent(median(sizes)),
                               fmt::format("90th percentile {}; {}", percent(percentile(sizes, 90)),
                                           plural(sizes.size(), "run")),
                               said("These runs are in sight of whoever makes the model. "
                                    "docs/accuracy.md has the errors on "
                                    "runs that nothing was fitted to.")});
  }
  return summary;
}

}  // namespace orrery
