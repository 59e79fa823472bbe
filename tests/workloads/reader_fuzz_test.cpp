// SPDX-License-Identifier: Apache-2.0
// Throws damaged model files at the readers: each is read or refused with an Error, never worse.
#include <algorithm>
#include <catch2/catch.hpp>
#include <filesystem>

#include "sim/base/errors/check.h"
#include "sim/base/json/tree.h"
#include "sim/base/random.h"
#include "tests/base/fresh_seed.h"
#include "workloads/layout/layout.h"
#include "workloads/model/model_catalog.h"

namespace orrery {
namespace {

void collect(SortedJson& value, std::vector<SortedJson*>& places) {
  places.push_back(&value);
  if (!value.is_structured()) return;
  for (SortedJson& inner : value) collect(inner, places);
}

const std::vector<SortedJson>& odd_values() {
  static const std::vector<SortedJson> values = {0,
                                                 -1,
                                                 1,
                                                 2,
                                                 3,
                                                 7,
                                                 65536,
                                                 1000000,
                                                 268435456,
                                                 std::int64_t{1} << 60,
                                                 1e300,
                                                 -0.5,
                                                 "x",
                                                 "",
                                                 nullptr,
                                                 true,
                                                 SortedJson::array(),
                                                 SortedJson::object()};
  return values;
}

void damage(SortedJson& file, RandomStream& random) {
  std::vector<SortedJson*> places;
  collect(file, places);
  SortedJson& place = *places[random.below(places.size())];
  if (random.below(8) == 0 && place.is_object() && !place.empty()) {
    auto member = place.begin();
    std::advance(member, static_cast<std::ptrdiff_t>(random.below(place.size())));
    place.erase(member.key());
  } else {
    place = odd_values()[random.below(odd_values().size())];
  }
}

Layout random_layout(RandomStream& random) {
  const auto size = [&] { return std::int64_t{1} << random.below(5); };
  Layout layout = {.tp = size(),
                   .pp = size(),
                   .vpp = random.below(3) == 0 ? size() : 1,
                   .dp = size(),
                   .cp = size(),
                   .ep = size(),
                   .etp = size()};
  layout.schedule = static_cast<Schedule>(random.below(5));
  layout.precision = static_cast<PrecisionRecipe>(random.below(7));
  return layout;
}

}  // namespace

TEST_CASE("damaged model files are read or refused") {
  const std::filesystem::path source = ORRERY_SOURCE_DIR;
  std::vector<std::filesystem::path> paths;
  for (const char* folder : {"tests/workloads/configs", "workloads/catalog/models"}) {
    for (const auto& entry : std::filesystem::directory_iterator(source / folder)) {
      paths.push_back(entry.path());
    }
  }
  std::sort(paths.begin(), paths.end());
  std::vector<SortedJson> files;
  for (const auto& path : paths) files.push_back(JsonValue::load(path).raw());
  RandomStream random(fresh(1), 0);
  int read = 0, refused = 0;
  for (int i = 0; i < 10000; ++i) {
    SortedJson file = files[random.below(files.size())];
    for (std::uint64_t n = random.below(3) + 1; n > 0; --n) damage(file, random);
    try {
      const JsonValue value = JsonValue::from(file, "damaged.json");
      const Model model =
          value.has("model_type") ? read_hugging_face_config(value) : read_model(value);
      const ParameterCount count = count_parameters(model);
      if (count.active <= 0 || count.active > count.total) FAIL(file.dump());
      const Layout layout = random_layout(random);
      if (!invalid_reason(layout, model, {.sequence = 4096, .global_batch = 1024}, 0)) {
        partition_layers(model, layout, static_cast<Partition>(random.below(3)));
      }
      ++read;
    } catch (const Error& error) {
      if (error.message().empty()) FAIL("an Error that says nothing");
      ++refused;
    }
  }
  CHECK(read > 100);
  CHECK(refused > 1000);
}

}  // namespace orrery
