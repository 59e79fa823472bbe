// SPDX-License-Identifier: Apache-2.0
// Writes what a diagnosis found, for people and for machines.
#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "sim/app/answer/failure.h"
#include "sim/app/ask/answers.h"
#include "sim/app/diagnose/command.h"
#include "sim/app/report/read_from.h"
#include "sim/base/text/words.h"
#include "sim/base/units/units.h"

namespace orrery {
namespace {

// Findings and evidence that are worth a line.
constexpr double least_shown = 0.05, least_gain_shown = 0.5;
// Below this probability the first cause is one of several.
constexpr double likely = 0.5;
// From here on a step is so many times the predicted, and no longer so many percent above it.
constexpr double many_times = 5;
constexpr std::size_t evidence_shown = 5, told_shown = 6;
constexpr int actions_shown = 5;

// A logarithm of a ratio as people say it.
std::string ratio_text(double logarithm) {
  const double ratio = std::exp(logarithm);
  return ratio >= 1.995 || ratio < 0.5 ? fmt::format("{:.2g} times", ratio)
                                       : signed_percent(ratio - 1, 0);
}

bool is_ratio(Symptom s) {
  switch (s) {
    case Symptom::step:
    case Symptom::link:
    case Symptom::network:
    case Symptom::call_bytes:
      return true;
    default:
      return false;
  }
}

std::string value_text(const Reading& reading, double value) {
  const Symptom s = reading.symptom;
  if (is_kernel_time(s) && reading.rank < 0) return to_text(Seconds(std::exp(value)));
  if (is_ratio(s) || (reading.rank >= 0 && (is_kernel_time(s) || s == Symptom::work ||
                                            s == Symptom::clock || s == Symptom::optimizer_timer)))
    return ratio_text(value);
  if (s == Symptom::host_waits || s == Symptom::allocations)
    return fmt::format("{:.0f}", std::expm1(value));
  if (s == Symptom::jitter) return percent(std::exp(value));
  if (s == Symptom::foreign_memory) return fmt::format("{:.1f} GB", value);
  return percent(value);
}

std::string name_of(const Reading& reading) {
  const std::string& title = symptom_noise()[static_cast<std::size_t>(reading.symptom)].title;
  if (reading.rank < 0) return title;
  return fmt::format("{}, rank {}{}", title, reading.rank,
                     is_of_each_rank(reading.symptom) ? "" : " over the mean");
}

void add_gap(Document& document, const Gap& gap) {
  Table table({"where the gap is", "ms", "% of step"}, {Align::left});
  for (const GapPart& part : gap.parts)
    table.add({part.title, fmt::format("{:+.1f}", 1e3 * part.seconds),
               signed_percent_figure(part.seconds / gap.measured_s)});
  document.table(table);
  if (gap.bubble_s <= 0) return;
  const std::string measured =
      gap.exchanged_s ? fmt::format("profiles show {} in sends and receives between stages",
                                    to_text(Seconds(*gap.exchanged_s)))
                      : std::string("no profile shows it");
  document.paragraph(fmt::format("The pipeline's bubble is predicted to take {} of a step; {}.",
                                 to_text(Seconds(gap.bubble_s)), measured));
}

void add_findings(Document& document, const Diagnosis& d) {
  document.heading("What explains it");
  Table table({"cause", "probability", "costs"}, {Align::left});
  for (const Finding& f : d.findings)
    if (f.probability >= least_shown)
      table.add({title_of(f), percent(f.probability, 0),
                 is_fault(f.kind) ? signed_percent(f.faulty_s / f.healthy_s - 1, 0) : ""});
  document.table(table);
  Table evidence({"what tells it", "seen", "under this cause", "healthy"}, {Align::left});
  std::size_t shown = 0;
  for (const Match& m : d.first().matches) {
    if (m.gain < least_gain_shown || shown == evidence_shown) break;
    evidence.add({name_of(m.reading), value_text(m.reading, m.reading.value),
                  value_text(m.reading, m.expected), value_text(m.reading, m.healthy)});
    ++shown;
  }
  if (shown > 0) {
    document.gap();
    document.table(evidence);
  }
  if (d.seen.told.empty()) return;
  Table told({"what counters tell"}, {Align::left});
  for (std::size_t i = 0; i < std::min(told_shown, d.seen.told.size()); ++i)
    told.add({d.seen.told[i]});
  if (d.seen.told.size() > told_shown)
    told.add({fmt::format("and {} more", d.seen.told.size() - told_shown)});
  document.gap();
  document.table(told);
}

void add_links(Document& document, const Diagnosis& d) {
  if (d.links.empty()) return;
  Table table({"what nccl-tests tell", "GPUs", "hosts", "message", "GB/s", "predicted"},
              {Align::left});
  for (const TestedLinks& test : d.links)
    table.add({test.test, fmt::format("{}", test.gpus), fmt::format("{}", test.hosts),
               to_text(test.message), fmt::format("{:.0f}", 1e-9 * test.measured_bus.si()),
               fmt::format("{:.0f}", 1e-9 * test.predicted_bus.si())});
  document.gap();
  document.table(table);
}

// " Now train.sh:12 has --num-workers 2."
std::string now_text(const Action& action) {
  std::string text;
  for (const SettingNow& one : action.now)
    text += fmt::format(" Now {} has {}{}.", short_place(one.place), one.name,
                        one.value == "true" ? "" : " " + one.value);
  return text;
}

void add_actions(Document& document, const Diagnosis& d) {
  if (d.actions.empty()) return;
  document.heading("What to do");
  int number = 0;
  for (const Action& action : d.actions) {
    if (number == actions_shown) break;
    const std::string gain = is_fault(action.cause)
                                 ? fmt::format("Gains {} if that is it", percent(action.gain, 0))
                                 : std::string("It may be another run");
    document.item(fmt::format("{}{} {} ({}).", action.sentence, now_text(action), gain,
                              percent(action.probability, 0)),
                  fmt::format("{}.", ++number));
  }
}

void add_traps(Document& document, const Diagnosis& d) {
  if (d.traps.empty()) return;
  document.heading("Whatever is wrong: traps of this set-up");
  for (const Trap& trap : d.traps)
    document.item(trap.gain ? fmt::format("{} Gains {}{}.", trap.sentence,
                                          trap.at_most ? "at most " : "", percent(*trap.gain, 0))
                            : trap.sentence);
}

// What is told first; below one half it is no fact.
std::string titled(const Finding& first) {
  const std::string title = title_of(first);
  return fmt::format("{} ({})",
                     first.probability >= likely ? capitalised(title) : "Most likely " + title,
                     percent(first.probability, 0));
}

// How a step lies to the predicted one: "48% above", "57 times", "1/320 of".
std::string against_predicted(const Gap& gap) {
  const double ratio = gap.measured_s / gap.predicted_s;
  const auto figure = [](double times) {
    return times < 10 ? fmt::format("{:.1f}", times) : grouped(std::llround(times));
  };
  if (ratio >= many_times) return figure(ratio) + " times";
  if (ratio <= 1 / many_times) return "1/" + figure(1 / ratio) + " of";
  return fmt::format("{} {}", percent(std::abs(ratio - 1), 0), ratio < 1 ? "below" : "above");
}

std::string summary(const Diagnosed& asked) {
  const Diagnosis& d = *asked.diagnosis;
  const Prediction& p = asked.simulated.prediction;
  return fmt::format("{} a step, {} the predicted {} (90% range {} to {})",
                     to_text(Seconds(d.gap.measured_s)), against_predicted(d.gap),
                     to_text(p.step_time), to_text(p.low), to_text(p.high));
}

Json finding_json(const Finding& f) {
  Json evidence = Json::array();
  for (const Match& m : f.matches)
    evidence.push_back({{"symptom", json_key(to_text(m.reading.symptom))},
                        {"rank", m.reading.rank < 0 ? Json() : Json(m.reading.rank)},
                        {"value", m.reading.value},
                        {"expected", m.expected},
                        {"healthy", m.healthy},
                        {"log_likelihood_gain", m.gain}});
  return {{"cause", cause_text[f.kind]},
          {"title", title_of(f)},
          {"reason", f.reason.empty() ? Json() : Json(f.reason)},
          {"probability", f.probability},
          {"rank", f.rank < 0 ? Json() : Json(f.rank)},
          {"strength", f.strength},
          {"healthy_step_s", f.healthy_s},
          {"faulty_step_s", f.faulty_s},
          {"misfit", f.misfit},
          {"evidence", std::move(evidence)}};
}

Json now_json(const Action& action) {
  Json now = Json::array();
  for (const SettingNow& one : action.now)
    now.push_back({{"place", one.place}, {"name", one.name}, {"value", one.value}});
  return now;
}

Json links_json(const Diagnosis& d) {
  Json links = Json::array();
  for (const TestedLinks& test : d.links)
    links.push_back({{"test", test.test},
                     {"gpus", test.gpus},
                     {"hosts", test.hosts},
                     {"leaves_domain", test.leaves_domain},
                     {"time_over_predicted", test.ratio},
                     {"message_bytes", test.message.si()},
                     {"measured_bus_bytes_per_s", test.measured_bus.si()},
                     {"predicted_bus_bytes_per_s", test.predicted_bus.si()}});
  return links;
}

}  // namespace

Document diagnosis_document(const Diagnosed& asked, bool full, std::size_t width) {
  const Diagnosis& d = *asked.diagnosis;
  Document document(full, width);
  if (d.healthy) {
    document.line(fmt::format("{}: {}.", titled(d.first()), summary(asked)));
    if (!d.to_measure.empty()) document.paragraph(d.to_measure);
    for (const std::string& sentence : d.unlike) document.paragraph(sentence);
    add_links(document, d);
    return document;
  }
  if (d.first().probability >= likely || d.another_run)
    document.title(titled(d.first()));
  else
    document.title("Several causes would explain this run");
  document.line(summary(asked) + ".");
  if (d.another_run) {
    document.paragraph(what_to_check());
  } else {
    document.gap();
    add_gap(document, d.gap);
    add_findings(document, d);
  }
  add_links(document, d);
  add_actions(document, d);
  if (!d.another_run) add_traps(document, d);
  if (!d.to_measure.empty()) document.paragraph(d.to_measure);
  if (!d.notes.empty()) document.heading("Of the files");
  for (const std::string& note : d.notes) document.item(note);
  add_read_from(document, asked.simulated.settings);
  return document;
}

Json diagnosis_json(const Diagnosed& asked) {
  const Diagnosis& d = *asked.diagnosis;
  Json parts = Json::array(), findings = Json::array(), actions = Json::array();
  for (const GapPart& part : d.gap.parts)
    parts.push_back({{"key", part.key}, {"title", part.title}, {"time_s", part.seconds}});
  for (const Finding& f : d.findings) findings.push_back(finding_json(f));
  for (const Action& action : d.actions)
    actions.push_back({{"cause", cause_text[action.cause]},
                       {"sentence", action.sentence},
                       {"now", now_json(action)},
                       {"gain", action.gain},
                       {"probability", action.probability}});
  Json traps = Json::array();
  for (const Trap& trap : d.traps)
    traps.push_back({{"id", trap.id},
                     {"sentence", trap.sentence},
                     {"remedy", trap.remedy},
                     {"gain", trap.gain ? Json(*trap.gain) : Json()}});
  return {{"healthy", d.healthy},
          {"another_run", d.another_run},
          {"log_step_s", d.log_step_s ? Json(*d.log_step_s) : Json()},
          {"gap",
           {{"predicted_step_s", d.gap.predicted_s},
            {"measured_step_s", d.gap.measured_s},
            {"usual_step_s", d.gap.usual_s},
            {"predicted_bubble_s", d.gap.bubble_s},
            {"measured_exchanges_s", d.gap.exchanged_s ? Json(*d.gap.exchanged_s) : Json()},
            {"parts", std::move(parts)}}},
          {"findings", std::move(findings)},
          {"actions", std::move(actions)},
          {"traps", std::move(traps)},
          {"counters", d.seen.told},
          {"links", links_json(d)},
          {"to_measure", d.to_measure.empty() ? Json() : Json(d.to_measure)},
          {"notes", d.notes}};
}

}  // namespace orrery
