// SPDX-License-Identifier: Apache-2.0
// Tests that the hash of the catalogues follows what they say, and nothing else.
#include <catch2/catch.hpp>

#include <chrono>
#include <filesystem>
#include <fstream>

#include "hw_models/catalog.h"
#include "hw_models/catalogue_hash.h"
#include "sim/base/content_hash.h"
#include "tests/base/scratch_folder.h"

namespace orrery {
namespace {

namespace fs = std::filesystem;

void write(const fs::path& file, const std::string& text) {
  fs::create_directories(file.parent_path());
  std::ofstream(file) << text;
}

std::string hash_of(const fs::path& root) { return catalogue_hash(catalogue_manifest(root)); }

TEST_CASE("the hash of the catalogues changes with a file's content, name and number") {
  const ScratchFolder folder("hash");
  const fs::path root = folder / "";
  const fs::path nic = root / "hw_models/catalog/nics/cx7.json";
  write(nic, "{\"rate\": 1}");
  write(root / "validation/model_error.json", "{}");
  const std::string before = hash_of(root);
  CHECK(before.size() == 16);

  fs::last_write_time(nic, fs::last_write_time(nic) - std::chrono::hours(1));
  write(root / "hw_models/catalog/README.md", "no part of it");
  write(root / "sim/app/other.json", "no part of it either");
  CHECK(hash_of(root) == before);

  write(nic, "{\"rate\": 2}");
  CHECK(hash_of(root) != before);
  write(nic, "{\"rate\": 1}");
  CHECK(hash_of(root) == before);
  fs::rename(nic, root / "hw_models/catalog/nics/cx8.json");
  CHECK(hash_of(root) != before);
  fs::rename(root / "hw_models/catalog/nics/cx8.json", nic);
  for (const char* more :
       {"workloads/catalog/stacks/a.json", "topologies/catalog/a.json",
        "sim/engine/catalog/clusters/a.json", "hw_models/calibration/a/fit.json"}) {
    const std::string last = hash_of(root);
    write(root / more, "{}");
    CHECK(hash_of(root) != last);
  }
}

TEST_CASE("a manifest spares reading what did not change, and only that") {
  const ScratchFolder folder("manifest");
  const fs::path root = folder / "";
  const fs::path first = root / "hw_models/catalog/nics/a.json",
                 second = root / "hw_models/catalog/nics/b.json";
  write(first, "1");
  write(second, "2");
  CatalogueManifest known = catalogue_manifest(root);
  REQUIRE(known.size() == 2);
  write(root / "m", manifest_text(known));
  CHECK(read_manifest(root / "m") == known);
  CHECK(read_manifest(root / "none").empty());
  write(root / "broken", "one two three\n");
  CHECK(read_manifest(root / "broken").empty());

  // A file with the size and time of the manifest is not read, one with others is.
  known[0].content = 7;
  known[1].content = 7;
  known[1].changed -= 1;
  const CatalogueManifest mixed = catalogue_manifest(root, known);
  CHECK(mixed[0].content == 7);
  CHECK(mixed[1].content == content_hash("2"));
}

TEST_CASE("the hash of the shipped catalogues is the same with and without a manifest") {
  const std::string hash = catalogue_hash();
  CHECK(hash == catalogue_hash(catalogue_manifest(data_root())));
  CHECK(catalogue_manifest(data_root()).size() > 500);
}

TEST_CASE("hashes of texts do not depend on the machine") {
  CHECK(hash_text(content_hash("")) == "0000000000000000");
  CHECK(hash_text(content_hash("a")) != hash_text(content_hash(std::string("a\0", 2))));
  CHECK(content_hash("abcdefgh1") != content_hash("abcdefgh2"));
  CHECK(joined_hash(1, 2) != joined_hash(2, 1));
}

}  // namespace
}  // namespace orrery
