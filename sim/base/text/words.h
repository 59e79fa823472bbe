// SPDX-License-Identifier: Apache-2.0
// Writes shares, counts and lists in words.
#pragma once

#include <concepts>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace orrery {

// A share in percent. A figure has no "%": the head of its column says so.
std::string percent_figure(double share, int decimals = 1);  // "12.3"
std::string percent(double share, int decimals = 1);         // "12.3%"
// With its sign; what rounds to nothing has none.
std::string signed_percent_figure(double share, int decimals = 1);  // "+12.3", "0.0"
std::string signed_percent(double share, int decimals = 1);         // "+12.3%", "0.0%"
// Two digits up to 99.
std::string short_percent_figure(double share);  // "9.8", "28"
std::string short_percent(double share);         // "9.8%", "28%"

// A count with its thousands apart: "1,048,576".
std::string grouped(double count);
template <std::integral Count>
std::string grouped(Count count) {
  return grouped(static_cast<double>(count));
}
// "1 domain", "2 domains", "1,024 domains".
std::string plural(double count, std::string_view noun);
template <std::integral Count>
std::string plural(Count count, std::string_view noun) {
  return plural(static_cast<double>(count), noun);
}

// "2/3/5" where the separator is "/". Compiled once: fmt::join costs each unit half a second.
std::string joined(std::span<const std::string> list, std::string_view separator);
std::string joined(std::span<const std::string_view> list, std::string_view separator);
// With a capital in front, where it begins with a letter of ASCII.
std::string capitalised(std::string words);
// "2, 3 and 5".
std::string enumeration(const std::vector<std::string>& list);

}  // namespace orrery
