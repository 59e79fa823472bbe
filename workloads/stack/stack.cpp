// SPDX-License-Identifier: Apache-2.0
// Reads stacks: base settings, releases in order of date, and settings that hold under conditions.
#include "workloads/stack/stack.h"

#include <algorithm>
#include <functional>

#include <fmt/format.h>

#include "workloads/release/facts.h"
#include "workloads/release/release.h"
#include "workloads/stack/settings.h"
#include "workloads/stack/values.h"

namespace orrery {
namespace {

bool matches(const JsonValue& condition, const StackContext& context) {
  const auto is_one = [](const JsonValue& wanted, std::string_view actual) {
    if (!wanted.is_array()) return wanted.text() == actual;
    const auto items = wanted.items();
    return std::any_of(items.begin(), items.end(),
                       [&](const JsonValue& item) { return item.text() == actual; });
  };
  if (auto v = condition.find("architecture"); v && !is_one(*v, context.architecture)) return false;
  if (auto v = condition.find("device"); v && !is_one(*v, context.device)) return false;
  if (auto v = condition.find("model"); v && !(context.named && is_one(*v, context.model)))
    return false;
  if (auto v = condition.find("family"); v && !(context.named && is_one(*v, context.family)))
    return false;
  if (auto v = condition.find("precision"); v && !is_one(*v, to_text(context.precision)))
    return false;
  if (auto v = condition.find("task"); v && !is_one(*v, to_text(context.task))) return false;
  if (auto v = condition.find("moe"); v && v->boolean() != context.moe) return false;
  return true;
}

// {"use": ["scoped-graphs"], "set": {...}}: the file's "parts" give names to settings that many
// recipes share. A name that no part has is an error even where it does not hold.
void apply_parts(Stack& s, const JsonValue& block, const JsonValue& file, bool holds) {
  if (const auto names = block.find("use"))
    for (const JsonValue& name : names->items()) {
      const JsonValue part = file.at("parts").at(name.text());
      if (holds) apply_settings(s, part);
    }
  if (const auto set = block.find("set"); set && holds) apply_settings(s, *set);
}

// Settings that hold under conditions.
void apply_conditions(Stack& s, const JsonValue& object, const JsonValue& file,
                      const StackContext& context) {
  const auto list = object.find("when");
  if (!list) return;
  for (const JsonValue& condition : list->items()) {
    condition.expect_only(
        {"architecture", "device", "model", "family", "precision", "moe", "task", "use", "set"});
    apply_parts(s, condition, file, matches(condition, context));
  }
}

// The stack as launch programs set it for the model: over all that releases and conditions set.
Stack with_facts(Stack s, const JsonValue& file, const StackContext& context,
                 const std::filesystem::path& catalog_folder, const std::string& release) {
  const auto recipes = file.find("recipes");
  if (!recipes) return s;
  const JsonValue facts =
      JsonValue::load(catalog_folder.parent_path() / "recipes" / (recipes->text() + ".json"));
  const auto found = recipe_facts(facts, context, release);
  if (!found) return s;
  apply_parts(s, found->block, file, true);
  s.unscripted = found->of_most;
  return s;
}

struct StackName {
  std::string name, release;
};
StackName split_name(const std::string& text) {
  if (is_inline_entry(text)) return {text, ""};
  const auto at = text.find('@');
  if (at == std::string::npos) return {text, ""};
  return {text.substr(0, at), text.substr(at + 1)};
}

JsonValue load_stack_file(const std::string& name, const std::filesystem::path& folder) {
  if (is_inline_entry(name)) return JsonValue::parse(name, "stack");
  const bool is_path = name.find('/') != std::string::npos || name.ends_with(".json");
  const std::filesystem::path file =
      is_path ? std::filesystem::path(name) : folder / (name + ".json");
  std::error_code unnameable;  // a name may be longer than a file's can be
  if (!is_path && !std::filesystem::exists(file, unnameable)) {
    throw Error({.file = "--stack",
                 .path = "",
                 .found = in_quotes(name),
                 .expected = "a stack of the catalogue",
                 .nearest = nearest_name(name, stack_names(folder))});
  }
  return JsonValue::load(file);
}

void require_complete(Stack& s, const JsonValue& file) {
  visit_stack_values(s, [&](std::string_view name, auto& sourced) {
    if (!sourced.known())
      throw Error({.file = file.file(),
                   .path = fmt::format("base.{}", name),
                   .found = "nothing",
                   .expected = "a value with evidence",
                   .nearest = ""});
  });
}

// Whether the stack is based on another: it inherits what the file does not say.
bool read_names(const JsonValue& file, Stack& s) {
  const bool based = !s.name.empty();
  s.name = file.at("name").text();
  const auto title = based ? file.find("title") : file.at("title");
  s.title = title ? title->text() : fmt::format("{} ({})", s.name, s.title);
  const auto framework = based ? file.find("framework") : file.at("framework");
  if (framework) s.framework = framework->text();
  return based;
}

// A stack on `depth` others that are based on it: a circle has no end. `each` is told of the stack
// at every release on the way; may be empty.
Stack load_based(const std::string& name, const StackContext& context,
                 const std::filesystem::path& catalog_folder, int depth,
                 const std::function<void(const Stack&)>& each) {
  const StackName wanted = split_name(name);
  JsonValue file = load_stack_file(wanted.name, catalog_folder);
  if (depth > 8)
    throw Error({.file = file.file(),
                 .path = "based_on",
                 .found = "a chain of more than 8 stacks",
                 .expected = "one that ends at a stack without based_on",
                 .nearest = ""});
  file.expect_only(
      {"name", "title", "framework", "based_on", "base", "parts", "when", "recipes", "releases"});
  Stack s;
  if (auto based_on = file.find("based_on"))
    s = load_based(based_on->reference(), context, catalog_folder, depth + 1, nullptr);
  const bool based = read_names(file, s);
  const auto own = based ? file.find("base") : file.at("base");
  if (own) apply_settings(s, *own);
  apply_conditions(s, file, file, context);
  const bool own_launcher = own && own->has("launcher");
  const bool own_flags = own && own->has("flags_release");
  const auto limit = release_parts(wanted.release);
  bool first = true, later = true;
  // Who asks for a release needs some to choose from.
  const bool inherits = based && wanted.release.empty();
  const auto releases = inherits ? file.find("releases") : file.at("releases");
  if (const auto recipes = file.find("recipes"); recipes && !releases)
    recipes->fail("releases in the same file, whose scripts these are");
  for (const JsonValue& release : releases ? releases->items() : std::vector<JsonValue>{}) {
    release.expect_only({"release", "date", "changes", "set", "when"});
    const std::string label = release.at("release").text();
    // A release before the first listed one still runs that first one.
    later = release_parts(label) < limit;
    if (!first && !wanted.release.empty() && release_parts(label) > limit) break;
    first = false;
    s.release = label;
    s.date = release.at("date").text();
    if (own_launcher && !own_flags) s.flags_release = label;
    for (const JsonValue& change : release.at("changes").items())
      s.changes.push_back(change.text());
    if (auto set = release.find("set")) apply_settings(s, *set);
    apply_conditions(s, release, file, context);
    if (each) each(with_facts(s, file, context, catalog_folder, label));
  }
  require_complete(s, file);
  if (!releases) {  // of what it is based on
    if (each) each(s);
    return s;
  }
  s.asked = release_parts(s.release) == limit ? "" : wanted.release;
  s.asked_is_later = later && !s.asked.empty();
  return with_facts(s, file, context, catalog_folder, s.asked.empty() ? s.release : s.asked);
}

}  // namespace

Stack load_stack(const std::string& name, const StackContext& context,
                 const std::filesystem::path& catalog_folder) {
  return load_based(name, context, catalog_folder, 0, nullptr);
}

std::vector<Stack> load_releases(const std::string& name, const StackContext& context,
                                 const std::filesystem::path& catalog_folder) {
  std::vector<Stack> releases;
  load_based(name, context, catalog_folder, 0,
             [&](const Stack& release) { releases.push_back(release); });
  return releases;
}

std::vector<std::string> stack_names(const std::filesystem::path& catalog_folder) {
  std::vector<std::string> names;
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator(catalog_folder, ignored))
    if (entry.path().extension() == ".json") names.push_back(entry.path().stem().string());
  std::sort(names.begin(), names.end());
  return names;
}

std::vector<std::string> stack_releases(const std::string& name,
                                        const std::filesystem::path& catalog_folder) {
  std::vector<std::string> releases;
  const JsonValue file = load_stack_file(split_name(name).name, catalog_folder);
  for (const JsonValue& release : file.at("releases").items())
    releases.push_back(release.at("release").text());
  return releases;
}

std::string known_release(const std::string& name, const std::filesystem::path& catalog_folder) {
  const StackName wanted = split_name(name);
  const auto limit = release_parts(wanted.release);
  std::string known;
  for (const std::string& release : stack_releases(wanted.name, catalog_folder))
    if (wanted.release.empty() || release_parts(release) <= limit) known = release;
  return known;
}

}  // namespace orrery
