// SPDX-License-Identifier: Apache-2.0
// Writes why a layout is as fast as it is, what would help, and how to start it.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "sim/app/report/advice.h"
#include "sim/app/report/parts.h"
#include "sim/base/sorting.h"
#include "sim/base/text/words.h"
#include "sim/explain/explain.h"
#include "sim/outcome/noise.h"

namespace orrery {
namespace {

std::string time_text(Seconds time, const TimeUnit& unit) {
  return fmt::format("{:.{}f}", time.si() * unit.per_second, unit.decimals);
}

std::string gain_text(const Counterfactual& lever) {
  if (!lever.applies) return "-";
  const bool at_most = lever.faster_at_most && *lever.faster_at_most - lever.faster >= 0.001;
  return at_most
             ? fmt::format("{:+.1f} to {:.1f}%", 100 * lever.faster, 100 * *lever.faster_at_most)
             : signed_percent(lever.faster);
}

double best_gain(const Counterfactual& lever) {
  return std::max(lever.faster, lever.faster_at_most.value_or(0));
}

constexpr double least_share = 0.02;

// "tensor cores, which the power limit slows"
std::string resource_text(const PhaseLimit& p, Resource r) {
  const bool slowed = r == Resource::tensor_cores && p.limit == Resource::power;
  return std::string(to_text(r)) + (slowed ? " (which the power limit slows)" : "");
}

// What a phase's time goes with, the most first.
std::vector<std::pair<double, Resource>> by_share(const PhaseLimit& p) {
  std::vector<std::pair<double, Resource>> order;
  for (int r = 0; r < resource_count; ++r)
    if (p.elasticity[static_cast<std::size_t>(r)] >= least_share)
      order.push_back({p.elasticity[static_cast<std::size_t>(r)], static_cast<Resource>(r)});
  sort_stably(order, [](const auto& a, const auto& b) { return a.first > b.first; });
  return order;
}

std::string step_text(const PhaseLimit& step) {
  std::vector<std::string> parts;
  for (const auto& [share, resource] : by_share(step))
    parts.push_back(fmt::format("{:.0f}% with {}", 100 * share, resource_text(step, resource)));
  if (parts.empty()) return "What limits it: latencies and starts of kernels, no resource.";
  std::string text = "What limits it: the step's time goes " + enumeration(parts);
  if (step.fixed >= least_share)
    text += fmt::format("; {:.0f}% is latencies that none of them shortens", 100 * step.fixed);
  return text + ".";
}

std::string phases_text(const std::vector<PhaseLimit>& limits) {
  std::vector<std::string> parts;
  for (const PhaseLimit& p : limits) {
    if (p.phase == "step" || p.share < least_share) continue;
    const auto order = by_share(p);
    parts.push_back(fmt::format(
        "{} {:.0f}% of the step{}", p.phase, 100 * p.share,
        order.empty() ? std::string()
                      : fmt::format(", most with {} ({:.0f}%)", to_text(order.front().second),
                                    100 * std::min(1.0, order.front().first))));
  }
  return fmt::format("By phase: {}.", joined(parts, "; "));
}

// All phases and what their time goes with.
Table phases_table(const std::vector<PhaseLimit>& limits) {
  std::vector<std::string> header = {"phase", "s", "% of step"};
  for (int r = 0; r < resource_count; ++r) header.emplace_back(to_text(static_cast<Resource>(r)));
  header.emplace_back("fixed");
  Table table(header, {Align::left});
  for (const PhaseLimit& p : limits) {
    std::vector<std::string> row = {p.phase, fmt::format("{:.3g}", p.time.si()),
                                    fmt::format("{:.1f}", 100 * p.share)};
    for (const double e : p.elasticity)
      row.push_back(fmt::format("{:.2f}", std::abs(e) < 0.005 ? 0 : e));
    row.push_back(fmt::format("{:.2f}", std::abs(p.fixed) < 0.005 ? 0 : p.fixed));
    table.add(std::move(row));
  }
  return table;
}

constexpr std::size_t most_levers = 6;

void add_levers(Document& document, const Reasons& r, Seconds step) {
  const TimeUnit unit = unit_for(step);
  std::vector<Counterfactual> levers = r.levers;
  sort_stably(levers, [](const auto& a, const auto& b) { return best_gain(a) > best_gain(b); });
  Table table(
      {"what would make this layout faster", fmt::format("step {}", unit.name), "faster", ""},
      {Align::left, Align::right, Align::right, Align::left});
  std::vector<std::string> ask_again;
  std::size_t shown = 0;
  for (const Counterfactual& lever : levers) {
    if (lever.applies && lever.needs_advice) ask_again.push_back(lever.name);
    if (!document.full() &&
        (!lever.applies || best_gain(lever) < least_gain || shown == most_levers))
      continue;
    ++shown;
    const bool at_most = lever.note.starts_with("At most");
    const std::string note = document.full() ? lever.note : at_most ? "at most" : "";
    table.add(
        {lever.name, lever.applies ? time_text(lever.step, unit) : "-", gain_text(lever), note});
  }
  document.gap();
  if (shown > 0) document.table(std::move(table), "");
  if (!ask_again.empty())
    document.paragraph(fmt::format("With {}, other layouts may win and gain more: ask again.",
                                   joined(ask_again, " or ")));
}

// Launch flags side by side, as many as a page takes: a shell reads on after a backslash.
std::string packed(const LaunchFlags& flags) {
  if (flags.language != "sh") return flags.text;
  std::string out, line;
  std::size_t at = 0;
  const auto flush = [&](const char* end) {
    out += line + end;
    line.clear();
  };
  while (at < flags.text.size()) {
    const std::size_t end = std::min(flags.text.find('\n', at), flags.text.size());
    std::string one = flags.text.substr(at, end - at);
    at = end + 1;
    const bool goes_on = one.ends_with(" \\");
    if (goes_on) one.resize(one.size() - 2);
    if (!line.empty() && line.size() + 1 + one.size() + 2 > page_width) flush(" \\\n");
    line += (line.empty() ? "" : " ") + one;
    if (!goes_on) flush("\n");
  }
  return out;
}

std::string rival_text(std::size_t number, const Rival& r) {
  const std::string range = fmt::format("{:.1f} to {:.1f}%", 100 * r.low, 100 * r.high);
  if (r.behind < 0)  // the first is listed for its fewer settings
    return fmt::format(
        "{} lies {} ahead of the first, which is kept for fewer settings ({} behind)", number,
        percent(-r.behind), range);
  return fmt::format("{} lies {} behind ({})", number, percent(r.behind), range);
}

std::string ties(const Question& q, const Advice& a) {
  const double best = measure(q, a.best.front());
  const auto tied = std::count_if(a.best.begin(), a.best.end(), [&](const Candidate& c) {
    return measure(q, c) <= best * (1 + rerun_spread);
  });
  if (tied == 1)
    return fmt::format(
        "The second lies {} behind, more than the {} by which reruns of one job differ.",
        percent(measure(q, a.best[1]) / best - 1), rerun_range_text());
  return fmt::format(
      "The first {} lie within {}, and reruns of one job differ by {}: "
      "take them as equal, and choose by memory or by what is simplest to run.",
      tied, rerun_spread_text(), rerun_range_text());
}

std::string changes_text(const Advice& a, std::size_t most) {
  const Ranking& r = a.reasons.ranking;
  const std::size_t own = std::min<std::size_t>(a.best.size(), r.rivals.size() + 1);
  std::vector<std::string> parts;
  for (const OrderChange& c : r.changes) {
    if (parts.size() == most) break;
    const std::string who = c.first < own && !(a.like && c.first == r.rivals.size())
                                ? fmt::format("{}", c.first + 1)
                                : "what runs now";
    parts.push_back(fmt::format("{} at {} in place of {} puts {} first, by {}", c.path, c.end,
                                c.value, who, percent(c.ahead)));
  }
  if (parts.empty()) return " No single value, at an end of its range, puts another one first.";
  std::string text = fmt::format(" {}.", joined(parts, "; "));
  if (r.changes.size() > parts.size())
    text += fmt::format(" {} more {} (--json lists all).", r.changes.size() - parts.size(),
                        r.changes.size() - parts.size() == 1 ? "does" : "do");
  return text;
}

std::string steadiness(const Advice& a, bool full) {
  const Ranking& r = a.reasons.ranking;
  const std::size_t own = r.rivals.size() - (a.like ? 1 : 0);
  if (own == 0) return "";
  std::vector<std::string> rivals, may_lead;
  for (std::size_t i = 0; i < own; ++i) {
    rivals.push_back(rival_text(i + 2, r.rivals[i]));
    if (r.rivals[i].may_lead()) may_lead.push_back(std::to_string(i + 2));
  }
  std::string text = fmt::format(
      "How sure the order is: with {} values that are not facts moved in all layouts alike, so "
      "that "
      "common errors cancel, {} (90% range).",
      r.values, joined(rivals, ", "));
  if (!may_lead.empty()) text += fmt::format(" {} may be first.", enumeration(may_lead));
  return text + changes_text(a, full ? r.changes.size() : 2);
}

}  // namespace

void add_ranking(Document& document, const Question& q, const Advice& a) {
  if (a.best.size() > 1) document.gap().paragraph(ties(q, a));
  if (const std::string text = steadiness(a, document.full()); !text.empty())
    document.paragraph(text, "  ");
}

void add_limits(Document& document, const Reasons& r, Seconds step) {
  if (r.limits.empty()) return;
  document.gap().paragraph(step_text(r.limits.front()) + " " + phases_text(r.limits), "  ");
  if (document.full()) document.table(phases_table(r.limits));
  add_levers(document, r, step);
}

void add_traps(Document& document, const Reasons& r) {
  if (r.limits.empty()) return;
  document.gap();
  if (r.traps.empty()) {
    document.paragraph("Known traps: it is in none.");
    return;
  }
  document.label("Known traps that it is in:");
  for (const Trap& trap : r.traps)
    document.item(document.full() && !trap.evidence.empty()
                      ? fmt::format("{} Evidence: {}.", trap.sentence, trap.evidence)
                      : trap.sentence);
}

void add_flags(Document& document, const Reasons& r) {
  const LaunchFlags& f = r.flags;
  document.gap();
  if (f.program.empty()) {
    document.paragraph(f.note);
    return;
  }
  document.label(fmt::format("To start it with {}:", f.program));
  document.code(packed(f), f.language);
  for (const FlagNote& missing : f.missing) document.item(missing.sentence);
  if (document.full())
    for (const FlagNote& implied : f.implied) document.item(implied.sentence);
  if (!f.note.empty()) document.item(f.note);
}

namespace {

Table where_table(const Comparison& c, Seconds step) {
  const TimeUnit unit = unit_for(step);
  Table table({"where the time goes (mean of stages)", fmt::format("now {}", unit.name), "advised",
               "change"},
              {Align::left});
  const auto seconds = [](Ticks t) { return to_seconds(t).si(); };
  const auto row = [&](std::string_view name, double now, double advised) {
    const auto text = [&](double v) {
      return fmt::format("{:.{}f}", v * unit.per_second, unit.decimals);
    };
    table.add({std::string(name), text(now), text(advised),
               fmt::format("{:+.{}f}", (advised - now) * unit.per_second, unit.decimals)});
  };
  std::vector<Label> labels;
  for (int i = 0; i < label_count; ++i) {
    const auto label = static_cast<Label>(i);
    const double most = std::max(seconds(c.where[0][label]), seconds(c.where[1][label]));
    if (most >= 0.0005 * step.si()) labels.push_back(label);
  }
  const auto change = [&](Label l) { return seconds(c.where[1][l]) - seconds(c.where[0][l]); };
  sort_stably(labels, [&](Label a, Label b) { return std::abs(change(a)) > std::abs(change(b)); });
  for (const Label l : labels) row(phrase(l), seconds(c.where[0][l]), seconds(c.where[1][l]));
  row("step", seconds(c.where[0].total()), seconds(c.where[1].total()));
  return table;
}

std::string verdict(const Comparison& c) {
  if (c.faster < 0 && c.faster > -tie_tolerance)
    return fmt::format(
        "What runs now is as fast as the advised layout, within the {:.2g}% that advice gives up "
        "to "
        "be simpler: there is no reason to change.",
        100 * tie_tolerance);
  if (c.faster < 0)
    return fmt::format(
        "What runs now is {} faster than the best layout that was searched: it lies "
        "outside of the grid or of the limits, or leaves less memory free.",
        percent(1 / (1 + c.faster) - 1));
  std::string text =
      fmt::format("The advised layout makes {} more steps in the same time", percent(c.faster));
  text += c.faster < rerun_spread
              ? ", no more than reruns of one job differ by: there is no reason to change"
              : "";
  return text +
         fmt::format("; with values that are not facts moved in both alike, {:.1f} to {:.1f}%.",
                     100 * c.rival.low, 100 * c.rival.high);
}

}  // namespace

namespace {

Table flags_table(const std::string& title, const std::vector<FlagChange>& changes) {
  Table table({title, "now", "advised"}, {Align::left, Align::left, Align::left});
  for (const FlagChange& f : changes)
    table.add({f.name, f.was.empty() ? "-" : f.was, f.is.empty() ? "-" : f.is});
  return table;
}

std::string changes_text(int n) { return plural(n, "change"); }

// What each rung changes, by how much it is faster, and the flags of the last that is worth it.
void add_ladder(Document& document, const Ladder& ladder, Seconds now) {
  if (ladder.asked == 0) return;
  document.gap().heading(
      fmt::format("In small steps from what runs now, up to {}", changes_text(ladder.asked)));
  const TimeUnit unit = unit_for(now);
  Table table({"changes", "what", fmt::format("step {}", unit.name), "faster", "GiB"},
              {Align::right, Align::left, Align::right, Align::right, Align::right});
  const Rung* last = nullptr;
  for (const Rung& r : ladder.rungs) {
    if (!r.better) continue;
    std::vector<std::string> what;
    for (const Decision d : r.what) what.emplace_back(to_text(d));
    table.add({std::to_string(r.changes), joined(what, ", "),
               time_text(r.candidate.step_time, unit), signed_percent(r.faster),
               fmt::format("{:.1f}", in_gibibytes(r.candidate.peak_memory))});
    last = &r;
  }
  if (last != nullptr) document.table(std::move(table), "");
  for (const Rung& r : ladder.rungs)
    document.item(r.better ? fmt::format("{}: {}", changes_text(r.changes), r.difference)
                  : ladder.forced > r.changes
                      ? fmt::format("{}: the question itself fixes {} decisions at other values",
                                    changes_text(r.changes), ladder.forced)
                      : fmt::format("{}: nothing gains more than {:.2g}% over {}.",
                                    changes_text(r.changes), 100 * tie_tolerance,
                                    r.changes > 1 ? "fewer" : "what runs now"));
  document.paragraph(fmt::format(
      "{} sets of decisions were searched, {} layouts; all else stays as it is, and DP follows.{}",
      grouped(ladder.searches), grouped(ladder.considered),
      ladder.stopped_early ? " Stopped early: longer sets were not all searched." : ""));
  if (last == nullptr || last->flags.empty()) return;
  document.gap().table(
      flags_table("flags to change for " + changes_text(last->changes), last->flags), "");
}

}  // namespace

constexpr std::size_t most_singles = 5;

void add_comparison(Document& document, const Advice& a) {
  if (!a.like) return;
  const Comparison& c = *a.like;
  const Prediction& p = c.prediction;
  document.gap().heading("Against what runs now: " + to_text(c.now.layout));
  document.line(fmt::format("now {}, 90% range {} to {}: {} tokens/s/GPU, MFU {:.1f}%, {} {}",
                            to_text(p.step_time), to_text(p.low), to_text(p.high),
                            significant(p.tokens_per_second_per_gpu), 100 * p.utilisation.mfu,
                            c.now.stack.framework, c.now.stack.release));
  document.paragraph("Memory now: " + memory_sentence(p.memory), "  ");
  if (c.where.empty()) return;
  document.paragraph(verdict(c), "  ");
  for (const std::string& sentence : c.stack) document.paragraph(sentence, "  ");
  document.paragraph("The advised one has " + c.difference, "  ");
  document.gap().table(where_table(c, p.step_time), "");
  const std::size_t singles =
      document.full() ? c.singles.size() : std::min(most_singles, c.singles.size());
  if (singles > 0) document.gap().label("One decision of it at a time, in what runs now:");
  for (std::size_t i = 0; i < singles; ++i)
    document.item(c.singles[i].sentence + (c.singles[i].fits ? "" : " It does not fit."));
  if (!c.flags.empty()) document.gap().table(flags_table("flags to change", c.flags), "");
  add_ladder(document, a.ladder, p.step_time);
}

}  // namespace orrery
