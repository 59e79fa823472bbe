// SPDX-License-Identifier: Apache-2.0
// Asks for studies of routing and prints them.
#include "sim/app/topology/traffic_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <vector>

#include "sim/app/report/parts.h"
#include "sim/base/errors/check.h"
#include "sim/base/json/tree.h"
#include "sim/base/parallel.h"
#include "sim/base/text/words.h"
#include "sim/engine/traffic/study.h"

namespace orrery {
namespace {

constexpr std::array<const char*, 5> layer_names = {"", "NICs", "leaf-spine", "spine-core",
                                                    "sites"};

struct Row {
  TrafficStudy study;
  bool own = false;  // the fabric's routing
};

Routing read_routing(const std::string& text) {
  for (const Routing r : {Routing::adaptive, Routing::spray, Routing::ecmp})
    if (text == to_text(r)) return r;
  throw Error({.file = "--routing",
               .found = in_quotes(text),
               .expected = "ecmp, adaptive or spray",
               .nearest = nearest_name(text, {"ecmp", "adaptive", "spray"})});
}

TrafficPattern read_pattern(const std::string& text) {
  if (const auto pattern = traffic_pattern_from(text)) return *pattern;
  const std::vector<std::string> known = traffic_pattern_names();
  throw Error({.file = "--traffic",
               .found = in_quotes(text),
               .expected = joined(known, ", "),
               .nearest = nearest_name(text, known)});
}

// Flags that would change nothing are a mistake.
void check_flags(const TrafficQuestion& question) {
  const auto refuse = [](const char* flag, const char* found, const char* expected) {
    throw Error({.file = flag, .found = found, .expected = expected});
  };
  if (question.pattern.empty()) refuse("topology", "no --traffic", "it beside the flags for it");
  const TrafficPattern pattern = read_pattern(question.pattern);
  const bool groups =
      pattern == TrafficPattern::all_to_all || pattern == TrafficPattern::spread_all_to_all;
  if (question.group > 0 && !groups)
    refuse("--group", "traffic without groups", "it with all-to-all or spread-all-to-all");
  if (question.paths && !question.routing.empty() &&
      read_routing(question.routing) != Routing::ecmp)
    refuse("--paths-per-flow", "routing that spreads every flow", "it with ecmp");
}

// Of one routing; `pairs`: of hashed flows, ascending.
std::vector<Row> rows_of(Routing routing, const std::vector<std::int64_t>& pairs,
                         const Fabric& fabric, TrafficOptions options) {
  const ScaleOut& out = fabric.scale_out;
  const bool hashed = routing == Routing::ecmp;
  options.routing = routing;
  std::vector<Row> rows;
  const std::vector<std::int64_t> asked = hashed ? pairs : std::vector<std::int64_t>{1};
  std::vector<TrafficStudy> studies = traffic_studies(fabric, options, asked);
  for (std::size_t i = 0; i < asked.size(); ++i) {
    const bool own = routing == out.routing && (!hashed || asked[i] == out.paths_per_flow);
    // A NIC with many ports has no fewer queue pairs.
    const std::int64_t had = studies[i].options.paths_per_flow;
    if (!rows.empty() && had == rows.back().study.options.paths_per_flow)
      rows.back().own |= own;
    else
      rows.push_back({.study = std::move(studies[i]), .own = own});
  }
  return rows;
}

// The routings to compare, the fabric's own among them.
std::vector<Row> rows_of(const Fabric& fabric, std::int64_t accelerators,
                         const TrafficQuestion& question) {
  check_flags(question);
  const ScaleOut& out = fabric.scale_out;
  const bool hashes = out.routing == Routing::ecmp;
  std::vector<std::int64_t> pairs = {1, 4, 16};
  if (hashes) pairs.push_back(out.paths_per_flow);
  if (question.paths) pairs = {*question.paths};
  std::vector<Routing> routings = {Routing::ecmp, hashes ? Routing::spray : out.routing};
  if (!question.routing.empty()) {
    routings = {read_routing(question.routing)};
    if (!question.paths) pairs = {hashes ? out.paths_per_flow : 1};
  }
  std::sort(pairs.begin(), pairs.end());
  pairs.erase(std::unique(pairs.begin(), pairs.end()), pairs.end());
  TrafficOptions options{.accelerators = accelerators,
                         .pattern = read_pattern(question.pattern),
                         .group = question.group,
                         .seed = question.seed,
                         .rounds = question.rounds};
  std::vector<std::vector<Row>> found(routings.size());
  parallel_for(routings.size(), 0,
               [&](std::size_t i) { found[i] = rows_of(routings[i], pairs, fabric, options); });
  std::vector<Row> rows;
  for (std::vector<Row>& of_routing : found)
    std::move(of_routing.begin(), of_routing.end(), std::back_inserter(rows));
  return rows;
}

std::string routing_name(const Row& row) {
  const TrafficOptions& o = row.study.options;
  std::string name(to_text(o.routing));
  if (o.routing == Routing::ecmp) name += ", " + plural(o.paths_per_flow, "queue pair");
  return row.own ? name + " *" : name;
}

std::string sampled_text(const SampledShare& s) {
  return s.error > 0 ? fmt::format("{} +-{:.1f}", percent(s.value), 100 * s.error)
                     : percent(s.value);
}

std::string bounds_text(const ClosedForm& c) {
  if (!c.mean_high) return "-";
  if (!c.mean_low) return "to " + percent(*c.mean_high);
  if (*c.mean_high - *c.mean_low < 5e-4) return percent(*c.mean_high);
  return fmt::format("{:.1f} to {}", 100 * *c.mean_low, percent(*c.mean_high));
}

std::string pattern_sentence(const TrafficStudy& s) {
  const std::int64_t group = s.options.group;
  switch (s.options.pattern) {
    case TrafficPattern::ring:
      return "every accelerator to the next scale-up domain";
    case TrafficPattern::crossing_ring:
      return "every accelerator to the domain one leaf group further on";
    case TrafficPattern::all_to_all:
      return fmt::format("groups of {} neighbours", group);
    case TrafficPattern::spread_all_to_all:
      return fmt::format("groups of {}, their domains as far apart as can be", group);
    case TrafficPattern::all_to_all_all:
      return "among all, by sampled rounds";
  }
  return {};
}

std::string crossing_text(const TrafficStudy& s) {
  constexpr std::array<const char*, 5> where = {"", "stays under its leaf", "passes spines",
                                                "passes cores", "passes sites"};
  std::vector<std::string> parts;
  for (std::size_t l = 1; l < s.crossing.size(); ++l)
    if (s.crossing[l] > 0) parts.push_back(fmt::format("{} {}", percent(s.crossing[l]), where[l]));
  return joined(parts, ", ");
}

void add_head(Document& document, const std::string& name, const Fabric& fabric,
              const TrafficStudy& s) {
  const std::string title =
      fmt::format("{} ({}), {} accelerators", fabric.title, name, grouped(s.options.accelerators));
  const std::string traffic =
      fmt::format("{}: {}, at its own position there (rail-aligned). Of the traffic, {}.",
                  to_text(s.options.pattern), pattern_sentence(s), crossing_text(s));
  document.paragraph(title, "  ").paragraph(traffic, "  ");
}

void add_shares(Document& document, const std::vector<Row>& rows) {
  Table table({"routing", "collective", "closed form", "single flows", "closed form", "rounds"},
              {Align::left, Align::right, Align::right, Align::right, Align::right, Align::right});
  for (const Row& row : rows) {
    const TrafficStudy& s = row.study;
    table.add({routing_name(row), sampled_text(s.synchronised), percent(s.closed.synchronised),
               s.mean ? sampled_text(*s.mean) : "-", bounds_text(s.closed),
               fmt::format("{}", s.options.rounds)});
  }
  document.gap().label("Share of the NICs' line rate").table(std::move(table), "");
}

void add_loads(Document& document, const std::vector<Row>& rows) {
  Table table(
      {"offered load", "layer", "links", "mean", "10%", "50%", "90%", "worst", "idle", "above 1"},
      {Align::left, Align::left, Align::right, Align::right, Align::right, Align::right,
       Align::right, Align::right, Align::right, Align::right});
  const auto load = [](double v) { return fmt::format("{:.2f}", v); };
  for (const Row& row : rows) {
    std::string name = routing_name(row);
    for (const LayerLoad& l : row.study.layers) {
      if (l.layer == 1) continue;  // every NIC sends at its rate
      table.add({name, layer_names[static_cast<std::size_t>(l.layer)], grouped(l.links),
                 load(l.mean), load(l.deciles[1]), load(l.deciles[5]), load(l.deciles[9]),
                 load(l.most), grouped(l.idle), grouped(l.overloaded)});
      name.clear();
    }
  }
  if (!table.empty()) document.gap().table(std::move(table), "");
}

std::vector<std::string> notes(const Fabric& fabric, const std::vector<Row>& rows) {
  const Sourced<double>& e = fabric.scale_out.efficiency;
  std::vector<std::string> out = {
      "* the fabric's own routing. collective: what its slowest flow gets; single flows: the mean "
      "max-min share where nothing waits for the slowest. +-: standard error over rounds.",
      fmt::format("{} of the line rate is the fabric's efficiency: packet headers and all that no "
                  "flow escapes ({}; {}: {}). Adaptive routing and spraying lose nothing more but "
                  "to tapering; hashing comes on top.",
                  percent(e.get()), to_text(e.evidence), e.source, e.reason),
      "Offered load: what a link had to carry, over its rate, if every NIC sent at its rate. A "
      "synchronised collective runs at one over the worst."};
  for (const Row& row : rows) {
    const TrafficStudy& s = row.study;
    if (s.mean_of == s.sending || !s.mean) continue;
    out.push_back(fmt::format(
        "{}: single flows are solved for the first {} accelerators, sending among themselves.",
        routing_name(row), grouped(s.mean_of)));
  }
  return out;
}

Json optional_json(const std::optional<double>& v) { return v ? Json(*v) : Json(); }

Json row_json(const Row& row) {
  const TrafficStudy& s = row.study;
  Json layers = Json::array();
  for (const LayerLoad& l : s.layers)
    layers.push_back({{"layer", layer_names[static_cast<std::size_t>(l.layer)]},
                      {"links", l.links},
                      {"mean", l.mean},
                      {"worst", l.most},
                      {"deciles", l.deciles},
                      {"idle", l.idle},
                      {"overloaded", l.overloaded}});
  Json json = {{"routing", to_text(s.options.routing)},
               {"queue_pairs", s.options.paths_per_flow},
               {"own", row.own},
               {"rounds", s.options.rounds}};
  if (s.options.routing != Routing::ecmp) json["queue_pairs"] = nullptr;
  json["collective"] = {{"share", s.synchronised.value},
                        {"standard_error", s.synchronised.error},
                        {"closed_form", s.closed.synchronised}};
  json["single_flows"] = {{"share", s.mean ? Json(s.mean->value) : Json()},
                          {"standard_error", s.mean ? Json(s.mean->error) : Json()},
                          {"accelerators", s.mean_of},
                          {"closed_form_low", optional_json(s.closed.mean_low)},
                          {"closed_form_high", optional_json(s.closed.mean_high)}};
  json["offered_load"] = layers;
  return json;
}

}  // namespace

WholeAnswer traffic_answer(const std::string& kind, const std::string& name, const Fabric& fabric,
                           std::int64_t accelerators, const TrafficQuestion& question,
                           const AnswerHead& head) {
  const std::vector<Row> rows = rows_of(fabric, accelerators, question);
  const TrafficStudy& first = rows.front().study;
  Document document(true);
  add_head(document, name, fabric, first);
  add_shares(document, rows);
  add_loads(document, rows);
  document.gap();
  for (const std::string& note : notes(fabric, rows)) document.paragraph(note, "  ");
  Json crossing = Json::object();
  for (std::size_t l = 1; l < layer_names.size(); ++l)
    crossing[json_key(layer_names[l])] = first.crossing[l];
  Json all = Json::array();
  for (const Row& row : rows) all.push_back(row_json(row));
  const TrafficOptions& o = first.options;
  const bool grouped_traffic =
      o.pattern == TrafficPattern::all_to_all || o.pattern == TrafficPattern::spread_all_to_all;
  const Json result = {{kind, name},
                       {"wiring", fabric.name},
                       {"accelerators", o.accelerators},
                       {"traffic", to_text(o.pattern)},
                       {"group", grouped_traffic ? Json(o.group) : Json()},
                       {"highest_layer", crossing},
                       {"efficiency", first.efficiency},
                       {"routings", all},
                       {"notes", notes(fabric, rows)}};
  return {{.json = answer_json(head, {}, result)}, std::move(document)};
}

}  // namespace orrery
