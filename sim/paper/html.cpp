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
    out += "<" + kind + (right ? " style=\"text-align:right\">" : " style=\"text-align:left\">") +
           in_markup(cells[i]) + "</" + kind + ">";
  }
  return out + "</tr>\n";
}

}  // namespace

std::string Table::html() const {
  std::string out = "<table>\n";
  const bool headed = std::any_of(header_.begin(), header_.end(),
                                  [](const std::string& cell) { return !cell.empty(); });
  if (headed) out += "<thead>\n" + row(header_, align_, "th") + "</thead>\n";
  out += "<tbody>\n";
  for (const auto& cells : rows_) out += row(cells, align_, "td");
  return out + "</tbody>\n</table>\n";
}

std::string Document::html_of(const Part& part) {
  switch (part.kind) {
    case Kind::title:
      return element("h2", part.text);
    case Kind::heading:
      return element("h3", part.text);
    case Kind::label:
      return element("h4", part.text);
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
  bool in_list = false;
  for (const Part& part : parts_) {
    const bool listed = part.kind == Kind::line || part.kind == Kind::item;
    if (listed && !in_list) out += "<ul>\n";
    if (!listed && in_list && part.kind != Kind::gap) out += "</ul>\n";
    if (part.kind != Kind::gap) in_list = listed;
    out += html_of(part);
  }
  return in_list ? out + "</ul>\n" : out;
}

}  // namespace orrery
