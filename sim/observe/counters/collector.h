// SPDX-License-Identifier: Apache-2.0
// Knows how single readings become series, and what a cell without a value looks like.
#pragma once

#include <map>
#include <set>
#include <string>
#include <string_view>
#include <tuple>

#include "sim/observe/counters/fields.h"

namespace orrery::observe {

// A cell: a value, or none because the tool had none, or text that is no value.
struct Cell {
  enum class Kind : std::uint8_t { value, missing, wrong } kind = Kind::wrong;
  double value = 0;
};
// "345 MHz", "0x0000000000000004", "P0", "Active", "Yes", "[N/A]", "-", "NaN".
Cell cell_of(std::string_view text);

class Collector {
 public:
  Collector(std::string file, CounterSource source);

  void add(const Field& field, const std::string& host, const std::string& device,
           const std::string& instance, double time_s, const Cell& cell);
  void name_device(const std::string& host, const std::string& device,
                   std::optional<std::string> name, std::optional<std::string> uuid);
  void unknown(std::string_view column);
  void note(std::string text);
  // Error, in the file's line, with what stood there.
  [[noreturn]] void refuse(std::size_t line, std::string found, std::string expected) const;
  // A wrong cell of a column.
  [[noreturn]] void refuse_cell(std::size_t line, std::string_view column,
                                std::string_view cell) const;
  // Error where there is no reading.
  CounterLog finish(bool has_clock, bool cut);

 private:
  using Key = std::tuple<std::string, std::string, Counter, std::string>;
  CounterLog log_;
  std::map<Key, CounterSeries> series_;
  std::map<std::pair<std::string, std::string>, CounterDevice> devices_;
  std::set<std::string, std::less<>> unknown_;
  std::size_t readings_ = 0, left_out_ = 0;
};

}  // namespace orrery::observe
