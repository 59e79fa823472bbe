// Writes reports for people: one prediction, or ranked layouts with the reasons.
#include "sim/app/report.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <functional>
#include <set>

#include "sim/app/network_report.h"
#include "sim/app/report_parts.h"
#include "sim/app/tables.h"

namespace orrery {
namespace {

// Published reruns of one job differ by 0.5 to 2% (validation/README.md): nothing that lies closer
// can be told apart.
constexpr double rerun_spread = 0.02;
constexpr std::size_t longest_front = 12;

std::string count_text(std::int64_t n) { return grouped(static_cast<double>(n)); }

// A layout and the numbers that the tables show of it.
struct Row {
  const Candidate& candidate;
  double mfu = 0, dollars = 0;  // dollars per million tokens; 0: no price known
};

std::vector<Row> rows_of(const std::vector<Candidate>& list, const Question& q,
                         const Prediction& winner) {
  const double tokens = static_cast<double>(q.job.global_batch * q.job.sequence);
  const double per_speed = winner.mfu / winner.tokens_per_second_per_gpu;
  std::vector<Row> rows;
  for (const Candidate& c : list)
    rows.push_back({.candidate = c,
                    .mfu = per_speed * c.tokens_per_second_per_gpu,
                    .dollars = winner.rental_per_gpu.si() * c.step_time.si() *
                               static_cast<double>(c.layout.gpus()) / tokens * 1e6});
  return rows;
}

std::string sharding(const Layout& l) {
  return l.shard_group > 0 ? fmt::format("{}/{}", l.zero_stage, l.shard_group)
                           : std::to_string(l.zero_stage);
}

std::string context_text(const Layout& l) {
  if (l.cp == 1) return "1";
  switch (l.context) {
    case ContextKind::ring:
      return fmt::format("{} ring", l.cp);
    case ContextKind::all_gather:
      return fmt::format("{} gather", l.cp);
    case ContextKind::all_to_all:
      return fmt::format("{} a2a", l.cp);
    case ContextKind::hierarchical:
      return fmt::format("{} a2a/{}", l.cp, l.context_inner);
  }
  return {};
}

// A decision that has a column where the listed layouts differ in it, and a place in the line above
// the table (`common`) where they do not.
struct Decision {
  const char* header;
  Align align;
  std::function<std::string(const Layout&)> cell;
  std::function<std::string(const Layout&)> common;  // empty text: goes without saying
};

Decision size_of(const char* header, std::int64_t Layout::*size) {
  return {.header = header,
          .align = Align::right,
          .cell = [=](const Layout& l) { return std::to_string(l.*size); },
          .common =
              [=](const Layout& l) {
                return l.*size > 1 ? fmt::format("{} {}", header, l.*size) : std::string();
              }};
}

std::vector<Decision> optional_decisions() {
  return {
      size_of("VPP", &Layout::vpp),
      {"CP", Align::left, context_text,
       [](const Layout& l) { return l.cp > 1 ? "CP " + context_text(l) : ""; }},
      size_of("EP", &Layout::ep),
      size_of("ETP", &Layout::etp),
      {"ZeRO", Align::right, sharding, [](const Layout& l) { return "ZeRO-" + sharding(l); }},
      {"schedule", Align::left, [](const Layout& l) { return std::string(to_text(l.schedule)); },
       [](const Layout& l) {
         return l.pp > 1 ? fmt::format("{} schedule", to_text(l.schedule)) : std::string();
       }},
      {"recompute", Align::left, [](const Layout& l) { return to_text(l.recompute_choice()); },
       [](const Layout& l) {
         return fmt::format("{} recompute",
                            l.recompute == Recompute::none ? "no" : to_text(l.recompute_choice()));
       }}};
}

// Splits the decisions into those with a column and a line of what is common to all rows.
std::vector<Decision> differing(const std::vector<Row>& rows, std::string& common) {
  std::vector<Decision> columns;
  std::vector<std::string> shared;
  // One search has one answer to this, and it means nothing where TP is 1.
  for (const Row& row : rows)
    if (const Layout& l = row.candidate.layout; l.tp > 1 && shared.empty())
      shared.emplace_back(l.sequence_parallel ? "sequence parallelism" : "no sequence parallelism");
  const Layout& first = rows.front().candidate.layout;
  for (Decision& decision : optional_decisions()) {
    std::set<std::string> texts;
    for (const Row& row : rows) texts.insert(decision.cell(row.candidate.layout));
    if (texts.size() > 1)
      columns.push_back(std::move(decision));
    else if (const std::string text = decision.common(first); !text.empty())
      shared.push_back(text);
  }
  shared.push_back(std::string(to_text(first.precision)));
  shared.push_back(fmt::format("{} optimizer", to_text(first.optimizer)));
  common = fmt::to_string(fmt::join(shared, ", "));
  return columns;
}

std::string candidates_table(const std::vector<Row>& rows, bool numbered) {
  std::string common;
  const std::vector<Decision> decisions = differing(rows, common);
  std::vector<std::string> header = {"TP", "PP", "DP", "MB"};
  std::vector<Align> align(header.size(), Align::right);
  for (const Decision& decision : decisions) {
    header.emplace_back(decision.header);
    align.push_back(decision.align);
  }
  const TimeUnit unit = unit_for(rows.front().candidate.step_time);
  header.push_back(fmt::format("step {}", unit.name));
  for (const char* name : {"tok/s/GPU", "MFU%", "GiB", "$/Mtok"}) header.emplace_back(name);
  align.resize(header.size(), Align::right);
  if (numbered) {
    header.insert(header.begin(), "#");
    align.insert(align.begin(), Align::right);
  }
  Table table(header, align);
  int rank = 0;
  for (const Row& row : rows) {
    const Candidate& c = row.candidate;
    std::vector<std::string> cells;
    if (numbered) cells.push_back(std::to_string(++rank));
    for (std::int64_t size : {c.layout.tp, c.layout.pp, c.layout.dp, c.layout.micro_batch})
      cells.push_back(std::to_string(size));
    for (const Decision& decision : decisions) cells.push_back(decision.cell(c.layout));
    cells.push_back(fmt::format("{:.{}f}", c.step_time.si() * unit.per_second, unit.decimals));
    cells.push_back(significant(c.tokens_per_second_per_gpu));
    cells.push_back(fmt::format("{:.1f}", 100 * row.mfu));
    cells.push_back(fmt::format("{:.1f}", in_gibibytes(c.peak_memory)));
    cells.push_back(row.dollars > 0 ? dollars_text(row.dollars) : "-");
    table.add(std::move(cells));
  }
  const char* all = rows.size() > 1 ? "All with " : "With ";
  return wrap(all + common + ":", page_width, "", "  ") + table.text("");
}

// How many of the first differ from the very first by less than reruns do.
std::string ties(const Question& q, const Advice& a) {
  const auto score = [&](const Candidate& c) {
    return q.objective == Objective::energy ? c.energy_per_step.si() : c.step_time.si();
  };
  const double best = score(a.best.front());
  const auto tied = std::count_if(a.best.begin(), a.best.end(), [&](const Candidate& c) {
    return score(c) <= best * (1 + rerun_spread);
  });
  if (a.best.size() == 1) return "";
  if (tied == 1)
    return wrap(fmt::format("The second lies {:.1f}% behind, more than the 0.5 to 2% by which "
                            "reruns of one job differ.",
                            100 * (score(a.best[1]) / best - 1)),
                page_width, "", "");
  return wrap(fmt::format("The first {} lie within 2%, and reruns of one job differ by 0.5 to 2%: "
                          "take them as equal, and choose by memory or by what is simplest to run.",
                          tied),
              page_width, "", "");
}

// The front, thinned to steps that save memory worth a row.
std::string pareto_text(const Question& q, const Advice& a) {
  if (a.pareto.empty()) return "";
  const std::vector<Row> front = rows_of(a.pareto, q, a.winner);
  std::vector<Row> rows;
  for (double saving : {1.0, 0.95, 0.9, 0.8, 0.7}) {
    rows.clear();
    for (const Row& row : front)
      if (rows.empty() || row.candidate.peak_memory < rows.back().candidate.peak_memory * saving)
        rows.push_back(row);
    if (rows.size() <= longest_front) break;
  }
  std::string text = "\nSpeed against memory: nothing is faster with less.";
  if (rows.size() < front.size())
    text += fmt::format(" {} of {} points (--json lists all).", rows.size(), front.size());
  return text + "\n" + candidates_table(rows, false);
}

std::string counts(const Advice& a) {
  std::string text = fmt::format(
      "{} valid layouts considered ({} grid points were not valid): {} rejected for memory, {} "
      "simulated, {} ruled out by a lower bound on their time.",
      count_text(a.considered), count_text(a.invalid), count_text(a.rejected_for_memory),
      count_text(a.simulated), count_text(a.pruned));
  return wrap(text, page_width, "", "");
}

// Closest first: what would run if there were a little more memory.
std::string rejections(const Advice& a) {
  if (a.rejections.empty()) return "";
  std::vector<Rejection> nearest = a.rejections;
  std::stable_sort(nearest.begin(), nearest.end(),
                   [](const Rejection& x, const Rejection& y) { return x.margin > y.margin; });
  const std::size_t shown = std::min<std::size_t>(5, nearest.size());
  std::string text =
      a.memory_reserve > 0
          ? fmt::format(
                "Rejected for memory, with {:.0f}% of it left free, nearest miss of each "
                "family:\n",
                100 * a.memory_reserve)
          : "Rejected for memory, nearest miss of each family:\n";
  for (std::size_t i = 0; i < shown; ++i)
    text += wrap(fmt::format("{} ({} layouts): {}", nearest[i].family,
                             count_text(nearest[i].layouts), nearest[i].reason),
                 page_width, "  ", "    ");
  if (nearest.size() > shown)
    text += fmt::format("  and {} more families that miss by more\n", nearest.size() - shown);
  return text + "\n";
}

std::string nothing_found(const Advice& a) {
  const std::string why =
      a.stopped_early ? "The search was stopped before a layout was simulated." : a.why;
  return wrap(why, page_width, "", "") + "\n" + rejections(a) + counts(a);
}

}  // namespace

std::string prediction_report(const Scenario& s, const Prediction& p) {
  return subject(s) + to_text(s.layout) + "\n\n" + prediction_detail(s, p) + network_text(s, p);
}

std::string advice_report(const Question& q, const Advice& a) {
  Scenario winner{.cluster = q.cluster, .model = q.model, .job = q.job, .stack = a.stack};
  std::string text = subject(winner) + "\n";
  if (a.best.empty()) return text + nothing_found(a);
  if (a.stopped_early) text += "The search was stopped early: this is the best so far.\n\n";
  winner.layout = a.best.front().layout;
  text += candidates_table(rows_of(a.best, q, a.winner), true) + "\n" + ties(q, a) + "\n";
  text += wrap("Why the first: " + a.why, page_width, "", "  ") + "\n";
  text += "The first in detail: " + to_text(winner.layout) + "\n";
  text += prediction_detail(winner, a.winner) + "\n";
  const std::size_t shown = std::min<std::size_t>(4, a.differences.size());
  if (shown > 0) text += "What the next ones do differently:\n";
  for (std::size_t i = 0; i < shown; ++i)
    text += wrap(fmt::format("{}. {}", i + 2, a.differences[i]), page_width, "  ", "     ");
  return text + pareto_text(q, a) + "\n" + rejections(a) + counts(a);
}

}  // namespace orrery
