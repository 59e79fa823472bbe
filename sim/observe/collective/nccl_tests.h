// SPDX-License-Identifier: Apache-2.0
// Knows what nccl-tests and rccl-tests print: a table of one collective over sizes of messages.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/base/names.h"
#include "sim/base/units/units.h"

namespace orrery::observe {

// One side of a row: the buffers are apart, or the same.
struct TimedCollective {
  Seconds time;
  BytesPerSecond algorithm, bus;        // "algbw", "busbw"
  std::optional<std::int64_t> wrong;    // elements that were wrong; none: not checked
  std::optional<double> largest_error;  // of old releases
};

struct CollectiveRow {
  std::size_t line = 0;
  Bytes size;  // as the program counts it: of the whole buffer of the collective
  std::int64_t count = 0;
  std::string type;       // "float", "bfloat16"
  std::string reduction;  // "sum"; "none" or empty where nothing is reduced
  std::optional<TimedCollective> out_of_place, in_place;
};

struct TestedRank {
  int rank = 0;
  std::string host;
  int device = 0;
  std::string bus, name;  // "0x07" or "0000:06:00", "NVIDIA H100 80GB HBM3"
};

struct CollectiveTable {
  std::size_t line = 0;                // of its head
  std::optional<CollectiveKind> kind;  // where the output tells it: see `program`
  std::optional<std::string> program;  // "all_reduce_perf", where it was printed
  std::vector<TestedRank> ranks;
  std::optional<int> threads, gpus_per_thread, iterations, warm_up;
  std::vector<CollectiveRow> rows;
  std::optional<BytesPerSecond> mean_bus;  // "Avg bus bandwidth"
  std::optional<bool> right;               // "Out of bounds values : 0 OK"
};

struct CollectiveTests {
  std::string file;
  std::vector<CollectiveTable> tables;  // several runs may follow each other in one file
  std::optional<std::string> library;   // NCCL's release, where it was printed
  std::vector<std::string> notes;
};

// Error: no table, rows that do not fit their head, numbers that are none or negative.
CollectiveTests read_collective_tests(const std::filesystem::path& file);
// Whether a text that starts so is such an output.
bool is_collective_tests(std::string_view first_bytes);

}  // namespace orrery::observe
