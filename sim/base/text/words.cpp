// SPDX-License-Identifier: Apache-2.0
// Writes shares, counts and lists in words.
#include "sim/base/text/words.h"

#include <fmt/format.h>

#include <cstddef>

namespace orrery {
namespace {

template <class Text>
std::string join(std::span<const Text> list, std::string_view separator) {
  std::string text;
  for (std::size_t i = 0; i < list.size(); ++i) {
    if (i > 0) text += separator;
    text += list[i];
  }
  return text;
}

}  // namespace

std::string percent_figure(double share, int decimals) {
  return fmt::format("{:.{}f}", 100 * share, decimals);
}
std::string percent(double share, int decimals) { return percent_figure(share, decimals) + "%"; }

std::string signed_percent_figure(double share, int decimals) {
  const std::string text = fmt::format("{:+.{}f}", 100 * share, decimals);
  return text.find_first_not_of("+-0.") == std::string::npos ? text.substr(1) : text;
}
std::string signed_percent(double share, int decimals) {
  return signed_percent_figure(share, decimals) + "%";
}

std::string short_percent_figure(double share) {
  return percent_figure(share, 100 * share < 9.95 ? 1 : 0);
}
std::string short_percent(double share) { return short_percent_figure(share) + "%"; }

std::string grouped(double count) {
  std::string digits = fmt::format("{:.0f}", count);
  const int sign = count < 0 ? 1 : 0;
  for (int i = static_cast<int>(digits.size()) - 3; i > sign; i -= 3)
    digits.insert(static_cast<std::size_t>(i), ",");
  return digits;
}

std::string plural(double count, std::string_view noun) {
  return fmt::format("{} {}{}", grouped(count), noun, count == 1 ? "" : "s");
}

std::string joined(std::span<const std::string> list, std::string_view separator) {
  return join(list, separator);
}
std::string joined(std::span<const std::string_view> list, std::string_view separator) {
  return join(list, separator);
}

std::string capitalised(std::string words) {
  if (!words.empty() && words.front() >= 'a' && words.front() <= 'z')
    words.front() = static_cast<char>(words.front() - 'a' + 'A');
  return words;
}

std::string enumeration(const std::vector<std::string>& list) {
  if (list.size() < 2) return list.empty() ? "" : list.front();
  return fmt::format("{} and {}", joined(std::span(list).first(list.size() - 1), ", "),
                     list.back());
}

}  // namespace orrery
