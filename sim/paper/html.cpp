// SPDX-License-Identifier: Apache-2.0
// Writes documents and tables as HTML: the content of their text, without any style.
#include <algorithm>

#include "sim/paper/document.h"
#include "sim/paper/svg.h"

namespace orrery {
namespace {

std::string element(const std::string& name, const std::string& text) {
  return "<" + name + ">" + in_markup(text) + "</" + name + ">\n";
}

std::string row(const std::vector<std::string>& cells, const std::vector<Align>& align,
                const std::string& kind) {
  std::string out = "<tr>";
  for (std::size_t i = 0; i < cells.size(); ++i) {
    const bool right = i >= align.size() || align[i] == Align::right;
    // A heading without words is none.
    const std::string name = cells[i].empty() ? "td" : kind;
    out += "<" + name + (right ? " style=\"text-align:right\">" : " style=\"text-align:left\">") +
           in_markup(cells[i]) + "</" + name + ">";
  }
  return out + "</tr>\n";
}

}  // namespace

std::string Table::html() const {
  // Wide ones are scrolled by themselves, by keyboard too.
  std::string out = "<div class=\"wide\" tabindex=\"0\">\n<table>\n";
  const bool headed = std::any_of(header_.begin(), header_.end(),
                                  [](const std::string& cell) { return !cell.empty(); });
  if (headed) out += "<thead>\n" + row(header_, align_, "th") + "</thead>\n";
  out += "<tbody>\n";
  for (const auto& cells : rows_) out += row(cells, align_, "td");
  return out + "</tbody>\n</table>\n</div>\n";
}

std::string Document::html_of(const Part& part, bool below_heading) {
  switch (part.kind) {
    case Kind::title:
      return element("h2", part.text);
    case Kind::heading:
      return element("h3", part.text);
    case Kind::label:
      return element(below_heading ? "h4" : "h3", part.text);
    case Kind::paragraph:
    case Kind::note:
      return element("p", part.text);
    case Kind::line:
    case Kind::item:
      return element("li", part.text);
    case Kind::table:
      return part.table.front().html();
    case Kind::code:
      return "<pre>" + in_markup(part.text) + "</pre>\n";
    case Kind::gap:
      break;
  }
  return {};
}

std::string Document::html() const {
  std::string out;
  bool in_list = false, below_heading = false;
  for (const Part& part : parts_) {
    const bool listed = part.kind == Kind::line || part.kind == Kind::item;
    if (listed && !in_list) out += "<ul>\n";
    if (!listed && in_list && part.kind != Kind::gap) out += "</ul>\n";
    if (part.kind != Kind::gap) in_list = listed;
    if (part.kind == Kind::heading) below_heading = true;
    out += html_of(part, below_heading);
  }
  return in_list ? out + "</ul>\n" : out;
}

}  // namespace orrery
