// SPDX-License-Identifier: Apache-2.0
// Reads what `dcgmi dmon` prints: rows of entities under a head that comes again and again.
#include <fmt/format.h>

#include <algorithm>

#include "sim/base/errors/check.h"
#include "sim/base/text/words.h"
#include "sim/observe/counters/readers.h"
#include "sim/observe/input/words.h"

namespace orrery::observe {

bool read_dcgmi(LineReader& lines, Collector& to) {
  std::vector<std::string> columns;  // without the entity
  std::map<std::string, double> samples;
  std::string_view line;
  std::size_t other_entities = 0;
  while (lines.next(line)) {
    std::vector<std::string_view> words = words_of(line);
    if (words.empty()) continue;
    if (words[0] == "#" && words.size() > 1) words.erase(words.begin());
    if (words[0] == "#Entity" || words[0] == "Entity") {
      columns.assign(words.begin() + 1, words.end());
      for (const std::string& column : columns)
        if (dcgmi_field(column) == nullptr) to.unknown(column);
      continue;
    }
    // The line under the head: "ID", or units.
    if (words[0] == "ID" || words[0] == "Id" || words[0].starts_with('#')) continue;
    if (columns.empty())
      to.refuse(lines.number(), in_quotes(trimmed(line)),
                "a line \"#Entity ...\" with the names of fields before it");
    // "GPU 0 0.512 ...", "GPU-I 3 ...", "CPU 0 ...", or a bare number.
    const bool named = !whole_number_in(words[0]);
    const std::size_t values = named ? 2 : 1;
    if (named && words.size() > 1 && words[0] != "GPU") {
      ++other_entities;
      continue;
    }
    if (words.size() != columns.size() + values)
      to.refuse(lines.number(), plural(static_cast<double>(words.size()), "word"),
                fmt::format("{}, as in the head", columns.size() + values));
    const std::string device(words[values - 1]);
    if (!whole_number_in(device)) to.refuse_cell(lines.number(), "Entity", device);
    const double time = samples[device]++;
    for (std::size_t i = 0; i < columns.size(); ++i) {
      const Field* field = dcgmi_field(columns[i]);
      if (field == nullptr) continue;
      const Cell cell = cell_of(words[i + values]);
      if (cell.kind == Cell::Kind::wrong)
        to.refuse_cell(lines.number(), columns[i], words[i + values]);
      to.add(*field, "", device, "", time, cell);
    }
  }
  if (other_entities > 0)
    to.note(
        fmt::format("{} rows of other entities than whole GPUs were left out.", other_entities));
  return false;
}

}  // namespace orrery::observe
