// SPDX-License-Identifier: Apache-2.0
// Writes a validation as tables.
#include "sim/validate/page/page.h"

#include <fmt/format.h>

#include <map>

#include "sim/base/sorting.h"
#include "sim/base/text/words.h"
#include "sim/validate/score/causes.h"
#include "sim/validate/score/residuals.h"

namespace orrery {
namespace {

using Cells = std::vector<std::string>;

// The first `names` columns hold words, the others figures.
std::vector<Align> named(std::size_t names, std::size_t columns) {
  std::vector<Align> align(columns, Align::right);
  for (std::size_t i = 0; i < names; ++i) align[i] = Align::left;
  return align;
}

Cells group_row(const GroupScore& g) {
  const auto speed = speed_numbers(g), peak = numbers(g.peak), fixed = numbers(g.static_memory);
  const int right = g.oom_found + g.fit_found, all = right + g.oom_missed + g.oom_false;
  return {g.source,
          g.gpu,
          fmt::format("{}/{}", g.speed.size(), g.rows),
          speed ? percent_figure(speed->median) : "",
          speed ? percent_figure(speed->p90) : "",
          speed ? fmt::format("{:+.1f}", 100 * speed->bias) : "",
          peak ? percent_figure(peak->median) : "",
          fixed ? percent_figure(fixed->median) : "",
          all > 0 ? fmt::format("{}/{}", right, all) : ""};
}

void add_groups(Document& document, const std::vector<ScoredRow>& rows) {
  const Cells header = {"source", "GPU",    "scored",   "median %",    "90th %",
                        "bias %", "peak %", "static %", "OOM verdicts"};
  Table overall(header, named(2, header.size())), groups(header, named(2, header.size()));
  for (const GroupScore& g : overall_groups(rows))
    if (g.rows > 0) overall.add(group_row(g));
  for (const GroupScore& g : group_rows(rows))
    if (g.predicted > 0) groups.add(group_row(g));
  document.heading("Predicted against measured");
  document.paragraph(
      "Percent of tokens/s/GPU: median and 90th percentile of the error without its sign, median "
      "with it (above 0: predicted too fast); medians of the error of peak memory and of memory "
      "between steps; right verdicts on whether a run fits.");
  document.table(std::move(overall)).table(std::move(groups));
}

// Those that fail first, of the others of which there are hundreds the count.
void add_gates(Document& document, const std::vector<GateVerdict>& gates) {
  if (gates.empty()) return;
  Table failed({"group", "figure", "today %", "at most %", "set", "verdict"}, named(2, 6));
  std::size_t passed = 0;
  for (const GateVerdict& v : gates) {
    if (v.passed) ++passed;
    if (!v.passed)
      failed.add({v.gate.group, v.gate.figure, v.today ? percent_figure(*v.today) : "no rows",
                  percent_figure(v.gate.at_most), v.gate.date, "failed"});
  }
  document.heading("Gates").paragraph(
      fmt::format("What each figure may be at most: {} of {} gates passed.", passed, gates.size()));
  if (!failed.empty()) document.table(std::move(failed));
}

void add_worst(Document& document, const std::vector<WorstRow>& worst) {
  if (worst.empty()) return;
  Table table({"row", "error", "GPU", "run", "where the predicted step goes", "suspected cause"},
              {Align::left, Align::right, Align::left, Align::left, Align::left, Align::left});
  for (const WorstRow& w : worst) {
    const PreparedRow& r = *w.row->row;
    table.add({r.id, fmt::format("{:+.0f}%", 100 * *w.row->speed_error), r.gpu,
               fmt::format("{}, {}, {}", r.model.name, r.release, to_text(r.layout)), w.breakdown,
               w.cause});
  }
  document.heading("Farthest off")
      .paragraph(
          "At most six of one source. The causes are drawn from the errors of rows that share "
          "something "
          "with the row; they are suspicions.");
  document.table(std::move(table));
}

void add_bins(Document& document, const std::vector<ResidualTable>& tables,
              const std::string& heading) {
  if (tables.empty()) return;
  Table all({"by", "bin", "rows", "median %", "90th %", "bias %"}, named(2, 6));
  for (const ResidualTable& table : tables)
    for (const ResidualBin& bin : table.bins) {
      const auto n = numbers(bin.errors);
      all.add({table.quantity, bin.label, fmt::format("{}", bin.errors.size()),
               percent_figure(n->median), percent_figure(n->p90),
               fmt::format("{:+.1f}", 100 * n->bias)});
    }
  document.heading(heading).paragraph("Of tokens/s/GPU.").table(std::move(all));
}

void add_skipped(Document& document, const std::vector<ScoredRow>& rows) {
  std::map<std::pair<std::string, std::string>, int> counts;  // by reason and source
  for (const ScoredRow& s : rows) {
    GroupScore one;
    add_row(one, s);
    for (const auto& [reason, count] : one.skipped) counts[{reason, s.row->source}] += count;
  }
  std::vector<std::pair<int, Cells>> sorted;
  for (const auto& [of, count] : counts)
    sorted.push_back({-count, {fmt::format("{}", count), of.first, of.second}});
  sort_stably(sorted, [](const auto& a, const auto& b) { return a.first < b.first; });
  Table table({"rows", "why", "source"}, {Align::right, Align::left, Align::left});
  for (auto& [count, cells] : sorted) table.add(std::move(cells));
  const SkippedShare share = skipped_share(rows);
  document.heading("Not scored, and why");
  document.paragraph(fmt::format(
      "Not predicted: {} of {} rows with a whole layout on a catalogued accelerator, {:.1f}%.",
      share.skipped, share.rows, 100 * share.share()));
  if (!table.empty()) document.table(std::move(table));
}

}  // namespace

Document validation_document(const std::vector<ScoredRow>& rows,
                             const std::vector<GateVerdict>& gates,
                             const std::vector<PageText>& more) {
  Document document(true);
  document.title(fmt::format("{} rows read", rows.size()));
  add_groups(document, rows);
  add_gates(document, gates);
  constexpr std::size_t worst_count = 40, of_source = 6;
  add_worst(document, worst_rows(rows, worst_count, of_source));
  add_bins(document, residual_tables(rows, false), "Errors of published runs in figures");
  add_bins(document, residual_tables(rows, true), "Errors of sweeps in figures");
  for (const PageText& text : more) document.heading(text.title).code(text.text, "");
  add_skipped(document, rows);
  return document;
}

}  // namespace orrery
