// Puts reports together: one prediction, or ranked layouts with the reasons.
#include "sim/app/report.h"

#include <fmt/format.h>

#include <algorithm>

#include "sim/app/network_report.h"
#include "sim/app/report_advice.h"
#include "sim/app/report_parts.h"

namespace orrery {
namespace {

std::string count_text(std::int64_t n) { return grouped(static_cast<double>(n)); }

std::string counts(const Advice& a) {
  std::string text = fmt::format(
      "{} valid layouts considered: {} rejected for memory, {} simulated, {} ruled out by a lower "
      "bound on their time{}.",
      count_text(a.considered), count_text(a.rejected_for_memory), count_text(a.simulated),
      count_text(a.pruned), a.left > 0 ? fmt::format(", {} not looked at", count_text(a.left)) : "",
      count_text(a.invalid));
  if (!a.stopped_early && !a.best.empty())
    text += " Nothing better was missed: every one ruled out is proven slower.";
  return text;
}

constexpr std::size_t most_slower = 5, most_too_large = 3;

void add_families(Document& document, const std::vector<Rejection>& families, std::size_t most,
                  const char* others) {
  const std::size_t shown = document.full() ? families.size() : std::min(most, families.size());
  for (std::size_t i = 0; i < shown; ++i)
    document.item(fmt::format("{} ({} layouts): {}", families[i].family,
                              count_text(families[i].layouts), families[i].reason));
  if (families.size() > shown)
    document.note(fmt::format("and {} more families that {} (--json lists all)",
                              families.size() - shown, others));
}

// Families without the winner: those that fit, then what would run if there were more memory.
void add_rejections(Document& document, const Advice& a) {
  std::vector<Rejection> slower, too_large;
  for (const Rejection& r : a.rejections) (r.fits ? slower : too_large).push_back(r);
  if (!slower.empty()) {
    document.label("Other sizes that fit, each by the best of it that was run, against the first:");
    add_families(document, slower, most_slower, "are slower");
    document.gap();
  }
  if (too_large.empty()) return;
  document.label(
      a.memory_reserve > 0
          ? fmt::format("Sizes that never fit, with {:.0f}% of the memory left free, the "
                        "nearest miss of each:",
                        100 * a.memory_reserve)
          : "Sizes that never fit, the nearest miss of each:");
  add_families(document, too_large, most_too_large, "miss by more");
  document.gap();
}

void add_nothing(Document& document, const Advice& a) {
  document.paragraph(a.stopped_early ? "The search was stopped before a layout was simulated."
                                     : a.why);
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
  const std::size_t shown =
      document.full() ? a.differences.size() : std::min<std::size_t>(4, a.differences.size());
  if (shown == 0) return;
  document.gap().label("What the next ones do differently:");
  for (std::size_t i = 0; i < shown; ++i)
    document.item(a.differences[i], fmt::format("{}.", i + 2));
}

}  // namespace

Document prediction_document(const Scenario& s, const Prediction& p, const Reasons& reasons,
                             bool full) {
  Document document(full);
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

Document advice_document(const Question& q, const Advice& a, bool full) {
  Document document(full);
  Scenario winner{.cluster = q.cluster, .model = q.model, .job = q.job, .stack = a.stack};
  add_subject(document, winner);
  document.gap();
  if (a.best.empty()) {
    add_nothing(document, a);
    return document;
  }
  if (a.stopped_early)
    document
        .paragraph(
            fmt::format("The search was stopped early: this is the best so far. What was not "
                        "looked at is proven to be no more than {:.1f}% faster.",
                        100 * a.gap))
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
