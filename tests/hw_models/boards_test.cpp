// SPDX-License-Identifier: Apache-2.0
// Holds the catalogue's spread between boards to the boards that were measured.
#include <catch2/catch.hpp>
#include <cmath>
#include <fstream>
#include <map>
#include <string>
#include <vector>

#include "hw_models/catalog.h"
#include "sim/base/json/json.h"
#include "sim/base/statistics.h"

namespace orrery {
namespace {

// TFLOP/s of every board, by catalogue name of its device.
std::map<std::string, std::vector<double>> measured_boards() {
  std::map<std::string, std::vector<double>> boards;
  std::ifstream file(data_root() / "validation" / "measurements" / "boards.jsonl");
  for (std::string text; std::getline(file, text);) {
    const JsonValue line = JsonValue::parse(text, "boards.jsonl");
    const bool h200 = line.at("device").text() == "NVIDIA H200";
    boards[h200 ? "h200-sxm" : "h100-sxm"].push_back(line.at("tflops").number());
  }
  return boards;
}

// The unbiased standard deviation, as a share of the mean.
double spread_of(const std::vector<double>& values) {
  double squares = 0;
  for (const double v : values) squares += std::pow(v / mean(values) - 1, 2);
  return std::sqrt(squares / static_cast<double>(values.size() - 1));
}

}  // namespace

TEST_CASE("boards whose slowest would stand still are no device") {
  const auto folder = data_root() / "hw_models" / "catalog" / "accelerators";
  const SortedJson device = JsonValue::load(folder / "h200-sxm.json").raw();
  for (const char* key : {"value", "low", "high"}) {
    SortedJson wrong = device;
    wrong["reliability"]["board_spread"][key] = key == std::string("low") ? -0.01 : 0.3;
    CHECK_THROWS_AS(read_device(JsonValue::parse(wrong.dump(), "h200-sxm.json")), Error);
  }
  CHECK_NOTHROW(read_device(JsonValue::parse(device.dump(), "h200-sxm.json")));
}

TEST_CASE("the spread between boards spans what was measured and what fleets have") {
  const auto boards = measured_boards();
  REQUIRE(boards.size() == 2);
  constexpr double fleets = 0.016, rounding = 0.0005;
  for (const auto& [name, values] : boards) {
    const Device device = load_device(name);
    const double measured = spread_of(values);
    INFO(name << ": " << measured << " between " << values.size() << " boards");
    REQUIRE(values.size() >= 3);
    REQUIRE(device.board_spread.low);
    CHECK(*device.board_spread.low <= measured + rounding);
    CHECK(*device.board_spread.high >= fleets);
    CHECK(*device.board_spread.value >= measured);
    CHECK(device.board_spread.source == "orrery-boards");
  }
}

}  // namespace orrery
