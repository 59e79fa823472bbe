// SPDX-License-Identifier: Apache-2.0
// Writes the best point of a schedule, and what it is held against.
#include "sim/app/schedule/best_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "sim/app/schedule/point_names.h"
#include "sim/app/schedule/share_parts.h"
#include "sim/base/text/words.h"

namespace orrery {
namespace {

constexpr double tie_chance = 0.05;  // of being the best, from which on a point may be as good

std::string signed_text(double value, const std::string& amount) {
  return (value < 0 ? "-" : "+") + amount;
}

std::string signed_time(double t) { return signed_text(t, to_text(seconds(std::abs(t)))); }

// A difference of a figure, in its unit.
std::string figure_difference(const std::string& figure, double more) {
  if (figure == "energy") return signed_text(more, to_text(Joules(std::abs(more))));
  if (figure.starts_with("completion.") || figure.starts_with("wait.")) return signed_time(more);
  return signed_text(more, percent_figure(std::abs(more)) + " points");
}

// With its interval where there are several seeds.
std::string more_text(const Scheduled& s, const std::string& figure, const SeedMean& more) {
  std::string text = figure_difference(figure, more.mean);
  if (s.search.compared > 1 && more.low < more.high)
    text += fmt::format(" ({} to {})", figure_difference(figure, more.low),
                        figure_difference(figure, more.high));
  return text;
}

std::string joined_some(std::vector<std::string> names) {
  constexpr std::size_t most = 5;
  const std::size_t more = names.size() > most ? names.size() - most : 0;
  names.resize(names.size() - more);
  return joined(names, "; ") + (more > 0 ? fmt::format("; and {} more", more) : "");
}

Json mean_json(const std::optional<SeedMean>& m) {
  if (!m) return nullptr;
  return {{"mean", m->mean}, {"low", m->low}, {"high", m->high}};
}

// Of points that were not done as the time was over.
void add_time_limit(Document& document, const Scheduled& s) {
  if (!s.search.out_of_time) return;
  std::size_t none = 0;
  for (const SchedulePoint& p : s.points) none += p.measures.empty() && !p.ruled_out ? 1 : 0;
  document.paragraph(fmt::format(
      "The limit of {} ended it after {}; points are compared by their first {}. {} no run by "
      "then: "
      "on another machine, or another time, it comes further or less far.",
      to_text(*s.search.time_limit), plural(s.runs, "run"), plural(s.search.compared, "seed"),
      none == 0 ? "No point has" : fmt::format("{} of {} points have", none, s.points.size())));
}

void add_search(Document& document, const Scheduled& s) {
  const auto ruled_out = std::count_if(s.points.begin(), s.points.end(),
                                       [](const SchedulePoint& p) { return p.ruled_out; });
  if (s.confidence && !s.search.out_of_time)
    document.paragraph(fmt::format("{} of {} runs were enough.", grouped(s.runs),
                                   grouped(s.seeds * static_cast<std::int64_t>(s.points.size()))));
  if (ruled_out > 0)
    document.paragraph(
        fmt::format("Not run, since no policy on as many GPUs is as good: {} of {} points.",
                    ruled_out, s.points.size()));
  std::int64_t left_out = 0;
  for (const LeftOutPoints& one : s.search.left_out) left_out += one.points;
  if (left_out > 0)
    document.paragraph(fmt::format(
        "Left out, since the question does not allow them (--json says why): {} of {} "
        "combinations.",
        grouped(left_out), grouped(left_out + static_cast<std::int64_t>(s.points.size()))));
}

// Who cannot hold some jobs is not held against those that hold them.
void add_turned_away(Document& document, const Scheduled& s) {
  std::vector<std::string> names;
  for (const SchedulePoint& p : s.points)
    if (!p.takes_most)
      names.push_back(fmt::format("{} ({})", point_name(p), plural(p.turned_away, "job")));
  if (names.empty()) return;
  document.paragraph(fmt::format("Not in question, since others take jobs that they turn away: {}.",
                                 joined_some(names)));
}

// The parts of GPU-time in which two points differ most.
std::string parts_text(const Scheduled& s, std::size_t other) {
  struct Part {
    const char* name;
    double more;
  };
  std::vector<Part> parts;
  for (const SharePart& part : share_parts())
    parts.push_back({part.name, mean_share(s.points[other], part.member) -
                                    mean_share(s.points[s.best], part.member)});
  std::stable_sort(parts.begin(), parts.end(), [](const Part& a, const Part& b) {
    return std::abs(a.more) > std::abs(b.more);
  });
  std::vector<std::string> words;
  constexpr std::size_t most = 3;
  constexpr double least = 0.0005;  // what a figure shows
  for (std::size_t i = 0; i < most; ++i)
    if (std::abs(parts[i].more) >= least)
      words.push_back(
          fmt::format("{} {}", parts[i].name,
                      signed_text(parts[i].more, percent_figure(std::abs(parts[i].more)))));
  return joined(words, ", ");
}

// What the best point gains against how the cluster is run now.
void add_now(Document& document, const Scheduled& s) {
  if (!s.search.now) return;
  const SchedulePoint& now = s.points[*s.search.now];
  if (*s.search.now == s.best) {
    document.paragraph(fmt::format("It is run so now: {}.", point_name(now)));
    return;
  }
  if (!s.reasons.now) {
    document.paragraph(fmt::format("Now, {}: {} is not known.", point_name(now), s.objective));
    return;
  }
  document.paragraph(fmt::format("Now, {}, has {} of {}{}.", point_name(now),
                                 more_text(s, s.objective, *s.reasons.now), s.objective,
                                 now.kept ? "" : ", and is over a limit"));
}

// Jobs that had not ended are in no completion: whoever leaves long ones waiting looks better.
void add_unfinished(Document& document, const Scheduled& s) {
  const auto left = [&](const SchedulePoint& p) {
    return mean_of(
        p, [](const FleetMeasures& m) { return static_cast<double>(m.running + m.queued); });
  };
  const SchedulePoint* least = nullptr;
  for (const SchedulePoint& p : s.points)
    if (!p.measures.empty() && p.takes_most && (!least || left(p) < left(*least))) least = &p;
  const SchedulePoint& best = s.points[s.best];
  if (!least || left(best) <= left(*least)) return;
  document.paragraph(fmt::format(
      "It leaves {:.4g} jobs that had not ended as the run did, {} {:.4g}: these are in no "
      "completion.",
      left(best), point_name(*least), left(*least)));
}

}  // namespace

std::string chance_cell(const SchedulePoint& p) {
  if (!p.takes_most) return "turns jobs away";
  return p.kept ? percent_figure(p.chance) : "over a limit";
}

void add_best(Document& document, const Scheduled& s) {
  if (s.points.size() < 2) {
    add_time_limit(document, s);
    return;
  }
  const SchedulePoint& best = s.points[s.best];
  if (!best.known) {
    document.paragraph(fmt::format("{} is not known: no job came so far.", s.objective));
    add_time_limit(document, s);
    return;
  }
  std::string text = fmt::format("Best by {}: {}", s.objective, point_name(best));
  if (s.search.compared > 1)
    text += fmt::format(", with a chance of {}%", percent_figure(best.chance));
  document.paragraph(text + ".");
  if (!best.kept) document.paragraph("No point keeps all limits.");
  std::vector<std::string> ties;
  for (std::size_t p = 0; p < s.points.size(); ++p)
    if (p != s.best && s.points[p].kept && s.points[p].chance > tie_chance)
      ties.push_back(point_name(s.points[p]));
  if (s.search.compared > 1 && !ties.empty())
    document.paragraph("It may be as good: " + joined_some(ties) + ".");
  add_turned_away(document, s);
  add_unfinished(document, s);
  add_time_limit(document, s);
  add_search(document, s);
}

void add_reasons(Document& document, const Scheduled& s) {
  const BestReasons& reasons = s.reasons;
  if (reasons.runner_up) {
    const std::string parts = parts_text(s, *reasons.runner_up);
    const std::string more = more_text(s, s.objective, reasons.more);
    document.paragraph(
        fmt::format("The next one, {}, {}.{}", point_name(s.points[*reasons.runner_up]),
                    reasons.more.mean == 0 ? "comes to the same"
                                           : fmt::format("has {} of {}", more, s.objective),
                    parts.empty() ? "" : fmt::format(" In points of its GPU-time: {}.", parts)));
  }
  add_now(document, s);
  Table table({"if", "the best is", "against the best one"},
              {Align::left, Align::left, Align::right});
  bool any = false;
  const auto add = [&](const std::string& when, std::size_t point, const std::string& figure,
                       const SeedMean& more) {
    table.add({when, point_name(s.points[point]), more_text(s, figure, more)});
    any = true;
  };
  for (const OtherFigure& other : reasons.by_figure)
    add("judged by " + other.figure, other.point, other.figure, other.more);
  if (reasons.without_limits)
    table.add({"there are no limits", point_name(s.points[*reasons.without_limits]), ""});
  for (const OtherValue& other : reasons.by_value)
    if (other.changes)
      add(fmt::format("{} is {}", other.key, other.value), other.point, s.objective, other.more);
  if (!any && !reasons.without_limits) return;
  document.heading("What would change it");
  document.table(table);
}

void add_differences(Document& document, const Scheduled& s) {
  if (s.differences.empty()) return;
  Table table({"against " + point_name(s.points[s.best]), "completion", "90% interval", "wait",
               "90% interval"},
              {Align::left, Align::right, Align::right, Align::right, Align::right});
  const auto mean = [](const std::optional<SeedMean>& m) { return m ? signed_time(m->mean) : "-"; };
  const auto interval = [](const std::optional<SeedMean>& m) {
    return m ? signed_time(m->low) + " to " + signed_time(m->high) : "-";
  };
  const std::vector<const SchedulePoint*> shown = run_points(s);
  for (const PointDifference& d : s.differences) {
    const SchedulePoint* point = &s.points[d.point];
    if (std::find(shown.begin(), shown.end(), point) == shown.end()) continue;
    table.add({point_name(*point), mean(d.completion_s), interval(d.completion_s), mean(d.wait_s),
               interval(d.wait_s)});
  }
  document.heading("Compared on the same arrivals and failures");
  document.table(table);
}

Json reasons_json(const Scheduled& s) {
  const BestReasons& r = s.reasons;
  Json figures = Json::array(), values = Json::array();
  for (const OtherFigure& other : r.by_figure)
    figures.push_back(
        {{"figure", other.figure}, {"best", other.point}, {"more", mean_json(other.more)}});
  for (const OtherValue& other : r.by_value)
    values.push_back({{"setting", other.key},
                      {"value", other.value},
                      {"best", other.point},
                      {"more", mean_json(other.more)},
                      {"changes", other.changes}});
  return {{"runner_up", r.runner_up ? Json(*r.runner_up) : Json(nullptr)},
          {"more", r.runner_up ? mean_json(r.more) : Json(nullptr)},
          {"by_figure", figures},
          {"by_value", values},
          {"without_limits", r.without_limits ? Json(*r.without_limits) : Json(nullptr)}};
}

Json differences_json(const Scheduled& s) {
  Json out = Json::array();
  for (const PointDifference& d : s.differences)
    out.push_back({{"point", d.point},
                   {"completion_s", mean_json(d.completion_s)},
                   {"wait_s", mean_json(d.wait_s)},
                   {"objective", mean_json(d.objective)}});
  return out;
}

Json search_json(const Scheduled& s) {
  const auto ruled_out = std::count_if(s.points.begin(), s.points.end(),
                                       [](const SchedulePoint& p) { return p.ruled_out; });
  Json left_out = Json::array();
  for (const LeftOutPoints& one : s.search.left_out)
    left_out.push_back({{"why", one.why}, {"points", one.points}});
  const auto limit = s.search.time_limit;
  return {{"considered", s.points.size()},
          {"ruled_out", ruled_out},
          {"left_out", left_out},
          {"runs", s.runs},
          {"seeds_compared", s.search.compared},
          {"confidence", s.confidence ? Json(*s.confidence) : Json(nullptr)},
          {"now", s.search.now ? Json(*s.search.now) : Json(nullptr)},
          {"time_limit_s", limit ? Json(limit->si()) : Json(nullptr)},
          {"out_of_time", s.search.out_of_time}};
}

}  // namespace orrery
