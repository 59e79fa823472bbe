// SPDX-License-Identifier: Apache-2.0
// Knows the readers that take texts of strangers: each has a fuzz target and seeds of its own.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace orrery::fuzz {

struct Reader {
  std::string name;                            // of the target: "config" is fuzz_config
  std::vector<std::string> seeds;              // files of the source tree: "folder/*.json"
  std::size_t lines = 0;                       // of a seed that are kept; 0: all of it
  std::function<void(std::string_view)> read;  // may throw an Error and nothing else
};

const std::vector<Reader>& readers();
// Error that lists the names.
const Reader& reader_named(const std::string& name);

// The seeds' texts, in the order of the files' names.
std::vector<std::string> seed_texts(const Reader& reader);
// The words of the seeds, in quotes: a dictionary as libFuzzer takes it.
std::string dictionary(const std::vector<std::string>& texts);

// Reads the text. False when it is refused; throws std::logic_error where the refusal is no single
// line of at most 4,000 bytes.
bool accepts(const Reader& reader, std::string_view text);

}  // namespace orrery::fuzz
