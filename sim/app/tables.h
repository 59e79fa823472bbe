// Knows how text lines up: tables at most 100 columns wide, bars, wrapped paragraphs.
#pragma once

#include <string>
#include <vector>

namespace orrery {

enum class Align { left, right };

// Rows of cells under a header; columns are as wide as their widest cell.
class Table {
 public:
  explicit Table(std::vector<std::string> header, std::vector<Align> align);
  void add(std::vector<std::string> row);
  std::string text(const std::string& indent = "  ") const;
  bool empty() const { return rows_.empty(); }

 private:
  std::vector<std::string> header_;
  std::vector<Align> align_;
  std::vector<std::vector<std::string>> rows_;
};

// `share` of `width` cells as full blocks with eighths at the end.
std::string bar(double share, int width);

// Words filled into lines of at most `width` columns after `indent`; `hang` indents the rest.
std::string wrap(const std::string& text, int width, const std::string& indent,
                 const std::string& hang);

// Columns that a UTF-8 text takes, one per code point.
std::size_t columns(const std::string& text);

}  // namespace orrery
