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

// Whether an enumerator has this value: compilers write its name then, and else a cast of a number.
template <auto value>
consteval bool is_enumerator() {
  constexpr std::string_view written = __PRETTY_FUNCTION__;  // "... value = (orrery::Format)9]"
  const std::size_t cast = written.rfind(')');
  return cast == std::string_view::npos ||
         !(written[cast + 1] == '-' || (written[cast + 1] >= '0' && written[cast + 1] <= '9'));
}

// How many enumerators an enumeration has that counts from 0 without gaps.
template <class Enum, std::size_t from = 0>
consteval int enumerator_count() {
  if constexpr (is_enumerator<static_cast<Enum>(from)>())
    return enumerator_count<Enum, from + 1>();
  else
    return static_cast<int>(from);
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
    static_assert(N == static_cast<std::size_t>(enumerator_count<Enum>()), "one text for each");
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
