// Lists and shows catalogue entries.
#include "sim/app/catalog_command.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <nlohmann/json.hpp>
#include <set>

#include "hw_models/catalog.h"
#include "sim/app/result.h"
#include "sim/app/tables.h"
#include "workloads/model_catalog.h"
#include "workloads/stack.h"

namespace orrery {
namespace {

struct Kind {
  const char* name;
  const char* folder;
};
constexpr Kind kinds[] = {{"accelerator", "hw_models/catalog/accelerators"},
                          {"cloud", "hw_models/catalog/cloud"},
                          {"cluster", "sim/engine/catalog/clusters"},
                          {"economics", "hw_models/catalog/economics"},
                          {"fabric", "topologies/catalog"},
                          {"host", "hw_models/catalog/hosts"},
                          {"model", "workloads/catalog/models"},
                          {"nic", "hw_models/catalog/nics"},
                          {"optic", "hw_models/catalog/optics"},
                          {"question", "workloads/catalog/questions"},
                          {"reliability", "hw_models/catalog/reliability"},
                          {"site", "hw_models/catalog/sites"},
                          {"stack", "workloads/catalog/stacks"},
                          {"storage", "hw_models/catalog/storage"},
                          {"switch", "hw_models/catalog/switches"}};

const Kind& find_kind(const std::string& name) {
  std::vector<std::string> names;
  for (const Kind& kind : kinds) {
    if (name == kind.name || name == std::string(kind.name) + "s") return kind;
    names.emplace_back(kind.name);
  }
  throw Error({.file = "catalog",
               .found = name.empty() ? "no kind" : in_quotes(name),
               .expected = fmt::format("one of {}", fmt::join(names, ", ")),
               .nearest = nearest_name(name, names)});
}

bool is_sourced(const JsonValue& v) { return v.is_object() && v.has("evidence"); }

std::string plain(const nlohmann::json& v) {
  return v.is_string() ? v.get<std::string>() : v.dump();
}

// What an entry shows: a row per value, remarks under the table, sources at the end.
struct Shown {
  Table table{{"", "value", "evidence", "source"},
              {Align::left, Align::left, Align::left, Align::left}};
  std::string remarks;
  std::set<std::string> sources;

  void add(const std::string& path, const std::string& value, const std::string& evidence,
           const std::string& source) {
    table.add({path, value, evidence, source});
    if (!source.empty()) sources.insert(source);
  }
  void remark(const std::string& path, const std::string& text) {
    remarks += wrap(path + ": " + text, page_width, "  ", "    ");
  }
};

void add_sourced(const JsonValue& v, const std::string& path, Shown& shown) {
  const auto text = [&](const char* key) { return v.has(key) ? plain(v.at(key).raw()) : ""; };
  std::string value = text("value");
  if (v.has("low")) value += " (" + text("low") + " .. " + text("high") + ")";
  if (v.at("value").is_null()) {
    value = "unknown";
    if (v.has("reason")) shown.remark(path, text("reason"));
  }
  if (v.has("note")) shown.remark(path, text("note"));
  shown.add(path, value, text("evidence"), text("source"));
}

// One row per leaf, paths joined with dots.
void add_leaves(const JsonValue& v, const std::string& path, Shown& shown) {
  if (is_sourced(v)) {
    add_sourced(v, path, shown);
  } else if (v.is_object()) {
    for (const auto& [key, child] : v.members())
      add_leaves(child, path.empty() ? key : path + "." + key, shown);
  } else if (v.is_array() && !v.items().empty() && v.items().front().is_object()) {
    int i = 0;
    for (const JsonValue& child : v.items())
      add_leaves(child, fmt::format("{}[{}]", path, i++), shown);
  } else if (const std::string text = plain(v.raw()); columns(text) > 48) {
    shown.add(path, "see below", "", "");
    shown.remark(path, text);
  } else {
    shown.add(path, text, "", path == "source" ? text : "");
  }
}

std::string value_text(double v) { return fmt::format("{:.4g}", v); }
std::string value_text(Seconds v) { return to_text(v); }
std::string value_text(Bytes v) { return to_text(v); }

// A stack's values as its newest or the named release leaves them, without special cases.
std::string show_stack(const std::string& name, Shown& shown) {
  const auto folder = data_root() / "workloads/catalog/stacks";
  const Stack stack = load_stack(name, {}, folder);
  visit_stack_values(stack, [&](const std::string& path, const auto& sourced) {
    if (!sourced.known()) return;
    std::string value = value_text(*sourced.value);
    if (sourced.low && sourced.high)
      value += " (" + value_text(*sourced.low) + " .. " + value_text(*sourced.high) + ")";
    shown.add(path, value, std::string(to_text(sourced.evidence)), sourced.source);
  });
  std::string text = fmt::format("{} {} ({})\n\n", stack.title, stack.release, stack.date);
  text += wrap(fmt::format("releases: {}", fmt::join(stack_releases(name, folder), ", ")),
               page_width, "", "  ");
  text += "what they changed:\n";
  for (const std::string& change : stack.changes) text += wrap(change, page_width, "  - ", "    ");
  text +=
      "\nvalues of this release in BF16; a GPU, a precision or expert layers may change them:\n";
  return text;
}

JsonValue load_entry(const Kind& kind, const std::string& name) {
  if (std::string(kind.name) == "model") return load_model_entry(name, data_root() / kind.folder);
  if (std::string(kind.name) == "stack") {
    load_stack(name, {}, data_root() / kind.folder);  // refuses unknown names and broken files
    const std::string file = name.substr(0, name.find('@'));
    const bool is_path = file.find('/') != std::string::npos || file.ends_with(".json");
    return JsonValue::load(is_path ? std::filesystem::path(file)
                                   : data_root() / kind.folder / (file + ".json"));
  }
  return load_catalog_entry(kind.folder, kind.name, name);
}

std::string show(const Kind& kind, const std::string& name) {
  Shown shown;
  std::string text;
  if (std::string(kind.name) == "stack")
    text = show_stack(name, shown);
  else
    add_leaves(load_entry(kind, name), "", shown);
  text += shown.table.text("");
  if (std::string(kind.name) == "model") {
    const ParameterCount count = count_parameters(load_model(name, data_root() / kind.folder));
    text += fmt::format("\ncounted: {} parameters, {} active\n", count.total, count.active);
  }
  if (!shown.remarks.empty()) text += "\nRemarks:\n" + shown.remarks;
  text += "\nSources:\n";
  for (const auto& [id, source] : load_sources()) {
    if (!shown.sources.contains(id)) continue;
    text += wrap(fmt::format("{}: {}", id, source.title), page_width, "  ", "    ");
    if (!source.address.empty()) text += "    " + source.address + "\n";
  }
  return text;
}

std::string list(const std::string& kind, bool json) {
  if (kind.empty()) {
    nlohmann::ordered_json counts = nlohmann::ordered_json::object();
    std::string text;
    for (const Kind& k : kinds) {
      counts[k.name] = catalog_names(k.folder).size();
      text += fmt::format("{:12} {} entries\n", k.name, catalog_names(k.folder).size());
    }
    return json ? counts.dump(2) + "\n" : text;
  }
  const std::vector<std::string> names = catalog_names(find_kind(kind).folder);
  return json ? nlohmann::json(names).dump(2) + "\n" : fmt::format("{}\n", fmt::join(names, "\n"));
}

}  // namespace

std::string catalog_text(const CatalogOptions& options, bool json) {
  if (options.action == "list") {
    if (!options.name.empty())
      throw Error({.file = "catalog list",
                   .found = in_quotes(options.name) + ", an argument too many",
                   .expected = "a kind at most; show prints an entry"});
    return list(options.kind, json);
  }
  if (options.action != "show")
    throw Error({.file = "catalog",
                 .found = options.action.empty() ? "nothing" : in_quotes(options.action),
                 .expected = "list or show",
                 .nearest = nearest_name(options.action, {"list", "show"})});
  const Kind& kind = find_kind(options.kind);
  if (options.name.empty())
    throw Error(
        {.file = "catalog show " + options.kind,
         .found = "no name",
         .expected = "a name: `orrery catalog list " + std::string(kind.name) + "` prints them"});
  return json ? load_entry(kind, options.name).raw().dump(2) + "\n" : show(kind, options.name);
}

namespace {

ExitCode run(const Given& given) {
  const CommonFlags common = common_of(given);
  write_result(catalog_text({.action = given.word(0), .kind = given.word(1), .name = given.word(2)},
                            common.json));
  return ExitCode::answer;
}

}  // namespace

Command catalog_command() {
  std::string names;
  for (const Kind& kind : kinds) names += (names.empty() ? "" : " ") + std::string(kind.name);
  return {.name = "catalog",
          .summary = "what is known, with sources",
          .arguments = {{"action", "list or show", "list show"},
                        {"kind", "model, accelerator, cluster, ...", names},
                        {"name", "name in the catalogue, or a file", "file"}},
          .examples = {{"orrery catalog list cluster", "the clusters that are known"},
                       {"orrery catalog show accelerator h100-sxm",
                        "every value of a device, with its source"}},
          .run = run};
}

}  // namespace orrery
