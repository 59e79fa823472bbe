// SPDX-License-Identifier: Apache-2.0
// Writes validation as HTML.
#include "sim/validate/page/page.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "sim/base/errors/check.h"
#include "sim/base/output_file.h"
#include "sim/base/sorting.h"
#include "sim/base/text/words.h"
#include "sim/paper/svg.h"
#include "sim/validate/page/plots.h"
#include "sim/validate/score/causes.h"

namespace orrery {
namespace {

constexpr const char* style =
    "body{font:15px/1.45 Helvetica,Arial,'Liberation Sans','DejaVu Sans',sans-serif;color:#222;"
    "max-width:1680px;margin:24px auto;padding:0 16px}"
    "h1{font-size:26px;margin:0 0 4px}h2{font-size:19px;margin:34px 0 8px}"
    "table{border-collapse:collapse;font-size:13px}"
    "th,td{padding:3px 8px;text-align:right;border-bottom:1px solid #e3e3e3;vertical-align:top;"
    "white-space:nowrap}"
    "th{background:#f4f4f4}td.t,th.t,td.l,th.l{text-align:left}"
    "@media(max-width:800px){td.t{white-space:normal;min-width:128px}}"
    "td.l{white-space:normal;min-width:230px}td.good{color:#00704f}td.bad{color:#b34700;font-"
    "weight:bold}"
    "nav a{margin-right:14px}.wide{overflow-x:auto}svg{max-width:100%;height:auto}"
    ".plots{display:grid;grid-template-columns:repeat(auto-fill,minmax(min(100%,600px),1fr));"
    "gap:4px 20px}.one{max-width:830px}summary{cursor:pointer;margin:6px 0}"
    "pre{font-size:12px;overflow-x:auto;background:#f8f8f8;padding:10px}"
    "p.note{color:#555;margin:0 0 10px;max-width:110ch}";

struct Cell {
  std::string text;
  const char* kind = "";  // class: "t" is a name, "l" sentences, "good", "bad"
};

std::string row_html(const std::vector<Cell>& cells, const char* tag) {
  std::string out = "<tr>";
  for (const Cell& cell : cells) {
    out += *cell.kind != '\0' ? fmt::format("<{} class=\"{}\">", tag, cell.kind)
                              : fmt::format("<{}>", tag);
    out += in_markup(cell.text) + fmt::format("</{}>", tag);
  }
  return out + "</tr>\n";
}

std::string table_html(const std::vector<Cell>& header,
                       const std::vector<std::vector<Cell>>& rows) {
  std::string out = "<div class=\"wide\"><table>\n<thead>" + row_html(header, "th") + "</thead>\n";
  for (const auto& row : rows) out += row_html(row, "td");
  return out + "</table></div>\n";
}

std::string section(const char* id, const std::string& title, const std::string& note,
                    const std::string& body) {
  return fmt::format("<h2 id=\"{}\">{}</h2>\n<p class=\"note\">{}</p>\n", id, in_markup(title),
                     in_markup(note)) +
         body;
}

// Within the aims of the project for a median, or not.
const char* judged(double median) {
  constexpr double good = 0.06, bad = 0.15;
  return median <= good ? "good" : median > bad ? "bad" : "";
}

std::vector<Cell> group_row(const GroupScore& g) {
  const auto speed = speed_numbers(g), peak = numbers(g.peak), fixed = numbers(g.static_memory);
  const int right = g.oom_found + g.fit_found, all = right + g.oom_missed + g.oom_false;
  return {{g.source, "t"},
          {g.gpu, "t"},
          {fmt::format("{}/{}", g.speed.size(), g.rows)},
          {speed ? percent_figure(speed->median) : "", speed ? judged(speed->median) : ""},
          {speed ? percent_figure(speed->p90) : ""},
          {speed ? fmt::format("{:+.1f}", 100 * speed->bias) : ""},
          {peak ? percent_figure(peak->median) : ""},
          {fixed ? percent_figure(fixed->median) : ""},
          {all > 0 ? fmt::format("{}/{}", right, all) : ""}};
}

std::string groups_html(const std::vector<ScoredRow>& rows) {
  const std::vector<Cell> header = {{"source", "t"}, {"GPU", "t"}, {"scored"},
                                    {"median %"},    {"90th %"},   {"bias %"},
                                    {"peak %"},      {"static %"}, {"OOM verdicts"}};
  std::vector<std::vector<Cell>> overall, groups;
  for (const GroupScore& g : overall_groups(rows))
    if (g.rows > 0) overall.push_back(group_row(g));
  for (const GroupScore& g : group_rows(rows))
    if (g.predicted > 0) groups.push_back(group_row(g));
  return table_html(header, overall) + "<p></p>\n" + table_html(header, groups);
}

// Those that fail in sight, the others, of which there are hundreds, to be opened.
std::string gates_html(const std::vector<GateVerdict>& gates) {
  const std::vector<Cell> header = {{"group", "t"}, {"figure", "t"}, {"today %"},
                                    {"at most %"},  {"set"},         {""}};
  std::vector<std::vector<Cell>> passed, failed;
  for (const GateVerdict& v : gates)
    (v.passed ? passed : failed)
        .push_back({{v.gate.group, "t"},
                    {v.gate.figure, "t"},
                    {v.today ? percent_figure(*v.today) : "no rows"},
                    {percent_figure(v.gate.at_most)},
                    {v.gate.date},
                    {v.passed ? "passed" : "failed", v.passed ? "good" : "bad"}});
  std::string out = failed.empty() ? "" : table_html(header, failed);
  if (!passed.empty())
    out += fmt::format("<details><summary>{} of {} gates passed</summary>\n", passed.size(),
                       gates.size()) +
           table_html(header, passed) + "</details>\n";
  return out;
}

std::string worst_html(const std::vector<WorstRow>& worst) {
  std::vector<std::vector<Cell>> rows;
  for (const WorstRow& w : worst) {
    const PreparedRow& r = *w.row->row;
    rows.push_back({{r.id, "t"},
                    {fmt::format("{:+.0f}%", 100 * *w.row->speed_error)},
                    {r.gpu, "t"},
                    {fmt::format("{}, {}, {}", r.model.name, r.release, to_text(r.layout)), "l"},
                    {w.breakdown, "l"},
                    {w.cause, "l"}});
  }
  return table_html({{"row", "t"},
                     {"error"},
                     {"GPU", "t"},
                     {"run", "t"},
                     {"where the predicted step goes", "t"},
                     {"suspected cause", "t"}},
                    rows);
}

std::string bins_html(const std::vector<ResidualTable>& tables) {
  std::vector<std::vector<Cell>> rows;
  for (const ResidualTable& table : tables)
    for (const ResidualBin& bin : table.bins) {
      const auto n = numbers(bin.errors);
      rows.push_back({{&bin == &table.bins.front() ? table.quantity : "", "t"},
                      {bin.label, "t"},
                      {fmt::format("{}", bin.errors.size())},
                      {percent_figure(n->median), judged(n->median)},
                      {percent_figure(n->p90)},
                      {fmt::format("{:+.1f}", 100 * n->bias)}});
    }
  return table_html({{"by", "t"}, {"", "t"}, {"rows"}, {"median %"}, {"90th %"}, {"bias %"}}, rows);
}

std::string skipped_html(const std::vector<ScoredRow>& rows) {
  std::map<std::pair<std::string, std::string>, int> counts;  // by reason and source
  for (const ScoredRow& s : rows) {
    GroupScore one;
    add_row(one, s);
    for (const auto& [reason, count] : one.skipped) counts[{reason, s.row->source}] += count;
  }
  std::vector<std::pair<int, std::vector<Cell>>> sorted;
  for (const auto& [of, count] : counts)
    sorted.push_back({-count, {{fmt::format("{}", count)}, {of.first, "l"}, {of.second, "t"}}});
  sort_stably(sorted, [](const auto& a, const auto& b) { return a.first < b.first; });
  std::vector<std::vector<Cell>> cells;
  for (auto& [count, row] : sorted) cells.push_back(std::move(row));
  return table_html({{"rows"}, {"why", "t"}, {"source", "t"}}, cells);
}

// The document's own declaration has no place inside a page.
std::string inline_svg(const std::string& document) {
  const std::size_t start = document.find("<svg");
  return start == std::string::npos ? "" : document.substr(start);
}

std::string picture_html(const Picture& picture) {
  std::string out =
      fmt::format("<h2 id=\"{}\">{}</h2>\n<div class=\"{}\">\n", picture.name,
                  in_markup(picture.title), picture.parts.size() > 1 ? "plots" : "one");
  for (const std::string& part : picture.parts) out += "<div>" + inline_svg(part) + "</div>\n";
  return out + "</div>\n";
}

std::string page_of(const std::vector<ScoredRow>& rows, const std::vector<GateVerdict>& gates,
                    const std::vector<PageText>& more, const std::vector<Picture>& pictures) {
  std::string body = section("groups", "Predicted against measured",
                             "Percent of tokens/s/GPU: median and 90th percentile of the error "
                             "without its sign, median with it (above 0: predicted too fast); "
                             "medians of the error of peak memory and of memory between steps; "
                             "right verdicts on whether a run fits.",
                             groups_html(rows));
  for (const Picture& picture : pictures) body += picture_html(picture);
  if (!gates.empty())
    body += section("gates", "Gates", "What each figure may be at most.", gates_html(gates));
  constexpr std::size_t worst_count = 40, of_source = 6;
  body += section("worst", "Farthest off",
                  "At most six of one source. The causes are drawn from the errors of rows that "
                  "share something with the row; they are suspicions.",
                  worst_html(worst_rows(rows, worst_count, of_source)));
  for (const bool sweeps : {false, true})
    body += section(sweeps ? "errors-of-sweeps" : "errors-of-published",
                    sweeps ? "Errors of sweeps in figures" : "Errors of published runs in figures",
                    "Of tokens/s/GPU.", bins_html(residual_tables(rows, sweeps)));
  for (const PageText& text : more)
    body +=
        fmt::format("<h2>{}</h2>\n<pre>{}</pre>\n", in_markup(text.title), in_markup(text.text));
  const SkippedShare share = skipped_share(rows);
  body += section("skipped", "Not scored, and why",
                  fmt::format("Not predicted: {} of {} rows with a whole layout on a catalogued "
                              "accelerator, {:.1f}%.",
                              share.skipped, share.rows, 100 * share.share()),
                  skipped_html(rows));
  return body;
}

}  // namespace

std::string validation_page(const std::vector<ScoredRow>& rows,
                            const std::vector<GateVerdict>& gates,
                            const std::vector<PageText>& more) {
  const auto pictures = validation_pictures(rows);
  return fmt::format(
             "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">"
             "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">"
             "<title>Orrery: validation</title><style>{}</style></head>\n<body>\n"
             "<h1>Orrery: predictions held against measured runs</h1>\n"
             "<p class=\"note\">{} rows read.</p>\n"
             "<nav><a href=\"#groups\">groups</a>{}{}<a href=\"#worst\">farthest off</a>"
             "<a href=\"#errors-of-published\">errors by bins</a>"
             "<a href=\"#skipped\">not scored</a></nav>\n",
             style, rows.size(),
             pictures.empty() ? ""
                              : fmt::format("<a href=\"#{}\">pictures</a>", pictures.front().name),
             gates.empty() ? "" : "<a href=\"#gates\">gates</a>") +
         page_of(rows, gates, more, pictures) + "</body></html>\n";
}

void write_validation_pictures(const std::filesystem::path& folder,
                               const std::vector<ScoredRow>& rows) {
  make_folder(folder);
  for (const Picture& picture : validation_pictures(rows))
    write_file(folder / (picture.name + ".svg"), picture.svg);
}

}  // namespace orrery
