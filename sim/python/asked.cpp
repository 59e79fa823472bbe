// SPDX-License-Identifier: Apache-2.0
// Answers what Python asks by the functions behind the commands.
#include "sim/python/asked.h"

#include <algorithm>

#include "sim/app/answer/failure.h"
#include "sim/app/charts/charts.h"
#include "sim/app/commands.h"
#include "sim/app/questions/question.h"
#include "sim/base/errors/interrupt.h"
#include "sim/question/plan/question.h"

namespace orrery {
namespace {

Asked failed(const Error& error) {
  return {.json = indented_text(error_json(error.info(), kind_of(error))),
          .code = to_int(exit_code_of(error))};
}

JsonValue base_of(const std::string& command, const AskedSettings& settings) {
  if (settings.file.empty()) return JsonValue::parse(settings.base, settings.place);
  return command == "plan" ? load_plan_file(settings.file) : JsonValue::load(settings.file);
}

Json flag_json(const Flag& flag) {
  return {{"name", flag.name}, {"value", flag.value}, {"group", flag.group}, {"help", flag.help}};
}

}  // namespace

Asked ask_settings(const std::string& command, const AskedSettings& settings, const AskedHow& how) {
  std::optional<InterruptWatch> watch;
  if (how.watch) watch.emplace();
  try {
    const JsonValue keywords = JsonValue::parse(settings.keywords, settings.place);
    Catalogues catalogues;
    const WholeAnswer answer = answer_question(command, base_of(command, settings), keywords.raw(),
                                               {.catalogues = catalogues,
                                                .seed = how.seed,
                                                .threads = how.threads,
                                                .progress = how.progress});
    return {.json = indented_text(answer.machines.json),
            .html = answer.document.html(),
            .code = to_int(answer.machines.code),
            .stopped = interrupted()};
  } catch (const Error& error) {
    return failed(error);
  }
}

Asked ask_line(const std::string& command, const std::vector<std::string>& words,
               const std::map<std::string, std::string>& flags) {
  const std::vector<Command> known = commands();
  const auto at = std::find_if(known.begin(), known.end(), [&](const Command& one) {
    return one.name == command && one.answer != nullptr;
  });
  CHECK_THAT(at != known.end(), "a command that answers a line");
  Given given{.flags = flags, .words = words};
  given.flags["--json"] = "";
  given.flags["--quiet"] = "";
  try {
    const Printed printed = at->answer(given);
    return {.json = printed.text, .code = to_int(printed.code)};
  } catch (const Error& error) {
    return failed(error);
  }
}

Asked ask_charts(const std::string& answer) {
  try {
    return {.json = charts_json(charts_of(JsonValue::parse(answer, "answer"))).dump()};
  } catch (const Error& error) {
    return failed(error);
  }
}

std::string interface_json() {
  Json list = Json::array();
  for (const Command& command : commands()) {
    Json flags = Json::array(), arguments = Json::array();
    for (const Flag& flag : command.flags) flags.push_back(flag_json(flag));
    for (const Argument& argument : command.arguments)
      arguments.push_back({{"name", argument.name}, {"help", argument.help}});
    list.push_back({{"name", command.name},
                    {"summary", command.summary},
                    {"arguments", arguments},
                    {"flags", flags}});
  }
  return indented_text({{"commands", list}});
}

}  // namespace orrery
