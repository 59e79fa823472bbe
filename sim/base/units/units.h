// SPDX-License-Identifier: Apache-2.0
// Checks physical dimensions of numbers at compile time, and writes and reads them.
#pragma once

#include <cmath>
#include <compare>
#include <limits>
#include <string>
#include <string_view>

namespace orrery {

// Exponents of the base units. Time is in seconds, data in bytes, money in US dollars, carbon in
// kilograms of CO2 equivalent. Watts are J/s, rates are per second.
struct Dimension {
  int time = 0, data = 0, flop = 0, energy = 0, money = 0, carbon = 0, token = 0;
  constexpr bool operator==(const Dimension&) const = default;
  constexpr Dimension operator+(Dimension o) const {
    return {time + o.time,   data + o.data,     flop + o.flop,  energy + o.energy,
            money + o.money, carbon + o.carbon, token + o.token};
  }
  constexpr Dimension operator-(Dimension o) const {
    return {time - o.time,   data - o.data,     flop - o.flop,  energy - o.energy,
            money - o.money, carbon - o.carbon, token - o.token};
  }
};

// A double in SI base units with its dimension in the type. Products and quotients carry the
// dimension along and become a plain double when it cancels; sums of unlike dimensions do not
// compile.
template <Dimension D>
class Quantity {
 public:
  static constexpr Dimension dimension = D;
  constexpr Quantity() = default;
  constexpr explicit Quantity(double si) : si_(si) {}  // value in SI base units
  constexpr double si() const { return si_; }

  constexpr auto operator<=>(const Quantity&) const = default;
  constexpr Quantity operator+(Quantity o) const { return Quantity(si_ + o.si_); }
  constexpr Quantity operator-(Quantity o) const { return Quantity(si_ - o.si_); }
  constexpr Quantity operator-() const { return Quantity(-si_); }
  constexpr Quantity operator*(double factor) const { return Quantity(si_ * factor); }
  constexpr Quantity operator/(double divisor) const { return Quantity(si_ / divisor); }
  constexpr Quantity& operator+=(Quantity o) {
    si_ += o.si_;
    return *this;
  }
  constexpr Quantity& operator-=(Quantity o) {
    si_ -= o.si_;
    return *this;
  }
  constexpr Quantity& operator*=(double factor) {
    si_ *= factor;
    return *this;
  }

 private:
  double si_ = 0;
};

template <Dimension D>
constexpr auto make_quantity(double si) {
  if constexpr (D == Dimension{})
    return si;
  else
    return Quantity<D>(si);
}
template <Dimension D>
constexpr Quantity<D> operator*(double factor, Quantity<D> q) {
  return q * factor;
}
template <Dimension A, Dimension B>
constexpr auto operator*(Quantity<A> a, Quantity<B> b) {
  return make_quantity<A + B>(a.si() * b.si());
}
template <Dimension A, Dimension B>
constexpr auto operator/(Quantity<A> a, Quantity<B> b) {
  return make_quantity<A - B>(a.si() / b.si());
}
template <Dimension B>
constexpr auto operator/(double a, Quantity<B> b) {
  return make_quantity<Dimension{} - B>(a / b.si());
}

// A value as its number in SI base units, for code that takes plain numbers as well.
constexpr double in_si(double value) { return value; }
template <Dimension D>
constexpr double in_si(Quantity<D> value) {
  return value.si();
}

using Seconds = Quantity<Dimension{.time = 1}>;
using Hertz = Quantity<Dimension{.time = -1}>;  // also failure rates
using Bytes = Quantity<Dimension{.data = 1}>;
using Flop = Quantity<Dimension{.flop = 1}>;
using Joules = Quantity<Dimension{.energy = 1}>;
using Dollars = Quantity<Dimension{.money = 1}>;
using Carbon = Quantity<Dimension{.carbon = 1}>;
using Tokens = Quantity<Dimension{.token = 1}>;
using Watts = Quantity<Dimension{.time = -1, .energy = 1}>;
using BytesPerSecond = Quantity<Dimension{.time = -1, .data = 1}>;
using FlopPerSecond = Quantity<Dimension{.time = -1, .flop = 1}>;
using TokensPerSecond = Quantity<Dimension{.time = -1, .token = 1}>;
using DollarsPerSecond = Quantity<Dimension{.time = -1, .money = 1}>;
using JoulesPerFlop = Quantity<Dimension{.flop = -1, .energy = 1}>;
using JoulesPerByte = Quantity<Dimension{.data = -1, .energy = 1}>;
using SecondsPerByte = Quantity<Dimension{.time = 1, .data = -1}>;

constexpr Seconds seconds(double v) { return Seconds(v); }
constexpr Seconds milliseconds(double v) { return Seconds(v * 1e-3); }
constexpr Seconds microseconds(double v) { return Seconds(v * 1e-6); }
constexpr Seconds nanoseconds(double v) { return Seconds(v * 1e-9); }
constexpr Bytes bytes(double v) { return Bytes(v); }
constexpr Bytes gibibytes(double v) { return Bytes(v * 1073741824.0); }
constexpr double in_gibibytes(Bytes b) { return b.si() / 1073741824.0; }
inline constexpr double infinite = std::numeric_limits<double>::infinity();
inline constexpr double seconds_per_hour = 3600;
inline constexpr double seconds_per_day = 24 * seconds_per_hour;
inline constexpr double seconds_per_year = 365.25 * seconds_per_day;  // the Julian year
inline constexpr double joules_per_kilowatt_hour = 1000 * seconds_per_hour;
constexpr double in_microseconds(Seconds t) { return t.si() * 1e6; }
constexpr double in_milliseconds(Seconds t) { return t.si() * 1e3; }
constexpr Flop flop(double v) { return Flop(v); }
constexpr Watts watts(double v) { return Watts(v); }
constexpr BytesPerSecond bytes_per_second(double v) { return BytesPerSecond(v); }
constexpr FlopPerSecond flop_per_second(double v) { return FlopPerSecond(v); }

// A number and the dimension its unit text says.
struct ParsedQuantity {
  double si = 0;
  Dimension dimension;
};

// Parses "3.35 TB/s", "400 Gbit/s", "80 GiB", "2.5 us", "700 W", "2.1 USD/h", "989 TFLOP/s",
// "1.2 pJ/B", "9 %/year" (a rate). GB is 1e9 and GiB is 2^30; bit counts as 1/8 byte. Throws Error
// with `expected` listing the unit's form when the number or the unit is missing or unknown, and
// for values that are not finite.
ParsedQuantity parse_quantity(std::string_view text);

// Parses and checks the dimension: a wrong one is an Error that names an example unit.
double parse_si(std::string_view text, Dimension wanted);
template <class Q>
Q parse(std::string_view text) {
  return Q(parse_si(text, Q::dimension));
}

// An example of a unit text with this dimension ("B/s"), for error messages.
std::string unit_name(Dimension d);

// Text for people, three significant digits with a scaled unit: "1.23 ms", "79.1 GiB",
// "3.35 TB/s", "412 TFLOP/s", "1.02 MW". Memory sizes use GiB, rates and traffic decimal units.
std::string to_text(Seconds);
std::string to_text(Bytes);
std::string to_text(BytesPerSecond);
std::string to_text(FlopPerSecond);
std::string to_text(Watts);
std::string to_text(Joules);
std::string to_text(Dollars);
std::string to_text(Flop);
std::string to_text(Hertz);

}  // namespace orrery
