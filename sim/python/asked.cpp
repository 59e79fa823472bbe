// SPDX-License-Identifier: Apache-2.0
// Answers what Python asks by the functions behind the commands.
#include "sim/python/asked.h"

#include <algorithm>
#include <atomic>

#include "sim/app/answer/failure.h"
#include "sim/app/ask/answers.h"
#include "sim/app/charts/charts.h"
#include "sim/app/commands.h"
#include "sim/app/serve/command.h"
#include "sim/app/serve/report.h"
#include "sim/base/errors/interrupt.h"

namespace orrery {
namespace {

Asked failed(const Error& error) {
  return {.json = indented_text(error_json(error.info(), kind_of(error))),
          .code = to_int(exit_code_of(error))};
}

WholeAnswer served(const JsonValue& settings, Catalogues& catalogues, const AskedHow& how) {
  std::atomic<bool> stop{false};
  const ServeWith with{.catalogues = catalogues,
                       .seed = how.seed.value_or(default_serve_seed),
                       .threads = how.threads,
                       .stop = &stop,
                       .progress = [&](std::size_t point, std::size_t points, std::int64_t done) {
                         if (interrupted()) stop = true;
                         if (how.progress)
                           how.progress(static_cast<double>(point) / static_cast<double>(points),
                                        done);
                       }};
  const Served found = serve_settings(settings, with);
  return {machine_answer(found, with.seed), service_document(found, page_width)};
}

WholeAnswer answered(const std::string& command, const JsonValue& base, const SortedJson& settings,
                     const AskedHow& how) {
  Catalogues catalogues;
  if (command == "serve") return served(merge_serve_settings(base, settings), catalogues, how);
  const AskedWith with{
      .catalogues = catalogues, .seed = how.seed, .threads = how.threads, .progress = how.progress};
  return whole_answer(
      command,
      command == "plan" ? merge_plan_flags(base, settings) : merge_line(base, settings, {}, {}),
      with);
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
    const WholeAnswer answer = answered(command, base_of(command, settings), keywords.raw(), how);
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
    Json list = Json::array();
    for (Chart& chart : charts_of(JsonValue::parse(answer, "answer")))
      list.push_back(
          {{"name", chart.name}, {"title", chart.title}, {"spec", std::move(chart.spec)}});
    return {.json = list.dump()};
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
