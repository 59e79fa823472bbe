// SPDX-License-Identifier: Apache-2.0
// Knows how a report is made of headings, paragraphs and tables, for a terminal, as
// markdown and as HTML.
#pragma once

#include <string>
#include <vector>

#include "sim/paper/tables.h"

namespace orrery {

// Parts in order; both forms hold the same content.
class Document {
 public:
  // A document that leaves nothing out, or one whose long tables are cut for a terminal: whoever
  // writes into it asks.
  explicit Document(bool full = false, std::size_t width = page_width)
      : full_(full), width_(width) {}
  bool full() const { return full_; }
  std::size_t width() const { return width_; }  // columns of its text

  Document& title(std::string text);    // markdown: a heading of level 1
  Document& heading(std::string text);  // level 2
  Document& label(std::string text);    // names what follows it: level 3
  Document& paragraph(std::string text,
                      std::string hang = "");                 // text: wrapped, `hang` after line 1
  Document& line(std::string text);                           // as it is; markdown: of a list
  Document& item(std::string text, std::string marker = "");  // of a list; marker: "2."
  Document& table(Table table, std::string indent = "  ");    // text: indented
  Document& note(std::string text);                           // under a table
  Document& code(std::string text, std::string language);     // as it is, to paste
  Document& gap();                                            // text: an empty line

  std::string text() const;
  std::string markdown() const;
  std::string html() const;  // for the body of a page, or a cell of a notebook

 private:
  enum class Kind { title, heading, label, paragraph, line, item, table, note, code, gap };
  struct Part {
    Kind kind = Kind::gap;
    std::string text;
    std::string extra = {};  // hang, marker, indent or language
    std::vector<Table> table = {};
  };
  Document& add(Part part);
  std::string text_of(const Part& part) const;
  static std::string markdown_of(const Part& part);
  static std::string html_of(const Part& part, bool below_heading);

  bool full_;
  std::size_t width_;
  std::vector<Part> parts_;
};

}  // namespace orrery
