// SPDX-License-Identifier: Apache-2.0
// Holds the entry points of a libFuzzer target: ORRERY_READER names the reader that it is of.
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "tests/fuzz/readers.h"

namespace {

namespace fs = std::filesystem;

const orrery::fuzz::Reader& reader() {
  static const orrery::fuzz::Reader& one = orrery::fuzz::reader_named(ORRERY_READER);
  return one;
}

void write(const fs::path& file, const std::string& text) {
  std::ofstream(file, std::ios::binary) << text;
}

}  // namespace

extern "C" int LLVMFuzzerInitialize(int* count, char*** words);
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

// $ORRERY_SEEDS: writes the seeds into that folder and their words beside it, and nothing else.
extern "C" int LLVMFuzzerInitialize(int* /*count*/, char*** /*words*/) {
  const char* folder = std::getenv("ORRERY_SEEDS");
  if (folder == nullptr) return 0;
  fs::create_directories(folder);
  const std::vector<std::string> texts = orrery::fuzz::seed_texts(reader());
  for (std::size_t i = 0; i < texts.size(); ++i)
    write(fs::path(folder) / ("seed-" + std::to_string(i)), texts[i]);
  write(fs::path(folder).concat(".words"), orrery::fuzz::dictionary(texts));
  std::exit(0);
}

// An exception that is no Error ends the program: that is a finding.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  orrery::fuzz::accepts(reader(), {reinterpret_cast<const char*>(data), size});
  return 0;
}
