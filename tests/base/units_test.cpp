// SPDX-License-Identifier: Apache-2.0
// Tests that units are read exactly, printed in three digits, and refused when they are wrong.
#include "sim/base/units/units.h"

#include <rapidcheck.h>
#include <catch2/catch.hpp>

#include <limits>
#include <type_traits>
#include <vector>

#include "tests/base/error_text.h"

namespace orrery {
namespace {

TEST_CASE("quantities are read in SI base units") {
  CHECK(parse<BytesPerSecond>("3.35 TB/s").si() == 3.35e12);
  CHECK(parse<BytesPerSecond>("400 Gbit/s").si() == 50e9);
  CHECK(parse<Bytes>("80 GiB").si() == 80.0 * 1073741824);
  CHECK(parse<Bytes>("192 GB").si() == 192e9);
  CHECK(parse<Bytes>("50 kB").si() == 50e3);
  CHECK(parse<Bytes>("8 bit").si() == 1);
  CHECK(parse<Bytes>("1 Kibit").si() == 128);
  CHECK(parse<Seconds>("2.5 us").si() == Approx(2.5e-6).epsilon(1e-15));
  CHECK(parse<Seconds>("2.5 \u00b5s") == parse<Seconds>("2.5 us"));
  CHECK(parse<Seconds>("1.5 h").si() == 5400);
  CHECK(parse<Seconds>("2 days").si() == 172800);
  CHECK(parse<Watts>("1.2 kW").si() == 1200);
  CHECK(parse<Watts>("1.2 kJ/s").si() == 1200);
  CHECK(parse<Joules>("1 kWh").si() == 3.6e6);
  CHECK(parse<FlopPerSecond>("989 TFLOP/s").si() == 989e12);
  CHECK(parse<FlopPerSecond>("1979 TOP/s").si() == 1979e12);
  CHECK(parse<FlopPerSecond>("5 Mop/s").si() == 5e6);
  CHECK(parse<Hertz>("1.98 GHz").si() == 1.98e9);
  CHECK(parse<Hertz>("1755 MHz").si() == 1755e6);
  CHECK(parse<Hertz>("3 1/s").si() == 3);
  CHECK(parse<Hertz>("3 /s").si() == 3);
  CHECK(parse<Hertz>("1/h").si() == Approx(1 / 3600.0).epsilon(1e-15));
  CHECK(parse<Hertz>("9 %/year").si() == Approx(0.09 / (365.25 * 86400)).epsilon(1e-15));
  CHECK(parse<Hertz>("1000 FIT").si() == Approx(1e-6 / 3600).epsilon(1e-15));
  CHECK(parse<DollarsPerSecond>("2.1 USD/h").si() == Approx(2.1 / 3600).epsilon(1e-15));
  CHECK(parse<Dollars>("30 kUSD").si() == 30000);
  CHECK(parse<Dollars>("20 million USD").si() == 20e6);
  CHECK(parse<Dollars>("$41.5 million").si() == 41.5e6);
  CHECK(parse<Dollars>("$711,149").si() == 711149);
  CHECK(parse<Dollars>("1.5 billion USD").si() == 1.5e9);
  CHECK(parse<JoulesPerByte>("30 pJ/B").si() == Approx(30e-12).epsilon(1e-15));
  CHECK(parse<JoulesPerByte>("4 pJ/bit").si() == Approx(32e-12).epsilon(1e-15));
  CHECK(parse<JoulesPerFlop>("0.5 pJ/FLOP").si() == Approx(0.5e-12).epsilon(1e-15));
  CHECK(parse<TokensPerSecond>("12.5 ktokens/s").si() == 12500);
  CHECK(parse<Carbon>("2 tCO2e").si() == 2000);
  CHECK(parse_quantity("385 gCO2e/kWh").dimension == Carbon::dimension - Joules::dimension);
  CHECK(parse_quantity("385 gCO2e/kWh").si == Approx(0.385 / 3.6e6).epsilon(1e-15));
  CHECK(parse_quantity("1.3 USD/Mtoken").si == Approx(1.3e-6).epsilon(1e-15));
  CHECK(parse_quantity("5 %").dimension == Dimension{});
}

TEST_CASE("numbers are read in every form that JSON has, and with a plus sign") {
  CHECK(parse<Bytes>("+2e3 B").si() == 2000);
  CHECK(parse<Bytes>("-2.5e-1 B").si() == -0.25);
  CHECK(parse<Bytes>("5EB").si() == 5e18);
  CHECK(parse<Bytes>("80GiB") == parse<Bytes>("80 GiB"));
  CHECK(parse<Bytes>(".5 B").si() == 0.5);
}

TEST_CASE("what is not a number with a known unit is refused") {
  for (const char* text : {"",       " ",     "GB",     "80",      "80 ",      "80  GB",   " 80 GB",
                           "80 GB ", "80 GX", "80 gb",  "80 G",    "0x10 B",   "nan B",    "inf B",
                           "-inf B", "+-5 B", "--5 B",  "1e999 B", "1e308 GB", "1e-999 B", "5 B/",
                           "5 B//s", "5 /",   "5 /1/",  "1,000 B", "5 mB",     "5 KB",     "5 GiHz",
                           "5 kmin", "5 s s", "5 B/s/", "5 $/h",   "1.2.3 B",  "5 \u00e9B"}) {
    INFO(text);
    CHECK_THROWS_AS(parse_quantity(text), Error);
  }
}

TEST_CASE("errors say what was found, what was expected and what was meant") {
  const auto wrong = [](std::string_view text) {
    return error_text([&] { parse<BytesPerSecond>(text); });
  };
  CHECK(wrong("80 GB") ==
        "found \"80 GB\", which is in B; expected a quantity in B/s, such as \"3.35 TB/s\"");
  CHECK(wrong("80") ==
        "found \"80\", a number without a unit; expected a quantity in B/s, such as \"3.35 TB/s\"");
  CHECK(wrong("400 Gbps") ==
        "found \"400 Gbps\" with the unknown unit \"Gbps\"; expected a quantity in B/s, such as "
        "\"3.35 TB/s\"; did you mean \"Gbit/s\"?");
  CHECK(wrong("fast") ==
        "found \"fast\", which is not a number; expected a quantity in B/s, such as \"3.35 TB/s\"");
  CHECK(error_text([] { parse<FlopPerSecond>("989 TFLOPS"); }) ==
        "found \"989 TFLOPS\" with the unknown unit \"TFLOPS\"; expected a quantity in FLOP/s, "
        "such as \"989 TFLOP/s\"; did you mean \"TFLOP/s\"?");
  CHECK(error_text([] { parse<Dollars>("20M USD"); }) ==
        "found \"20M USD\" with the unknown unit \"M USD\"; expected a quantity in USD, such as "
        "\"20 million USD\"; did you mean \"MUSD\"?");
  CHECK(error_text([] { parse_quantity("80"); }) ==
        "found \"80\", a number without a unit; expected a number and a unit, such as \"3.35 "
        "TB/s\", \"400 Gbit/s\", \"80 GiB\", \"2.5 us\" or \"2.1 USD/h\"");
}

TEST_CASE("every dimension has a name") {
  CHECK(unit_name(BytesPerSecond::dimension) == "B/s");
  CHECK(unit_name(Watts::dimension) == "W");
  CHECK(unit_name(Hertz::dimension) == "Hz");
  CHECK(unit_name(JoulesPerByte::dimension) == "J/B");
  CHECK(unit_name(Carbon::dimension - Joules::dimension) == "kgCO2e/J");
  CHECK(unit_name(Dimension{}) == "1");
  CHECK(unit_name(Dimension{.data = -2}) == "1/B^2");
}

TEST_CASE("products and quotients carry their dimension along") {
  static_assert(std::is_same_v<decltype(Bytes(1) / Seconds(1)), BytesPerSecond>);
  static_assert(std::is_same_v<decltype(Watts(1) * Seconds(1)), Joules>);
  static_assert(std::is_same_v<decltype(1.0 / Seconds(1)), Hertz>);
  static_assert(std::is_same_v<decltype(Bytes(1) / Bytes(1)), double>);
  CHECK((bytes(100) / bytes_per_second(50)).si() == 2);
  CHECK(bytes(6) / bytes(3) == 2);
}

TEST_CASE("text for people has three significant digits and a scaled unit") {
  CHECK(to_text(Seconds(1.234e-3)) == "1.23 ms");
  CHECK(to_text(Seconds(0)) == "0 s");
  CHECK(to_text(Seconds(9.996e-3)) == "10.0 ms");
  CHECK(to_text(Seconds(0.9996)) == "1.00 s");
  CHECK(to_text(Seconds(-2.5e-6)) == "-2.50 us");
  CHECK(to_text(Seconds(5e-13)) == "0.500 ps");
  CHECK(to_text(Seconds(75)) == "75.0 s");
  CHECK(to_text(Seconds(600)) == "10.0 min");
  CHECK(to_text(Seconds(36000)) == "10.0 h");
  CHECK(to_text(Seconds(30 * 86400.0)) == "30.0 days");
  CHECK(to_text(Seconds(std::numeric_limits<double>::infinity())) == "inf years");
  CHECK(to_text(gibibytes(79.1)) == "79.1 GiB");
  CHECK(to_text(gibibytes(1010)) == "1010 GiB");
  CHECK(to_text(Bytes(0)) == "0 B");
  CHECK(to_text(BytesPerSecond(3.35e12)) == "3.35 TB/s");
  CHECK(to_text(FlopPerSecond(412e12)) == "412 TFLOP/s");
  CHECK(to_text(Watts(1.02e6)) == "1.02 MW");
  CHECK(to_text(Joules(2.5e-12)) == "2.50 pJ");
  CHECK(to_text(Dollars(1.234e7)) == "$12.3 million");
  CHECK(to_text(Flop(3.8e25)) == "38.0 YFLOP");
  CHECK(to_text(Hertz(1.98e9)) == "1.98 GHz");
  CHECK(to_text(Hertz(0.09 / (365.25 * 86400))) == "9.00 %/year");
  CHECK(to_text(Hertz(3 / 86400.0)) == "3.00 /day");
}

template <class Q>
void prints_what_it_reads(const std::string& name, double least, double most) {
  CHECK(rc::check("text of " + name + " parses to within half a digit", [=] {
    const double exponent = 1e-4 * *rc::gen::inRange(0, 10000);
    const Q value(least * std::pow(most / least, exponent));
    const Q back = parse<Q>(to_text(value));
    RC_ASSERT(std::abs(back.si() / value.si() - 1) <= 5.01e-3);
  }));
}

TEST_CASE("printed quantities read back to the same three digits") {
  prints_what_it_reads<Seconds>("Seconds", 1e-12, 1e10);
  prints_what_it_reads<Bytes>("Bytes", 1, 1e20);
  prints_what_it_reads<BytesPerSecond>("BytesPerSecond", 1, 1e18);
  prints_what_it_reads<FlopPerSecond>("FlopPerSecond", 1, 1e22);
  prints_what_it_reads<Flop>("Flop", 1, 1e26);
  prints_what_it_reads<Watts>("Watts", 1e-3, 1e10);
  prints_what_it_reads<Joules>("Joules", 1e-13, 1e16);
  prints_what_it_reads<Dollars>("Dollars", 1, 1e11);
  prints_what_it_reads<Hertz>("Hertz", 1e-10, 1e12);
}

}  // namespace
}  // namespace orrery
