// SPDX-License-Identifier: Apache-2.0
// Judges entries of the catalogue.
#include "sim/app/catalog/check.h"

#include <fmt/format.h>

#include <functional>
#include <map>
#include <set>

#include "hw_models/catalog.h"
#include "hw_models/catalog_names.h"
#include "hw_models/price/economics.h"
#include "hw_models/price/optics.h"
#include "hw_models/reliability.h"
#include "sim/app/catalog/kinds.h"
#include "sim/app/catalog/show.h"
#include "sim/base/errors/check.h"
#include "sim/base/json/tree.h"
#include "sim/base/text/words.h"
#include "sim/engine/cluster.h"
#include "sim/engine/jobs/policy_file.h"
#include "sim/engine/power/threshold_file.h"
#include "sim/question/plan/question.h"
#include "workloads/model/model_catalog.h"
#include "workloads/stack/stack.h"

namespace orrery {
namespace {

// Reads an entry as the commands do; throws what they would.
void read_entry(const CatalogKind& kind, const std::string& name) {
  const auto reads = std::map<std::string, std::function<void()>>{
      {"accelerator", [&] { load_calibration(load_device(name)); }},
      {"cluster", [&] { load_cluster(name, 1); }},
      {"economics", [&] { load_economics(name); }},
      {"fabric", [&] { load_fabric(name); }},
      {"host", [&] { load_host(name); }},
      {"model", [&] { load_model(name, data_root() / kind.folder); }},
      {"nic", [&] { load_nic(name); }},
      {"optic", [&] { load_optic(name); }},
      {"policy", [&] { load_policy_preset(name); }},
      {"thresholds", [&] { load_threshold_preset(name); }},
      {"question", [&] { read_plan(load_plan_file(name)); }},
      {"reliability", [&] { load_reliability(name); }},
      {"site", [&] { load_site(name); }},
      {"stack", [&] { load_stack(name, {}, data_root() / kind.folder); }},
      {"storage", [&] { load_storage(name); }},
      {"switch", [&] { load_switch(name); }}};
  const auto read = reads.find(kind.name);
  if (read != reads.end())
    read->second();
  else
    read_cloud_prices(load_kind_entry(kind, name));
}

// Every "source" of an entry, wherever it stands.
void visit_sources(const SortedJson& value, const std::string& path,
                   const std::function<void(const std::string&, const std::string&)>& visit) {
  if (value.is_object())
    for (const auto& [key, member] : value.items()) {
      const std::string at = path.empty() ? key : path + "." + key;
      if (key == "source" && member.is_string())
        visit(at, member.get<std::string>());
      else
        visit_sources(member, at, visit);
    }
  if (value.is_array())
    for (std::size_t i = 0; i < value.size(); ++i)
      visit_sources(value[i], fmt::format("{}[{}]", path, i), visit);
}

class Judge {
 public:
  // `name`: in the catalogue, or a file.
  void judge(const CatalogKind& kind, const std::string& name) {
    ++faults_.checked;
    try {
      read_entry(kind, name);
    } catch (const Error& error) {
      faults_.faults.push_back(error.message());
      return;
    }
    const JsonValue entry = load_kind_entry(kind, name);
    visit_sources(entry.raw(), "", [&](const std::string& path, const std::string& id) {
      if (sources_.contains(id)) return;
      std::vector<std::string> known;
      for (const auto& [other, source] : sources_) known.push_back(other);
      faults_.faults.push_back(Error({.file = entry.file(),
                                      .path = path,
                                      .found = in_quotes(id),
                                      .expected = "an id of hw_models/catalog/sources/*.json",
                                      .nearest = nearest_name(id, known)})
                                   .message());
    });
  }

  // One name, one entry: of other names as well as of the entries' own.
  void judge_names(const CatalogKind& kind) {
    std::map<std::string, std::string> owners;
    const std::vector<std::string> names = catalog_names(kind.folder);
    for (const std::string& name : names) owners[plain_name(name)] = name;
    for (const std::string& name : names)
      for (const std::string& alias : aliases_of(kind.folder, name)) {
        const auto [owner, free] = owners.emplace(plain_name(alias), name);
        if (!free)
          faults_.faults.push_back(fmt::format("{} {}: aliases: found {}, a name of {}", kind.name,
                                               name, in_quotes(alias), owner->second));
      }
  }

  CatalogFaults result(std::string what) {
    faults_.what = std::move(what);
    return std::move(faults_);
  }

 private:
  const std::map<std::string, Source> sources_ = load_sources();
  CatalogFaults faults_;
};

// Keys that only entries of a kind have; "based_on" leads to one that has them.
const CatalogKind& kind_of(const std::string& file) {
  const std::vector<std::pair<const char*, const char*>> marks = {
      {"cluster", "accelerator"},   {"cluster", "overrides"},     {"fabric", "scale_up"},
      {"fabric", "scale_out"},      {"model", "hidden"},          {"model", "model_type"},
      {"stack", "releases"},        {"accelerator", "compute"},   {"question", "tokens"},
      {"question", "flop"},         {"switch", "port_bandwidth"}, {"nic", "efficiency"},
      {"host", "failure_rate"},     {"optic", "reach_metres"},    {"economics", "residual_value"},
      {"thresholds", "full_clock"}, {"cloud", "on_demand"}};
  const JsonValue entry = JsonValue::load(file);
  if (!entry.is_object()) entry.fail("an object");
  for (const auto& [kind, key] : marks)
    if (entry.has(key)) return find_catalog_kind(kind);
  if (const auto base = entry.find("based_on"); base && base->is_string())
    for (const CatalogKind& kind : catalog_kinds())
      if (const auto name = known_as(kind.folder, base->text())) return kind;
  entry.fail(
      "keys of a model, cluster, accelerator, fabric, stack or another kind of "
      "`orrery catalog list`");
}

}  // namespace

CatalogFaults check_catalog() {
  Judge judge;
  for (const CatalogKind& kind : catalog_kinds()) {
    for (const std::string& name : catalog_names(kind.folder)) judge.judge(kind, name);
    judge.judge_names(kind);
  }
  return judge.result("the catalogue");
}

CatalogFaults check_catalog_file(const std::string& file) {
  const CatalogKind& kind = kind_of(file);
  Judge judge;
  const bool is_path = file.find('/') != std::string::npos || file.ends_with(".json");
  judge.judge(kind, is_path ? file : "./" + file);
  return judge.result(fmt::format("{} ({})", file, kind.name));
}

std::string faults_text(const CatalogFaults& faults) {
  std::string text;
  for (const std::string& fault : faults.faults) text += fault + "\n";
  const std::string entries =
      faults.checked == 1 ? "" : fmt::format(" ({} entries)", faults.checked);
  if (faults.faults.empty()) return fmt::format("{}{}: in order\n", faults.what, entries);
  return text +
         fmt::format("{}{}: {}\n", faults.what, entries, plural(faults.faults.size(), "fault"));
}

std::string faults_json(const CatalogFaults& faults) {
  const Json json = {{"checked", faults.checked}, {"what", faults.what}, {"faults", faults.faults}};
  return json.dump(2) + "\n";
}

}  // namespace orrery
