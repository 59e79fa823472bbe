// SPDX-License-Identifier: Apache-2.0
// Finds the entries of the catalogue that a question about recipes names.
#include "sim/app/catalog/recipe_question.h"

#include <algorithm>
#include <filesystem>
#include <set>
#include <vector>

#include "hw_models/catalog.h"
#include "hw_models/catalog_names.h"
#include "sim/app/catalog/kinds.h"
#include "sim/app/catalog/show.h"
#include "sim/base/errors/check.h"
#include "workloads/model/model_catalog.h"
#include "workloads/stack/stack.h"

namespace orrery {
namespace {

constexpr const char* models_folder = "workloads/catalog/models";

bool is_file(const std::string& name) {
  return name.find('/') != std::string::npos || name.ends_with(".json");
}

bool has_recipes(const RecipeBook& book, const std::string& stack) {
  return std::any_of(book.sources.begin(), book.sources.end(),
                     [&](const RecipeSource& source) { return source.stack == stack; });
}

void name_stack(const RecipeBook& book, const std::string& asked, RecipeQuestion& q) {
  const CatalogKind& kind = find_catalog_kind("stack");
  std::string name = asked;
  for (int depth = 0; depth < 8; ++depth) {
    const std::size_t at = name.find('@');
    q.stack = name.substr(0, at);
    q.release = at == std::string::npos ? "" : name.substr(at + 1);
    const JsonValue entry = load_kind_entry(kind, name);  // refuses a name that is none
    const auto base = entry.find("based_on");
    if (has_recipes(book, q.stack) || !base || !base->is_string()) break;
    name = base->text();
  }
  if (!has_recipes(book, q.stack)) q.stack = asked.substr(0, asked.find('@'));
}

void take(const Model& model, RecipeQuestion& q) {
  q.model = model.name;
  q.family = model.family;
  q.moe = model.has_experts();
}

// A name that the book has: of a model, or of a family.
bool name_of_book(const RecipeBook& book, const std::string& name, RecipeQuestion& q) {
  for (const RecipeModel& model : book.models)
    if (model.name == name || model.family == name) {
      q.model = model.name == name ? name : "";
      q.family = model.family;
      q.moe = model.moe;
      return true;
    }
  return false;
}

// All names by which recipes can be asked for.
std::vector<std::string> known_names(const RecipeBook& book) {
  std::set<std::string> names;
  for (const std::string& name : catalog_names(models_folder)) names.insert(name);
  for (const RecipeModel& model : book.models) names.insert({model.name, model.family});
  return {names.begin(), names.end()};
}

void name_model(const RecipeBook& book, const std::string& asked, RecipeQuestion& q) {
  if (asked.empty())
    throw Error({.file = "--recipe", .found = "no name", .expected = "a model or a family"});
  const auto folder = data_root() / models_folder;
  const std::string plain = plain_name(asked);
  if (const auto known = known_as(models_folder, asked)) return take(load_model(*known, folder), q);
  if (name_of_book(book, plain, q)) return;
  if (is_file(asked)) return take(load_model(asked, folder), q);
  const std::vector<std::string> names = known_names(book);
  // A name cut short, "qwen3-235b", of which there is one.
  std::vector<std::string> longer;
  std::copy_if(names.begin(), names.end(), std::back_inserter(longer),
               [&](const std::string& name) { return name.starts_with(plain + "-"); });
  if (longer.size() == 1) return name_model(book, longer.front(), q);
  throw Error({.file = "--recipe",
               .found = in_quotes(asked),
               .expected = "a model of the catalogue (orrery catalog list model), a model or a "
                           "family that a launch program names, or a file of a model",
               .nearest = longer.empty() ? nearest_name(plain, names) : longer.front()});
}

}  // namespace

RecipeQuestion recipe_question(const RecipeBook& book, const AskedRecipe& asked) {
  RecipeQuestion q;
  name_stack(book, asked.stack, q);
  name_model(book, asked.model, q);
  if (!asked.task.empty()) q.task = plain_name(asked.task);
  q.precision = plain_name(asked.precision);
  if (!asked.device.empty()) {
    load_device(asked.device);  // refuses a name that is none
    q.device = known_as("hw_models/catalog/accelerators", asked.device).value_or(asked.device);
  }
  return q;
}

}  // namespace orrery
