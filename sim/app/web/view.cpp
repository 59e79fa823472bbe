// SPDX-License-Identifier: Apache-2.0
// Answers, and adds what was asked for beside the answer.
#include "sim/app/web/view.h"

#include <algorithm>

#include "sim/app/charts/charts.h"
#include "sim/app/page/outputs.h"
#include "sim/app/page/page.h"
#include "sim/app/page/repeat.h"
#include "sim/app/questions/question.h"

namespace orrery {
namespace {

constexpr const char* question_place = "question";

// Outputs by name are for command lines.
void refuse_outputs(const JsonValue& question) {
  for (const char* output : {"trace_out", "chakra_out"})
    if (const auto file = question.find(output)) file->fail("nothing: no file is written here");
}

bool wants(const ViewAsked& asked, const char* part) {
  return std::find(asked.parts.begin(), asked.parts.end(), part) != asked.parts.end();
}

// What is looked at shows the pipeline in time.
JsonValue question_of(const ViewAsked& asked) {
  const bool looks = wants(asked, "charts") || wants(asked, "page");
  return asked.command == "simulate" && looks ? with_timeline(asked.question) : asked.question;
}

}  // namespace

const std::vector<std::string>& view_parts() {
  static const std::vector<std::string> names = {"text", "charts", "report", "line", "page"};
  return names;
}

ViewAsked read_view(const std::string& command, const std::string& body,
                    const std::vector<std::string>& parts) {
  ViewAsked asked{
      .command = command, .question = JsonValue::parse(body, question_place), .parts = parts};
  if (!asked.question.is_object()) asked.question.fail("an object with the keys of a question");
  refuse_outputs(asked.question);
  for (const std::string& part : parts)
    static_cast<void>(JsonValue::from(part, "parts").one_of(view_parts()));
  return asked;
}

std::string view_text(const ViewAsked& asked, Catalogues& catalogues, int threads,
                      const std::function<void(double, std::int64_t)>& progress) {
  const WholeAnswer whole =
      answer_question(asked.command, question_of(asked), SortedJson::object(),
                      {.catalogues = catalogues, .threads = threads, .progress = progress});
  if (asked.parts.empty()) return indented_text(whole.machines.json);
  Json view = {{"answer", whole.machines.json}};
  if (wants(asked, "text")) view["text"] = indented_text(whole.machines.json);
  if (wants(asked, "charts"))
    view["charts"] =
        charts_json(charts_of(JsonValue::from(SortedJson(whole.machines.json), "answer")));
  if (wants(asked, "report")) view["report"] = whole.document.html();
  if (wants(asked, "line")) view["line"] = command_line(asked.command, asked.question);
  if (wants(asked, "page")) view["page"] = page_html(whole);
  return json_line(view);
}

}  // namespace orrery
