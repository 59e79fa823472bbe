// SPDX-License-Identifier: Apache-2.0
// Tests that results of tasks come back bit for bit, and that text which is none is an error.
#include "sim/base/tasks/record.h"

#include <rapidcheck.h>
#include <catch2/catch.hpp>

#include <bit>

#include "sim/base/tasks/task_value.h"

namespace orrery {
namespace {

enum class Colour : std::uint8_t { red, green, blue };

struct Inner {
  double share = 0;
  Colour colour = Colour::red;
};
struct Outer {
  std::string name;
  std::vector<Inner> list;
  std::optional<std::optional<std::int64_t>> maybe;
  std::array<bool, 3> flags{};
  __int128 large = 0;
  Seconds time;
  Ticks ticks;
  std::pair<std::uint64_t, std::string> pair;
};

}  // namespace

// Beside the types' namespace, where records look.
namespace {
auto fields(EitherConst<Inner> auto& inner) {
  auto& [share, colour] = inner;
  return std::tie(share, colour);
}
auto fields(EitherConst<Outer> auto& outer) {
  auto& [name, list, maybe, flags, large, time, ticks, pair] = outer;
  return std::tie(name, list, maybe, flags, large, time, ticks, pair);
}
}  // namespace

TEST_CASE("any double comes back with its bits from a record") {
  REQUIRE(rc::check("double", [](std::uint64_t bits) {
    const auto value = std::bit_cast<double>(bits);
    const auto back = from_record_text<double>(record_text(value));
    const bool same =
        std::isnan(value) ? std::isnan(back) : std::bit_cast<std::uint64_t>(back) == bits;
    RC_ASSERT(same);
  }));
}

TEST_CASE("a struct of everything comes back as it was") {
  REQUIRE(
      rc::check("struct", [](std::int64_t a, std::uint64_t b, double c, const std::string& text) {
        std::string name;
        for (const char ch : text)
          name += static_cast<char>(' ' + (static_cast<unsigned>(ch) & 63U));
        Outer outer{.name = name,
                    .list = {{c, Colour::blue}, {-c, Colour::green}},
                    .maybe = std::optional<std::int64_t>(a),
                    .flags = {true, false, (b & 1U) != 0},
                    .large = static_cast<__int128>(a) * static_cast<__int128>(b),
                    .time = Seconds(c),
                    .ticks = {a},
                    .pair = {b, name}};
        if (b % 3 == 0) outer.maybe = std::optional<std::int64_t>();
        if (b % 3 == 1) outer.maybe.reset();
        const Outer back = from_record_text<Outer>(record_text(outer));
        RC_ASSERT(back.name == outer.name);
        RC_ASSERT(back.list.size() == 2U);
        RC_ASSERT(back.list[1].share == -c);
        RC_ASSERT(back.list[1].colour == Colour::green);
        RC_ASSERT((back.maybe == outer.maybe));
        RC_ASSERT(back.flags == outer.flags);
        RC_ASSERT(back.large == outer.large);
        RC_ASSERT(back.time == outer.time);
        RC_ASSERT(back.ticks == outer.ticks);
        RC_ASSERT(back.pair == outer.pair);
        RC_ASSERT(record_text(back) == record_text(outer));
      }));
}

TEST_CASE("a record of another shape is an error, not a value") {
  CHECK_THROWS_AS(from_record_text<double>("\"text\""), Error);
  CHECK_THROWS_AS(from_record_text<double>("[1]"), Error);
  CHECK_THROWS_AS(from_record_text<std::int64_t>("1.5"), Error);
  CHECK_THROWS_AS(from_record_text<bool>("1"), Error);
  CHECK_THROWS_AS(from_record_text<std::string>("1"), Error);
  CHECK_THROWS_AS(from_record_text<Colour>("null"), Error);
  CHECK_THROWS_AS(from_record_text<std::vector<double>>("{}"), Error);
  CHECK_THROWS_AS((from_record_text<std::array<double, 2>>("[1]")), Error);
  CHECK_THROWS_AS(from_record_text<std::optional<double>>("1"), Error);
  CHECK_THROWS_AS((from_record_text<std::pair<double, double>>("[1]")), Error);
  CHECK_THROWS_AS(from_record_text<__int128>("[1]"), Error);
  CHECK_THROWS_AS(from_record_text<Inner>("[1]"), Error);
  CHECK_THROWS_AS(from_record_text<Inner>("[1,2,3]"), Error);
  CHECK(from_record_text<Inner>("[1,2]").colour == Colour::blue);
}

TEST_CASE("without others a task's value is what is made, and nothing is written") {
  int made = 0;
  const auto value = task_value<double>(nullptr, 1, [&]() -> std::optional<double> {
    ++made;
    return 0.1;
  });
  CHECK(value == 0.1);
  CHECK(made == 1);
}

}  // namespace orrery
