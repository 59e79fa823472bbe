// SPDX-License-Identifier: Apache-2.0
// Sums up one predicted step, and layouts by the best of them.
#include <fmt/format.h>

#include <cmath>

#include "sim/app/charts/spec.h"
#include "sim/app/page/sources.h"
#include "sim/app/page/summary.h"
#include "sim/base/text/words.h"
#include "sim/base/units/units.h"

namespace orrery {
namespace {

constexpr std::size_t most_assumptions = 8;

// With a capital and a full stop.
std::string sentence(const std::string& words) {
  return capitalised(words) + (words.ends_with('.') ? "" : ".");
}

std::string gibibytes(const JsonValue& bytes) {
  return fmt::format("{:.1f}", in_gibibytes(Bytes(bytes.number())));
}

// Half-widths are logarithms of ratios.
std::string width_text(const JsonValue& below, const JsonValue& above, const char* part) {
  return fmt::format("-{} +{}", percent_figure(1 - std::exp(-below.at(part).number())),
                     percent(std::exp(above.at(part).number()) - 1));
}

// Why the range is as wide as it is, and the values that the time rests on most.
Document behind_time(const JsonValue& prediction) {
  Document document(true);
  document.paragraph(sentence(prediction.at("bottleneck").text()));
  if (const auto range = prediction.find("range")) {
    const JsonValue below = range->at("below"), above = range->at("above");
    document.paragraph(
        fmt::format("Nine of ten measured runs are meant to lie in the range. It joins values that "
                    "are no facts "
                    "({}), the model's own error ({}) and run to run ({}).",
                    width_text(below, above, "parameters"), width_text(below, above, "model"),
                    width_text(below, above, "run_to_run")));
    document.paragraph(
        "The model's own error is that of measured runs of: " + range->at("region").text() + ".");
  }
  if (const JsonValue assumptions = prediction.at("assumptions"); !assumptions.items().empty()) {
    document.label("Values that it rests on most");
    document.table(assumption_table(assumptions, most_assumptions));
  }
  return document;
}

Document behind_memory(const JsonValue& memory) {
  Document document(true);
  document.paragraph(sentence(memory.at("reason").text()));
  document.paragraph(fmt::format(
      "The need is {} to {} GiB (90% range) of {} GiB.", gibibytes(memory.at("needed_low_bytes")),
      gibibytes(memory.at("needed_high_bytes")), gibibytes(memory.at("capacity_bytes"))));
  return document;
}

Document behind_price(const JsonValue& prediction) {
  return said(fmt::format(
      "The time of a step at ${:.2f} a GPU-hour, {}. The price is the catalogue's entry "
      "of the accelerator unless the question names one.",
      prediction.at("rental_per_gpu_hour_usd").number(), prediction.at("contract").text()));
}

std::vector<KeyNumber> money_and_power(const JsonValue& prediction) {
  std::vector<KeyNumber> numbers;
  numbers.push_back(
      {"power of a GPU", to_text(Watts(prediction.at("mean_power_per_gpu_w").number())),
       to_text(Joules(prediction.at("energy_per_step_j").number())) + " a step",
       said("The mean over a step: each operation's energy at the clock that the power limit "
            "sustains, and what an idle device draws.")});
  if (const double price = prediction.at("cost_per_million_tokens_usd").number(); price > 0)
    numbers.push_back(
        {"price of a million tokens", fmt::format("${:.3g}", price),
         fmt::format("at ${:.2f} a GPU-hour", prediction.at("rental_per_gpu_hour_usd").number()),
         behind_price(prediction)});
  return numbers;
}

std::vector<KeyNumber> step_numbers(const JsonValue& prediction) {
  const Document behind = behind_time(prediction);
  const auto low = prediction.find("step_time_low_s"), high = prediction.find("step_time_high_s");
  const JsonValue memory = prediction.at("memory");
  std::vector<KeyNumber> numbers = {
      {"step time", to_text(Seconds(prediction.at("step_time_s").number())),
       low && high ? fmt::format("90% range {} to {}", to_text(Seconds(low->number())),
                                 to_text(Seconds(high->number())))
                   : "no range was asked for",
       behind},
      {"tokens/s of a GPU", grouped(std::round(prediction.at("tokens_per_s_per_gpu").number())),
       grouped(std::round(prediction.at("tokens_per_s").number())) + " tokens/s in all", behind},
      {"MFU", percent(prediction.at("mfu").number()), "of the dense BF16 peak", behind},
      {"memory of a GPU",
       fmt::format("{} of {} GiB", gibibytes(memory.at("needed_bytes")),
                   gibibytes(memory.at("capacity_bytes"))),
       "it fits with a chance of " + percent(memory.at("probability").number()),
       behind_memory(memory)}};
  for (KeyNumber& number : money_and_power(prediction)) numbers.push_back(std::move(number));
  return numbers;
}

Summary refused(const JsonValue& answer, const std::string& title) {
  return {
      .title = title, .good = false, .verdict = sentence(answer.at("verdict").at("why").text())};
}

// Of an advice for several clusters: the best of each.
Summary machines_summary(const JsonValue& answer) {
  const std::vector<JsonValue> clusters = answer.at("clusters").items();
  Summary summary{.title = "Machines for " + answer.at("question").at("model").reference(),
                  .good = answer.at("verdict").at("fits").boolean(),
                  .verdict = answer.at("verdict").at("why").text()};
  if (clusters.empty() || !clusters.front().at("runs").boolean()) return summary;
  const JsonValue& best = clusters.front();
  summary.verdict =
      fmt::format("{} is the fastest of {}, with {}.", best.at("cluster").text(),
                  plural(clusters.size(), "cluster"), short_layout(best.at("layout")));
  const Document none = said("The same question about this cluster alone says what it rests on.");
  summary.numbers = {
      {"step time", to_text(Seconds(best.at("step_time_s").number())),
       fmt::format("90% range {} to {}", to_text(Seconds(best.at("step_time_low_s").number())),
                   to_text(Seconds(best.at("step_time_high_s").number()))),
       none},
      {"tokens/s of a GPU", grouped(std::round(best.at("tokens_per_s_per_gpu").number())), "",
       none},
      {"MFU", percent(best.at("mfu").number()), "of the dense BF16 peak", none}};
  return summary;
}

}  // namespace

Summary step_summary(const JsonValue& answer) {
  const std::string title = "Prediction: " + subject_of(answer);
  const auto prediction = answer.find("prediction");
  if (!prediction) return refused(answer, title);
  const JsonValue verdict = answer.at("verdict");
  const bool fits = verdict.at("fits").boolean();
  return {.title = title,
          .good = fits,
          .verdict = fmt::format(
              "{} {}",
              fits ? "It fits and runs." : "It does not fit: " + verdict.at("why").text() + ".",
              sentence(prediction->at("bottleneck").text())),
          .numbers = step_numbers(*prediction)};
}

Summary advice_summary(const JsonValue& answer) {
  if (answer.has("clusters")) return machines_summary(answer);
  const std::string title = "Layouts: " + subject_of(answer);
  const auto winner = answer.find("winner");
  const std::vector<JsonValue> best = answer.at("best").items();
  if (!winner || best.empty()) return refused(answer, title);
  const bool early = answer.at("stopped_early").boolean();
  return {.title = title,
          .good = true,
          .verdict = fmt::format("{}: {}. {}", early ? "The best so far" : "The best layout",
                                 short_layout(best.front().at("layout")), answer.at("why").text()),
          .numbers = step_numbers(*winner)};
}

}  // namespace orrery
