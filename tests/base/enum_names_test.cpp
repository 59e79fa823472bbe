// SPDX-License-Identifier: Apache-2.0
// Tests tables of enumerators' texts: reading, writing, aliases, subsets and what they refuse.
#include "sim/base/text/enum_names.h"

#include <catch2/catch.hpp>

#include "sim/base/json/json.h"
#include "tests/base/error_text.h"

namespace orrery {
namespace {

enum class Fruit : std::uint8_t { apple, pear, fig };
enum class Plain { one };

constexpr auto fruit_text =
    enum_names<Fruit>({"apple", "pear", "fig"}, {{"poire", Fruit::pear}, {"pomme", Fruit::apple}});
// A table without a text for each enumerator does not compile; these are what that rests on.
static_assert(fruit_text.count == 3 && fruit_text[Fruit::fig] == "fig");
static_assert(enumerator_count<Fruit>() == 3 && enumerator_count<Plain>() == 1);
static_assert(is_enumerator<Fruit::fig>() && !is_enumerator<static_cast<Fruit>(3)>());
static_assert(!is_enumerator<static_cast<Plain>(-1)>());

JsonValue text_of(const std::string& text) {
  return JsonValue::from({{"fruit", text}}, "bowl.json");
}

TEST_CASE("texts and aliases are read, and texts alone are written") {
  for (const Fruit f : {Fruit::apple, Fruit::pear, Fruit::fig})
    CHECK(fruit_text.find(fruit_text[f]) == f);
  CHECK(fruit_text.find("poire") == Fruit::pear);
  CHECK_FALSE(fruit_text.find("plum"));
  CHECK_FALSE(fruit_text.find(""));
  CHECK(fruit_text.names() == std::vector<std::string>{"apple", "pear", "fig"});
  CHECK(fruit_text.from(text_of("pomme").at("fruit")) == Fruit::apple);
  CHECK(fruit_text.from(text_of("fig").at("fruit")) == Fruit::fig);
}

TEST_CASE("a wrong text is refused with all that are allowed and the nearest") {
  const JsonValue wrong = text_of("pera").at("fruit");
  try {
    fruit_text.from(wrong);
    FAIL("read");
  } catch (const Error& e) {
    CHECK(e.info().expected == "one of apple, pear, fig, poire, pomme");
    CHECK(e.info().nearest == "pear");
  }
  const JsonValue pear = text_of("pear").at("fruit");
  CHECK(fruit_text.from(pear, {Fruit::fig, Fruit::pear}) == Fruit::pear);
  CHECK_THROWS_AS(fruit_text.from(pear, {Fruit::fig, Fruit::apple}), Error);
}

}  // namespace
}  // namespace orrery
