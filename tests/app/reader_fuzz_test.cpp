// SPDX-License-Identifier: Apache-2.0
// Throws damaged scenario, model, cluster and stack files at the readers: each is read or refused
// with an Error, never worse.
#include <algorithm>
#include <catch2/catch.hpp>
#include <vector>

#include "hw_models/catalog.h"
#include "sim/base/json/tree.h"
#include "sim/base/random.h"
#include "sim/question/settings/settings.h"
#include "tests/app/run_binary.h"
#include "tests/base/fresh_seed.h"
#include "workloads/model/model_catalog.h"

namespace orrery {
namespace {

namespace fs = std::filesystem;

struct Sample {
  fs::path file;
  std::string text;
};

std::vector<Sample> samples_in(const std::string& folder) {
  std::vector<Sample> samples;
  for (const auto& entry : fs::directory_iterator(fs::path(ORRERY_SOURCE_DIR) / folder))
    if (const std::string name = entry.path().filename().string();
        name.ends_with(".json") && !name.ends_with(".expected.json"))
      samples.push_back({entry.path(), test::read_file(entry.path())});
  std::sort(samples.begin(), samples.end(),
            [](const Sample& a, const Sample& b) { return a.file < b.file; });
  return samples;
}

// Flips bits, cuts, repeats pieces: what a broken disk or a hasty editor leaves.
std::string damage_text(std::string text, RandomStream& random) {
  if (text.empty()) return text;
  switch (random.below(4)) {
    case 0:
      for (std::uint64_t n = random.below(4) + 1; n > 0; --n) {
        char& c = text[random.below(text.size())];
        c = static_cast<char>(static_cast<unsigned char>(c) ^ (1U << random.below(8)));
      }
      break;
    case 1:
      text.resize(random.below(text.size()));
      break;
    case 2:
      text.insert(random.below(text.size()), text.substr(random.below(text.size()), 30));
      break;
    default:
      text.insert(random.below(text.size()), std::string(random.below(500), '['));
  }
  return text;
}

void collect(SortedJson& value, std::vector<SortedJson*>& places) {
  places.push_back(&value);
  if (!value.is_structured()) return;
  for (SortedJson& inner : value) collect(inner, places);
}

const std::vector<SortedJson>& odd_values() {
  static const std::vector<SortedJson> values = {0,
                                                 -1,
                                                 1,
                                                 3,
                                                 1000000,
                                                 std::int64_t{1} << 60,
                                                 1e300,
                                                 -0.5,
                                                 "x",
                                                 "",
                                                 "/",
                                                 "1 TB",
                                                 "-3 GB/s",
                                                 nullptr,
                                                 true,
                                                 SortedJson::array(),
                                                 SortedJson::object(),
                                                 "llama3-8b",
                                                 "dgx-h100"};
  return values;
}

// Valid JSON with values swapped, replaced, renamed or gone.
std::string damage_values(const std::string& text, RandomStream& random) {
  SortedJson file = SortedJson::parse(text);
  for (std::uint64_t n = random.below(3) + 1; n > 0; --n) {
    std::vector<SortedJson*> places;
    collect(file, places);
    SortedJson& place = *places[random.below(places.size())];
    if (!place.is_object() || place.empty()) {
      place = odd_values()[random.below(odd_values().size())];
      continue;
    }
    const auto pick = [&] {
      auto member = place.begin();
      std::advance(member, static_cast<std::ptrdiff_t>(random.below(place.size())));
      return member;
    };
    const std::string key = pick().key(), other = pick().key();
    switch (random.below(3)) {
      case 0:
        place.erase(key);
        break;
      case 1:
        std::swap(place[key], place[other]);
        break;
      default:
        place[key + "x"] = place[key];
        place.erase(key);
    }
  }
  return file.dump();
}

struct Tally {
  int read = 0, refused = 0;
};

// Damages samples, writes each to a file and reads it, `rounds` times: the same cases on any
// machine.
template <class Read>
Tally fuzz(const std::vector<Sample>& samples, std::uint64_t seed, int rounds, Read&& read) {
  const ScratchFolder scratch("reader_fuzz");
  RandomStream random(fresh(seed), 0);
  Tally tally;
  for (int i = 0; i < rounds; ++i) {
    const Sample& sample = samples[random.below(samples.size())];
    const std::string text = random.below(2) == 0 ? damage_text(sample.text, random)
                                                  : damage_values(sample.text, random);
    const fs::path file = scratch.add("damaged.json", text);
    try {
      read(file.string());
      ++tally.read;
    } catch (const Error& error) {
      ++tally.refused;
      if (error.message().empty() || error.message().find('\n') != std::string::npos)
        FAIL("an error of " << test::lines(error.message()) << " lines for\n" << text);
    } catch (const std::exception& other) {
      FAIL(other.what() << " escaped for " << sample.file << "\n" << text);
    }
  }
  return tally;
}

}  // namespace

TEST_CASE("damaged models, clusters and stacks are read or refused", "[fuzz]") {
  const fs::path models = data_root() / "workloads/catalog/models";
  const fs::path stacks = data_root() / "workloads/catalog/stacks";
  std::vector<Sample> of_models = samples_in("workloads/catalog/models");
  for (Sample& config : samples_in("tests/workloads/configs")) of_models.push_back(config);
  const Tally model = fuzz(of_models, 1, 4000,
                           [&](const std::string& f) { count_parameters(load_model(f, models)); });
  CHECK(model.refused > 20);
  const Tally cluster = fuzz(samples_in("sim/engine/catalog/clusters"), 2, 1500,
                             [](const std::string& f) { load_cluster(f, 1000); });
  CHECK(cluster.refused > 20);
  const Tally stack =
      fuzz(samples_in("workloads/catalog/stacks"), 3, 1500, [&](const std::string& f) {
        load_stack(f, {.architecture = "hopper", .moe = true}, stacks);
      });
  CHECK(stack.refused > 20);
}

TEST_CASE("damaged scenarios are predicted or refused", "[fuzz]") {
  std::vector<Sample> scenarios;
  for (Sample& sample : samples_in("tests/scenarios"))
    if (!sample.file.filename().string().starts_with("advise")) scenarios.push_back(sample);
  const Tally tally = fuzz(scenarios, 4, 1200, [](const std::string& file) {
    const JsonValue settings = merge_settings(file, SortedJson::object());
    SimulateOptions options = read_simulate_options(settings);
    options.with_assumptions = false;
    simulate(read_scenario(settings), options);
  });
  CHECK(tally.refused > 20);
  CHECK(tally.read > 5);
}

}  // namespace orrery
