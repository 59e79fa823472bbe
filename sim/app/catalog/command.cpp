// SPDX-License-Identifier: Apache-2.0
// Runs the command `catalog`.
#include "sim/app/catalog/command.h"

#include <fmt/format.h>

#include "sim/app/answer/answer.h"
#include "sim/app/catalog/check.h"
#include "sim/app/catalog/kinds.h"
#include "sim/app/catalog/list.h"
#include "sim/app/catalog/recipe.h"
#include "sim/app/catalog/show.h"
#include "sim/app/line/result.h"
#include "sim/base/errors/check.h"

namespace orrery {
namespace {

// What an answer for machines says it was asked. A file's own contents are the answer.
AnswerHead head_of(const Given& given) {
  AnswerHead head{.command = "catalog", .question = {{"arguments", given.words}}};
  for (const char* flag : {"--search", "--device", "--recipe", "--precision", "--task"})
    if (given.has(flag)) head.question[json_key(flag + 2)] = given.text(flag);
  return head;
}

void expect_no_more(const Given& given, std::size_t most, const std::string& expected) {
  if (given.words.size() > most)
    throw Error({.file = "catalog " + given.word(0),
                 .found = in_quotes(given.word(most)) + ", an argument too many",
                 .expected = expected});
}

void refuse(const Given& given, std::initializer_list<const char*> flags, const char* expected) {
  for (const char* flag : flags)
    if (given.has(flag)) throw Error({.file = flag, .found = given.word(0), .expected = expected});
}

// Flags of list say nothing of an entry, and those of recipes nothing where none is asked for.
void refuse_list_flags(const Given& given) {
  refuse(given, {"--names", "--search", "--device"}, "it with list only");
}
void refuse_recipe_flags(const Given& given) {
  refuse(given, {"--recipe", "--precision", "--task"}, "it with show stack NAME --recipe MODEL");
}

AskedRecipe asked_recipe(const Given& given) {
  refuse(given, {"--names", "--search"}, "it with list only");
  return {.stack = given.word(2),
          .model = given.text("--recipe"),
          .device = given.text("--device"),
          .precision = given.text("--precision"),
          .task = given.text("--task")};
}

Printed list(const Given& given, bool json) {
  expect_no_more(given, 2, "a kind at most; show prints an entry");
  refuse_recipe_flags(given);
  const ListOptions options{.kind = given.word(1),
                            .search = given.text("--search"),
                            .device = given.text("--device"),
                            .names = given.has("--names"),
                            .json = json,
                            .width = terminal_width()};
  if (!json) return {list_text(options)};
  const char* holds = options.kind.empty() ? "kinds" : "entries";
  return {answer_text(head_of(given), {}, {{holds, Json::parse(list_text(options))}})};
}

Printed show(const Given& given, bool json) {
  const CatalogKind& kind = find_catalog_kind(given.word(1));
  const bool recipe = given.has("--recipe");
  if (recipe && kind.name != "stack")
    throw Error({.file = "--recipe", .found = "a " + kind.name, .expected = "a stack"});
  if (!recipe) {
    refuse_list_flags(given);
    refuse_recipe_flags(given);
  }
  if (given.word(2).empty())
    throw Error({.file = "catalog show " + kind.name,
                 .found = "no name",
                 .expected = "a name: `orrery catalog list " + kind.name + "` prints them"});
  if (recipe) {
    const AskedRecipe asked = asked_recipe(given);
    return {json ? answer_text(head_of(given), {},
                               {{"kind", kind.name}, {"recipe", recipe_json(asked)}})
                 : recipe_text(asked, terminal_width())};
  }
  return {json ? answer_text(
                     head_of(given), {},
                     {{"kind", kind.name}, {"entry", load_kind_entry(kind, given.word(2)).raw()}})
               : show_catalog_entry(kind, given.word(2), terminal_width())};
}

Printed check(const Given& given, bool json) {
  refuse_list_flags(given);
  refuse_recipe_flags(given);
  expect_no_more(given, 2, "a file at most");
  const CatalogFaults faults =
      given.word(1).empty() ? check_catalog() : check_catalog_file(given.word(1));
  return {json ? answer_text(head_of(given), {}, Json::parse(faults_json(faults)))
               : faults_text(faults),
          faults.faults.empty() ? ExitCode::answer : ExitCode::check_failed};
}

Printed answer(const Given& given) {
  const CommonFlags common = common_of(given);
  const std::string action = given.word(0);
  if (action == "list") return list(given, common.json);
  if (action == "show") return show(given, common.json);
  if (action == "check") return check(given, common.json);
  throw Error({.file = "catalog",
               .found = action.empty() ? "nothing" : in_quotes(action),
               .expected = "list, show or check",
               .nearest = nearest_name(action, {"list", "show", "check"})});
}

}  // namespace

Command catalog_command() {
  std::string names;
  for (const CatalogKind& kind : catalog_kinds()) names += (names.empty() ? "" : " ") + kind.name;
  constexpr const char *found = "What is listed", *recipes = "Recipes of a stack";
  return {
      .name = "catalog",
      .summary = "what is known, with sources",
      .arguments = {{"action", "list, show or check (a file of your own, or all of the catalogue)",
                     "list show check"},
                    {"kind", "model, accelerator, cluster, ...; check: a file", names},
                    {"name", "name in the catalogue, in any case, another name of it, or a file",
                     "catalog #1"}},
      .flags = {{"--search", "WORDS", found, "entries whose names or title hold all these words"},
                {"--device", "NAME", found,
                 "clusters of this accelerator; with --recipe: its recipes", "catalog accelerator"},
                {"--names", "", found, "names alone, one a line"},
                {"--recipe", "MODEL", recipes,
                 "what scripts of the stack's program set for a model or a family, and from where",
                 "catalog model"},
                {"--precision", "NAME", recipes, "bf16, mxfp8, ...: recipes in it alone"},
                {"--task", "NAME", recipes, "pretrain (default), sft or lora",
                 "pretrain sft lora"}},
      .examples = {{"orrery catalog list cluster --search \"h100 roce\"",
                    "clusters of H100 on Ethernet, with device, network and size"},
                   {"orrery catalog show accelerator h100-sxm",
                    "every value of a device, with its source"},
                   {"orrery catalog show stack nemo@26.06 --recipe qwen3-235b --device gb200",
                    "what launch scripts of that release set, each with its address"},
                   {"orrery catalog check my-cluster.json", "is a file of your own in order?"}},
      .answer = answer};
}

}  // namespace orrery
