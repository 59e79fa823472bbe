// SPDX-License-Identifier: Apache-2.0
// Lines up text.
#include "sim/paper/tables.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <numeric>
#include <sstream>
#include <string_view>

namespace orrery {
namespace {

constexpr std::size_t gap = 2;

}  // namespace

std::size_t columns(const std::string& text) {
  return static_cast<std::size_t>(std::count_if(text.begin(), text.end(), [](char c) {
    return (static_cast<unsigned char>(c) & 0xC0) != 0x80;
  }));
}

Table::Table(std::vector<std::string> header, std::vector<Align> align)
    : header_(std::move(header)), align_(std::move(align)) {
  align_.resize(header_.size(), Align::right);
}

void Table::add(std::vector<std::string> row) {
  row.resize(header_.size());
  rows_.push_back(std::move(row));
}

std::vector<std::size_t> Table::widths() const {
  std::vector<std::size_t> width;
  for (const std::string& cell : header_) width.push_back(columns(cell));
  for (const auto& row : rows_)
    for (std::size_t i = 0; i < row.size(); ++i) width[i] = std::max(width[i], columns(row[i]));
  return width;
}

std::size_t Table::width() const {
  const std::vector<std::size_t> width = widths();
  return std::accumulate(width.begin(), width.end(), gap * (width.size() - 1));
}

std::string Table::text(const std::string& indent, std::size_t page) const {
  const std::vector<std::size_t> width = widths();
  std::size_t last_at = columns(indent);  // where the last column begins
  for (std::size_t i = 0; i + 1 < width.size(); ++i) last_at += width[i] + gap;
  const bool wraps =
      align_.back() == Align::left && last_at + 20 < page && last_at + width.back() > page;
  const auto line = [&](const std::vector<std::string>& row) {
    std::string out = indent;
    for (std::size_t i = 0; i < row.size(); ++i) {
      const bool last = i + 1 == row.size();
      if (last && wraps && !row[i].empty()) {
        const std::string hang(last_at, ' ');
        return out + wrap(row[i], page, "", hang, last_at);
      }
      const std::string space(width[i] - columns(row[i]), ' ');
      out += align_[i] == Align::left ? row[i] + space : space + row[i];
      if (!last) out += std::string(gap, ' ');
    }
    out.erase(out.find_last_not_of(' ') + 1);
    return out + '\n';
  };
  std::string out;
  if (std::any_of(header_.begin(), header_.end(), [](const auto& cell) { return !cell.empty(); }))
    out = line(header_);
  for (const auto& row : rows_) out += line(row);
  return out;
}

std::string Table::markdown() const {
  const auto line = [](const std::vector<std::string>& row) {
    std::string out = "|";
    for (const std::string& cell : row) out += " " + in_markdown(cell) + " |";
    return out + "\n";
  };
  std::string out = line(header_) + "|";
  for (const Align align : align_) out += align == Align::left ? " --- |" : " ---: |";
  out += "\n";
  for (const auto& row : rows_) out += line(row);
  return out;
}

std::string in_markdown(const std::string& text) {
  const auto in_word = [&](std::size_t i) {
    return i < text.size() && std::isalnum(static_cast<unsigned char>(text[i])) != 0;
  };
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    const bool at_edge = c == '_' && !(i > 0 && in_word(i - 1) && in_word(i + 1));
    if (c == '<')
      out += "&lt;";
    else if (c == '&')
      out += "&amp;";
    else if (at_edge || std::string_view("|*`[]\\$~").find(c) != std::string_view::npos ||
             (c == '#' && i == 0))
      out += std::string("\\") + c;
    else
      out += c;
  }
  return out;
}

std::string bar(double share, int width) {
  static const char* eighths[] = {"", "▏", "▎", "▍", "▌", "▋", "▊", "▉"};
  const int cells = static_cast<int>(std::lround(std::clamp(share, 0.0, 1.0) * width * 8));
  std::string out;
  for (int i = 0; i < cells / 8; ++i) out += "█";
  return out + eighths[cells % 8];
}

std::string wrap(const std::string& text, std::size_t width, const std::string& indent,
                 const std::string& hang, std::size_t taken) {
  std::istringstream words(text);
  std::string word, line = indent, out;
  bool first = true;
  while (words >> word) {
    if (!first && taken + columns(line) + 1 + columns(word) > width) {
      out += line + '\n';
      line = hang;
      taken = 0;
      first = true;
    }
    line += (first ? "" : " ") + word;
    first = false;
  }
  return out + line + '\n';
}

}  // namespace orrery
