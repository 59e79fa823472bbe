// SPDX-License-Identifier: Apache-2.0
// Knows the JSON lines of validation/microbench: which work was timed, and under what conditions.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "sim/base/units/units.h"
#include "sim/base/work.h"

namespace orrery {

// What holds for all samples of one run of one program.
struct RunConditions {
  std::string program, device, driver, cuda, host, date;  // device as the driver names it
  std::map<std::string, std::string> libraries;           // "cublasLt" -> "13.0.2"
  int gpus = 1;
  double power_limit_w = 0, max_clock_mhz = 0, memory_clock_mhz = 0;
  std::string file;  // that it was read from
};

// One timed operation. validation/microbench/README.md says what each key means.
struct Sample {
  int conditions = 0;         // index into MeasuredLog::conditions
  std::string part, kind;     // "gemm"; a WorkKind's name, a collective's, or a question's
  std::string variant, mode;  // "triad"; "burst", "sustained", "graph", "stream"
  std::string library;        // as written; kernel.library where it is one of ours
  bool is_work = false;       // kind names a WorkKind: `kernel` holds the shape
  Kernel kernel;
  Seconds time, low, high;  // of one call: median, least, most
  int repeats = 0, calls = 0;
  double clock_before_mhz = 0, clock_after_mhz = 0, power_w = 0, temperature_c = 0;
  std::map<std::string, double> numbers;     // every other numeric key of the line
  std::map<std::string, std::string> texts;  // every other text
  std::uint64_t family = 0;  // hash of what does not grow with the batch: see is_held_out
  std::string shape;         // for people: "4096x8192x8192"
  // Error that names the key where it is missing.
  double number(const std::string& key) const;
  std::string text_or(const std::string& key, const std::string& other) const;
};

struct MeasuredLog {
  std::vector<RunConditions> conditions;
  std::vector<Sample> samples;
};

// Reads files, or every *.jsonl of a folder and of the folders in it, in order of path. Error that
// names file, line and key for files without any line, lines that are no JSON, samples before
// conditions, unknown kinds of record, times that are not positive and finite, low > time or time >
// high, unknown formats and roles.
MeasuredLog read_measured_log(const std::vector<std::filesystem::path>& paths);

// Where measurements of a device of the catalogue lie.
std::filesystem::path measured_folder(const std::string& device);

// Catalogue name of the accelerator that the driver calls `device` ("NVIDIA H200" -> "h200-sxm").
// Error with the names it knows.
std::string catalogue_device(const std::string& driver_name);

// Whether the operands of a sample stay in the L2: its variant says that it asks about the cache.
// Others rotate over more than the cache.
bool is_cached(const Sample& sample);
// The variant without what says so: "copy" for "copy-cached".
std::string bare_variant(const Sample& sample);

// Whether a sample is kept out of every fit: 30% of the families, by hash.
bool is_held_out(const Sample& sample);

}  // namespace orrery
