// SPDX-License-Identifier: Apache-2.0
// Writes energy, power and caps of a cluster.
#include "sim/app/schedule/power_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "sim/app/schedule/point_names.h"
#include "sim/base/text/words.h"

namespace orrery {
namespace {

const std::vector<WorkCaps>* first_caps(const Scheduled& s) {
  const auto point = std::find_if(s.points.begin(), s.points.end(),
                                  [](const SchedulePoint& p) { return p.asked.caps != nullptr; });
  return point != s.points.end() ? point->asked.caps.get() : nullptr;
}

double watts(const CapLevel& level) { return static_cast<double>(level.milliwatts) * 1e-3; }

// In the middle of the range of caps that a device has.
const CapLevel& half_way(const CapCurve& curve) { return curve[cap_steps / 2]; }

std::string longer(double slower) { return fmt::format("{:+.1f}%", 100 * (slower - 1)); }

void add_caps(Document& document, const Scheduled& s) {
  const std::vector<WorkCaps>* caps = first_caps(s);
  if (caps == nullptr) return;
  Table table(
      {"work", "uncapped", "caps from", "half way", "steps", "least cap", "steps", "at most"},
      {Align::left, Align::right, Align::right, Align::right, Align::right, Align::right,
       Align::right, Align::right});
  for (const WorkCaps& work : *caps) {
    if (!work.curve) continue;
    const CapCurve& curve = *work.curve;
    table.add({work.name, fmt::format("{:.0f} W", watts(curve.back())),
               fmt::format("{:.0f} to {:.0f} W", work.least.si(), work.most.si()),
               fmt::format("{:.0f} W", watts(half_way(curve))), longer(half_way(curve).slower),
               fmt::format("{:.0f} W", watts(curve.front())), longer(curve.front().slower),
               longer(work.most_slower)});
  }
  document.heading("What caps cost");
  document.table(table);
  document.note(
      "W of an accelerator and its share of a host, but for caps, which are the accelerator's; "
      "steps: how much longer they take. Few measured boards below their own limits: at the least "
      "cap steps may take as long as without it, or longer in proportion to what it takes (at "
      "most). Kinds of work that are not listed, as served models, are not capped.");
}

// Losses on top, and what a kilowatt-hour costs and emits.
std::string prices_text(const EnergyPrices& prices) {
  constexpr double kwh = joules_per_kilowatt_hour;
  const DataCentre& site = prices.site;
  const auto ranged = [&](const auto& value, double factor, const char* unit) {
    if (!value.known()) return std::string("not known");
    std::string text = fmt::format("{:.4g}{}", value.get().si() * factor, unit);
    if (value.low && value.high)
      text +=
          fmt::format(" ({:.3g} to {:.3g})", value.low->si() * factor, value.high->si() * factor);
    return text;
  };
  std::string text = "Electricity with the site's losses";
  if (site.power_usage_effectiveness.known())
    text += fmt::format(", a PUE of {:.3g}", site.power_usage_effectiveness.get());
  if (prices.grid) return text + fmt::format("; by the hour as {} has it.", prices.grid->name);
  return text + fmt::format("; a kWh costs {} and emits {}.",
                            ranged(site.electricity_price, kwh, " dollars"),
                            ranged(site.carbon_intensity, kwh, " kg"));
}

double megawatts(std::int64_t milliwatts) { return static_cast<double>(milliwatts) * 1e-9; }

// One limit, or the least and the most of those that change by the hour.
std::string limit_cell(const FleetQuestion& asked) {
  if (asked.power_limit_milliwatts == 0) return asked.feeds.empty() ? "none" : "by feeds";
  const std::string most = fmt::format("{:.3f}", megawatts(asked.power_limit_milliwatts));
  const std::vector<std::int64_t>& hours = asked.hours.limits;
  if (hours.empty()) return most;
  return fmt::format("{:.3f} to {}", megawatts(*std::min_element(hours.begin(), hours.end())),
                     most);
}

// "Feeds: 2 halls of 0.42 MW, 4 rows of 0.21 MW."
std::string feeds_text(const PointCase& asked) {
  std::vector<std::string> levels;
  const FeedTree& feeds = asked.question.feeds;
  for (auto level = feeds.rbegin(); level != feeds.rend(); ++level) {
    const std::int32_t count = (asked.shape.hosts + level->reach - 1) / level->reach;
    levels.push_back(count == 1 ? level->name : plural(count, level->name));
    if (level->limit > 0) levels.back() += fmt::format(" of {:.4g} MW", megawatts(level->limit));
  }
  return levels.empty() ? "" : "Feeds: " + joined(levels, ", ") + ".";
}

std::string percent(double share) { return fmt::format("{:.4g}%", 100 * share); }

// What the controller does, of each setting once, and for how long.
void add_thresholds(Document& document, const Scheduled& s) {
  std::vector<std::string> head;
  std::vector<Align> align;
  name_columns(s, head, align);
  for (const char* name : {"above", "low at", "above", "low at", "then high at", "high from",
                           "low down %", "lower %", "high too %"})
    head.emplace_back(name);
  align.resize(head.size(), Align::right);
  Table table(head, align);
  const AskedThresholds* first = nullptr;
  for (const SchedulePoint* p : run_points(s)) {
    if (!p->asked.thresholds) continue;
    const AskedThresholds& asked = *p->asked.thresholds;
    const ThresholdPreset& shares = asked.shares;
    const ThresholdTimes& times = p->measures.front().power.stepped;
    const double span = to_seconds(p->measures.front().span).si();
    const auto part = [&](FleetTime time) {
      return percent_figure(span > 0 ? to_seconds(time).si() / span : 0);
    };
    std::vector<std::string> row = name_cells(*p);
    row.insert(row.end(),
               {percent(shares.first), percent(shares.low), percent(shares.second),
                percent(shares.lower), percent(shares.high),
                asked.high_priority ? fmt::format("{}", *asked.high_priority) : "highest",
                part(times.low), part(times.lower), part(times.all)});
    table.add(row);
    if (first == nullptr) first = &asked;
  }
  if (first == nullptr) return;
  document.heading("Thresholds of power");
  document.table(table);
  document.note(fmt::format(
      "above: a share of a limit, above which jobs of low priority get such a share of the full "
      "clock, then those of high priority (from that priority on; highest: of all that can be "
      "capped); {} of the limit below they rise again. The rest is the share of time in which some "
      "clocks were down so far. {}, {}.",
      percent(first->shares.release_below), first->shares.title, first->shares.release));
  for (const std::string& line : first->shares.not_modelled) document.note(line + ".");
}

void add_ramps(Document& document, const SchedulePoint& p) {
  if (p.measures.empty()) return;
  const PowerRamps& ramps = p.measures.front().power.ramps;
  document.note(fmt::format(
      "Ramps, {}: within a minute it rises by at most {:.3f} MW and falls by {:.3f}, within 15 "
      "minutes by {:.3f} and {:.3f}; what GPUs draw for milliseconds within steps is not in it.",
      point_name(p), megawatts(ramps.minute.rise), megawatts(ramps.minute.fall),
      megawatts(ramps.quarter.rise), megawatts(ramps.quarter.fall)));
}

}  // namespace

void add_power(Document& document, const Scheduled& s) {
  const bool limited = std::any_of(s.points.begin(), s.points.end(), [](const SchedulePoint& p) {
    return p.asked.question.power_limit_milliwatts > 0 || !p.asked.question.feeds.empty();
  });
  const bool over = std::any_of(s.points.begin(), s.points.end(),
                                [](const SchedulePoint& p) { return p.record.power.over.us > 0; });
  const bool by_hour = std::any_of(s.points.begin(), s.points.end(), [](const SchedulePoint& p) {
    return !p.asked.question.hours.limits.empty() || p.record.power.suspended > 0;
  });
  std::vector<std::string> head;
  std::vector<Align> align;
  name_columns(s, head, align);
  for (const char* name : {"energy, GWh", "mean, MW", "most, MW"}) head.emplace_back(name);
  if (limited) head.insert(head.end(), {"limit, MW", "work %", "capped %"});
  if (over) head.emplace_back("above it for");
  if (by_hour) head.emplace_back("stopped");
  const bool billed = s.settings.has("site") || s.settings.has("grid");
  if (billed) head.insert(head.end(), {"electricity, $", "CO2, t"});
  align.resize(head.size(), Align::right);
  Table table(head, align);
  for (const SchedulePoint* p : run_points(s)) {
    const FleetMeasures& m = p->measures.front();
    std::vector<std::string> row = name_cells(*p);
    row.push_back(fmt::format("{:.3f}", m.energy.si() / (1e6 * joules_per_kilowatt_hour)));
    row.push_back(fmt::format("{:.3f}", m.power.mean.si() * 1e-6));
    row.push_back(fmt::format("{:.3f}", m.power.peak.si() * 1e-6));
    if (limited) {
      row.push_back(limit_cell(p->asked.question));
      row.push_back(percent_figure(mean_share(*p, &FleetShares::useful) +
                                   mean_share(*p, &FleetShares::in_vain)));
      row.push_back(percent_figure(mean_share(*p, &FleetShares::capped)));
    }
    if (over) row.push_back(to_text(m.power.over_limit));
    if (by_hour) row.push_back(grouped(m.power.suspended));
    if (billed)
      for (const double of : {m.power.bill ? m.power.bill->dollars : NAN,
                              m.power.bill ? m.power.bill->kg * 1e-3 : NAN})
        row.push_back(std::isnan(of) ? "not known" : grouped(std::llround(of)));
    table.add(row);
  }
  document.heading("Power of accelerators and hosts");
  document.table(table);
  document.note(fmt::format(
      "Accelerators of recorded jobs draw {}% of their limit, as busy ones of Acme did in "
      "2023.",
      std::llround(100 * recorded_power_share)));
  if (limited)
    document.note(
        "work: GPU-time in steps that count, useful or in vain; capped: what they took longer by "
        "caps.");
  const std::string feeds = feeds_text(s.points[s.best].asked);
  if (!feeds.empty()) document.note(feeds);
  if (by_hour)
    document.note("stopped: jobs, where a limit fell below what all draw at their least caps.");
  if (limited || billed) add_ramps(document, s.points[s.best]);
  if (billed) document.note(prices_text(*s.points.front().asked.prices));
  add_thresholds(document, s);
  add_caps(document, s);
}

namespace {

Json ramp_json(const PowerRamp& ramp) {
  return {{"rise_w", static_cast<double>(ramp.rise) * 1e-3},
          {"fall_w", static_cast<double>(ramp.fall) * 1e-3}};
}

// From the inside out.
Json feeds_json(const FeedTree& feeds) {
  Json out = Json::array();
  for (const FeedLevel& level : feeds)
    out.push_back({{"name", level.name},
                   {"hosts", level.reach},
                   {"limit_w", level.limit > 0 ? Json(static_cast<double>(level.limit) * 1e-3)
                                               : Json(nullptr)},
                   {"share_left", level.share_left}});
  return out;
}

// Null under another policy.
Json thresholds_json(const SchedulePoint& p) {
  if (!p.asked.thresholds) return nullptr;
  const AskedThresholds& asked = *p.asked.thresholds;
  const ThresholdTimes& times = p.measures.front().power.stepped;
  return {{"first", asked.shares.first},
          {"second", asked.shares.second},
          {"release", asked.shares.release_below},
          {"low", asked.shares.low},
          {"lower", asked.shares.lower},
          {"high", asked.shares.high},
          {"high_priority", asked.high_priority ? Json(*asked.high_priority) : Json(nullptr)},
          {"low_s", to_seconds(times.low).si()},
          {"lower_s", to_seconds(times.lower).si()},
          {"high_s", to_seconds(times.all).si()}};
}

Json ramps_json(const PowerRamps& ramps) {
  return {{"minute", ramp_json(ramps.minute)}, {"quarter_hour", ramp_json(ramps.quarter)}};
}

}  // namespace

Json power_json(const SchedulePoint& p) {
  const FleetMeasures& m = p.measures.front();
  const FleetQuestion& asked = p.asked.question;
  const bool limited = asked.power_limit_milliwatts > 0;
  const bool by_feeds = !asked.feeds.empty();
  return {
      {"mean_w", m.power.mean.si()},
      {"peak_w", m.power.peak.si()},
      {"limit_w",
       limited ? Json(static_cast<double>(asked.power_limit_milliwatts) * 1e-3) : Json(nullptr)},
      {"feeds", feeds_json(asked.feeds)},
      {"policy", limited || by_feeds ? Json(power_policy_text[asked.power_policy]) : Json(nullptr)},
      {"capped_share", m.shares.capped},
      {"over_limit_s", m.power.over_limit.si()},
      {"suspended", m.power.suspended},
      {"thresholds", thresholds_json(p)},
      {"ramp", ramps_json(m.power.ramps)}};
}

Json caps_json(const Scheduled& s) {
  Json out = Json::array();
  const std::vector<WorkCaps>* caps = first_caps(s);
  if (caps == nullptr) return out;
  for (const WorkCaps& work : *caps) {
    if (!work.curve) continue;
    Json levels = Json::array();
    constexpr int shown = 5;  // parts of the range
    for (int i = 0; i <= shown; ++i) {
      const CapLevel& level = (*work.curve)[static_cast<std::size_t>(i * cap_steps / shown)];
      levels.push_back({{"cap_w", work.least.si() + (work.most.si() - work.least.si()) * i / shown},
                        {"drawn_w", watts(level)},
                        {"slower", level.slower}});
    }
    out.push_back(
        {{"work", work.name}, {"levels", std::move(levels)}, {"most_slower", work.most_slower}});
  }
  return out;
}

}  // namespace orrery
