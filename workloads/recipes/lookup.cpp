// SPDX-License-Identifier: Apache-2.0
// Chooses recipes by release, device and precision, and counts what they set.
#include "workloads/recipes/lookup.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <map>
#include <set>
#include <string_view>

#include "sim/base/errors/check.h"
#include "sim/base/text/words.h"
#include "workloads/recipes/varies.h"
#include "workloads/release/release.h"

namespace orrery {
namespace {

using Wanted = std::function<bool(const Recipe&)>;
using Places = std::vector<std::size_t>;

// Degrees and stages follow a model's size: a majority of them says nothing.
constexpr std::string_view of_a_size[] = {
    "tp",       "pp",          "vpp",          "cp",
    "ep",       "micro_batch", "stages",       "sequence_parallel",
    "adapters", "mtp_layers",  "loss_in_split"};

bool is_precision(const Recipe& recipe, const std::string& wanted) {
  return wanted.empty() || recipe.precision == wanted || recipe.precision.starts_with(wanted + "-");
}

bool is_device(const Recipe& recipe, const std::string& wanted) {
  return wanted.empty() || recipe.device == wanted || recipe.device.empty();
}

// Texts that recipes hold, each once and in order.
template <class Text>
std::vector<std::string> texts_of(const RecipeBook& book, const Wanted& wanted, Text text) {
  std::set<std::string> texts;
  for (const Recipe& recipe : book.recipes)
    if (wanted(recipe)) texts.insert(text(recipe));
  texts.erase("");
  return {texts.begin(), texts.end()};
}

[[noreturn]] void none_is(const char* flag, const std::string& found,
                          const std::vector<std::string>& known, const std::string& what) {
  throw Error({.file = flag,
               .found = in_quotes(found) + ", which no recipe " + what,
               .expected = fmt::format("one of {}", joined(known, ", ")),
               .nearest = nearest_name(found, known)});
}

// Refuses what no recipe of the stack can answer; returns those that may.
Wanted asked_for(const RecipeBook& book, const RecipeQuestion& q) {
  const auto of_stack = [&book, &q](const Recipe& r) { return book.source_of(r).stack == q.stack; };
  const auto in_time = [&book, &q, of_stack](const Recipe& r) {
    return of_stack(r) && !seen_release(book.source_of(r), q.release).empty();
  };
  const Wanted any = [](const Recipe&) { return true; };
  const auto stack_of = [&book](const Recipe& r) { return book.source_of(r).stack; };
  if (texts_of(book, of_stack, stack_of).empty())
    none_is("catalog show stack", q.stack, texts_of(book, any, stack_of), "is of");
  const auto release_of = [&book](const Recipe& r) { return book.source_of(r).releases.front(); };
  if (texts_of(book, in_time, release_of).empty()) {
    std::vector<std::string> releases = texts_of(book, of_stack, release_of);
    const auto first = std::min_element(releases.begin(), releases.end(),
                                        [](const std::string& a, const std::string& b) {
                                          return release_parts(a) < release_parts(b);
                                        });
    throw Error({.file = "catalog show stack",
                 .found = q.stack + "@" + q.release + ", before all recipes",
                 .expected = *first + " or later"});
  }
  const auto on_device = [in_time, &q](const Recipe& r) {
    return in_time(r) && is_device(r, q.device);
  };
  const auto device_of = [](const Recipe& r) { return r.device.empty() ? "any" : r.device; };
  if (texts_of(book, on_device, device_of).empty())
    none_is("--device", q.device, texts_of(book, in_time, device_of), "up to this release is for");
  const auto of_task = [on_device, &q](const Recipe& r) {
    return on_device(r) && r.task == q.task;
  };
  const auto task_of = [](const Recipe& r) { return r.task; };
  if (texts_of(book, of_task, task_of).empty())
    none_is("--task", q.task, texts_of(book, on_device, task_of), "of this device is for");
  const auto in_precision = [of_task, &q](const Recipe& r) {
    return of_task(r) && is_precision(r, q.precision);
  };
  const auto precision_of = [](const Recipe& r) { return r.precision; };
  if (texts_of(book, in_precision, precision_of).empty())
    none_is("--precision", q.precision, texts_of(book, of_task, precision_of),
            "of this device and task is in");
  return in_precision;
}

// Recipes of the last release that has any.
Places of_last_release(const RecipeBook& book, const std::string& limit, const Wanted& wanted) {
  Places places;
  std::vector<long> last;
  for (std::size_t i = 0; i < book.recipes.size(); ++i) {
    const Recipe& recipe = book.recipes[i];
    if (!wanted(recipe)) continue;
    std::vector<long> parts = release_parts(seen_release(book.source_of(recipe), limit));
    if (parts < last) continue;
    if (last < parts) places.clear();
    last = std::move(parts);
    places.push_back(i);
  }
  return places;
}

// Gathers equal values; recipes keep their order.
FoundSetting values_of(const RecipeBook& book, const Places& recipes, std::size_t setting) {
  FoundSetting found{.name = book.setting_names[setting], .values = {}};
  for (const std::size_t place : recipes) {
    const std::string& value = book.value(book.recipes[place], setting);
    auto at = std::find_if(found.values.begin(), found.values.end(),
                           [&](const FoundValue& v) { return v.value == value; });
    if (at == found.values.end())
      at = found.values.insert(at, {.value = value, .where = {}, .recipes = {}, .families = {}});
    at->recipes.push_back(place);
  }
  std::stable_sort(
      found.values.begin(), found.values.end(),
      [](const FoundValue& a, const FoundValue& b) { return a.recipes.size() > b.recipes.size(); });
  return found;
}

void say_where(const RecipeBook& book, const Places& recipes, FoundSetting& setting) {
  std::map<std::size_t, std::size_t> value_of;
  for (std::size_t v = 0; v < setting.values.size(); ++v)
    for (const std::size_t place : setting.values[v].recipes) value_of[place] = v;
  std::vector<std::size_t> values;
  for (const std::size_t place : recipes) values.push_back(value_of[place]);
  const auto where = where_values_hold(book, recipes, values, setting.values.size());
  for (std::size_t v = 0; v < where.size(); ++v) setting.values[v].where = where[v];
}

// One vote for each family: the value that most of its recipes set, of those that set any.
FoundSetting votes_of(const RecipeBook& book, const Places& recipes, std::size_t setting) {
  std::map<std::string, Places> families;
  for (const std::size_t place : recipes) {
    const Recipe& recipe = book.recipes[place];
    if (!book.value(recipe, setting).empty())
      families[book.model_of(recipe).family].push_back(place);
  }
  FoundSetting found{
      .name = book.setting_names[setting], .values = {}, .families = families.size()};
  for (const auto& [family, places] : families) {
    const FoundValue vote = values_of(book, places, setting).values.front();
    auto at = std::find_if(found.values.begin(), found.values.end(),
                           [&](const FoundValue& v) { return v.value == vote.value; });
    if (at == found.values.end())
      at = found.values.insert(at,
                               {.value = vote.value, .where = {}, .recipes = {}, .families = {}});
    at->families.push_back(family);
    at->recipes.insert(at->recipes.end(), vote.recipes.begin(), vote.recipes.end());
  }
  std::stable_sort(found.values.begin(), found.values.end(),
                   [](const FoundValue& a, const FoundValue& b) {
                     return a.families.size() > b.families.size();
                   });
  for (FoundValue& value : found.values) {
    const bool every = value.families.size() == found.families && found.families > 1;
    value.where =
        every ? fmt::format("in all {} families", found.families)
              : fmt::format(
                    "in {} of {}: {}", value.families.size(),
                    found.families == 1 ? "1 family" : fmt::format("{} families", found.families),
                    joined(value.families, ", "));
  }
  return found;
}

bool is_set(const FoundSetting& setting) {
  return std::any_of(setting.values.begin(), setting.values.end(),
                     [](const FoundValue& v) { return !v.value.empty(); });
}

void count_settings(const RecipeBook& book, FoundRecipes& found) {
  const bool majority = found.match == RecipeMatch::majority;
  for (std::size_t s = 0; s < book.setting_names.size(); ++s) {
    if (majority && std::find(std::begin(of_a_size), std::end(of_a_size), book.setting_names[s]) !=
                        std::end(of_a_size))
      continue;
    FoundSetting setting =
        majority ? votes_of(book, found.recipes, s) : values_of(book, found.recipes, s);
    if (!is_set(setting)) continue;
    if (!majority) say_where(book, found.recipes, setting);
    found.settings.push_back(std::move(setting));
  }
}

}  // namespace

std::string seen_release(const RecipeSource& source, const std::string& limit) {
  std::string seen;
  for (const std::string& release : source.releases)
    if ((limit.empty() || release_parts(release) <= release_parts(limit)) &&
        release_parts(seen) < release_parts(release))
      seen = release;
  return seen;
}

FoundRecipes find_recipes(const RecipeBook& book, const RecipeQuestion& q) {
  const Wanted asked = asked_for(book, q);
  const auto try_for = [&](RecipeMatch match, const Wanted& whose, std::string of) {
    return FoundRecipes{.match = match,
                        .of = std::move(of),
                        .release = {},
                        .recipes = of_last_release(
                            book, q.release, [&](const Recipe& r) { return asked(r) && whose(r); }),
                        .settings = {}};
  };
  FoundRecipes found = try_for(
      RecipeMatch::model, [&](const Recipe& r) { return book.model_of(r).name == q.model; },
      q.model);
  if (found.recipes.empty())
    for (const RecipeModel& model : book.models) {
      const auto& alike = model.same_shape;
      if (!found.recipes.empty() || q.model.empty() ||
          std::find(alike.begin(), alike.end(), q.model) == alike.end())
        continue;
      found = try_for(
          RecipeMatch::same_shape,
          [&](const Recipe& r) { return book.model_of(r).name == model.name; }, model.name);
    }
  if (found.recipes.empty() && !q.family.empty())
    found = try_for(
        RecipeMatch::family, [&](const Recipe& r) { return book.model_of(r).family == q.family; },
        q.family);
  if (found.recipes.empty())
    found = try_for(
        RecipeMatch::majority, [&](const Recipe& r) { return book.model_of(r).moe == q.moe; },
        q.moe ? "models with experts" : "dense models");
  if (found.recipes.empty())
    throw Error(
        {.file = "--recipe",
         .found = in_quotes(q.model) + ", of which no script knows even the kind",
         .expected = "another device, precision or task: none of its recipes is for " + found.of});
  found.release = seen_release(book.source_of(book.recipes[found.recipes.front()]), q.release);
  count_settings(book, found);
  return found;
}

}  // namespace orrery
