// SPDX-License-Identifier: Apache-2.0
// Writes answers to look at.
#include "sim/app/page/outputs.h"

#include "sim/app/charts/charts.h"
#include "sim/app/page/assets.h"
#include "sim/app/page/draw.h"
#include "sim/app/page/page.h"
#include "sim/base/output_file.h"

namespace orrery {
namespace {

constexpr const char *html_flag = "--html", *plots_flag = "--plots";

}  // namespace

std::vector<Flag> look_flags() {
  return {{html_flag, "FILE", output_group,
           "write a page with everything in it: key numbers, charts, the report, sources", "file"},
          {plots_flag, "DIR", output_group,
           "write each chart to this folder, as SVG, PNG and Vega-Lite", "folder"}};
}

JsonValue with_timeline(const JsonValue& settings) {
  if (settings.has("timeline")) return settings;
  SortedJson shown = settings.raw();
  shown["timeline"] = true;
  return JsonValue::from(std::move(shown), settings.file());
}

LookFiles look_files(const Given& given) {
  return {.html = given.place(html_flag), .plots = given.place(plots_flag)};
}

void check_looks(const LookFiles& files) {
  if (!files.html.empty()) {
    check_writable_file(files.html);
    static_cast<void>(vega_script());
  }
  if (files.plots.empty()) return;
  check_writable_folder(files.plots);
  check_drawing();
}

void write_looks(const LookFiles& files, const WholeAnswer& answer) {
  if (!files.html.empty()) write_file(files.html, page_html(answer));
  if (!files.plots.empty())
    draw_charts(charts_of(JsonValue::from(SortedJson(answer.machines.json), "answer")),
                files.plots);
}

bool asks_to_look(const Given& given) { return look_files(given).any(); }

void check_looks(const Given& given) { check_looks(look_files(given)); }

void write_looks(const Given& given, const std::function<WholeAnswer()>& whole) {
  if (asks_to_look(given)) write_looks(look_files(given), whole());
}

}  // namespace orrery
