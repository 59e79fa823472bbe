// SPDX-License-Identifier: Apache-2.0
// Shows an entry of the catalogue.
#include "sim/app/catalog/show.h"

#include <fmt/format.h>

#include <set>

#include "hw_models/catalog.h"
#include "sim/base/text/words.h"
#include "workloads/model/model_catalog.h"
#include "workloads/stack/values.h"

namespace orrery {
namespace {

bool is_sourced(const JsonValue& v) { return v.is_object() && v.has("value") && v.has("evidence"); }

std::string plain(const SortedJson& v) { return v.is_string() ? v.get<std::string>() : v.dump(); }

// What an entry shows: a row per value, remarks under the table, sources at the end.
struct Shown {
  std::size_t width;  // of the page
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
    remarks += wrap(path + ": " + text, width, "  ", "    ");
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
  const std::size_t width = shown.width;
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
  text += wrap(fmt::format("releases: {}", joined(stack_releases(name, folder), ", ")), width, "",
               "  ");
  text += "what they changed:\n";
  for (const std::string& change : stack.changes) text += wrap(change, width, "  - ", "    ");
  text +=
      "\nvalues of this release in BF16; a GPU, a precision or expert layers may change them:\n";
  return text;
}

}  // namespace

JsonValue load_kind_entry(const CatalogKind& kind, const std::string& name) {
  if (kind.name == "model") return load_model_entry(name, data_root() / kind.folder);
  if (kind.name == "stack") {
    load_stack(name, {}, data_root() / kind.folder);  // refuses unknown names and broken files
    const std::string file = name.substr(0, name.find('@'));
    const bool is_path = file.find('/') != std::string::npos || file.ends_with(".json");
    return JsonValue::load(is_path ? std::filesystem::path(file)
                                   : data_root() / kind.folder / (file + ".json"));
  }
  return load_catalog_entry(kind.folder, kind.name, name);
}

std::string show_catalog_entry(const CatalogKind& kind, const std::string& name,
                               std::size_t width) {
  Shown shown{.width = width};
  std::string text;
  if (kind.name == "stack")
    text = show_stack(name, shown);
  else
    add_leaves(load_kind_entry(kind, name), "", shown);
  text += shown.table.text("", width);
  if (kind.name == "model") {
    const ParameterCount count = count_parameters(load_model(name, data_root() / kind.folder));
    text += fmt::format("\ncounted: {} parameters, {} active\n", count.total, count.active);
  }
  if (!shown.remarks.empty()) text += "\nRemarks:\n" + shown.remarks;
  text += "\nSources:\n";
  for (const auto& [id, source] : load_sources()) {
    if (!shown.sources.contains(id)) continue;
    text += wrap(fmt::format("{}: {}", id, source.title), width, "  ", "    ");
    if (!source.address.empty()) text += "    " + source.address + "\n";
  }
  return text;
}

}  // namespace orrery
