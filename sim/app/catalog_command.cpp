// Lists and shows catalogue entries.
#include "sim/app/catalog_command.h"

#include <cstdio>
#include <map>
#include <nlohmann/json.hpp>

#include <fmt/format.h>

#include "hw_models/catalog.h"
#include "sim/app/tables.h"
#include "workloads/model_catalog.h"

namespace orrery {
namespace {

struct Kind {
  const char* name;
  const char* folder;
};
constexpr Kind kinds[] = {{"accelerator", "hw_models/catalog/accelerators"},
                          {"cluster", "sim/engine/catalog/clusters"},
                          {"fabric", "topologies/catalog"},
                          {"host", "hw_models/catalog/hosts"},
                          {"model", "workloads/catalog/models"},
                          {"nic", "hw_models/catalog/nics"},
                          {"stack", "workloads/catalog/stacks"},
                          {"switch", "hw_models/catalog/switches"}};

const Kind& find_kind(const std::string& name) {
  std::vector<std::string> names;
  for (const Kind& kind : kinds) {
    if (name == kind.name || name == std::string(kind.name) + "s") return kind;
    names.emplace_back(kind.name);
  }
  throw Error({.file = "catalog", .path = "", .found = name.empty() ? "no kind" : name,
               .expected = fmt::format("one of {}", fmt::join(names, ", ")),
               .nearest = nearest_name(name, names)});
}

bool is_sourced(const JsonValue& v) { return v.is_object() && v.has("evidence"); }

std::string plain(const nlohmann::json& v) { return v.is_string() ? v.get<std::string>() : v.dump(); }

// One row per leaf, paths joined with dots.
void collect_rows(const JsonValue& v, const std::string& path, Table& table,
                  std::map<std::string, bool>& sources) {
  if (is_sourced(v)) {
    const auto text = [&](const char* key) { return v.has(key) ? plain(v.at(key).raw()) : ""; };
    std::string value = text("value");
    if (v.has("low")) value += " (" + text("low") + " .. " + text("high") + ")";
    if (v.at("value").is_null()) value = "unknown: " + text("reason");
    table.add({path, value, text("evidence"), text("source")});
    if (!text("source").empty()) sources[text("source")] = true;
  } else if (v.is_object()) {
    for (const auto& [key, child] : v.members())
      collect_rows(child, path.empty() ? key : path + "." + key, table, sources);
  } else if (v.is_array() && !v.items().empty() && v.items().front().is_object()) {
    int i = 0;
    for (const JsonValue& child : v.items())
      collect_rows(child, fmt::format("{}[{}]", path, i++), table, sources);
  } else {
    table.add({path, plain(v.raw()), "", ""});
    if (path == "source") sources[plain(v.raw())] = true;
  }
}

JsonValue load_entry(const Kind& kind, const std::string& name) {
  if (std::string(kind.name) == "model")
    return load_model_entry(name, data_root() / kind.folder);
  return load_catalog_entry(kind.folder, kind.name, name);
}

std::string show(const Kind& kind, const std::string& name) {
  const JsonValue entry = load_entry(kind, name);
  Table table({"value of", "", "evidence", "source"},
              {Align::left, Align::left, Align::left, Align::left});
  std::map<std::string, bool> used;
  collect_rows(entry, "", table, used);
  std::string text = table.text("");
  if (std::string(kind.name) == "model") {
    const ParameterCount count = count_parameters(load_model(name, data_root() / kind.folder));
    text += fmt::format("\ncounted: {} parameters, {} active\n", count.total, count.active);
  }
  text += "\nSources:\n";
  for (const auto& [id, source] : load_sources())
    if (used.count(id) > 0) text += fmt::format("  {}: {}. {}\n", id, source.title, source.address);
  return text;
}

}  // namespace

int run_catalog(const CatalogOptions& options, bool json) {
  std::string text;
  if (options.action == "list") {
    if (options.kind.empty()) {
      for (const Kind& kind : kinds)
        text += fmt::format("{:12} {} entries\n", kind.name, catalog_names(kind.folder).size());
    } else {
      const std::vector<std::string> names = catalog_names(find_kind(options.kind).folder);
      if (json) text = nlohmann::json(names).dump(2) + "\n";
      else for (const std::string& name : names) text += name + "\n";
    }
  } else if (options.action == "show") {
    const Kind& kind = find_kind(options.kind);
    if (options.name.empty())
      throw Error({.file = "catalog show", .path = options.kind, .found = "no name",
                   .expected = "a name: catalog list " + std::string(kind.name) + " prints them",
                   .nearest = ""});
    text = json ? load_entry(kind, options.name).raw().dump(2) + "\n" : show(kind, options.name);
  } else {
    throw Error({.file = "catalog", .path = "", .found = options.action,
                 .expected = "list or show",
                 .nearest = nearest_name(options.action, {"list", "show"})});
  }
  std::fwrite(text.data(), 1, text.size(), stdout);
  return 0;
}

}  // namespace orrery
