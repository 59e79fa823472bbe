// SPDX-License-Identifier: Apache-2.0
// Finds the network that was asked for, and what is known of it.
#include "sim/app/topology/command.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "hw_models/catalog_names.h"
#include "sim/app/answer/answer.h"
#include "sim/app/line/result.h"
#include "sim/app/line/setting_flags.h"
#include "sim/app/page/outputs.h"
#include "sim/app/topology/picture.h"
#include "sim/app/topology/report.h"
#include "sim/base/output_file.h"
#include "sim/engine/cluster.h"
#include "sim/question/settings/inline_files.h"

namespace orrery {
namespace {

template <class T>
void add(SecondsRange& sum, const Sourced<T>& one, double times = 1) {
  const auto plain = [](const T& v) {
    if constexpr (std::is_same_v<T, double>)
      return v;
    else
      return v.si();
  };
  if (!one.known()) return;
  sum.value += times * plain(one.get());
  sum.low += times * plain(one.low.value_or(one.get()));
  sum.high += times * plain(one.high.value_or(one.get()));
}

constexpr const char* cluster_folder = "sim/engine/catalog/clusters";
constexpr const char* fabric_folder = "topologies/catalog";

bool is_path(const std::string& name) {
  return name.find('/') != std::string::npos || name.ends_with(".json");
}

// An entry is a fabric when it says what a fabric is made of, or is based on one. `beside`: the
// folder of its file.
bool holds_fabric(const JsonValue& entry, const std::filesystem::path& beside) {
  for (const char* key : {"accelerator", "fabric", "host", "site", "overrides"})
    if (entry.has(key)) return false;
  if (entry.has("scale_up") || entry.has("scale_out")) return true;
  if (!entry.has("based_on")) return false;
  const JsonValue base = entry.at("based_on");
  if (base.is_object()) return holds_fabric(JsonValue::from(base.raw(), entry.file()), beside);
  const std::vector<std::string> fabrics = fabric_names();
  if (!is_path(base.text())) return std::binary_search(fabrics.begin(), fabrics.end(), base.text());
  const std::filesystem::path file = beside / base.text();
  return holds_fabric(JsonValue::load(file), file.parent_path());
}

bool holds_fabric(const std::string& reference) {
  if (is_inline_entry(reference)) return holds_fabric(JsonValue::parse(reference, "topology"), {});
  return holds_fabric(JsonValue::load(reference), std::filesystem::path(reference).parent_path());
}

// What is most likely meant: a cluster, else a fabric.
std::string suggest(const std::string& name) {
  const std::string cluster = meant_name(cluster_folder, name);
  return cluster.empty() ? meant_name(fabric_folder, name) : cluster;
}

// The entry's own name for any name of a cluster or, failing that, of a fabric.
std::string entry_called(const std::string& given) {
  for (const char* folder : {cluster_folder, fabric_folder})
    if (const auto name = known_as(folder, given)) return *name;
  return given;
}

// A name of both is the cluster: it stands on that wiring, and knows its accelerator too.
TopologySubject find_subject(const std::string& given) {
  const std::string name = is_path(given) ? given : entry_called(given);
  if (name.empty())
    throw Error({.file = "topology",
                 .found = "no name",
                 .expected = "a cluster or a fabric: `orrery catalog list cluster` prints names"});
  const std::vector<std::string> clusters = cluster_names(), fabrics = fabric_names();
  const bool file = is_inline_entry(name) || is_path(name),
             file_of_fabric = file && holds_fabric(name);
  const bool cluster =
      file ? !file_of_fabric : std::binary_search(clusters.begin(), clusters.end(), name);
  const bool fabric =
      file ? file_of_fabric : std::binary_search(fabrics.begin(), fabrics.end(), name);
  if (!cluster && !fabric)
    throw Error({.file = "topology",
                 .found = in_quotes(name) + ", neither a cluster nor a fabric",
                 .expected = "a name of `orrery catalog list cluster` or `... fabric`, or a file",
                 .nearest = suggest(name)});
  if (!cluster) {
    Fabric wiring = load_fabric(name);
    return {.kind = "fabric", .name = wiring.name, .title = wiring.title, .fabric = wiring};
  }
  Cluster whole = load_cluster(name, 1);
  return {.kind = "cluster",
          .name = whole.name,
          .title = whole.title,
          .fabric = whole.fabric,
          .device = whole.device,
          .gpus_per_host = whole.gpus_per_host};
}

// A cluster is bought in whole hosts, as simulate, advise and plan hold it.
void check_hosts(const TopologySubject& subject, std::int64_t gpus) {
  const std::int64_t host = subject.gpus_per_host;
  if (gpus > host && gpus % host != 0)
    throw Error({.file = "--gpus",
                 .found = fmt::format("{}", gpus),
                 .expected = fmt::format("a multiple of {}, the accelerators of a host of {}", host,
                                         subject.name)});
}

// One full group of the largest tier whose size the wiring states, at least one domain.
std::int64_t default_size(const Fabric& fabric, std::string& note) {
  std::int64_t size = fabric.scale_up.domain;
  std::string what = "one scale-up domain";
  for (const Tier& tier : fabric.scale_out.tiers)
    if (tier.reach > size) {
      size = tier.reach;
      what = "one full group of the largest tier that has a size";
    }
  if (fabric.sites.accelerators > 0) {
    size = 2 * fabric.sites.accelerators;
    what = "two full sites";
  }
  const std::int64_t reserved = fabric.scale_out.reserved_hosts * fabric.scale_up.domain;
  if (reserved > 0 && reserved < size) {
    size -= reserved;
    what += " without the hosts kept for management";
  }
  note = fmt::format("size: {}; --gpus sets another", what);
  return size;
}

NetworkReach reach_of(const Fabric& fabric, std::int64_t accelerators, const FabricParts& parts) {
  NetworkReach reach;
  const ScaleUp& up = fabric.scale_up;
  // A switched domain's figure holds its switches; a torus is crossed link by link.
  const double hops = up.kind == ScaleUpKind::torus ? std::max(1, parts.scale_up_diameter) : 1;
  add(reach.within_domain, up.latency, hops);
  reach.longest = reach.within_domain;
  const ScaleOut& out = fabric.scale_out;
  reach.scale_out = out.kind != ScaleOutKind::none && accelerators > up.domain;
  if (!reach.scale_out) return reach;
  // Ports may run out before a tier's stated reach: the shape has the tiers that it takes.
  const ClosShape shape = bought_shape(fabric, accelerators);
  std::size_t tiers = shape.tiers.size();
  // The links between dragonfly groups are a tier without switches.
  if (shape.direct && shape.tiers.back().groups > 1) ++tiers;
  reach.top_tier = std::clamp<std::size_t>(tiers, 1, out.tiers.size()) - 1;
  add(reach.under_leaf, out.nic_latency);
  add(reach.under_leaf, out.tiers[0].latency);
  reach.longest = reach.under_leaf;
  for (std::size_t i = 1; i <= reach.top_tier; ++i) add(reach.longest, out.tiers[i].latency);
  const Sites& sites = fabric.sites;
  reach.several_sites = sites.accelerators > 0 && accelerators > sites.accelerators;
  if (reach.several_sites && sites.kilometres.known())
    add(reach.longest, sites.latency_per_kilometre, sites.kilometres.get());
  return reach;
}

// Ports of switches that the wiring names without counting them: the catalogue's, at its own rate,
// where they are enough.
void fill_ports(FabricParts& parts) {
  const std::vector<std::string> known = catalog_names("hw_models/catalog/switches");
  for (SwitchCount& s : parts.switches) {
    if (s.ports != 0 || !std::binary_search(known.begin(), known.end(), s.part)) continue;
    const Switch part = load_switch(s.part);
    if (part.ports.known() && part.ports.get() >= s.ports_used) s.ports = part.ports.get();
  }
}

// What an answer for machines says it was asked.
AnswerHead topology_head(const TopologyOptions& options) {
  AnswerHead head{.command = "topology", .question = {{"name", options.name}}};
  const JsonValue named = JsonValue::from({{"cluster", options.name}}, options.name);
  if (const auto whole = with_files_inline(named))
    head.question["name"] = whole->raw().at("cluster");
  if (is_inline_entry(options.name)) head.question["name"] = SortedJson::parse(options.name);
  const TrafficQuestion& traffic = options.traffic;
  if (options.gpus) head.question["gpus"] = *options.gpus;
  if (!traffic.asked()) return head;
  head.seed = traffic.seed;
  if (!traffic.pattern.empty()) head.question["traffic"] = traffic.pattern;
  if (!traffic.routing.empty()) head.question["routing"] = traffic.routing;
  if (traffic.paths) head.question["paths_per_flow"] = *traffic.paths;
  if (traffic.group > 0) head.question["group"] = traffic.group;
  if (traffic.rounds > 0) head.question["rounds"] = traffic.rounds;
  return head;
}

}  // namespace

Json topology_again(const JsonValue& question, std::optional<std::uint64_t> seed) {
  question.expect_only({"name", "gpus", "traffic", "routing", "paths_per_flow", "group", "rounds"});
  const auto number = [&](const char* key) -> std::optional<std::int64_t> {
    const auto v = question.find(key);
    return v ? std::optional(v->integer(1, INT64_C(1) << 40)) : std::nullopt;
  };
  const auto text = [&](const char* key) {
    const auto v = question.find(key);
    return v ? v->text() : std::string();
  };
  const TopologyOptions options{.name = question.at("name").reference(),
                                .gpus = number("gpus"),
                                .traffic = {.pattern = text("traffic"),
                                            .routing = text("routing"),
                                            .paths = number("paths_per_flow"),
                                            .group = number("group").value_or(0),
                                            .rounds = number("rounds").value_or(0),
                                            .seed = seed.value_or(0)}};
  return topology_answer(options).machines.json;
}

WholeAnswer topology_answer(const TopologyOptions& options) {
  const AnswerHead head = topology_head(options);
  TopologyReport report{.subject = find_subject(options.name), .width = terminal_width()};
  const Fabric& fabric = report.subject.fabric;
  if (options.gpus) check_hosts(report.subject, *options.gpus);
  report.accelerators = options.gpus ? *options.gpus : default_size(fabric, report.size_note);
  report.parts = fabric_parts(fabric, report.accelerators);
  report.reach = reach_of(fabric, report.accelerators, report.parts);
  report.bill = network_bill(fabric, report.parts);
  fill_ports(report.parts);
  for (const std::string& output : {options.svg_file, options.dot_file})
    if (!output.empty()) check_writable_file(output);
  const std::string picture = topology_svg(fabric, report.parts, report.subject.title);
  if (!options.svg_file.empty()) write_file(options.svg_file, picture);
  if (!options.dot_file.empty()) write_file(options.dot_file, topology_dot(fabric, report.parts));
  WholeAnswer whole =
      options.traffic.asked()
          ? traffic_answer(report.subject.kind, report.subject.name, fabric, report.accelerators,
                           options.traffic, head)
          : WholeAnswer{{.json = answer_json(head, {}, topology_report_json(report))},
                        topology_document(report)};
  whole.drawings.push_back({"The scheme of the network", picture});
  return whole;
}

namespace {

constexpr std::int64_t most_accelerators = INT64_C(1) << 40, most_of_traffic = INT64_C(1) << 20;

Printed answer(const Given& given) {
  const CommonFlags common = common_of(given);
  const auto number = [&](const char* flag, std::int64_t most) -> std::optional<std::int64_t> {
    if (!given.has(flag)) return std::nullopt;
    return whole_number(flag, given.text(flag), 1, most);
  };
  TopologyOptions options{.name = given.word(0),
                          .gpus = number("--gpus", most_accelerators),
                          .dot_file = given.place("--dot"),
                          .svg_file = given.place("--svg"),
                          .traffic = {.pattern = given.text("--traffic"),
                                      .routing = given.text("--routing"),
                                      .paths = number("--paths-per-flow", most_of_traffic),
                                      .group = number("--group", most_of_traffic).value_or(0),
                                      .rounds = number("--rounds", most_of_traffic).value_or(0)}};
  if (options.traffic.pattern.empty())
    refuse_seed(common, "nothing without --traffic, which draws hashes");
  options.traffic.seed = common.seed.value_or(0);
  check_looks(given);
  const WholeAnswer whole = topology_answer(options);
  write_looks(given, [&] { return whole; });
  return {common.json ? indented_text(whole.machines.json) : page(whole.document, common)};
}

std::vector<Flag> flags() {
  constexpr const char *network = "Network", *traffic = "Traffic";
  Flag seed = seed_flag();
  seed.group = traffic;
  std::vector<Flag> all = {
      {"--gpus", "N", network,
       "accelerators (default: one full group of the largest tier that has a size)"},
      {"--dot", "FILE", output_group, "write the scheme for Graphviz", "file"},
      {"--svg", "FILE", output_group, "write a picture of the scheme", "file"},
      {"--traffic", "PATTERN", traffic,
       "print what routing does to it instead: ring, crossing-ring, all-to-all, "
       "spread-all-to-all or all-to-all-all",
       "ring crossing-ring all-to-all spread-all-to-all all-to-all-all"},
      {"--group", "N", traffic, "accelerators in an all-to-all (default: 64)"},
      {"--routing", "NAME", traffic, "ecmp, adaptive or spray (default: compare)",
       "ecmp adaptive spray"},
      {"--paths-per-flow", "N", traffic, "queue pairs of a flow under ecmp (default: 1, 4 and 16)"},
      {"--rounds", "N", traffic, "draws of the hash (default: 4 to 16, by size)"},
      seed,
      markdown_flag()};
  for (Flag& flag : look_flags()) all.push_back(std::move(flag));
  return all;
}

}  // namespace

Command topology_command() {
  return {.name = "topology",
          .summary = "switches, cables, reach, cost and picture of a network",
          .arguments = {{"name",
                         "cluster or fabric of the catalogue (a name of both: the cluster), or a "
                         "file; one with scale_up or scale_out is a fabric",
                         "catalog cluster"}},
          .flags = flags(),
          .examples = {{"orrery topology dgx-h100 --gpus 1024", "what joins 1,024 accelerators"},
                       {"orrery topology dgx-h100 --gpus 1024 --traffic all-to-all",
                        "what ways to route make of an exchange"}},
          .answer = answer};
}

}  // namespace orrery
