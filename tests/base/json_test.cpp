// SPDX-License-Identifier: Apache-2.0
// Tests that the JSON reader takes exactly what it should and names the place of everything else.
#include "sim/base/json/json.h"

#include <catch2/catch.hpp>

#include <chrono>

#include "tests/base/error_text.h"
#include "tests/base/scratch_folder.h"

namespace orrery {
namespace {

std::string parse_error(std::string_view text) {
  return error_text([&] { JsonValue::parse(text, "f.json"); });
}

JsonValue read(std::string_view text) { return JsonValue::parse(text, "f.json"); }

TEST_CASE("values know their place") {
  const JsonValue root = read(R"({"a": {"b": [1, {"c": "x"}]}, "n": null})");
  CHECK(root.path().empty());
  CHECK(root.file() == "f.json");
  const JsonValue inner = root.at("a").at("b").items().at(1).at("c");
  CHECK(inner.path() == "a.b[1].c");
  CHECK(inner.text() == "x");
  CHECK(root.has("n"));
  CHECK_FALSE(root.has("m"));
  CHECK_FALSE(root.find("n"));
  CHECK_FALSE(root.find("m"));
  CHECK(root.members().size() == 2);
  CHECK(root.members()[0].first == "a");
  CHECK(root.members()[0].second.path() == "a");
}

TEST_CASE("a value outlives the document it was read from") {
  const JsonValue inner = [] { return read(R"({"a": {"b": "still here"}})").at("a").at("b"); }();
  CHECK(inner.text() == "still here");
}

TEST_CASE("numbers are checked") {
  CHECK(read("2.5").number() == 2.5);
  CHECK(read("7").integer() == 7);
  CHECK(read("1e12").integer() == 1000000000000);
  CHECK(read("-9223372036854775808").integer() == INT64_MIN);
  CHECK(read("3").integer(1, 3) == 3);
  CHECK(read("true").boolean());
  CHECK(error_text([] { read("2.5").integer(); }) == "f.json: found 2.5; expected a whole number");
  CHECK(error_text([] { read("9223372036854775808").integer(); }) ==
        "f.json: found 9223372036854775808; expected a whole number below 2^63");
  CHECK(error_text([] { read("1e300").integer(); }) ==
        "f.json: found 1e+300; expected a whole number");
  CHECK(error_text([] { read("4").integer(1, 3); }) ==
        "f.json: found 4; expected a whole number from 1 to 3");
  CHECK(error_text([] { read("0").integer(1, INT64_MAX); }) ==
        "f.json: found 0; expected a whole number of at least 1");
  CHECK(error_text([] { read("\"7\"").integer(); }) ==
        "f.json: found \"7\"; expected a whole number");
  CHECK(error_text([] { read("1").boolean(); }) == "f.json: found 1; expected true or false");
  CHECK(error_text([] { read("[1]").number(); }) == "f.json: found a list of 1; expected a number");
  CHECK(error_text([] { read("{}").text(); }) == "f.json: found an empty object; expected text");
  const JsonValue infinite =
      JsonValue::from(std::numeric_limits<double>::infinity(), "--made-in-memory");
  CHECK(error_text([&] { infinite.number(); }) ==
        "--made-in-memory: found null; expected a finite number");
}

TEST_CASE("a misspelt key is named with the nearest valid one") {
  const JsonValue memory = read(R"({"memory": {"bandwith": "3.35 TB/s"}})").at("memory");
  CHECK(error_text([&] {
          memory.expect_only({"capacity", "bandwidth"});
        }) ==
        "f.json: memory.bandwith: found an unknown key; expected one of capacity, bandwidth; "
        "did you mean \"bandwidth\"?");
  CHECK(error_text([&] { memory.at("bandwidth"); }) ==
        "f.json: memory.bandwidth: found nothing (but \"bandwith\"); expected this key");
  CHECK(error_text([&] { memory.at("price"); }) ==
        "f.json: memory.price: found nothing; expected this key");
  CHECK(error_text([&] { memory.at("bandwith").at("x"); }) ==
        "f.json: memory.bandwith: found \"3.35 TB/s\"; expected an object with \"x\"");
  memory.expect_only({"bandwith"});
}

TEST_CASE("an unknown name is an error with the nearest one") {
  const JsonValue name = read(R"({"format": "bf61"})").at("format");
  CHECK(error_text([&] {
          name.one_of({"fp8", "bf16"});
        }) == "f.json: format: found \"bf61\"; expected one of fp8, bf16; did you mean \"bf16\"?");
}

TEST_CASE("quantities need their unit") {
  const JsonValue root = read(R"({"a": "3.35 TB/s", "b": 3.35, "c": "80 GB", "d": null})");
  CHECK(root.at("a").quantity<BytesPerSecond>().si() == 3.35e12);
  CHECK(error_text([&] { root.at("b").quantity<BytesPerSecond>(); }) ==
        "f.json: b: found 3.35, a number without a unit; expected a quantity in B/s, such as "
        "\"3.35 TB/s\"");
  CHECK(error_text([&] { root.at("c").quantity<BytesPerSecond>(); }) ==
        "f.json: c: found \"80 GB\", which is in B; expected a quantity in B/s, such as "
        "\"3.35 TB/s\"");
  CHECK(error_text([&] { root.at("d").quantity<BytesPerSecond>(); }) ==
        "f.json: d: found null; expected a quantity in B/s, such as \"3.35 TB/s\"");
}

TEST_CASE("text that is not JSON is refused with its line and column") {
  CHECK(parse_error("") == "f.json: found an empty file; expected a JSON value");
  CHECK(parse_error("  \n") ==
        "f.json: found unexpected end of input at line 2, column 1; expected '[', '{', or a "
        "literal");
  CHECK(parse_error("{\"a\": 1,\n \"b\": ") ==
        "f.json: found unexpected end of input at line 2, column 7; expected '[', '{', or a "
        "literal");
  CHECK(parse_error("{\"a\" 1}") ==
        "f.json: found unexpected number literal at line 1, column 6; expected ':'");
  CHECK(parse_error("{\"a\": NaN}") ==
        "f.json: found invalid literal at line 1, column 7; expected valid JSON");
  CHECK(parse_error("[1e999]") ==
        "f.json: found a number that a double cannot hold at line 1, column 6; expected valid "
        "JSON");
  CHECK(parse_error("{} {}") ==
        "f.json: found unexpected '{' at line 1, column 4; expected end of input");
  CHECK(parse_error("// comment\n{}") ==
        "f.json: found invalid literal at line 1, column 1; expected valid JSON");
  CHECK(parse_error("{\"a\": 1,}") ==
        "f.json: found unexpected '}' at line 1, column 9; expected string literal");
  CHECK(parse_error("[\"\xff\"]") ==
        "f.json: found invalid string: ill-formed UTF-8 byte at line 1, column 3; expected valid "
        "JSON");
  CHECK(parse_error(std::string_view("{}\0{}", 5)) ==
        "f.json: found a NUL byte at line 1, column 3; expected JSON text");
}

TEST_CASE("duplicate keys are errors wherever they stand") {
  CHECK(parse_error(R"({"a": 1, "a": 1})") ==
        "f.json: a: found the key twice in one object; expected each key once");
  CHECK(parse_error(R"({"m": [0, {"a": {"b": 1, "c": [], "b": 2}}]})") ==
        "f.json: m[1].a.b: found the key twice in one object; expected each key once");
  CHECK(read(R"([{"a": 1}, {"a": 2}])").items().size() == 2);
}

TEST_CASE("nesting ends at 64") {
  const auto nested = [](std::size_t depth) {
    return std::string(depth, '[') + std::string(depth, ']');
  };
  read(nested(64));
  CHECK(parse_error(nested(65)) ==
        "f.json: found a 65th level of nesting at line 1, column 65; expected JSON nested at "
        "most 64 deep");
  CHECK(parse_error(std::string(1000000, '{')).starts_with("f.json: found a 65th level"));
  read("[\"" + std::string(100, '[') + "\\\"[\"]");  // brackets in text nest nothing
}

TEST_CASE("what cannot be loaded is one error with the file's name") {
  const ScratchFolder folder("json");
  const auto load = [](const std::filesystem::path& file) {
    return error_text([&] { JsonValue::load(file); });
  };
  CHECK(load(folder / "") == (folder / "").string() + ": found a directory; expected a JSON file");
  CHECK(load(folder / "none.json") ==
        (folder / "none.json").string() + ": found no such file; expected a JSON file");
  CHECK(load(folder.add("empty.json", "")) ==
        (folder / "empty.json").string() + ": found an empty file; expected a JSON value");
  CHECK(load(folder.add("large.json", std::string((std::size_t{64} << 20U) + 1, ' '))) ==
        (folder / "large.json").string() +
            ": found more than 64 MiB; expected JSON of at most 64 MiB");
  CHECK(JsonValue::load(folder.add("good.json", R"({"a": 1})")).at("a").integer() == 1);
  CHECK(load("/dev/zero") == "/dev/zero: found more than 64 MiB; expected JSON of at most 64 MiB");
}

TEST_CASE("a file is read once in a process, and again when it has changed") {
  const ScratchFolder folder("json_once");
  const auto old = std::filesystem::file_time_type::clock::now() - std::chrono::hours(1);
  const auto file = folder.add("a.json", R"({"a": 1})");
  std::filesystem::last_write_time(file, old);
  const JsonValue first = JsonValue::load(file);
  CHECK(&JsonValue::load(file).raw() == &first.raw());

  folder.add("a.json", R"({"a": 2})");
  std::filesystem::last_write_time(file, old + std::chrono::seconds(1));
  CHECK(JsonValue::load(file).at("a").integer() == 2);
  CHECK(first.at("a").integer() == 1);
  // Within a second of its last change a file may change again without another time.
  folder.add("a.json", R"({"a": 3})");
  CHECK(JsonValue::load(file).at("a").integer() == 3);
  folder.add("a.json", R"({"a": 4})");
  CHECK(JsonValue::load(file).at("a").integer() == 4);
}

TEST_CASE("a value knows its path wherever it stands") {
  const JsonValue root = read(R"({"b": [1, {"c": [[2]], "d": null}], "a": "x, y"})");
  CHECK(root.path().empty());
  CHECK(root.at("b").items()[1].at("c").items()[0].items()[0].path() == "b[1].c[0][0]");
  CHECK(root.members()[1].second.items()[1].members()[1].second.path() == "b[1].d");
  CHECK(root.at("a").listed()[1].path() == "a");
}

std::string sourced_error(std::string_view text) {
  return error_text([&] { read_sourced<BytesPerSecond>(read(text)); });
}

TEST_CASE("sourced values carry their evidence") {
  const auto specified = read_sourced<BytesPerSecond>(
      read(R"({"value": "4.8 TB/s", "evidence": "specified", "source": "datasheet"})"));
  CHECK(specified.get().si() == 4.8e12);
  CHECK(specified.evidence == Evidence::specified);
  CHECK(specified.source == "datasheet");
  const auto count = read_sourced<std::int64_t>(
      read(R"({"value": 9, "low": 8, "high": 10, "evidence": "assumed", "reason": "a guess"})"));
  CHECK(count.get() == 9);
  CHECK(*count.low == 8);
  CHECK(*count.high == 10);
  const auto absent = read_sourced<double>(read(R"({"value": null, "reason": "not published"})"));
  CHECK_FALSE(absent.known());
  CHECK(absent.reason == "not published");
}

TEST_CASE("sourced values without evidence, range or source are refused") {
  CHECK(sourced_error(R"({"value": "1 B/s", "evidence": "guessed", "source": "s"})") ==
        "f.json: evidence: found \"guessed\"; expected one of measured, specified, derived, "
        "announced, estimated, assumed");
  CHECK(sourced_error(R"({"value": "1 B/s", "evidence": "estimated", "source": "s"})") ==
        "f.json: found no range; expected \"low\" and \"high\", since the value is estimated");
  CHECK(sourced_error(
            R"({"value": "1 B/s", "low": "2 B/s", "high": "3 B/s", "evidence": "measured",
                "source": "s"})") ==
        "f.json: found a range that does not hold its value; expected low <= value <= high");
  CHECK(sourced_error(R"({"value": "1 B/s", "low": "-1 B/s", "high": "3 B/s",
                          "evidence": "measured", "source": "s"})") ==
        "f.json: low: found \"-1 B/s\"; expected a value of at least 0");
  CHECK(error_text([] {
          read_sourced<double>(read(R"({"value": -1, "evidence": "measured", "source": "s"})"));
        }) == "f.json: value: found -1; expected a value of at least 0");
  CHECK(sourced_error(R"({"value": "1 B/s", "low": "1 B/s", "evidence": "measured",
                          "source": "s"})") ==
        "f.json: found one end of a range; expected \"low\" and \"high\"");
  CHECK(sourced_error(R"({"value": "1 B/s", "evidence": "measured"})") ==
        "f.json: found no source; expected \"source\"");
  CHECK(sourced_error(R"({"value": null})") ==
        "f.json: found null; expected \"reason\": why the value is not known");
  CHECK(sourced_error(R"({"evidence": "measured"})") ==
        "f.json: value: found nothing; expected this key");
  CHECK(sourced_error(R"({"value": "1 B/s", "evidenc": "measured"})") ==
        "f.json: evidenc: found an unknown key; expected one of value, low, high, evidence, "
        "source, reason; did you mean \"evidence\"?");
  CHECK(sourced_error(R"("1 B/s")") == "f.json: found \"1 B/s\"; expected an object");
}

}  // namespace
}  // namespace orrery
