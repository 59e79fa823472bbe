// Lines up text.
#include "sim/app/tables.h"

#include <algorithm>
#include <cmath>
#include <sstream>

namespace orrery {

std::size_t columns(const std::string& text) {
  return static_cast<std::size_t>(std::count_if(
      text.begin(), text.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; }));
}

Table::Table(std::vector<std::string> header, std::vector<Align> align)
    : header_(std::move(header)), align_(std::move(align)) {
  align_.resize(header_.size(), Align::right);
}

void Table::add(std::vector<std::string> row) {
  row.resize(header_.size());
  rows_.push_back(std::move(row));
}

std::string Table::text(const std::string& indent) const {
  std::vector<std::size_t> width;
  for (const std::string& cell : header_) width.push_back(columns(cell));
  for (const auto& row : rows_)
    for (std::size_t i = 0; i < row.size(); ++i) width[i] = std::max(width[i], columns(row[i]));
  const auto line = [&](const std::vector<std::string>& row) {
    std::string out = indent;
    for (std::size_t i = 0; i < row.size(); ++i) {
      const std::string gap(width[i] - columns(row[i]), ' ');
      out += align_[i] == Align::left ? row[i] + gap : gap + row[i];
      if (i + 1 < row.size()) out += "  ";
    }
    out.erase(out.find_last_not_of(' ') + 1);
    return out + '\n';
  };
  std::string out = line(header_);
  for (const auto& row : rows_) out += line(row);
  return out;
}

std::string bar(double share, int width) {
  static const char* eighths[] = {"", "▏", "▎", "▍", "▌", "▋", "▊", "▉"};
  const int cells = static_cast<int>(std::lround(std::clamp(share, 0.0, 1.0) * width * 8));
  std::string out;
  for (int i = 0; i < cells / 8; ++i) out += "█";
  return out + eighths[cells % 8];
}

std::string wrap(const std::string& text, int width, const std::string& indent,
                 const std::string& hang) {
  std::istringstream words(text);
  std::string word, line = indent, out;
  bool first = true;
  while (words >> word) {
    if (!first && columns(line) + 1 + columns(word) > static_cast<std::size_t>(width)) {
      out += line + '\n';
      line = hang;
      first = true;
    }
    line += (first ? "" : " ") + word;
    first = false;
  }
  return out + line + '\n';
}

}  // namespace orrery
