// SPDX-License-Identifier: Apache-2.0
// Sums up the jobs of a cluster by the best point: waits, what is useful, who waits longest.
#include <fmt/format.h>

#include <algorithm>

#include "sim/app/charts/fleet.h"
#include "sim/app/charts/spec.h"
#include "sim/app/page/summary.h"
#include "sim/base/text/words.h"
#include "sim/base/units/units.h"

namespace orrery {
namespace {

// A time of nobody is not known.
std::string time_at(const JsonValue& spread, const char* key) {
  return spread.find(key) ? time_text(spread.at(key).number()) : "-";
}

std::string interval(const SeedMean& mean, std::size_t runs) {
  if (runs < 2) return "one run";
  return fmt::format("90% interval {} to {} over {} runs", time_text(std::max(0.0, mean.low)),
                     time_text(mean.high), runs);
}

KeyNumber mean_number(const char* name, const std::vector<JsonValue>& runs, const char* key,
                      const Document& behind) {
  const std::optional<SeedMean> mean = mean_of_runs(runs, key);
  if (!mean) return {name, "-", "of no job", behind};
  return {name, time_text(mean->mean), interval(*mean, runs.size()), behind};
}

Document behind_waits(const JsonValue& first) {
  Document document(true);
  Table table({"jobs of", "jobs", "mean wait", "median", "90%", "99%"},
              {Align::left, Align::right, Align::right, Align::right, Align::right, Align::right});
  for (const JsonValue& group : first.at("by_size").items()) {
    const JsonValue wait = group.at("wait_s");
    table.add({group.at("name").text(), grouped(group.at("jobs").integer()), time_at(wait, "mean"),
               time_at(wait, "p50"), time_at(wait, "p90"), time_at(wait, "p99")});
  }
  document.paragraph("Of the first run, by what jobs ask for:");
  document.table(std::move(table));
  return document;
}

Document behind_shares(const JsonValue& first) {
  Document document(true);
  Table table({"part", "% of GPU-time"}, {Align::left, Align::right});
  for (const auto& [key, share] : first.at("gpu_share").members())
    if (share.number() > 0) table.add({key_words(key), percent_figure(share.number())});
  document.paragraph("Of the first run, from the first submission to the last end:");
  document.table(std::move(table));
  return document;
}

std::vector<KeyNumber> fleet_numbers(const JsonValue& point) {
  const std::vector<JsonValue> runs = point.at("runs").items();
  const JsonValue first = point.at("first");
  const JsonValue spread = first.at("wait_s"), shares = first.at("gpu_share"),
                  jobs = first.at("jobs");
  const Document waits = behind_waits(first), parts = behind_shares(first);
  return {mean_number("mean wait", runs, "wait_s", waits),
          mean_number("wait and run, mean", runs, "completion_s", waits),
          {"one job in a hundred waits", time_at(spread, "p99"),
           "median " + time_at(spread, "p50") + "; first run", waits},
          {"useful GPU-time", percent_figure(shares.at("useful").number()) + "%",
           "idle " + percent_figure(shares.at("idle").number()) + "%; first run", parts},
          {"jobs finished", grouped(jobs.at("finished").integer()),
           fmt::format("of {}; first run", grouped(jobs.at("submitted").integer())), waits}};
}

std::string best_sentence(const JsonValue& answer, const JsonValue& point) {
  if (answer.at("points").items().size() < 2) return fleet_point_name(point) + ".";
  std::string text =
      fmt::format("Best by {}: {}", answer.at("objective").text(), fleet_point_name(point));
  if (const auto chance = point.find("chance"))
    text += fmt::format(", with a chance of {}", percent(chance->number()));
  return text + ".";
}

}  // namespace

Summary fleet_summary(const JsonValue& answer) {
  const JsonValue point = best_fleet_point(answer), shape = point.at("shape");
  Summary summary{
      .title = fmt::format("{} on {} GPUs of {}", answer.at("jobs").text(),
                           grouped(shape.at("gpus").integer()), shape.at("cluster").text()),
      .good = std::nullopt,
      .verdict = best_sentence(answer, point)};
  const JsonValue verdict = answer.at("verdict");
  if (const auto fits = verdict.find("fits")) summary.good = fits->boolean();
  if (summary.good == false) summary.verdict = "No point keeps all limits. " + summary.verdict;
  if (point.find("first")) summary.numbers = fleet_numbers(point);
  return summary;
}

}  // namespace orrery
