// SPDX-License-Identifier: Apache-2.0
// Tests that no text, however broken, gets anything but a value or an Error out of the readers.
#include <catch2/catch.hpp>

#include <array>
#include <cmath>
#include <string>

#include "sim/base/json/json.h"
#include "sim/base/random.h"
#include "tests/base/broken_text.h"
#include "tests/base/fresh_seed.h"

namespace orrery {
namespace {

constexpr std::array<std::string_view, 4> documents = {
    R"({"name": "h200", "memory": {"bandwidth": {"value": "4.8 TB/s", "evidence": "specified",
        "source": "sheet"}, "capacity": {"value": "141 GB", "low": "140 GB", "high": "142 GB",
        "evidence": "estimated", "source": "sheet"}}, "layers": [1, 2.5e-3, -7, true, null]})",
    R"([[[{"a": "\u00e9\n\\", "b": [[], {}, ""]}], "text"], 18446744073709551615, 1e308, -0.0])",
    R"({"value": null, "reason": "not published"})",
    R"({"value": 132, "evidence": "measured", "source": "x", "low": 1, "high": 1e3})"};
constexpr std::array<std::string_view, 12> quantities = {
    "3.35 TB/s", "400 Gbit/s", "80 GiB",     "2.5 us",    "700 W",         "2.1 USD/h",
    "9 %/year",  "1/h",        "1.2 pJ/bit", "1e-3 FLOP", "385 gCO2e/kWh", "-5e+3 tokens/s"};
std::string random_bytes(RandomStream& random) {
  std::string text(random.below(80), '\0');
  for (char& c : text) c = static_cast<char>(random.next());
  return text;
}

// Calls a reader, which may throw Error only; Catch2 reports any other exception.
template <class Read>
bool accepts(Read&& read) {
  try {
    read();
    return true;
  } catch (const Error& error) {
    REQUIRE_FALSE(error.message().empty());
    REQUIRE(error.message().find('\n') == std::string::npos);
    REQUIRE(error.message().size() < 2000);
    return false;
  }
}

// Reads a value in every way there is.
void walk(const JsonValue& value) {
  accepts([&] { value.number(); });
  accepts([&] { value.integer(); });
  accepts([&] { value.integer(1, 100); });
  accepts([&] { value.boolean(); });
  accepts([&] { value.text(); });
  accepts([&] { value.si(Bytes::dimension); });
  accepts([&] { value.one_of({"h200", "text"}); });
  accepts([&] { value.at("value"); });
  accepts([&] { value.find("value"); });
  accepts([&] { value.expect_only({"name", "memory"}); });
  accepts([&] { read_sourced<BytesPerSecond>(value); });
  accepts([&] { read_sourced<std::int64_t>(value); });
  if (value.is_array())
    for (const JsonValue& item : value.items()) walk(item);
  if (value.is_object())
    for (const auto& [key, member] : value.members()) walk(member);
}

TEST_CASE("the JSON reader survives broken documents") {
  RandomStream random(fresh(1), 1);
  int accepted = 0;
  constexpr int rounds = 20000;
  for (int round = 0; round < rounds; ++round) {
    const std::string text =
        round % 10 == 0
            ? random_bytes(random)
            : test::broken_text(std::string(documents[random.below(documents.size())]), random);
    accepted += accepts([&] { walk(JsonValue::parse(text, "fuzz.json")); });
  }
  // The mutations are mild enough for both paths to be taken.
  CHECK(accepted > rounds / 20);
  CHECK(accepted < rounds * 19 / 20);
}

TEST_CASE("the unit reader survives broken quantities") {
  RandomStream random(fresh(1), 2);
  int accepted = 0;
  constexpr int rounds = 100000;
  for (int round = 0; round < rounds; ++round) {
    const std::string text =
        round % 10 == 0
            ? random_bytes(random)
            : test::broken_text(std::string(quantities[random.below(quantities.size())]), random);
    double value = 0;
    accepted += accepts([&] { value = parse_quantity(text).si; });
    REQUIRE(std::isfinite(value));
  }
  CHECK(accepted > rounds / 20);
  CHECK(accepted < rounds * 19 / 20);
}

}  // namespace
}  // namespace orrery
