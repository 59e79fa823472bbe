// SPDX-License-Identifier: Apache-2.0
// Writes documents as text and as markdown.
#include "sim/paper/document.h"

#include <utility>

namespace orrery {
namespace {

// A heading does not end in the colon that leads over to what follows.
std::string without_colon(std::string text) {
  if (!text.empty() && text.back() == ':') text.pop_back();
  return text;
}

std::string without_last_break(std::string text) {
  while (!text.empty() && text.back() == '\n') text.pop_back();
  return text;
}

}  // namespace

Document& Document::add(Part part) {
  parts_.push_back(std::move(part));
  return *this;
}
Document& Document::title(std::string text) { return add({Kind::title, std::move(text)}); }
Document& Document::heading(std::string text) { return add({Kind::heading, std::move(text)}); }
Document& Document::label(std::string text) { return add({Kind::label, std::move(text)}); }
Document& Document::paragraph(std::string text, std::string hang) {
  return add({Kind::paragraph, std::move(text), std::move(hang)});
}
Document& Document::line(std::string text) { return add({Kind::line, std::move(text)}); }
Document& Document::item(std::string text, std::string marker) {
  return add({Kind::item, std::move(text), std::move(marker)});
}
Document& Document::table(Table table, std::string indent) {
  return add({Kind::table, "", std::move(indent), {std::move(table)}});
}
Document& Document::note(std::string text) { return add({Kind::note, std::move(text)}); }
Document& Document::code(std::string text, std::string language) {
  return add({Kind::code, std::move(text), std::move(language)});
}
Document& Document::gap() { return add({}); }

std::string Document::text_of(const Part& part) const {
  switch (part.kind) {
    case Kind::title:
    case Kind::line:
      return part.text + "\n";
    case Kind::heading:
    case Kind::label:
      return wrap(part.text, width_, "", "  ");
    case Kind::paragraph:
      return wrap(part.text, width_, "", part.extra);
    case Kind::item: {
      const std::string marker = part.extra.empty() ? "" : part.extra + " ";
      const std::string hang(part.extra.empty() ? 4 : 2 + marker.size(), ' ');
      return wrap(marker + part.text, width_, "  ", hang);
    }
    case Kind::table:
      return part.table.front().text(part.extra, width_);
    case Kind::note:
      return wrap(part.text, width_, "  ", "    ");
    case Kind::code:
      return without_last_break(part.text) + "\n";
    case Kind::gap:
      return "\n";
  }
  return {};
}

std::string Document::markdown_of(const Part& part) {
  switch (part.kind) {
    case Kind::title:
      return "# " + in_markdown(part.text) + "\n";
    case Kind::heading:
      return "## " + in_markdown(without_colon(part.text)) + "\n";
    case Kind::label:
      return "### " + in_markdown(without_colon(part.text)) + "\n";
    case Kind::paragraph:
    case Kind::note:
      return in_markdown(part.text) + "\n";
    case Kind::line:
      return "- " + in_markdown(part.text) + "\n";
    case Kind::item:
      return (part.extra.empty() ? "-" : part.extra) + " " + in_markdown(part.text) + "\n";
    case Kind::table:
      return part.table.front().markdown();
    case Kind::code:
      return "```" + part.extra + "\n" + without_last_break(part.text) + "\n```\n";
    case Kind::gap:
      break;
  }
  return {};
}

std::string Document::text() const {
  std::string out;
  for (const Part& part : parts_) out += text_of(part);
  return out;
}

// An empty line between parts, none between those of a list.
std::string Document::markdown() const {
  std::string out;
  const Part* before = nullptr;
  for (const Part& part : parts_) {
    if (part.kind == Kind::gap) continue;
    const bool listed = part.kind == Kind::line || part.kind == Kind::item;
    if (before != nullptr && !(listed && before->kind == part.kind)) out += "\n";
    out += markdown_of(part);
    before = &part;
  }
  return out;
}

}  // namespace orrery
