// SPDX-License-Identifier: Apache-2.0
// Puts reports together: one prediction, or ranked layouts with the reasons.
#include "sim/app/report/report.h"

#include <fmt/format.h>

#include <algorithm>

#include "sim/app/report/advice.h"
#include "sim/app/report/network_report.h"
#include "sim/app/report/parts.h"
#include "sim/base/text/words.h"

namespace orrery {
namespace {

// The proof is of the layouts as the search found them, not of the simpler ones that are listed.
std::string fastest_of_all(const Advice& a) {
  if (a.simplified.empty()) return "";
  const auto best = std::min_element(
      a.simplified.begin(), a.simplified.end(),
      [](const Simplified& x, const Simplified& y) { return x.exact.score < y.exact.score; });
  const double ahead = a.simplified.front().shown.score / best->exact.score - 1;
  if (ahead <= 0) return "";
  return fmt::format(
      " The best of all, with every setting, is {:.2f}% ahead of the first as listed "
      "(--variants true lists it).",
      100 * ahead);
}

std::string counts(const Advice& a) {
  std::string text = fmt::format(
      "{} valid layouts considered: {} rejected for memory, {} simulated, {} ruled out by a lower "
      "bound on their time{}.",
      grouped(a.considered), grouped(a.rejected_for_memory), grouped(a.simulated),
      grouped(a.pruned), a.left > 0 ? fmt::format(", {} not looked at", grouped(a.left)) : "",
      grouped(a.invalid));
  if (!a.stopped_early && !a.best.empty())
    text += " Nothing better was missed: every one ruled out is proven slower." + fastest_of_all(a);
  if (!a.left_out.empty()) text += fmt::format(" Not in the grid: {}.", joined(a.left_out, "; "));
  return text;
}

// What an early stop leaves open: `gap` is the share of the first's time that a layout not looked
// at might save.
std::string open_text(double gap) {
  const double least = 1 - gap;
  if (least < 0.001) return "Of what was not looked at nothing is proven yet.";
  if (least >= 0.9995) return "What was not looked at is proven to be no faster.";
  return fmt::format(
      "What was not looked at is proven to take at least {:.1f}% of the first's time: it is at "
      "most "
      "{:.3g} times as fast.",
      100 * least, 1 / least);
}

constexpr std::size_t most_slower = 5, most_too_large = 3, most_differences = 4;

// Runners-up whose difference from the first is told.
std::size_t told_differences(const Document& document, const Advice& a) {
  return document.full() ? a.differences.size() : std::min(most_differences, a.differences.size());
}

void add_families(Document& document, const std::vector<Rejection>& families, std::size_t most,
                  const char* others, const char* one) {
  const std::size_t shown = document.full() ? families.size() : std::min(most, families.size());
  for (std::size_t i = 0; i < shown; ++i)
    document.item(fmt::format("{} ({} layouts): {}", families[i].family,
                              grouped(families[i].layouts), families[i].reason));
  if (families.size() > shown)
    document.note(families.size() - shown == 1
                      ? fmt::format("and one more family that {} (--json has it)", one)
                      : fmt::format("and {} more families that {} (--json lists all)",
                                    families.size() - shown, others));
}

// Families without the winner: those that fit, then what would run if there were more memory. What
// was said of a listed layout is not said again.
void add_rejections(Document& document, const Advice& a) {
  std::vector<Rejection> slower, too_large;
  for (const Rejection& r : a.rejections) (r.fits ? slower : too_large).push_back(r);
  for (Rejection& r : slower)
    for (std::size_t i = 0; i < told_differences(document, a); ++i)
      if (r.reason == a.differences[i])
        r.reason = fmt::format("its best is number {} above.", i + 2);
  if (!slower.empty()) {
    document.label("Other sizes that fit, each by the best of it that was run, against the first:");
    add_families(document, slower, most_slower, "are slower", "is slower");
    document.gap();
  }
  if (too_large.empty()) return;
  document.label(
      a.memory_reserve > 0
          ? fmt::format("Sizes that never fit, with {:.0f}% of the memory left free, the "
                        "nearest miss of each:",
                        100 * a.memory_reserve)
          : "Sizes that never fit, the nearest miss of each:");
  add_families(document, too_large, most_too_large, "miss by more", "misses by more");
  document.gap();
}

// From how many accelerators on something fits.
std::string larger_text(const Advice& a) {
  if (a.fits_from > 0)
    return fmt::format("It would fit from {} accelerators of this machine on.",
                       grouped(a.fits_from));
  return "No larger machine of this kind was found to hold it with these settings.";
}

void add_nothing(Document& document, const Advice& a) {
  document.paragraph(a.stopped_early ? "The search was stopped before a layout was simulated."
                                     : a.why);
  if (!a.stopped_early) document.paragraph(larger_text(a));
  add_comparison(document, a);
  document.gap();
  add_rejections(document, a);
  document.paragraph(counts(a));
}

// The winner with its plan, its prediction and the reasons.
void add_winner(Document& document, const Scenario& winner, const Advice& a) {
  document.gap().paragraph("Why the first: " + a.why, "  ").gap();
  document.heading("The first in detail: " + to_text(winner.layout));
  add_plan(document, winner);
  add_prediction(document, winner, a.winner);
  add_limits(document, a.reasons, a.winner.step_time);
  add_traps(document, a.reasons);
}

void add_differences(Document& document, const Advice& a) {
  const std::size_t shown = told_differences(document, a);
  if (shown == 0) return;
  document.gap().label("What the next ones do differently:");
  for (std::size_t i = 0; i < shown; ++i)
    document.item(a.differences[i], fmt::format("{}.", i + 2));
}

}  // namespace

Document prediction_document(const Scenario& s, const Prediction& p, const Reasons& reasons,
                             bool full, std::size_t width) {
  Document document(full, width);
  add_subject(document, s);
  document.line(to_text(s.layout)).gap();
  if (full && is_training(s.job.task)) add_plan(document, s);
  add_prediction(document, s, p);
  add_network(document, s, p);
  add_limits(document, reasons, p.step_time);
  add_traps(document, reasons);
  if (full && is_training(s.job.task)) add_flags(document, reasons);
  return document;
}

Document advice_document(const Question& q, const Advice& a, bool full, std::size_t width) {
  Document document(full, width);
  Scenario winner{.cluster = q.cluster, .model = q.model, .job = q.job, .stack = a.stack};
  add_subject(document, winner);
  document.gap();
  if (a.best.empty()) {
    add_nothing(document, a);
    return document;
  }
  if (a.stopped_early)
    document.paragraph("The search was stopped early: this is the best so far. " + open_text(a.gap))
        .gap();
  winner.layout = a.best.front().layout;
  add_candidates(document, q, a);
  add_ranking(document, q, a);
  add_comparison(document, a);
  add_winner(document, winner, a);
  add_differences(document, a);
  add_front(document, q, a);
  document.gap();
  add_rejections(document, a);
  document.paragraph(counts(a));
  add_flags(document, a.reasons);
  return document;
}

}  // namespace orrery
