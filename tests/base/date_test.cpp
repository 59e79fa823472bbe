// SPDX-License-Identifier: Apache-2.0
// Knows what dates promise: only days that exist are read, and arithmetic on them is in days.
#include <rapidcheck/catch.h>
#include <catch2/catch.hpp>

#include "sim/base/date.h"
#include "sim/base/json/tree.h"
#include "tests/base/error_text.h"

namespace orrery {
namespace {

using Catch::Matchers::Contains;

Sourced<Date> sourced(const SortedJson& value) {
  return read_sourced_date(JsonValue::from({{"available", value}}, "part.json").at("available"));
}

}  // namespace

TEST_CASE("dates are read, compared, moved and printed") {
  CHECK(date_from_text("1970-01-02") == Date{1});
  CHECK(*date_from_text("2028-03-01") - *date_from_text("2028-02-28") == 2);
  CHECK(*date_from_text("2027-03-01") - *date_from_text("2027-02-28") == 1);
  CHECK(*date_from_text("2024-11-01") < *date_from_text("2025-01-01"));
  CHECK(to_text(*date_from_text("2024-12-31") + 1) == "2025-01-01");
  CHECK(to_text(*date_from_text("2024-03-01") - 1) == "2024-02-29");
  for (const char* bad : {"2027-02-29", "2027-6-30", "2027-13-01", "2027-00-10", "2027/01/01",
                          "soon", "", "2027-06-30x", "-027-06-30", "2027-+6-30", "2027-06"}) {
    INFO(bad);
    CHECK_FALSE(date_from_text(bad).has_value());
  }
}

TEST_CASE("a date's text reads back as the date") {
  rc::prop("text and back", [] {
    const Date date{*rc::gen::inRange<std::int64_t>(-300000, 300000)};
    RC_ASSERT(date_from_text(to_text(date)) == date);
    RC_ASSERT(to_text(date).size() == 10U);
  });
}

TEST_CASE("a sourced date has evidence and a range like every other value") {
  const auto date = sourced({{"value", "2026-08-01"},
                             {"low", "2026-07-01"},
                             {"high", "2026-12-31"},
                             {"evidence", "announced"},
                             {"source", "roadmap"}});
  CHECK(to_text(date.get()) == "2026-08-01");
  CHECK(to_text(*date.low) == "2026-07-01");
  CHECK(to_text(*date.high) == "2026-12-31");
  CHECK(date.evidence == Evidence::announced);
  CHECK(date.source == "roadmap");
  CHECK_FALSE(sourced({{"value", nullptr}, {"reason", "never offered"}}).known());

  const SortedJson bare = {
      {"value", "2026-08-01"}, {"evidence", "announced"}, {"source", "roadmap"}};
  CHECK_THAT(error_text([&] { sourced(bare); }), Contains("no range") && Contains("available"));
  SortedJson backwards = bare;
  backwards["low"] = "2026-09-01";
  backwards["high"] = "2026-12-01";
  CHECK_THAT(error_text([&] { sourced(backwards); }), Contains("low <= value <= high"));
  SortedJson month = bare;
  month["value"] = "2026-08";
  CHECK_THAT(error_text([&] { sourced(month); }),
             Contains("available.value") && Contains("a date such as"));
  SortedJson unknown = bare;
  unknown["until"] = "2027-01-01";
  CHECK_THAT(error_text([&] { sourced(unknown); }), Contains("available.until"));
  CHECK_THROWS_AS(sourced("2026-08-01"), Error);
}

}  // namespace orrery
