// SPDX-License-Identifier: Apache-2.0
// Knows how text lines up: tables as wide as their page, bars, wrapped paragraphs.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace orrery {

// Columns of a page where no terminal has its own: what people print and paste stays within.
inline constexpr std::size_t page_width = 100;

enum class Align { left, right };

// Rows of cells under a header; columns are as wide as their widest cell. Where a line would pass
// the page, a left-aligned last column is wrapped. A header without words is left out.
class Table {
 public:
  explicit Table(std::vector<std::string> header, std::vector<Align> align);
  void add(std::vector<std::string> row);
  std::string text(const std::string& indent = "  ", std::size_t page = page_width) const;
  std::string markdown() const;  // with pipes
  std::string html() const;
  std::size_t width() const;  // columns of its widest line, without an indent
  bool empty() const { return rows_.empty(); }

 private:
  std::vector<std::size_t> widths() const;
  std::vector<std::string> header_;
  std::vector<Align> align_;
  std::vector<std::vector<std::string>> rows_;
};

// `share` of `width` cells as full blocks with eighths at the end.
std::string bar(double share, int width);

// Words filled into lines of at most `width` columns after `indent`; `hang` indents the rest. The
// first line begins `taken` columns in.
std::string wrap(const std::string& text, std::size_t width, const std::string& indent,
                 const std::string& hang, std::size_t taken = 0);

// The text with what markdown or HTML would read as marks written out.
std::string in_markdown(const std::string& text);

// Columns that a UTF-8 text takes, one per code point.
std::size_t columns(const std::string& text);

}  // namespace orrery
