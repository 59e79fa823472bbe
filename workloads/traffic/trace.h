// SPDX-License-Identifier: Apache-2.0
// Reads traces of requests: Mooncake's, Azure's and our own.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "sim/base/text/enum_names.h"
#include "workloads/traffic/request.h"

namespace orrery {

// mooncake: a JSON object a line with timestamp (in ms), input_length, output_length
//   and hash_ids, one for every 512 tokens of the prompt, the last of them perhaps partly.
// azure: columns TIMESTAMP (UTC), ContextTokens, GeneratedTokens.
// orrery: columns arrival_s, prompt, output, and perhaps class (a name) and session (a number).
enum class TraceFormat { mooncake, azure, orrery };
inline constexpr auto trace_format_text = enum_names<TraceFormat>({"mooncake", "azure", "orrery"});
constexpr std::string_view to_text(TraceFormat f) { return trace_format_text[f]; }

// By what the text begins with: an object, the column TIMESTAMP, anything else.
TraceFormat format_of(std::string_view text);

// Arrivals count from the first one. Error, with file, line and column: lengths that are no whole
// numbers between 1 and 10^9, arrivals out of order, hashes that do not fit the prompt, columns
// that are missing, no requests. `file` names the text in errors.
RequestList parse_trace(std::string_view text, TraceFormat format, const std::string& file);

// The same of a file of at most 1 GiB, in the format that it begins with.
RequestList read_trace(const std::filesystem::path& file);

// An entry of the catalogue of traces: a file beside its index.
struct TraceEntry {
  std::string name, title, file, source;
  TraceFormat format = TraceFormat::orrery;
};
// Of CATALOG_FOLDER/traces/index.json.
std::vector<TraceEntry> trace_entries(const std::filesystem::path& catalog_folder);
// By the name of an entry, or a path. Error: neither, with the nearest name.
RequestList load_trace(const std::string& name, const std::filesystem::path& catalog_folder);

}  // namespace orrery
