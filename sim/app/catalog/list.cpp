// SPDX-License-Identifier: Apache-2.0
// Lists and searches the catalogue.
#include "sim/app/catalog/list.h"

#include <fmt/format.h>

#include <algorithm>
#include <sstream>

#include "hw_models/catalog.h"
#include "hw_models/catalog_names.h"
#include "sim/app/answer/answer.h"
#include "sim/app/catalog/kinds.h"
#include "sim/app/catalog/show.h"
#include "sim/app/report/parts.h"
#include "sim/base/errors/check.h"
#include "sim/base/json/tree.h"
#include "sim/base/text/words.h"
#include "sim/engine/cluster.h"
#include "workloads/model/model_catalog.h"

namespace orrery {
namespace {

// What stands beside a name, by kind: heading and text of each column.
struct Entry {
  std::string name, title;
  std::vector<std::string> aliases;
  std::vector<std::pair<std::string, std::string>> columns;
};

std::string text_or_empty(const JsonValue& entry, const char* key) {
  const auto value = entry.find(key);
  return value && value->is_string() ? value->text() : "";
}

// The largest number of accelerators that a tier of the wiring states, or its domain without one.
std::string largest_of(const Fabric& fabric) {
  std::int64_t largest = 0;
  for (const Tier& tier : fabric.scale_out.tiers) largest = std::max(largest, tier.reach);
  if (fabric.scale_out.kind == ScaleOutKind::none) largest = fabric.scale_up.domain;
  return largest == 0 ? "not stated" : grouped(largest);
}

void add_columns(const CatalogKind& kind, const JsonValue& entry, Entry& shown) {
  if (kind.name == "cluster") {
    const Fabric fabric = load_fabric(entry.at("fabric").text());
    shown.columns = {{"device", entry.at("accelerator").text()},
                     {"domain", grouped(fabric.scale_up.domain)},
                     {"largest", largest_of(fabric)},
                     {"network", fabric.name}};
  } else if (kind.name == "accelerator") {
    const ResolvedDevice device = read_device(entry).resolved();
    shown.columns = {{"memory", to_text(device.memory_capacity)},
                     {"bandwidth", to_text(device.memory_bandwidth)}};
  } else if (kind.name == "model") {
    const ParameterCount count = count_parameters(read_model(entry));
    shown.columns = {{"parameters", fmt::format("{:.1f}B", static_cast<double>(count.total) / 1e9)},
                     {"active", fmt::format("{:.1f}B", static_cast<double>(count.active) / 1e9)}};
  } else if (kind.name == "fabric") {
    const Fabric fabric = load_fabric(entry.at("name").text());
    shown.columns = {{"domain", grouped(fabric.scale_up.domain)},
                     {"largest", largest_of(fabric)},
                     {"kind", std::string(to_text(fabric.scale_out.kind))}};
  }
}

Entry entry_of(const CatalogKind& kind, const std::string& name) {
  Entry shown{.name = name, .aliases = aliases_of(kind.folder, name)};
  const JsonValue entry = load_kind_entry(kind, name);
  shown.title = text_or_empty(entry, "title");
  try {
    add_columns(kind, entry, shown);
  } catch (const Error&) {
    shown.columns.clear();  // announced parts lack figures: `catalog check` judges, a list does not
  }
  return shown;
}

bool holds_all(const Entry& entry, const std::string& search) {
  std::string text = plain_name(entry.name + " " + entry.title);
  for (const std::string& alias : entry.aliases) text += " " + plain_name(alias);
  for (const auto& [heading, value] : entry.columns) text += " " + plain_name(value);
  std::istringstream words(search);
  for (std::string word; words >> word;)
    if (text.find(plain_name(word)) == std::string::npos) return false;
  return true;
}

bool has_device(const Entry& entry, const std::string& device) {
  return std::any_of(entry.columns.begin(), entry.columns.end(), [&](const auto& column) {
    return column.first == "device" && column.second == device;
  });
}

std::vector<Entry> entries_of(const CatalogKind& kind, const ListOptions& options) {
  std::string device = options.device;
  if (!device.empty()) {
    if (kind.name != "cluster")
      throw Error({.file = "--device",
                   .found = "a list of " + kind.name + "s",
                   .expected = "a list of clusters"});
    load_device(device);  // refuses a name that is none
    device = known_as("hw_models/catalog/accelerators", device).value_or(device);
  }
  std::vector<Entry> entries;
  for (const std::string& name : catalog_names(kind.folder)) {
    Entry entry = entry_of(kind, name);
    if (holds_all(entry, options.search) && (device.empty() || has_device(entry, device)))
      entries.push_back(std::move(entry));
  }
  return entries;
}

std::string counts_text(bool json) {
  Json counts = Json::object();
  std::string text;
  for (const CatalogKind& kind : catalog_kinds()) {
    counts[kind.name] = catalog_names(kind.folder).size();
    text += fmt::format("{:12} {} entries\n", kind.name, catalog_names(kind.folder).size());
  }
  return json ? counts.dump(2) + "\n" : text;
}

std::string entries_json(const std::vector<Entry>& entries) {
  Json list = Json::array();
  for (const Entry& entry : entries) {
    Json one = {{"name", entry.name}, {"title", entry.title}, {"aliases", entry.aliases}};
    for (const auto& [heading, text] : entry.columns) one[json_key(heading)] = text;
    list.push_back(one);
  }
  return list.dump(2) + "\n";
}

std::string title_of(const Entry& entry) {
  if (entry.aliases.empty()) return entry.title;
  return fmt::format("{}; also {}", entry.title, joined(entry.aliases, ", "));
}

// Columns beside names; titles beside them where there is room, else each under its row.
std::string table_of(const std::vector<Entry>& entries, std::size_t width) {
  constexpr std::size_t least_of_title = 40;
  std::vector<std::string> header = {"name"};
  std::vector<Align> align = {Align::left};
  const auto widest = std::max_element(
      entries.begin(), entries.end(),
      [](const Entry& a, const Entry& b) { return a.columns.size() < b.columns.size(); });
  for (const auto& [heading, text] : widest->columns) {
    header.push_back(heading);
    const bool number = !text.empty() && text[0] >= '0' && text[0] <= '9';
    align.push_back(number ? Align::right : Align::left);
  }
  Table figures(header, align);
  header.emplace_back("title");
  align.push_back(Align::left);
  Table whole(header, align);
  for (const Entry& entry : entries) {
    std::vector<std::string> row = {entry.name};
    for (const auto& [heading, text] : entry.columns) row.push_back(text);
    row.resize(header.size() - 1);
    figures.add(row);
    row.push_back(title_of(entry));
    whole.add(std::move(row));
  }
  if (figures.width() + least_of_title <= width) return whole.text("", width);
  std::istringstream rows(figures.text("", width));
  std::string text, row;
  std::getline(rows, row);
  text = row + "  (title below)\n";
  for (const Entry& entry : entries) {
    std::getline(rows, row);
    text += row + "\n" + wrap(title_of(entry), width, "    ", "    ");
  }
  return text;
}

}  // namespace

std::string list_text(const ListOptions& options) {
  if (options.kind.empty()) return counts_text(options.json);
  const CatalogKind& kind = find_catalog_kind(options.kind);
  const bool all = options.search.empty() && options.device.empty();
  if (options.names && all && !options.json)
    return fmt::format("{}\n", joined(catalog_names(kind.folder), "\n"));
  const std::vector<Entry> entries = entries_of(kind, options);
  if (options.json) return entries_json(entries);
  if (entries.empty()) return fmt::format("No {} has these words.\n", kind.name);
  if (!options.names) return table_of(entries, options.width);
  std::string text;
  for (const Entry& entry : entries) text += entry.name + "\n";
  return text;
}

}  // namespace orrery
