// SPDX-License-Identifier: Apache-2.0
// Knows how results of tasks become JSON and results again, bit for bit.
#pragma once

#include <array>
#include <cmath>
#include <concepts>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "sim/base/errors/check.h"
#include "sim/base/json/tree.h"
#include "sim/base/units/ticks.h"
#include "sim/base/units/units.h"

namespace orrery {

// A record is read by the version that wrote it alone: values stand by place, without names. A
// struct joins by a function `fields(struct)` beside it, which returns std::tie of all its members:
// made from a structured binding, it does not compile when a member comes or goes.
// A file may have been changed by hand: an Error says that this is no result of ours.
[[noreturn]] inline void fail_record() {
  throw Error({.found = "values that this version did not write", .expected = "its own result"});
}
inline void expect_record(bool holds) {
  if (!holds) fail_record();
}
inline const SortedJson& record_list(const SortedJson& json) {
  expect_record(json.is_array());
  return json;
}
inline const SortedJson& record_list(const SortedJson& json, std::size_t size) {
  expect_record(json.is_array() && json.size() == size);
  return json;
}
inline std::int64_t record_whole(const SortedJson& json) {
  expect_record(json.is_number_integer());
  return json.get<std::int64_t>();
}

template <class T>
concept HasFields = requires(T& value) {
  fields(value);
};

// What `fields` takes: the struct, to be read or to be written.
template <class T, class Wanted>
concept EitherConst = std::same_as<std::remove_const_t<T>, Wanted>;

template <class T>
struct Record;  // SortedJson write(const T&); T read(const SortedJson&)

template <class T>
SortedJson to_record(const T& value) {
  return Record<T>::write(value);
}
template <class T>
T from_record(const SortedJson& json) {
  return Record<T>::read(json);
}
template <class T>
std::string record_text(const T& value) {
  return to_record(value).dump();
}
template <class T>
T from_record_text(std::string_view text) {
  return from_record<T>(SortedJson::parse(text));
}

template <class T>
requires std::integral<T> || std::same_as<T, std::string>
struct Record<T> {
  static SortedJson write(const T& value) { return value; }
  static T read(const SortedJson& json) {
    if constexpr (std::same_as<T, bool>)
      expect_record(json.is_boolean());
    else if constexpr (std::same_as<T, std::string>)
      expect_record(json.is_string());
    else
      expect_record(json.is_number_integer());
    return json.get<T>();
  }
};

template <class T>
requires std::is_enum_v<T>
struct Record<T> {
  static SortedJson write(T value) { return static_cast<std::int64_t>(value); }
  static T read(const SortedJson& json) { return static_cast<T>(record_whole(json)); }
};

// JSON has no infinities and no NaN.
template <>
struct Record<double> {
  static SortedJson write(double value) {
    if (std::isnan(value)) return "nan";
    if (std::isinf(value)) return value > 0 ? "inf" : "-inf";
    return value;
  }
  static double read(const SortedJson& json) {
    if (json.is_number()) return json.get<double>();
    expect_record(json.is_string());
    const std::string& text = json.text();
    if (text == "nan") return std::numeric_limits<double>::quiet_NaN();
    expect_record(text == "inf" || text == "-inf");
    constexpr double infinity = std::numeric_limits<double>::infinity();
    return text == "inf" ? infinity : -infinity;
  }
};

// Two halves: whole numbers of JSON have 64 bits.
template <>
struct Record<__int128> {
  static SortedJson write(__int128 value) {
    const auto bits = static_cast<unsigned __int128>(value);
    return SortedJson::array(
        {static_cast<std::uint64_t>(bits >> 64U), static_cast<std::uint64_t>(bits)});
  }
  static __int128 read(const SortedJson& json) {
    const auto half = [&](int i) {
      const SortedJson& part = record_list(json, 2).at(i);
      expect_record(part.is_number_integer());
      return static_cast<unsigned __int128>(part.get<std::uint64_t>());
    };
    return static_cast<__int128>((half(0) << 64U) | half(1));
  }
};

template <Dimension D>
struct Record<Quantity<D>> {
  static SortedJson write(Quantity<D> value) { return Record<double>::write(value.si()); }
  static Quantity<D> read(const SortedJson& json) {
    return Quantity<D>(Record<double>::read(json));
  }
};

template <>
struct Record<Ticks> {
  static SortedJson write(Ticks value) { return value.ps; }
  static Ticks read(const SortedJson& json) { return {record_whole(json)}; }
};

template <class T>
struct Record<std::vector<T>> {
  static SortedJson write(const std::vector<T>& values) {
    SortedJson list = SortedJson::array();
    for (const auto& value : values) list.push_back(Record<T>::write(value));
    return list;
  }
  static std::vector<T> read(const SortedJson& json) {
    std::vector<T> values;
    for (const SortedJson& item : record_list(json).elements())
      values.push_back(Record<T>::read(item));
    return values;
  }
};

template <class T, std::size_t n>
struct Record<std::array<T, n>> {
  static SortedJson write(const std::array<T, n>& values) {
    SortedJson list = SortedJson::array();
    for (const T& value : values) list.push_back(Record<T>::write(value));
    return list;
  }
  static std::array<T, n> read(const SortedJson& json) {
    record_list(json, n);
    std::array<T, n> values{};
    for (std::size_t i = 0; i < n; ++i) values[i] = Record<T>::read(json.at(i));
    return values;
  }
};

// A value in a list of one, so that null stays nothing whatever the value's own text is.
template <class T>
struct Record<std::optional<T>> {
  static SortedJson write(const std::optional<T>& value) {
    if (!value) return nullptr;
    SortedJson list = SortedJson::array();
    list.push_back(Record<T>::write(*value));
    return list;
  }
  static std::optional<T> read(const SortedJson& json) {
    if (json.is_null()) return std::nullopt;
    return Record<T>::read(record_list(json, 1).at(0));
  }
};

template <class A, class B>
struct Record<std::pair<A, B>> {
  static SortedJson write(const std::pair<A, B>& value) {
    SortedJson list = SortedJson::array();
    list.push_back(Record<A>::write(value.first));
    list.push_back(Record<B>::write(value.second));
    return list;
  }
  static std::pair<A, B> read(const SortedJson& json) {
    record_list(json, 2);
    return {Record<A>::read(json.at(0)), Record<B>::read(json.at(1))};
  }
};

template <class T>
requires HasFields<T>
struct Record<T> {
  static SortedJson write(const T& value) {
    SortedJson list = SortedJson::array();
    std::apply(
        [&](const auto&... members) {
          (list.push_back(Record<std::remove_cvref_t<decltype(members)>>::write(members)), ...);
        },
        fields(value));
    return list;
  }
  static T read(const SortedJson& json) {
    T value{};
    std::size_t at = 0;
    std::apply(
        [&](auto&... members) {
          record_list(json, sizeof...(members));
          ((members = Record<std::remove_cvref_t<decltype(members)>>::read(json.at(at++))), ...);
        },
        fields(value));
    return value;
  }
};

}  // namespace orrery
