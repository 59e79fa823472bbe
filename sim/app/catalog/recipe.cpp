// SPDX-License-Identifier: Apache-2.0
// Shows the settings of recipes in a table, with where each holds and the address it was read at.
#include "sim/app/catalog/recipe.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "hw_models/catalog.h"
#include "sim/app/catalog/recipe_differences.h"
#include "sim/base/text/enum_names.h"
#include "sim/base/text/words.h"

namespace orrery {
namespace {

struct Answer {
  std::string stack;  // that was asked for, without its release
  RecipeBook book;
  RecipeQuestion question;
  FoundRecipes found;
  std::vector<RecipeDifference> differences;  // of the stack's file; of no majority
  std::vector<std::size_t> sources;           // places in the book, in order
};

Answer answer_of(const AskedRecipe& asked) {
  Answer a;
  a.stack = asked.stack.substr(0, asked.stack.find('@'));
  a.book = load_recipes(data_root() / "workloads/catalog/recipes");
  a.question = recipe_question(a.book, asked);
  a.found = find_recipes(a.book, a.question);
  if (a.found.match != RecipeMatch::majority)
    a.differences = recipe_differences(a.book, a.found, asked.stack);
  std::set<std::size_t> sources;
  for (const std::size_t place : a.found.recipes) sources.insert(a.book.recipes[place].source);
  a.sources.assign(sources.begin(), sources.end());
  return a;
}

const std::string& name_of(const RecipeQuestion& q) { return q.model.empty() ? q.family : q.model; }

// Whether a default says what happens where some of the recipes found leave its setting blank.
bool fills_a_blank(const Answer& a, const RecipeDefault& known) {
  const auto& names = a.book.setting_names;
  const auto name = std::find(names.begin(), names.end(), known.setting);
  if (name == names.end()) return false;
  const auto setting = static_cast<std::size_t>(name - names.begin());
  return std::any_of(a.found.recipes.begin(), a.found.recipes.end(), [&](std::size_t place) {
    const Recipe& recipe = a.book.recipes[place];
    const std::string& program = a.book.source_of(recipe).program;
    const bool of_program =
        std::find(known.programs.begin(), known.programs.end(), program) != known.programs.end();
    return of_program && a.book.value(recipe, setting).empty();
  });
}

// A program's own defaults stand in place of those of the library below it, which more programs
// share.
std::vector<const RecipeDefault*> defaults_of(const Answer& a) {
  static const std::set<std::string> of_experts = {"etp", "dispatcher", "dispatcher_sms",
                                                   "grouped_gemm", "capacity_factor"};
  std::vector<const RecipeDefault*> defaults;
  for (const RecipeDefault& known : a.book.defaults)
    if ((a.question.moe || !of_experts.contains(known.setting)) && fills_a_blank(a, known))
      defaults.push_back(&known);
  const auto is_below = [&defaults](const RecipeDefault* lower) {
    return std::any_of(defaults.begin(), defaults.end(), [lower](const RecipeDefault* own) {
      return own->setting == lower->setting && own->programs.size() < lower->programs.size();
    });
  };
  std::vector<const RecipeDefault*> own;
  std::copy_if(defaults.begin(), defaults.end(), std::back_inserter(own),
               [&](const RecipeDefault* d) { return !is_below(d); });
  return own;
}

// Sentences: which recipes these are where they are not those that were asked for.
std::vector<std::string> remarks_of(const Answer& a) {
  std::vector<std::string> remarks;
  const RecipeQuestion& q = a.question;
  if (a.stack != q.stack)
    remarks.push_back(
        fmt::format("no script is of {}: those of {}, on which it is based", a.stack, q.stack));
  if (!q.release.empty() && a.found.release != q.release)
    remarks.push_back(
        fmt::format("no script of {} is for this: those of {}, the nearest release "
                    "before",
                    q.release, a.found.release));
  if (a.found.match == RecipeMatch::same_shape)
    remarks.push_back(
        fmt::format("no script names {}: those of {}, of the same shape", q.model, a.found.of));
  if (a.found.match == RecipeMatch::family && !q.model.empty())
    remarks.push_back(
        fmt::format("no script names {}: those of its family, {}", q.model, a.found.of));
  if (a.found.match == RecipeMatch::majority)
    remarks.push_back(fmt::format(
        "no script names {}: what most families of {} set, one vote each; degrees and stages are "
        "left out",
        name_of(q), a.found.of));
  std::set<std::string> notes;
  for (const std::size_t place : a.found.recipes) notes.insert(a.book.recipes[place].note);
  notes.erase("");
  remarks.insert(remarks.end(), notes.begin(), notes.end());
  return remarks;
}

// Numbers of the sources at which a value was read: "1-3,7"; "all".
std::string read_at(const Answer& a, const std::vector<std::size_t>& recipes) {
  std::set<std::size_t> numbers;
  for (const std::size_t place : recipes) {
    const auto at = std::find(a.sources.begin(), a.sources.end(), a.book.recipes[place].source);
    numbers.insert(static_cast<std::size_t>(at - a.sources.begin()) + 1);
  }
  if (numbers.size() == a.sources.size() && numbers.size() > 1) return "all";
  std::string text;
  for (auto at = numbers.begin(); at != numbers.end();) {
    const std::size_t first = *at;
    std::size_t last = first;
    while (++at != numbers.end() && *at == last + 1) last = *at;
    if (!text.empty()) text += ",";
    text += first == last ? fmt::format("{}", first) : fmt::format("{}-{}", first, last);
  }
  return text;
}

// What recipes are for, each word once: "b200-sxm, gb200".
template <class Text>
std::string listed(const Answer& a, Text text) {
  std::vector<std::string> words;
  for (const std::size_t place : a.found.recipes)
    for (const std::string& word : text(a.book.recipes[place]))
      if (!word.empty() && std::find(words.begin(), words.end(), word) == words.end())
        words.push_back(word);
  std::sort(words.begin(), words.end(), [](const std::string& x, const std::string& y) {
    const auto digits = [](const std::string& s) {
      return s.find_first_not_of("0123456789") == std::string::npos;
    };
    return digits(x) && digits(y) && x.size() != y.size() ? x.size() < y.size() : x < y;
  });
  return words.empty() ? "any" : joined(words, ", ");
}

using Words = std::vector<std::string>;

std::string head_text(const Answer& a, std::size_t width) {
  const RecipeQuestion& q = a.question;
  std::string text =
      wrap(fmt::format("What the scripts of {} {} set for {} ({}): {}", q.stack, a.found.release,
                       name_of(q), q.task, plural(a.found.recipes.size(), "recipe")),
           width, "", "  ");
  text += "\n";
  for (const std::string& remark : remarks_of(a)) text += wrap(remark, width, "  - ", "    ");
  text += wrap("devices: " + listed(a, [](const Recipe& r) { return Words{r.device}; }), width,
               "  ", "    ");
  text += wrap("precisions: " + listed(a, [](const Recipe& r) { return Words{r.precision}; }),
               width, "  ", "    ");
  text += wrap("GPUs: " + listed(a, [](const Recipe& r) { return r.gpus; }), width, "  ", "    ");
  text += wrap("sequences: " + listed(a, [](const Recipe& r) { return Words{r.sequence}; }), width,
               "  ", "    ");
  return text + "\n";
}

// The values of a setting that are shown, with where each holds. What is left blank goes without
// saying; of values that fill a setting everywhere the one that takes most words is the rest.
std::vector<std::pair<const FoundValue*, std::string>> shown_values(const FoundSetting& setting) {
  constexpr std::size_t many_words = 40;
  std::vector<std::pair<const FoundValue*, std::string>> shown;
  for (const FoundValue& value : setting.values)
    if (!value.value.empty()) shown.emplace_back(&value, value.where);
  if (shown.size() < setting.values.size() || setting.families > 0) return shown;
  const auto longest = std::max_element(
      shown.begin(), shown.end(),
      [](const auto& a, const auto& b) { return a.second.size() < b.second.size(); });
  if (longest->second.size() > many_words) longest->second = "elsewhere";
  return shown;
}

// The sources of a majority are too many for a column: the list of sources names their models.
std::string settings_text(const Answer& a, std::size_t width) {
  const bool majority = a.found.match == RecipeMatch::majority;
  Table table({"setting", "value", majority ? "" : "read at", majority ? "votes" : "where"},
              {Align::left, Align::left, Align::left, Align::left});
  for (const FoundSetting& setting : a.found.settings) {
    std::string name = setting.name;
    for (const auto& [value, where] : shown_values(setting)) {
      table.add({name, value->value, majority ? "" : read_at(a, value->recipes), where});
      name.clear();
    }
  }
  return table.text("", width);
}

std::string differences_text(const Answer& a, std::size_t width) {
  if (a.found.match == RecipeMatch::majority) return "";
  if (a.differences.empty())
    return "\nThe stack's file says the same of all settings that it knows.\n";
  Table table({"setting", "stack's file", "recipe", "where"},
              {Align::left, Align::left, Align::left, Align::left});
  std::string before;
  for (const RecipeDifference& d : a.differences) {
    table.add({d.setting == before ? "" : d.setting, d.stack, d.recipe,
               d.where.empty() ? "everywhere" : d.where});
    before = d.setting;
  }
  return "\nThe stack's file says otherwise:\n" + table.text("", width);
}

std::string defaults_text(const Answer& a, std::size_t width) {
  const auto defaults = defaults_of(a);
  if (defaults.empty()) return "";
  std::string text = "\nWhere a recipe leaves a setting blank:\n";
  for (const RecipeDefault* d : defaults) {
    text +=
        wrap(fmt::format("{}: {} ({})", d->setting, d->value, d->holds_for), width, "  ", "    ");
    text += "    " + d->address + "\n";
  }
  return text;
}

// Whose recipes a source holds, where they are not the model's own.
std::string models_at(const Answer& a, std::size_t source) {
  if (a.found.match == RecipeMatch::model && !a.question.model.empty()) return "";
  std::set<std::string> models;
  for (const std::size_t place : a.found.recipes)
    if (a.book.recipes[place].source == source)
      models.insert(a.book.model_of(a.book.recipes[place]).name);
  return fmt::format(": {}", joined(std::vector<std::string>(models.begin(), models.end()), ", "));
}

std::string sources_text(const Answer& a) {
  std::string text = "\nRead at:\n";
  for (std::size_t i = 0; i < a.sources.size(); ++i) {
    const RecipeSource& source = a.book.sources[a.sources[i]];
    text +=
        fmt::format("  {} {} {} ({}){}\n    {}\n", i + 1, source.program, source.program_releases,
                    source.date, models_at(a, a.sources[i]), source.address);
    if (!source.base_address.empty()) text += "    " + source.base_address + "\n";
  }
  return text;
}

constexpr auto match_text = enum_names<RecipeMatch>({"model", "same-shape", "family", "majority"});

// Places in the book as places in the answer's list of recipes.
Json places_json(const Answer& a, const std::vector<std::size_t>& recipes) {
  Json places = Json::array();
  for (const std::size_t place : recipes) {
    const auto at = std::find(a.found.recipes.begin(), a.found.recipes.end(), place);
    places.push_back(at - a.found.recipes.begin());
  }
  return places;
}

Json numbers_json(const std::vector<std::string>& texts) {
  Json numbers = Json::array();
  for (const std::string& text : texts)
    if (!text.empty()) numbers.push_back(std::stoll(text));
  return numbers;
}

Json recipes_json(const Answer& a) {
  Json list = Json::array();
  for (const std::size_t place : a.found.recipes) {
    const Recipe& recipe = a.book.recipes[place];
    const RecipeSource& source = a.book.source_of(recipe);
    list.push_back({{"program", source.program},
                    {"program_releases", source.program_releases},
                    {"date", source.date},
                    {"model", a.book.model_of(recipe).name},
                    {"device", recipe.device},
                    {"precision", recipe.precision},
                    {"variant", recipe.variant},
                    {"gpus", numbers_json(recipe.gpus)},
                    {"global_batch", numbers_json(recipe.global_batch)},
                    {"sequence", recipe.sequence.empty() ? Json() : std::stoll(recipe.sequence)},
                    {"note", recipe.note},
                    {"address", source.address},
                    {"base_address", source.base_address}});
  }
  return list;
}

Json settings_json(const Answer& a) {
  Json settings = Json::array();
  for (const FoundSetting& setting : a.found.settings) {
    Json values = Json::array();
    for (const FoundValue& value : setting.values)
      values.push_back({{"value", value.value},
                        {"where", value.where},
                        {"families", value.families},
                        {"recipes", places_json(a, value.recipes)}});
    settings.push_back({{"name", setting.name}, {"values", values}});
  }
  return settings;
}

}  // namespace

std::string recipe_text(const AskedRecipe& asked, std::size_t width) {
  const Answer a = answer_of(asked);
  return head_text(a, width) + settings_text(a, width) + differences_text(a, width) +
         defaults_text(a, width) + sources_text(a);
}

Json recipe_json(const AskedRecipe& asked) {
  const Answer a = answer_of(asked);
  Json differences = Json::array(), defaults = Json::array();
  for (const RecipeDifference& d : a.differences)
    differences.push_back({{"setting", d.setting},
                           {"stack", d.stack},
                           {"recipe", d.recipe},
                           {"where", d.where},
                           {"recipes", places_json(a, d.recipes)}});
  for (const RecipeDefault* d : defaults_of(a))
    defaults.push_back({{"setting", d->setting},
                        {"value", d->value},
                        {"holds_for", d->holds_for},
                        {"address", d->address}});
  return {{"stack", a.question.stack},
          {"release", a.found.release},
          {"match", std::string(match_text[a.found.match])},
          {"of", a.found.of},
          {"task", a.question.task},
          {"remarks", remarks_of(a)},
          {"settings", settings_json(a)},
          {"differences", differences},
          {"defaults", defaults},
          {"recipes", recipes_json(a)}};
}

}  // namespace orrery
