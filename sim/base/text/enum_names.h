// SPDX-License-Identifier: Apache-2.0
// Pairs the enumerators of an enumeration with their texts, once for writing and for reading.
#pragma once

#include <array>
#include <cstddef>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace orrery {

// Whether an enumerator has this value: compilers write its name then, and else a cast of a number,
// "... value = (orrery::Format)9]". Every unit evaluates it, so it looks at few characters.
template <auto value>
consteval bool is_enumerator() {
  constexpr std::string_view written = __PRETTY_FUNCTION__;
  std::size_t last = written.size() - 2;
  while (written[last] >= '0' && written[last] <= '9') --last;
  return written[last] != ')' && written[last] != '-';
}

// The first value that no enumerator has: all below `low` have one, `high` has none.
template <class Enum, std::size_t low, std::size_t high>
consteval std::size_t first_missing() {
  constexpr std::size_t middle = (low + high) / 2;
  if constexpr (low == high)
    return low;
  else if constexpr (is_enumerator<static_cast<Enum>(middle)>())
    return first_missing<Enum, middle + 1, high>();
  else
    return first_missing<Enum, low, middle>();
}

// How many enumerators an enumeration has that counts from 0 without gaps.
template <class Enum, std::size_t high = 16>
consteval int enumerator_count() {
  if constexpr (is_enumerator<static_cast<Enum>(high)>())
    return enumerator_count<Enum, 2 * high>();
  else
    return static_cast<int>(first_missing<Enum, 0, high>());
}

// Another text of an enumerator: it is read, never written.
template <class Enum>
struct EnumAlias {
  std::string_view text;
  Enum value;
};

// Texts of all enumerators in their order, then aliases. A table that lacks a text, has one too
// many or has one twice does not compile. Made by enum_names().
template <class Enum, std::size_t N, std::size_t A>
class EnumNames {
 public:
  static constexpr int count = static_cast<int>(N);

  consteval EnumNames(const std::array<std::string_view, N>& texts,
                      const std::array<EnumAlias<Enum>, A>& aliases)
      : texts_(texts), aliases_(aliases) {
    static_assert(is_enumerator<static_cast<Enum>(N - 1)>(), "a text without an enumerator");
    static_assert(!is_enumerator<static_cast<Enum>(N)>(), "an enumerator without a text");
    for (std::size_t i = 0; i < N + A; ++i) {
      if (text(i).empty()) throw "an empty text";
      for (std::size_t j = 0; j < i; ++j)
        if (text(i) == text(j)) throw "a text that stands for two enumerators";
    }
  }

  constexpr std::string_view operator[](Enum value) const {
    return texts_[static_cast<std::size_t>(value)];
  }
  // By a text or an alias.
  constexpr std::optional<Enum> find(std::string_view wanted) const {
    for (std::size_t i = 0; i < N + A; ++i)
      if (text(i) == wanted) return value(i);
    return std::nullopt;
  }
  // The same of a JsonValue: an Error that lists all texts where it is none of them.
  template <class Value>
  Enum from(const Value& at) const {
    return value(at.index_in(all_texts()));
  }
  // The same where only some enumerators are allowed.
  template <class Value>
  Enum from(const Value& at, std::initializer_list<Enum> allowed) const {
    std::vector<std::string> some;
    for (const Enum e : allowed) some.emplace_back((*this)[e]);
    return allowed.begin()[at.index_in(some)];
  }
  // Without aliases.
  std::vector<std::string> names() const { return {texts_.begin(), texts_.end()}; }

 private:
  constexpr std::string_view text(std::size_t i) const {
    return i < N ? texts_[i] : aliases_[i - N].text;
  }
  constexpr Enum value(std::size_t i) const {
    return i < N ? static_cast<Enum>(i) : aliases_[i - N].value;
  }
  std::vector<std::string> all_texts() const {
    std::vector<std::string> all = names();
    for (const EnumAlias<Enum>& alias : aliases_) all.emplace_back(alias.text);
    return all;
  }

  std::array<std::string_view, N> texts_;
  std::array<EnumAlias<Enum>, A> aliases_;
};

// constexpr auto fruit_text = enum_names<Fruit>({"apple", "pear"}, {{"poire", Fruit::pear}});
template <class Enum, std::size_t N>
consteval auto enum_names(const std::string_view (&texts)[N]) {
  return EnumNames<Enum, N, 0>(std::to_array(texts), {});
}
template <class Enum, std::size_t N, std::size_t A>
consteval auto enum_names(const std::string_view (&texts)[N], const EnumAlias<Enum> (&aliases)[A]) {
  return EnumNames<Enum, N, A>(std::to_array(texts), std::to_array(aliases));
}

}  // namespace orrery
