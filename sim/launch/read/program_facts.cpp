// SPDX-License-Identifier: Apache-2.0
// Reads the catalogue of programs, and finds models by the names that they give them.
#include "sim/launch/read/program_facts.h"

#include <algorithm>
#include <cctype>
#include <map>

#include "hw_models/catalog.h"
#include "sim/base/errors/check.h"
#include "sim/base/json/json.h"
#include "workloads/model/model_catalog.h"

namespace orrery {
namespace {

JsonValue catalogue() {
  return JsonValue::load(data_root() / "workloads/catalog/launch_programs.json");
}

// Small letters and digits alone: what names of one model have in common.
std::string plain_name(std::string_view name) {
  std::string out;
  for (const char c : name)
    if (std::isalnum(static_cast<unsigned char>(c)) != 0)
      out += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return out;
}

const std::map<std::string, std::string>& known_names() {
  static const std::map<std::string, std::string> all = [] {
    std::map<std::string, std::string> names;
    const auto folder = data_root() / "workloads/catalog/models";
    for (const std::string& entry : model_names(folder)) names[plain_name(entry)] = entry;
    for (const std::string& entry : model_names(folder)) {
      const JsonValue file = JsonValue::load(folder / (entry + ".json"));
      if (const auto aliases = file.find("aliases"))
        for (const JsonValue& alias : aliases->items()) {
          const std::string text = alias.text();
          names.emplace(plain_name(text), entry);
          names.emplace(plain_name(text.substr(text.rfind('/') + 1)), entry);
        }
    }
    for (const auto& [name, entry] : catalogue().at("models").members())
      names[plain_name(name)] = entry.text();
    return names;
  }();
  return all;
}

std::string text_or(const JsonValue& at, const char* key) {
  const auto value = at.find(key);
  return value ? value->text() : "";
}

}  // namespace

bool fits_pattern(std::string_view name, std::string_view pattern) {
  const bool begins = pattern.ends_with('*'), ends = pattern.starts_with('*');
  if (begins) pattern.remove_suffix(1);
  if (ends) pattern.remove_prefix(1);
  if (begins && ends) return name.find(pattern) != std::string_view::npos;
  if (begins) return name.starts_with(pattern);
  return ends ? name.ends_with(pattern) : name == pattern;
}

bool ProgramFacts::has_no_effect(std::string_view setting) const {
  return std::any_of(without_effect.begin(), without_effect.end(),
                     [&](const std::string& pattern) { return fits_pattern(setting, pattern); });
}

namespace {

std::vector<std::string> texts_at(const JsonValue& at, const char* key) {
  std::vector<std::string> out;
  for (const JsonValue& one : at.at(key).items()) out.push_back(one.text());
  return out;
}

std::vector<ProgramSigns> read_signs() {
  std::vector<ProgramSigns> all;
  for (int i = 0; i < given_program_text.count; ++i) {
    const auto program = static_cast<GivenProgram>(i);
    const JsonValue at = catalogue().at("by_name").at(given_program_text[program]);
    all.push_back(
        {program, texts_at(at, "commands"), texts_at(at, "signs"), texts_at(at, "release_words")});
  }
  return all;
}

}  // namespace

const std::vector<ProgramSigns>& program_signs() {
  static const std::vector<ProgramSigns> all = read_signs();
  return all;
}

ProgramFacts program_facts(GivenProgram program) {
  const JsonValue at = catalogue().at("by_name").at(given_program_text[program]);
  at.expect_only({"title", "stack", "stack_without_overlap", "commands", "signs", "release_words",
                  "defaults", "without_effect"});
  ProgramFacts facts{.program = program,
                     .title = at.at("title").text(),
                     .stack = at.at("stack").text(),
                     .stack_without_overlap = text_or(at, "stack_without_overlap"),
                     .without_effect = texts_at(at, "without_effect")};
  for (const JsonValue& one : at.at("defaults").items()) {
    one.expect_only({"key", "value", "name", "releases", "source"});
    facts.defaults.push_back({.key = one.at("key").text(),
                              .value = one.at("value").raw(),
                              .name = one.at("name").text(),
                              .releases = one.at("releases").text(),
                              .source = one.at("source").text()});
  }
  return facts;
}

std::optional<std::string> model_of_name(const std::string& name) {
  const auto at = known_names().find(plain_name(name));
  if (at != known_names().end()) return at->second;
  // A checkpoint's name without its owner, or a folder on somebody's disk.
  const std::size_t slash = name.find_last_not_of('/');
  const std::string trimmed = slash == std::string::npos ? "" : name.substr(0, slash + 1);
  const std::string last = trimmed.substr(trimmed.rfind('/') + 1);
  const auto found = known_names().find(plain_name(last));
  if (last.empty() || found == known_names().end()) return std::nullopt;
  return found->second;
}

}  // namespace orrery
