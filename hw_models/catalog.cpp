// SPDX-License-Identifier: Apache-2.0
// Knows where the catalogues lie, how an entry is found and how one entry overlays another.
#include "hw_models/catalog.h"

#include <dlfcn.h>

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <mutex>
#include <system_error>
#include <utility>

#include "hw_models/catalog_names.h"
#include "sim/base/errors/check.h"
#include "sim/base/json/tree.h"

namespace orrery {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view nic_folder = "hw_models/catalog/nics";
constexpr std::string_view switch_folder = "hw_models/catalog/switches";
constexpr std::string_view host_folder = "hw_models/catalog/hosts";
constexpr std::string_view source_folder = "hw_models/catalog/sources";

bool holds_catalogues(const fs::path& root) {
  std::error_code ignored;
  return fs::is_directory(root / "hw_models" / "catalog", ignored);
}

bool is_path(const std::string& name) {
  return name.find('/') != std::string::npos || fs::path(name).extension() == ".json";
}

// Where the entry called `name` lies; relative paths are looked up from `beside`.
fs::path locate(const std::string& folder, const std::string& kind, const std::string& name,
                const fs::path& beside) {
  if (is_path(name)) {
    const fs::path given(name);
    return given.is_absolute() || beside.empty() ? given : beside / given;
  }
  fs::path file = data_root() / folder / (name + ".json");
  std::error_code unnameable;  // a name may be longer than a file's can be
  if (fs::is_regular_file(file, unnameable)) return file;
  const std::optional<std::string> entry = known_as(folder, name);
  if (!entry)
    throw Error({.file = kind,
                 .path = "",
                 .found = in_quotes(name) + ", which is not in the catalogue",
                 .expected = fmt::format("a name of `orrery catalog list {}` or a file", kind),
                 .nearest = meant_name(folder, name)});
  return data_root() / folder / (*entry + ".json");
}

JsonValue load_merged(const std::string& folder, const std::string& kind, const fs::path& file,
                      std::vector<fs::path>& chain);

// The entry with everything it is based on merged in. `file` is where it stands, empty for one that
// stands inline; `chain` holds the files on the way here.
JsonValue merge_base(const std::string& folder, const std::string& kind, const JsonValue& entry,
                     const fs::path& file, std::vector<fs::path>& chain) {
  if (!entry.is_object()) entry.fail("an object");
  if (!entry.has("based_on")) return entry;
  SortedJson own = entry.raw();
  const JsonValue based_on = entry.at("based_on");
  SortedJson merged;
  try {
    merged =
        based_on.is_object()
            ? merge_base(folder, kind, JsonValue::from(based_on.raw(), entry.file()), file, chain)
                  .raw()
            : load_merged(folder, kind, locate(folder, kind, based_on.text(), file.parent_path()),
                          chain)
                  .raw();
  } catch (const Error& error) {
    // A missing base is a mistake of this file; everything else names its own file already.
    if (error.info().file != kind) throw;
    ErrorInfo info = error.info();
    info.file = entry.file();
    info.path = "based_on";
    throw Error(std::move(info));
  }
  own.erase("based_on");
  merged.erase("aliases");  // what people and drivers call the base is not this entry
  merged.erase("driver_names");
  // An overlay is an entry of its own: it must not pass for what it is based on.
  if (!own.contains("name"))
    own["name"] = file.empty() ? entry.at("name").text() : file.stem().string();
  merge_overlay(merged, own);
  return JsonValue::from(std::move(merged), entry.file());
}

JsonValue load_merged(const std::string& folder, const std::string& kind, const fs::path& file,
                      std::vector<fs::path>& chain) {
  const JsonValue entry = JsonValue::load(file);
  if (!entry.is_object() || !entry.has("based_on"))
    return merge_base(folder, kind, entry, file, chain);
  std::error_code ignored;
  const fs::path place = fs::weakly_canonical(file, ignored);
  const bool cycle = std::find(chain.begin(), chain.end(), place) != chain.end();
  if (cycle)
    throw Error({.file = chain.back().string(),
                 .path = "based_on",
                 .found = fmt::format("a circle back to {}", place.string()),
                 .expected = "an entry that is not based on this one"});
  chain.push_back(place);
  return merge_base(folder, kind, entry, file, chain);
}

std::string text_or_empty(const JsonValue& entry, std::string_view key) {
  const JsonValue member = entry.at(key);
  return member.is_null() ? "" : member.text();
}

}  // namespace

void merge_overlay(SortedJson& target, const SortedJson& patch) {
  if (!patch.is_object() || patch.contains("value")) {
    target = patch;
    return;
  }
  if (!target.is_object()) target = SortedJson::object();
  for (const auto& [key, value] : patch.items()) {
    if (value.is_null())
      target.erase(key);
    else
      merge_overlay(target[key], value);
  }
}

namespace {

// Of the program, or of the library that was loaded with this code in it.
fs::path folder_of_this_code() {
  Dl_info place{};
  if (dladdr(reinterpret_cast<const void*>(&data_root), &place) == 0) return {};
  return fs::path(place.dli_fname).parent_path();
}

fs::path find_data_root(const std::string& given) {
  if (!given.empty()) {
    if (!holds_catalogues(given))
      throw Error({.file = "ORRERY_DATA",
                   .path = "",
                   .found = fmt::format("\"{}\"", given),
                   .expected = "a folder that holds hw_models/catalog"});
    return given;
  }
  const fs::path wheel = folder_of_this_code() / "data";
  if (holds_catalogues(wheel)) return wheel;
  std::error_code error;
  const fs::path binary = fs::read_symlink("/proc/self/exe", error);
  if (!error) {
    fs::path installed = (binary.parent_path() / ".." / "share" / "orrery").lexically_normal();
    if (holds_catalogues(installed)) return installed;
  }
  fs::path source_tree = ORRERY_SOURCE_DIR;
  if (holds_catalogues(source_tree)) return source_tree;
  throw Error(
      {.file = "catalogues",
       .path = "",
       .found = fmt::format("neither beside {} nor in {}", binary.string(), source_tree.string()),
       .expected = "an installed share/orrery, or its place in ORRERY_DATA"});
}

}  // namespace

fs::path data_root() {
  const char* variable = std::getenv("ORRERY_DATA");
  const std::string given = variable == nullptr ? "" : variable;
  // Every entry that is read asks; the answer changes with the variable only.
  static std::mutex mutex;
  static std::map<std::string, fs::path> known;
  const std::scoped_lock lock(mutex);
  const auto found = known.find(given);
  return found != known.end() ? found->second
                              : known.emplace(given, find_data_root(given)).first->second;
}

std::vector<std::string> catalog_names(const std::string& folder) {
  std::vector<std::string> names;
  std::error_code error;
  for (const auto& item : fs::directory_iterator(data_root() / folder, error))
    if (item.path().extension() == ".json") names.push_back(item.path().stem().string());
  std::sort(names.begin(), names.end());
  return names;
}

JsonValue load_catalog_entry(const std::string& folder, const std::string& kind,
                             const std::string& name) {
  std::vector<fs::path> chain;
  if (is_inline_entry(name))
    return merge_base(folder, kind, JsonValue::parse(name, kind), {}, chain);
  return load_merged(folder, kind, locate(folder, kind, name, {}), chain);
}

std::string catalog_base(const std::string& folder, const std::string& kind,
                         const std::string& name) {
  const bool stands_inline = is_inline_entry(name);
  const fs::path file = stands_inline ? fs::path() : locate(folder, kind, name, {});
  const JsonValue entry = stands_inline ? JsonValue::parse(name, kind) : JsonValue::load(file);
  if (!entry.is_object() || !entry.has("based_on")) return "";
  const std::string base = entry.at("based_on").reference();
  return is_inline_entry(base) ? base : locate(folder, kind, base, file.parent_path()).string();
}

std::vector<std::string> licence_names() {
  return {"Apache-2.0",   "MIT",        "BSD-3-Clause", "CC-BY-4.0",
          "CC-BY-SA-4.0", "facts only", "terms unknown"};
}

std::map<std::string, Source> load_sources() {
  std::map<std::string, Source> sources;
  for (const std::string& name : catalog_names(std::string(source_folder))) {
    const JsonValue file = JsonValue::load(data_root() / source_folder / (name + ".json"));
    for (const auto& [id, entry] : file.members()) {
      entry.expect_only({"title", "address", "date_read", "licence"});
      entry.at("licence").one_of(licence_names());
      Source source{.id = id,
                    .title = entry.at("title").text(),
                    .address = text_or_empty(entry, "address"),
                    .date_read = text_or_empty(entry, "date_read"),
                    .licence = entry.at("licence").text()};
      const auto [place, added] = sources.emplace(id, source);
      if (!added &&
          (place->second.title != source.title || place->second.address != source.address ||
           place->second.date_read != source.date_read || place->second.licence != source.licence))
        entry.fail(fmt::format("what another file says of \"{}\": {}", id, place->second.title),
                   source.title);
    }
  }
  return sources;
}

Nic read_nic(const JsonValue& file) {
  file.expect_only({"name", "title", "bandwidth", "latency", "efficiency", "power", "price"});
  return {.name = file.at("name").text(),
          .title = file.at("title").text(),
          .bandwidth = read_sourced<BytesPerSecond>(file.at("bandwidth")),
          .latency = read_sourced<Seconds>(file.at("latency")),
          .efficiency = read_sourced<double>(file.at("efficiency")),
          .power = read_sourced<Watts>(file.at("power")),
          .price = read_sourced<Dollars>(file.at("price"))};
}

Switch read_switch(const JsonValue& file) {
  file.expect_only({"name", "title", "ports", "port_bandwidth", "latency", "power", "price",
                    "in_network_reduction", "co_packaged_optics", "scale_up_link"});
  const auto co_packaged = file.find("co_packaged_optics");
  const auto link = file.find("scale_up_link");
  return {.name = file.at("name").text(),
          .title = file.at("title").text(),
          .ports = read_sourced<std::int64_t>(file.at("ports")),
          .port_bandwidth = read_sourced<BytesPerSecond>(file.at("port_bandwidth")),
          .latency = read_sourced<Seconds>(file.at("latency")),
          .power = read_sourced<Watts>(file.at("power")),
          .price = read_sourced<Dollars>(file.at("price")),
          .in_network_reduction = file.at("in_network_reduction").boolean(),
          .co_packaged_optics = co_packaged && co_packaged->boolean(),
          .scale_up_link = link ? link->text() : ""};
}

// One where nobody has measured it: hosts of x86 are taken to be alike.
Sourced<double> read_launch_time(const JsonValue& file) {
  const auto told = file.find("launch_time");
  if (!told) return {.value = 1, .evidence = Evidence::estimated, .reason = "as a DGX H100's"};
  Sourced<double> time = read_sourced<double>(*told);
  for (const auto& end : {time.value, time.low, time.high})
    if (end && !(*end > 0)) told->fail("above 0");
  return time;
}

Host read_host(const JsonValue& file) {
  file.expect_only({"name", "title", "memory", "memory_bandwidth", "power", "price", "failure_rate",
                    "includes", "hosts_per_rack", "launch_time"});
  Sourced<std::int64_t> per_rack = {.evidence = Evidence::specified,
                                    .reason = "no tray of a rack that is sold whole"};
  if (const auto hosts = file.find("hosts_per_rack")) {
    per_rack = read_sourced<std::int64_t>(*hosts);
    for (const auto& end : {per_rack.value, per_rack.low, per_rack.high})
      if (end && *end < 1) hosts->fail("at least one host");
  }
  return {.name = file.at("name").text(),
          .title = file.at("title").text(),
          .memory = read_sourced<Bytes>(file.at("memory")),
          .memory_bandwidth = read_sourced<BytesPerSecond>(file.at("memory_bandwidth")),
          .power = read_sourced<Watts>(file.at("power")),
          .price = read_sourced<Dollars>(file.at("price")),
          .failure_rate = read_sourced<Hertz>(file.at("failure_rate")),
          .includes = read_parts_included(file, "includes"),
          .launch_time = read_launch_time(file),
          .hosts_per_rack = per_rack};
}

Device load_device(const std::string& name) {
  return read_device(load_catalog_entry(accelerator_folder, "accelerator", name));
}

Nic load_nic(const std::string& name) {
  return read_nic(load_catalog_entry(std::string(nic_folder), "nic", name));
}

Switch load_switch(const std::string& name) {
  return read_switch(load_catalog_entry(std::string(switch_folder), "switch", name));
}

Host load_host(const std::string& name) {
  return read_host(load_catalog_entry(std::string(host_folder), "host", name));
}

}  // namespace orrery
