// SPDX-License-Identifier: Apache-2.0
// Puts pages together.
#include "sim/app/page/page.h"

#include <fmt/format.h>

#include "sim/app/charts/charts.h"
#include "sim/app/page/assets.h"
#include "sim/app/page/repeat.h"
#include "sim/app/page/sources.h"
#include "sim/app/page/summary.h"
#include "sim/paper/svg.h"

namespace orrery {
namespace {

// JSON in a script element: nothing in it may look like a tag.
std::string in_script(const std::string& json) {
  std::string text;
  text.reserve(json.size());
  for (const char c : json) {
    if (c == '<')
      text += "\\u003c";
    else
      text += c;
  }
  return text;
}

std::string section(const char* id, const char* heading, const std::string& body) {
  if (body.empty()) return "";
  return fmt::format("<section aria-labelledby=\"{0}-heading\">\n<h2 id=\"{0}-heading\">{1}</h2>\n",
                     id, heading) +
         body + "</section>\n";
}

std::string verdict_html(const Summary& summary) {
  std::string mark;
  if (summary.good)
    mark = *summary.good ? "<strong class=\"good\">\u2713 Yes.</strong> "
                         : "<strong class=\"bad\">\u2717 No.</strong> ";
  return "<p class=\"verdict\">" + mark + in_markup(summary.verdict) + "</p>\n";
}

// Each number is a button that opens what it rests on.
std::string numbers_html(const std::vector<KeyNumber>& numbers) {
  if (numbers.empty()) return "";
  std::string list = "<ul class=\"numbers\">\n", behind;
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    const KeyNumber& n = numbers[i];
    const std::string label = in_markup(n.label), value = in_markup(n.value);
    list += fmt::format(
        "<li><span class=\"label\">{}</span><button type=\"button\" class=\"value\" "
        "popovertarget=\"behind-{}\">{}</button><span class=\"detail\">{}</span></li>\n",
        label, i, value, in_markup(n.detail));
    behind += fmt::format(
        "<div popover id=\"behind-{}\" role=\"dialog\" aria-label=\"{}: {}\">\n<h2>{}: {}</h2>\n",
        i, label, value, label, value);
    behind += n.rests_on.html() + fmt::format(
                                      "<p><button type=\"button\" popovertarget=\"behind-{}\" "
                                      "popovertargetaction=\"hide\">Close</button></p></div>\n",
                                      i);
  }
  return list + "</ul>\n" + behind +
         "<p class=\"quiet no-print\">A click on a number shows what it rests on.</p>\n";
}

// The title and the subtitle say what a chart shows to whoever does not see it.
std::string charts_html(const std::vector<Chart>& charts) {
  if (charts.empty()) return "";
  std::string html = "<div class=\"charts\">\n";
  for (const Chart& chart : charts)
    html += fmt::format(
        "<figure{3}><h3>{0}</h3><div class=\"drawn\" data-chart=\"{1}\" role=\"img\" "
        "aria-label=\"{0}: {2}\"></div><figcaption>{2}</figcaption></figure>\n",
        in_markup(chart.title), in_markup(chart.name),
        in_markup(chart.spec.at("title").at("subtitle").get<std::string>()),
        chart.spec.contains("usermeta") ? " class=\"whole\"" : "");
  return html + "</div>\n";
}

std::string drawings_html(const std::vector<Drawing>& drawings) {
  std::string html;
  for (const Drawing& drawing : drawings)
    html += fmt::format("<figure class=\"drawing\" role=\"img\" aria-label=\"{}\">\n",
                        in_markup(drawing.title)) +
            drawing.svg.substr(drawing.svg.find("<svg")) + "</figure>\n";
  return html;
}

std::string data_script(const char* id, const std::string& json) {
  return fmt::format("<script type=\"application/json\" id=\"{}\">", id) + in_script(json) +
         "</script>\n";
}

// Larger answers stay with --json: a page is at most 3 MB.
constexpr std::size_t most_of_answer = 1'500'000;

std::string save_html(bool whole) {
  if (!whole) return "<p>The whole answer is too long for a page: --json prints it.</p>\n";
  return "<p class=\"no-print\"><button type=\"button\" id=\"save-answer\">Save the answer as "
         "JSON</button></p>\n";
}

std::string scripts_html(const std::vector<Chart>& charts, const std::string& answer) {
  return data_script("answer-data", answer) +
         data_script("charts-data", charts_json(charts).dump()) + "<script>\n" +
         (charts.empty() ? "" : vega_script()) + "</script>\n<script type=\"module\">\n" +
         web_file("page.js") + "</script>\n";
}

}  // namespace

std::string page_html(const WholeAnswer& whole) {
  const std::string text = indented_text(whole.machines.json);
  const JsonValue answer = JsonValue::from(SortedJson(whole.machines.json), "answer");
  const Summary summary = summary_of(answer);
  const std::vector<Chart> charts = charts_of(answer);
  const std::string title = in_markup(summary.title);
  std::string body =
      "<a class=\"skip\" href=\"#report-heading\">To the report</a>\n<header>\n<h1>" + title +
      "</h1>\n" + verdict_html(summary) + "</header>\n<main>\n";
  body += numbers_html(summary.numbers);
  body += section("pictures", "Pictures", charts_html(charts) + drawings_html(whole.drawings));
  body += section("report", "The report", whole.document.html());
  body += section("evidence", "Values and sources", evidence_document(answer).html());
  const bool holds_answer = text.size() <= most_of_answer;
  body +=
      section("again", "To ask again", repeat_document(answer).html() + save_html(holds_answer));
  return "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<meta "
         "name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<title>" +
         title + " - Orrery</title>\n<style>\n" + web_file("page.css") +
         "</style>\n</head>\n<body>\n" + body + "</main>\n" +
         scripts_html(charts, holds_answer ? text : "null\n") + "</body>\n</html>\n";
}

}  // namespace orrery
