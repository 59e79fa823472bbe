// SPDX-License-Identifier: Apache-2.0
// Tests the reader of comma-separated values: RFC 4180, and errors that name line and column.
#include <catch2/catch.hpp>

#include <filesystem>

#include "sim/base/errors/check.h"
#include "sim/base/text/csv.h"

namespace orrery {
namespace {

std::string message_of(const std::string& text) {
  try {
    parse_csv(text, "t.csv");
  } catch (const Error& error) {
    return error.message();
  }
  return "";
}

}  // namespace

TEST_CASE("a quoted field may hold commas, quotes and line breaks") {
  const CsvTable table = parse_csv("a,b\r\n\"x, \"\"y\"\"\nz\",2\r\n,\"\"\n", "t.csv");
  REQUIRE(table.rows.size() == 2);
  CHECK(table.rows[0][0] == "x, \"y\"\nz");
  CHECK(table.rows[0][1] == "2");
  CHECK(CsvRow(table, 1).blank("a"));
  CHECK(CsvRow(table, 1).blank("b"));
  CHECK(table.lines[0] == 2);
  CHECK(table.lines[1] == 4);
}

TEST_CASE("a last line without a line break and a byte order mark are fine") {
  const CsvTable table = parse_csv(
      "\xEF\xBB\xBF"
      "a,b\n1,2",
      "t.csv");
  REQUIRE(table.rows.size() == 1);
  CHECK(table.header[0] == "a");
  CHECK(CsvRow(table, 0).integer("b") == 2);
}

TEST_CASE("lines before the header are columns with one value") {
  const CsvTable table = parse_csv(
      "# source: a, b and \"c\"\r\n# url: http://x/y:1\n# blank:\na,b\n1,2\n3,4\n", "t.csv");
  REQUIRE(table.rows.size() == 2);
  CHECK(table.header == std::vector<std::string>{"a", "b", "source", "url", "blank"});
  for (std::size_t i = 0; i < 2; ++i) {
    CHECK(CsvRow(table, i).text("source") == "a, b and \"c\"");
    CHECK(CsvRow(table, i).text("url") == "http://x/y:1");
    CHECK(CsvRow(table, i).blank("blank"));
  }
  CHECK(table.lines[1] == 6);
  CHECK(message_of("# no value\na\n1\n") ==
        "t.csv: line 1: found \"no value\"; expected # column: value");
  CHECK(message_of("# a: 2\na\n1\n").find("column \"a\" twice") != std::string::npos);
  CHECK(message_of("# a: 2\nb\n1,2\n").find("line 3: found 2 fields; expected 1") !=
        std::string::npos);
  CHECK(message_of("# a: 2\n").find("an empty file") != std::string::npos);
}

TEST_CASE("malformed tables are errors that name the line") {
  CHECK(message_of("") == "t.csv: found an empty file; expected a header line and rows");
  CHECK(message_of("a,b\n1,2\n1,2,3\n") ==
        "t.csv: line 3: found 3 fields; expected 2, as in the "
        "header");
  CHECK(message_of("a,b\n1,\"2\n") ==
        "t.csv: line 2: found the end of the file; expected a closing quote");
  CHECK(message_of("a,b\n1,\"2\"x\n").find("line 2: found text after a closing quote") !=
        std::string::npos);
  CHECK(message_of("a,b\n1,2\"3\"\n").find("quote inside a field") != std::string::npos);
  CHECK(message_of("a,a\n1,2\n").find("column \"a\" twice") != std::string::npos);
  CHECK(message_of(std::string("a,b\n1,\0\n", 8)).find("zero byte") != std::string::npos);
}

TEST_CASE("cells that do not parse are errors that name line and column") {
  const CsvTable table = parse_csv("n,x,f\n12,1.5e3,1\nabc,nan,2\n1.5,,\n", "t.csv");
  CHECK(CsvRow(table, 0).integer("n") == 12);
  CHECK(CsvRow(table, 0).number("x") == 1500.0);
  CHECK(CsvRow(table, 0).flag("f") == true);
  CHECK_FALSE(CsvRow(table, 2).number("x").has_value());
  CHECK_FALSE(CsvRow(table, 0).number("absent").has_value());
  const auto message = [&](auto read) {
    try {
      read();
    } catch (const Error& error) {
      return error.message();
    }
    return std::string();
  };
  CHECK(message([&] { (void)CsvRow(table, 1).number("n"); }) ==
        "t.csv: line 3, column n: found \"abc\"; expected a number");
  CHECK(message([&] { (void)CsvRow(table, 1).number("x"); }).find("line 3, column x") !=
        std::string::npos);
  CHECK(message([&] { (void)CsvRow(table, 1).flag("f"); }).find("expected 0 or 1") !=
        std::string::npos);
  CHECK(message([&] { (void)CsvRow(table, 2).integer("n"); }).find("expected a whole number") !=
        std::string::npos);
}

TEST_CASE("folders and missing files are errors") {
  CHECK_THROWS_AS(read_csv(std::filesystem::temp_directory_path()), Error);
  CHECK_THROWS_AS(read_csv("no/such/table.csv"), Error);
}

TEST_CASE("a missing column is named, with the nearest one") {
  const CsvTable table = parse_csv("id,souce\n1,2\n", "t.csv");
  try {
    require_columns(table, {"id", "source"}, "validation/README.md");
    FAIL("no error");
  } catch (const Error& error) {
    CHECK(error.message().find("no column \"source\"") != std::string::npos);
    CHECK(error.message().find("souce") != std::string::npos);
  }
}

}  // namespace orrery
