// SPDX-License-Identifier: Apache-2.0
// Reads quantities: numbers, unit names, prefixes and what people write by mistake.
#include "sim/base/units/units.h"

#include <fmt/format.h>

#include <array>
#include <charconv>
#include <optional>

#include "sim/base/errors/check.h"

namespace orrery {
namespace {

enum class Prefixes { none, small, large, all, binary };  // binary: large ones and Ki, Mi, ...

struct Unit {
  std::string_view name;
  double factor;  // in SI base units of this project (sim/base/units/units.h)
  Dimension dimension;
  Prefixes prefixes;
};

constexpr Dimension none, time{.time = 1}, rate{.time = -1}, data{.data = 1}, operations{.flop = 1},
    energy{.energy = 1}, power{.time = -1, .energy = 1}, money{.money = 1}, carbon{.carbon = 1},
    token{.token = 1};
constexpr double day = seconds_per_day, year = seconds_per_year;

constexpr std::array<Unit, 34> units = {{
    {"s", 1, time, Prefixes::small},
    {"min", 60, time, Prefixes::none},
    {"h", seconds_per_hour, time, Prefixes::none},
    {"second", 1, time, Prefixes::none},
    {"seconds", 1, time, Prefixes::none},
    {"minute", 60, time, Prefixes::none},
    {"minutes", 60, time, Prefixes::none},
    {"hour", seconds_per_hour, time, Prefixes::none},
    {"hours", seconds_per_hour, time, Prefixes::none},
    {"day", day, time, Prefixes::none},
    {"days", day, time, Prefixes::none},
    {"week", 7 * day, time, Prefixes::none},
    {"weeks", 7 * day, time, Prefixes::none},
    {"month", year / 12, time, Prefixes::none},
    {"months", year / 12, time, Prefixes::none},
    {"year", year, time, Prefixes::none},
    {"years", year, time, Prefixes::none},
    {"Hz", 1, rate, Prefixes::large},
    {"FIT", 1e-9 / seconds_per_hour, rate, Prefixes::none},  // failures in 1e9 hours
    {"B", 1, data, Prefixes::binary},
    {"bit", 0.125, data, Prefixes::binary},
    {"FLOP", 1, operations, Prefixes::large},
    {"OP", 1, operations, Prefixes::large},  // integer operations are counted alike
    {"op", 1, operations, Prefixes::large},
    {"J", 1, energy, Prefixes::all},
    {"Wh", seconds_per_hour, energy, Prefixes::large},
    {"W", 1, power, Prefixes::all},
    {"USD", 1, money, Prefixes::large},
    {"gCO2e", 1e-3, carbon, Prefixes::all},
    {"tCO2e", 1e3, carbon, Prefixes::large},
    {"token", 1, token, Prefixes::large},
    {"tokens", 1, token, Prefixes::large},
    {"%", 0.01, none, Prefixes::none},
    {"1", 1, none, Prefixes::none},
}};

struct Prefix {
  std::string_view name;
  double factor;
  Prefixes group;
};

// Words stand before the unit with a space, as in "20 million USD".
constexpr std::array<Prefix, 27> prefixes = {{
    {"thousand ", 1e3, Prefixes::large}, {"million ", 1e6, Prefixes::large},
    {"billion ", 1e9, Prefixes::large},  {"k", 1e3, Prefixes::large},
    {"M", 1e6, Prefixes::large},         {"G", 1e9, Prefixes::large},
    {"T", 1e12, Prefixes::large},        {"P", 1e15, Prefixes::large},
    {"E", 1e18, Prefixes::large},        {"Z", 1e21, Prefixes::large},
    {"Y", 1e24, Prefixes::large},        {"m", 1e-3, Prefixes::small},
    {"u", 1e-6, Prefixes::small},        {"\u00b5", 1e-6, Prefixes::small},
    {"\u03bc", 1e-6, Prefixes::small},   {"n", 1e-9, Prefixes::small},
    {"p", 1e-12, Prefixes::small},       {"f", 1e-15, Prefixes::small},
    {"a", 1e-18, Prefixes::small},       {"Ki", 0x1p10, Prefixes::binary},
    {"Mi", 0x1p20, Prefixes::binary},    {"Gi", 0x1p30, Prefixes::binary},
    {"Ti", 0x1p40, Prefixes::binary},    {"Pi", 0x1p50, Prefixes::binary},
    {"Ei", 0x1p60, Prefixes::binary},    {"Zi", 0x1p70, Prefixes::binary},
    {"Yi", 0x1p80, Prefixes::binary},
}};

bool takes(Prefixes unit, Prefixes prefix) {
  return unit == prefix || (unit == Prefixes::all && prefix != Prefixes::binary) ||
         (unit == Prefixes::binary && prefix == Prefixes::large);
}

// One unit between slashes, such as "TB" or "h".
std::optional<ParsedQuantity> parse_factor(std::string_view text) {
  for (const Unit& unit : units)
    if (unit.name == text) return ParsedQuantity{unit.factor, unit.dimension};
  for (const Unit& unit : units) {
    if (unit.prefixes == Prefixes::none || !text.ends_with(unit.name)) continue;
    const std::string_view head = text.substr(0, text.size() - unit.name.size());
    for (const Prefix& prefix : prefixes)
      if (prefix.name == head && takes(unit.prefixes, prefix.group))
        return ParsedQuantity{prefix.factor * unit.factor, unit.dimension};
  }
  return std::nullopt;
}

// A whole unit: factors divided by one another. "/h" is short for "1/h".
std::optional<ParsedQuantity> parse_unit(std::string_view text) {
  if (text.empty()) return std::nullopt;
  ParsedQuantity product{1, none};
  for (bool first = true;; first = false) {
    const std::size_t slash = text.find('/');
    const std::string_view part = text.substr(0, slash);
    const bool implied_one = first && part.empty();
    const std::optional<ParsedQuantity> factor =
        implied_one ? ParsedQuantity{1, none} : parse_factor(part);
    if (!factor) return std::nullopt;
    product.si = first ? factor->si : product.si / factor->si;
    product.dimension = first ? factor->dimension : product.dimension - factor->dimension;
    if (slash == std::string_view::npos) return product;
    text.remove_prefix(slash + 1);
  }
}

// What people write, and how it is written here. Tried in order; the first that parses is named.
constexpr std::array<std::array<std::string_view, 2>, 23> habits = {{
    {"bps", "bit/s"},
    {"b/s", "bit/s"},
    {"Bps", "B/s"},
    {"FLOPS", "FLOP/s"},
    {"FLOPs", "FLOP"},
    {"FLOPs/s", "FLOP/s"},
    {"flops", "FLOP/s"},
    {"flop/s", "FLOP/s"},
    {"OPS", "OP/s"},
    {"KB", "kB"},
    {"KB/s", "kB/s"},
    {"b", "bit"},
    {"sec", "s"},
    {"/hour", "/h"},
    {"hours", "h"},
    {"hour", "h"},
    {"hr", "h"},
    {"/yr", "/year"},
    {"tok/s", "tokens/s"},
    {"M USD", "MUSD"},
    {"B USD", "GUSD"},
    {"million", "million USD"},
    {"billion", "billion USD"},
}};

std::string nearest_unit(std::string_view text) {
  for (const auto& [habit, unit] : habits) {
    if (!text.ends_with(habit)) continue;
    std::string candidate(text.substr(0, text.size() - habit.size()));
    candidate += unit;
    if (parse_unit(candidate)) return candidate;
  }
  return "";
}

[[noreturn]] void fail(std::string found, std::string nearest = "") {
  throw Error({.found = std::move(found),
               .expected = "a number and a unit, such as \"3.35 TB/s\", \"400 Gbit/s\", "
                           "\"80 GiB\", \"2.5 us\" or \"2.1 USD/h\"",
               .nearest = std::move(nearest)});
}

std::string example(Dimension d) {
  if (d == Seconds::dimension) return "2.5 us";
  if (d == Hertz::dimension) return "1.98 GHz\" or \"9 %/year";
  if (d == Bytes::dimension) return "80 GiB";
  if (d == BytesPerSecond::dimension) return "3.35 TB/s";
  if (d == FlopPerSecond::dimension) return "989 TFLOP/s";
  if (d == Watts::dimension) return "700 W";
  if (d == Dollars::dimension) return "20 million USD";
  if (d == DollarsPerSecond::dimension) return "2.1 USD/h";
  if (d == JoulesPerFlop::dimension) return "0.5 pJ/FLOP";
  if (d == JoulesPerByte::dimension) return "30 pJ/B";
  return "1 " + unit_name(d);
}

// Sums as people write them and answers print them: "$41.3 million", "$711,149".
std::string without_dollar_sign(std::string_view text) {
  std::string plain(text.substr(1));
  std::erase(plain, ',');
  return plain + " USD";
}

}  // namespace

ParsedQuantity parse_quantity(std::string_view text) {
  if (text.size() > 1 && text[0] == '$' && text[1] >= '0' && text[1] <= '9')
    return parse_quantity(without_dollar_sign(text));
  const std::size_t sign = !text.empty() && (text[0] == '-' || text[0] == '+') ? 1 : 0;
  const bool digit_first =
      text.size() > sign && ((text[sign] >= '0' && text[sign] <= '9') || text[sign] == '.');
  if (!digit_first) fail(text.empty() ? "empty text" : in_quotes(text) + ", which is not a number");
  double number = 0;
  // from_chars knows no plus sign.
  const char* begin = text.data() + (text[0] == '+' ? 1 : 0);
  const auto [end, problem] = std::from_chars(begin, text.data() + text.size(), number);
  if (problem == std::errc::result_out_of_range)
    fail(in_quotes(text) + ", a number that a double cannot hold");
  if (problem != std::errc{}) fail(in_quotes(text) + ", which is not a number");
  std::string_view unit = text.substr(static_cast<std::size_t>(end - text.data()));
  if (unit.starts_with(' ')) unit.remove_prefix(1);
  if (unit.empty()) fail(in_quotes(text) + ", a number without a unit");
  const std::optional<ParsedQuantity> parsed = parse_unit(unit);
  if (!parsed)
    fail(in_quotes(text) + " with the unknown unit " + in_quotes(unit), nearest_unit(unit));
  const double si = number * parsed->si;
  if (!std::isfinite(si)) fail(in_quotes(text) + ", a number that a double cannot hold");
  return {si, parsed->dimension};
}

double parse_si(std::string_view text, Dimension wanted) {
  try {
    const ParsedQuantity parsed = parse_quantity(text);
    if (parsed.dimension == wanted) return parsed.si;
    throw Error(
        {.found = fmt::format("{}, which is in {}", in_quotes(text), unit_name(parsed.dimension))});
  } catch (const Error& error) {
    throw Error({.found = error.info().found,
                 .expected = fmt::format("a quantity in {}, such as \"{}\"", unit_name(wanted),
                                         example(wanted)),
                 .nearest = error.info().nearest});
  }
}

std::string unit_name(Dimension d) {
  std::string over, under;
  const auto add = [&](int exponent, std::string_view name) {
    if (exponent == 0) return;
    std::string& side = exponent > 0 ? over : under;
    const int power_of = exponent > 0 ? exponent : -exponent;
    if (exponent < 0)
      side += '/';
    else if (!side.empty())
      side += ' ';
    side += name;
    if (power_of > 1) side += fmt::format("^{}", power_of);
  };
  if (d == rate) return "Hz";
  if (d.energy > 0 && d.time < 0) {
    add(1, "W");
    d = d - power;
  }
  add(d.data, "B");
  add(d.flop, "FLOP");
  add(d.energy, "J");
  add(d.money, "USD");
  add(d.carbon, "kgCO2e");
  add(d.token, "token");
  add(d.time, "s");
  return (over.empty() ? "1" : over) + under;
}

}  // namespace orrery
