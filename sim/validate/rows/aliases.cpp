// SPDX-License-Identifier: Apache-2.0
// Reads validation/aliases.json and matches a row's names with it: exactly, by grammar, by default.
#include "sim/validate/rows/aliases.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <regex>

#include <fmt/format.h>

#include "sim/base/json/json.h"
#include "sim/base/text/lower_case.h"
#include "sim/validate/rows/row_words.h"
#include "workloads/stack/stack.h"

namespace orrery {
namespace {

// Letters, digits and points only: "Llama-3.1 8B" and "llama3.1-8b" are one name.
std::string bare_name(const std::string& text) {
  std::string bare;
  for (const char c : lower_case(text))
    if (std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '.') bare += c;
  return bare;
}

// The same without an owner ("meta-llama/") and without words that leave the network as it is
// ("-Instruct", "-hf").
std::string bare_model_name(const std::string& text) {
  std::string name = lower_case(text.substr(text.rfind('/') + 1));
  static const std::regex variants(
      R"([-_ (]+(?:instruct|base|chat|hf|it|bf16|fp8|nvfp4|pretrain|pretraining|v0\.[1-3])\)?)",
      std::regex::icase);
  return bare_name(std::regex_replace(name, variants, ""));
}

std::string optional_text(const JsonValue& object, std::string_view key) {
  const auto value = object.find(key);
  return value ? value->text() : "";
}

Aliases::StackRule read_stack_rule(const JsonValue& rule) {
  rule.expect_only({"framework", "version", "notes", "gpu", "stack", "release", "optimizer",
                    "schedule", "stand_in", "assumed"});
  Aliases::StackRule read{.framework = optional_text(rule, "framework"),
                          .version = optional_text(rule, "version"),
                          .notes = optional_text(rule, "notes"),
                          .gpu = optional_text(rule, "gpu"),
                          .stack = rule.at("stack").text(),
                          .release = optional_text(rule, "release"),
                          .optimizer = std::nullopt,
                          .schedule = std::nullopt,
                          .stand_in = false,
                          .assumed = optional_text(rule, "assumed")};
  if (const auto value = rule.find("optimizer")) read.optimizer = optimizer_from(*value);
  if (const auto value = rule.find("schedule")) read.schedule = schedule_from(*value);
  if (const auto value = rule.find("stand_in")) read.stand_in = value->boolean();
  return read;
}

void read_machines(Aliases& aliases, const JsonValue& file) {
  for (const auto& [gpu, entry] : file.at("accelerators").members()) {
    entry.expect_only({"accelerator", "clusters"});
    Aliases::Accelerator accelerator{.name = entry.at("accelerator").text(), .clusters = {}};
    for (const JsonValue& name : entry.at("clusters").items())
      accelerator.clusters.push_back(name.text());
    if (accelerator.clusters.empty()) entry.at("clusters").fail("at least one cluster");
    aliases.accelerators[gpu] = accelerator;
  }
  for (const auto& [name, gpu] : file.at("accelerator_names").members()) {
    aliases.accelerator_names[name] = gpu.text();
    if (!aliases.accelerators.contains(gpu.text())) gpu.fail("a name of \"accelerators\"");
  }
  for (const JsonValue& rule : file.at("clusters").items()) {
    rule.expect_only({"gpu", "interconnect", "system", "cluster"});
    aliases.clusters.push_back({.gpu = optional_text(rule, "gpu"),
                                .interconnect = optional_text(rule, "interconnect"),
                                .system = optional_text(rule, "system"),
                                .cluster = rule.at("cluster").text()});
  }
}

void read_models(Aliases& aliases, const JsonValue& file) {
  for (const auto& [name, target] : file.at("models").members())
    aliases.models[name] = target.text();
  for (const JsonValue& rule : file.at("model_templates").items()) {
    rule.expect_only({"prefix", "model"});
    aliases.model_templates.push_back(
        {.prefix = rule.at("prefix").text(), .model = rule.at("model").text()});
  }
}

void read_corrections(Aliases& aliases, const JsonValue& file) {
  for (const JsonValue& rule : file.at("corrections").items()) {
    rule.expect_only({"source", "vocab", "recompute", "reason"});
    CellCorrection read{.source = rule.at("source").text(),
                        .vocab = std::nullopt,
                        .recompute = std::nullopt,
                        .reason = rule.at("reason").text()};
    if (const auto value = rule.find("vocab")) read.vocab = value->integer();
    if (const auto value = rule.find("recompute")) read.recompute = value->text();
    aliases.corrections.push_back(read);
  }
}

// Gbit/s of "8x400G", "4x HDR200", "2 x 200Gbe", "4 NDR200 NICs" together; the most of several.
double counted_gigabits(const std::string& text) {
  // A rate for each node is a port's where ports have such rates, else that of all.
  static const std::regex counted(
      R"((\d+) ?x ?(?:[^|,]*?\b(25|40|50|56|100|200|400) ?Gb?)"
      R"(|[^|,]*?(\d{2,4}) ?Gb?(?!b?(?:ps|/s|it/s)?(?:/| per )(?:node|host|inst|VM)))"
      R"(|[HNXE]DR(\d{2,3})|(XDR|NDR|HDR|EDR)))",
      std::regex::icase);
  static const std::regex ports(R"((\d+) (?:[HN]DR)?(\d{3}) ?G?(?:b|bps|b/s)? ?NICs?)",
                                std::regex::icase);
  double best = 0;
  const auto take = [&](const std::regex& form, auto rate) {
    for (auto at = std::sregex_iterator(text.begin(), text.end(), form);
         at != std::sregex_iterator(); ++at)
      best = std::max(best, decimal((*at)[1]) * rate(*at));
  };
  take(counted, [](const std::smatch& found) {
    for (std::size_t stated = 2; stated <= 4; ++stated)
      if (found[stated].matched) return decimal(found[stated]);
    const char first =
        static_cast<char>(std::toupper(static_cast<unsigned char>(found[5].str()[0])));
    return first == 'X' ? 800.0 : first == 'N' ? 400.0 : first == 'H' ? 200.0 : 100.0;
  });
  take(ports, [](const std::smatch& found) { return decimal(found[2]); });
  return best;
}

// Gbit/s of one GPU's share, from the first form of the grammar that the text has; `bare` when the
// text does not tell whose the rate is.
std::optional<double> gigabits(const std::string& text, double gpus_per_host, bool& bare) {
  static const std::regex per_gpu(R"((\d+) ?Gb?(?:ps|/s|it/s)?(?:/| per )GPU)", std::regex::icase);
  static const std::regex per_node(
      R"((\d+)(?:/\d+)? ?Gb?(?:ps|/s|it/s)?(?:/| per )(?:node|host|instance|VM))",
      std::regex::icase);
  // Bits only: "14.4 TB/s aggregated bandwidth" is NVLink's.
  static const std::regex terabits(
      R"((\d+(?:\.\d+)?) ?[Tt](?:b|bps|b/s|bit|bit/s)(?:$|[^A-Za-z/]))");
  static const std::regex plain(
      R"((?:^|[^\d.])(\d{3,4}) ?G(?:b|bps|b/s|bit/s|bE|be|E|bit)?(?:$|[^A-Za-z/]))");
  std::smatch found;
  if (std::regex_search(text, found, per_gpu)) return decimal(found[1]);
  if (const double counted = counted_gigabits(text); counted > 0) return counted / gpus_per_host;
  if (std::regex_search(text, found, per_node)) return decimal(found[1]) / gpus_per_host;
  if (std::regex_search(text, found, terabits)) return 1000 * decimal(found[1]) / gpus_per_host;
  if (std::regex_search(text, found, plain)) {
    const double rate = decimal(found[1]);
    constexpr double least_of_a_node = 1200;  // 800 is one NIC of today, more is a node's sum
    bare = rate < least_of_a_node;
    return bare ? rate : rate / gpus_per_host;
  }
  if (mentions(text, "XDR")) return 800;
  if (mentions(text, "NDR200")) return 200;
  if (mentions(text, "NDR")) return 400;
  if (mentions(text, "HDR100")) return 100;
  if (mentions(text, "HDR")) return 200;
  if (mentions(text, "EDR")) return 100;
  return std::nullopt;
}

// Without the parts that are not the network between GPUs: links inside a host, management and
// storage. Sources list them with their own rates.
std::string network_part(const std::string& text) {
  std::string kept, part;
  const auto finish = [&](char separator) {
    const auto names = {"nvlink", "nvswitch", "storage", "management", "pcie-nic", "gpu-pcie"};
    if (std::none_of(names.begin(), names.end(),
                     [&](const char* name) { return mentions(part, name); }))
      kept += part + separator;
    part.clear();
  };
  for (const char c : text) {
    if (c == '+' || c == '|' || c == ',' || c == ';')
      finish(c);
    else
      part += c;
  }
  finish(' ');
  return kept;
}

// "2023-06" of a version or of the source's year; a year alone means its middle. Empty: not told.
std::string month_of(const SoftwareWords& row) {
  static const std::regex month(R"((?:^|\D)(20\d\d)(?:-(0[1-9]|1[0-2]))?(?!\d))");
  std::smatch found;
  for (const std::string& text : {row.version, row.year})
    if (std::regex_search(text, found, month))
      return found[1].str() + "-" + (found[2].matched ? found[2].str() : "06");
  return "";
}

// The last release of a stack in that month; its first where that is later.
std::string release_of_month(const std::string& stack, const std::string& month) {
  if (month.empty()) return "";
  std::string last;
  for (const Stack& s : load_releases(stack, {}, data_root() / "workloads/catalog/stacks"))
    if (last.empty() || s.date <= month) last = s.release;
  return last;
}

std::string release_text(const Aliases::StackRule& rule, const Aliases& aliases,
                         const SoftwareWords& row) {
  static const std::regex calendar(R"((?:^|\D)(\d\d\.\d\d(?:\.\d+)?)(?!\d))");
  static const std::regex number(R"((?:^|[^\d.])(\d+\.\d+)(?!\d))");
  if (rule.release == "date") return release_of_month(rule.stack, month_of(row));
  if (rule.release != "calendar" && rule.release != "number") return rule.release;
  std::smatch found;
  const std::regex& form = rule.release == "calendar" ? calendar : number;
  // "PyTorch 25.04, NeMo 25.09": the number after the program's own name is its release.
  const std::size_t name = lower_case(row.framework).find(lower_case(rule.framework));
  const std::string named = name == std::string::npos ? "" : row.framework.substr(name);
  if (std::regex_search(named, found, form) || std::regex_search(row.framework, found, form))
    return found[1];
  // A benchmark's round has a number too, which is not the software's.
  const auto round = aliases.rounds.find(row.version);
  if (round != aliases.rounds.end()) return round->second;
  if (std::regex_search(row.version, found, form)) return found[1];
  return release_of_month(rule.stack, month_of(row));
}

}  // namespace

Aliases load_aliases(const std::filesystem::path& path) {
  const JsonValue file = JsonValue::load(path);
  file.expect_only({"accelerators", "accelerator_names", "clusters", "stacks", "rounds",
                    "nearest_stack", "stand_ins", "models", "model_templates", "sweeps",
                    "unfit_for_time", "corrections", "packed_document", "training_steps",
                    "inference"});
  Aliases aliases;
  read_machines(aliases, file);
  for (const JsonValue& rule : file.at("stacks").items())
    aliases.stacks.push_back(read_stack_rule(rule));
  for (const auto& [round, release] : file.at("rounds").members())
    aliases.rounds[round] = release.text();
  aliases.nearest_stack = file.at("nearest_stack").text();
  for (const auto& [stack, other] : file.at("stand_ins").members())
    aliases.stand_ins[stack] = other.text();
  read_models(aliases, file);
  for (const JsonValue& source : file.at("sweeps").items()) aliases.sweeps.push_back(source.text());
  for (const JsonValue& rule : file.at("unfit_for_time").items()) {
    rule.expect_only({"version", "reason"});
    aliases.unfit_for_time.push_back(
        {.version = rule.at("version").text(), .reason = rule.at("reason").text()});
  }
  read_corrections(aliases, file);
  aliases.packed_document = read_sourced<double>(file.at("packed_document"));
  const JsonValue steps = file.at("training_steps");
  steps.expect_only({"source", "gpu", "interconnect", "framework"});
  aliases.training_steps = {.source = steps.at("source").text(),
                            .gpu = steps.at("gpu").text(),
                            .interconnect = steps.at("interconnect").text(),
                            .framework = steps.at("framework").text()};
  const JsonValue inference = file.at("inference");
  inference.expect_only({"cluster", "stack", "launch"});
  aliases.inference_cluster = inference.at("cluster").text();
  aliases.inference_stack = inference.at("stack").text();
  aliases.inference_launch = launch_mode_text.from(inference.at("launch"));
  return aliases;
}

InterconnectText parse_interconnect(const std::string& whole, double gpus_per_host) {
  const std::string text = network_part(whole);
  struct Word {
    const char* text;
    FabricTechnology technology;
  };
  static constexpr Word words[] = {{"EFA", FabricTechnology::efa},
                                   {"TCPX", FabricTechnology::tcpx},
                                   {"RoCE", FabricTechnology::roce},
                                   {"Ethernet", FabricTechnology::roce},
                                   {"/Eth ", FabricTechnology::roce},
                                   {"GbE", FabricTechnology::roce},
                                   {"IB", FabricTechnology::infiniband},
                                   {"InfiniBand", FabricTechnology::infiniband},
                                   {"HDR", FabricTechnology::infiniband},
                                   {"NDR", FabricTechnology::infiniband},
                                   {"XDR", FabricTechnology::infiniband},
                                   {"EDR", FabricTechnology::infiniband},
                                   {"Quantum", FabricTechnology::infiniband},
                                   {"OmniPath", FabricTechnology::omnipath},
                                   {"Omni-Path", FabricTechnology::omnipath},
                                   {"Slingshot", FabricTechnology::slingshot},
                                   {"Spectrum", FabricTechnology::spectrum_x},
                                   {"BF3", FabricTechnology::spectrum_x},
                                   {"ICI", FabricTechnology::ici}};
  InterconnectText parsed;
  for (const Word& word : words)
    if (mentions(text, word.text)) parsed.technologies.push_back(word.technology);
  // Ports for storage and management carry no collectives.
  static const std::regex other_ports(R"((?:Storage|Management)[^,|]*)", std::regex::icase);
  parsed.gigabits_per_gpu =
      gigabits(std::regex_replace(text, other_ports, ""), gpus_per_host, parsed.bare_rate);
  return parsed;
}

const WiringTable::Wiring& WiringTable::at(const std::string& name) {
  const auto found = known_.find(name);
  if (found != known_.end()) return found->second;
  const Cluster cluster = load_cluster(name, 1);
  Wiring wiring;
  wiring.accelerator = cluster.device.name;
  wiring.gpus_per_host = static_cast<double>(cluster.gpus_per_host);
  wiring.domain = cluster.fabric.scale_up.domain;
  const ScaleOut& out = cluster.fabric.scale_out;
  wiring.technology = out.technology;
  constexpr double bits_per_gigabit = 8e-9;
  if (out.kind != ScaleOutKind::none && out.nic_bandwidth.known())
    wiring.gigabits_per_gpu =
        out.nic_bandwidth.get().si() * out.nics_per_accelerator.get() * bits_per_gigabit;
  return known_.emplace(name, wiring).first->second;
}

std::string accelerator_name(const Aliases& aliases, const std::string& gpu) {
  if (aliases.accelerators.contains(gpu)) return gpu;
  const std::string wanted = bare_name(gpu);
  std::size_t longest = 0;
  std::string best = gpu;
  const auto try_name = [&](const std::string& written, const std::string& name) {
    const std::string bare = bare_name(written);
    const std::size_t fits = bare == wanted                           ? std::string::npos
                             : wanted.find(bare) != std::string::npos ? bare.size()
                                                                      : 0;
    if (fits <= longest) return;
    longest = fits;
    best = name;
  };
  for (const auto& [name, entry] : aliases.accelerators) {
    try_name(name, name);
    try_name(entry.name, name);
  }
  for (const auto& [name, target] : aliases.accelerator_names) try_name(name, target);
  return best;
}

namespace {

// Gbit/s a GPU of the fastest network that its clusters have; 0: none is known.
double fastest_rate(const Aliases::Accelerator& accelerator, WiringTable& wirings) {
  double best = 0;
  for (const std::string& name : accelerator.clusters)
    best = std::max(best, wirings.at(name).gigabits_per_gpu);
  return best;
}

// A bare rate that no GPU of this kind has is its host's ("EFA 400 Gbps" of eight A100); clouds
// tell their instances' rates.
void read_as_host_rate(InterconnectText& said, const Aliases::Accelerator& accelerator,
                       WiringTable& wirings) {
  const auto& kinds = said.technologies;
  const bool cloud = std::find(kinds.begin(), kinds.end(), FabricTechnology::efa) != kinds.end();
  const double most_of_a_gpu = cloud ? 1.5 : 2.5;
  const double best_rate = fastest_rate(accelerator, wirings);
  if (said.bare_rate && best_rate > 0 && *said.gigabits_per_gpu > most_of_a_gpu * best_rate)
    *said.gigabits_per_gpu /= wirings.at(accelerator.clusters.front()).gpus_per_host;
}

// Leaves out a rate that no network has: a slip of the pen.
void drop_impossible_rate(InterconnectText& said, const std::string& interconnect,
                          const Aliases::Accelerator& accelerator, WiringTable& wirings,
                          std::vector<std::string>& assumed) {
  if (!said.gigabits_per_gpu) return;
  const double best = fastest_rate(accelerator, wirings), rate = *said.gigabits_per_gpu;
  constexpr double most = 10, least = 1e-3;  // of the fastest that its clusters have
  const bool possible = rate < most * best && rate > least * best;
  if (best <= 0 || possible) return;
  said.gigabits_per_gpu.reset();
  assumed.push_back(fmt::format("rate of \"{}\" left out: {}'s networks have {:.0f} Gbit/s a GPU",
                                interconnect, accelerator.name, best));
}

}  // namespace

std::optional<ClusterChoice> choose_cluster(const Aliases& aliases, WiringTable& wirings,
                                            const std::string& gpu, const std::string& interconnect,
                                            const std::string& system, std::int64_t gpus) {
  const auto entry = aliases.accelerators.find(gpu);
  if (entry == aliases.accelerators.end()) return std::nullopt;
  ClusterChoice choice{.cluster = "", .accelerator = entry->second.name, .assumed = {}};
  const auto equal = [](const std::string& wanted, const std::string& actual) {
    return wanted.empty() || wanted == actual;
  };
  for (const auto& rule : aliases.clusters)
    if (equal(rule.gpu, gpu) && equal(rule.interconnect, interconnect) &&
        equal(rule.system, system)) {
      choice.cluster = rule.cluster;
      return choice;
    }
  const std::string& usual = entry->second.clusters.front();
  choice.cluster = usual;
  // Inside one scale-up domain the network outside does not matter.
  if (gpus <= wirings.at(usual).domain) return choice;
  InterconnectText said = parse_interconnect(interconnect, wirings.at(usual).gpus_per_host);
  const auto of_kind = [&](const std::string& name) {
    const auto& all = said.technologies;
    return std::find(all.begin(), all.end(), wirings.at(name).technology) != all.end();
  };
  read_as_host_rate(said, entry->second, wirings);
  drop_impossible_rate(said, interconnect, entry->second, wirings, choice.assumed);
  const bool stated = said.gigabits_per_gpu || !said.technologies.empty();
  if (!stated) {
    choice.assumed.push_back(interconnect.empty()
                                 ? fmt::format("network not stated: {}", usual)
                                 : fmt::format("network of {} for \"{}\"", usual, interconnect));
    return choice;
  }
  // The nearest rate of the stated technology; where no cluster has it, the usual one. At another
  // rate than the cluster's, its wiring with faster or slower NICs.
  const auto factor = [&](const std::string& name) {
    const double own = wirings.at(name).gigabits_per_gpu;
    return said.gigabits_per_gpu && own > 0 ? *said.gigabits_per_gpu / own : 1.0;
  };
  bool found = said.technologies.empty();
  double nearest = found ? std::abs(std::log(factor(usual))) : 0;
  for (const std::string& name : entry->second.clusters) {
    if (!said.technologies.empty() && !of_kind(name)) continue;
    if (said.gigabits_per_gpu && wirings.at(name).gigabits_per_gpu <= 0) continue;
    const double away = std::abs(std::log(factor(name)));
    if (found && away >= nearest) continue;
    found = true;
    nearest = away;
    choice.cluster = name;
  }
  constexpr double same_rate = 0.1;
  if (found && nearest < same_rate) return choice;
  choice.network_factor = factor(choice.cluster);
  choice.assumed.push_back(
      choice.network_factor == 1
          ? fmt::format("network of {} for \"{}\"", choice.cluster, interconnect)
          : fmt::format("network of {} at {:.3g} of its rate for \"{}\"", choice.cluster,
                        choice.network_factor, interconnect));
  return choice;
}

Cluster load_cluster(const ClusterChoice& choice, std::int64_t gpus) {
  Cluster cluster = load_cluster(choice.cluster, gpus);
  if (choice.network_factor != 1)
    *cluster.fabric.scale_out.nic_bandwidth.value *= choice.network_factor;
  return cluster;
}

static std::string program_name(const SoftwareWords& row) {
  return row.framework.empty() ? "a program that is not told" : row.framework;
}

StackChoice choose_stack(const Aliases& aliases, const SoftwareWords& row) {
  for (const auto& rule : aliases.stacks) {
    if (!mentions(row.framework, rule.framework) || !mentions(row.version, rule.version) ||
        !mentions(row.notes, rule.notes) || !mentions(row.gpu, rule.gpu))
      continue;
    const std::string release = release_text(rule, aliases, row);
    StackChoice choice{.name = release.empty() ? rule.stack : rule.stack + "@" + release,
                       .optimizer = rule.optimizer,
                       .schedule = rule.schedule,
                       .program = rule.stand_in ? program_name(row) : "",
                       .assumed = {}};
    if (!rule.assumed.empty()) choice.assumed.push_back(rule.assumed);
    return choice;
  }
  const std::string release = release_of_month(aliases.nearest_stack, month_of(row));
  return {.name = aliases.nearest_stack + (release.empty() ? "" : "@" + release),
          .optimizer = std::nullopt,
          .schedule = std::nullopt,
          .program = program_name(row),
          .assumed = {row.framework.empty() ? "framework not stated: " + aliases.nearest_stack
                                            : fmt::format("{} in place of \"{}\"",
                                                          aliases.nearest_stack, row.framework)}};
}

std::optional<StackChoice> stand_in_for(const Aliases& aliases, const StackChoice& choice) {
  const Stack known = load_stack(choice.name, {}, data_root() / "workloads/catalog/stacks");
  const auto other = aliases.stand_ins.find(known.name);
  if (other == aliases.stand_ins.end()) return std::nullopt;
  StackChoice out = choice;
  out.name = other->second + "@" + release_of_month(other->second, known.date);
  out.program = known.name;
  return out;
}

ModelChoice choose_model(const Aliases& aliases, const std::string& model,
                         const std::vector<std::string>& catalog_models) {
  if (const auto alias = aliases.models.find(model); alias != aliases.models.end())
    return {.name = alias->second};
  for (const std::string& wanted : {bare_name(model), bare_model_name(model)}) {
    for (const std::string& name : catalog_models)
      if (bare_name(name) == wanted) return {.name = name};
    for (const auto& [alias, name] : aliases.models)
      if (bare_name(alias) == wanted) return {.name = name};
  }
  for (const auto& rule : aliases.model_templates)
    if (model.starts_with(rule.prefix)) return {.name = rule.model, .is_template = true};
  return {};
}

}  // namespace orrery
