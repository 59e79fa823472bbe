// SPDX-License-Identifier: Apache-2.0
// Knows what profiles of reliability promise: they load, agree with other entries, refuse nonsense.
#include <algorithm>
#include <catch2/catch.hpp>

#include "hw_models/catalog.h"
#include "hw_models/reliability.h"
#include "sim/base/json/tree.h"
#include "tests/base/error_text.h"

namespace orrery {
namespace {

using Catch::Matchers::Contains;

const std::vector<std::string>& profile_names() {
  static const std::vector<std::string> names = catalog_names("hw_models/catalog/reliability");
  return names;
}

double plain(double value) { return value; }
template <Dimension D>
double plain(Quantity<D> value) {
  return value.si();
}

const FailureMode& mode(const ReliabilityProfile& profile, const std::string& name) {
  const auto at = std::find_if(profile.failures.begin(), profile.failures.end(),
                               [&](const FailureMode& one) { return one.name == name; });
  REQUIRE(at != profile.failures.end());
  return *at;
}

// The entry of Llama 3 with one change, written as JSON.
std::string refusal(const std::string& patch) {
  SortedJson entry =
      load_catalog_entry("hw_models/catalog/reliability", "reliability", "llama3-h100").raw();
  merge_overlay(entry, SortedJson::parse(patch));
  return error_text([&] { read_reliability(JsonValue::from(entry, "x.json")); });
}

}  // namespace

TEST_CASE("reliability: every profile loads and every value has a source and a range") {
  CHECK(profile_names().size() >= 8);
  const auto sources = load_sources();
  for (const std::string& name : profile_names()) {
    const ReliabilityProfile profile = load_reliability(name);
    INFO(name);
    CHECK(profile.name == name);
    CHECK_FALSE(profile.title.empty());
    CHECK(load_device(profile.accelerator).failure_rate.known());
    CHECK(load_host(profile.host).failure_rate.known());
    for (const std::string& device : profile.default_for)
      CHECK(default_reliability(device) == name);
    visit_reliability_values(profile, [&](const std::string& path, const auto& value) {
      INFO(path);
      if (path.ends_with("latency") || path.ends_with("outage") || path == "lemon_hosts")
        if (!value.known()) return;
      REQUIRE(value.known());
      CHECK(sources.contains(value.source));
      REQUIRE(value.low.has_value());
      REQUIRE(value.high.has_value());
      CHECK(plain(*value.low) <= plain(value.get()));
      CHECK(plain(value.get()) <= plain(*value.high));
    });
  }
}

TEST_CASE("an accelerator that no profile names has the one for any") {
  CHECK(default_reliability("trn2") == default_reliability("*"));
  CHECK(default_reliability("gb300") != default_reliability("*"));
}

TEST_CASE("reliability: the Llama 3 profile says what the accelerator's and the host's entry say") {
  const ReliabilityProfile profile = load_reliability("llama3-h100");
  double gpu = 0, host = 0;
  for (const FailureMode& one : profile.failures) {
    if (one.scales_with == RateBasis::accelerator) gpu += one.rate.get().si();
    if (one.scales_with == RateBasis::host)
      host += one.rate.get().si() * (one.per == FailureUnit::nic ? 8 : 1);
  }
  CHECK(gpu == Approx(load_device("h100-sxm").failure_rate.get().si()).epsilon(0.01));
  CHECK(host == Approx(load_host("dgx-h100").failure_rate.get().si()).epsilon(0.01));
}

TEST_CASE("reliability: racks lose domains, early ones more often, and newer ones are overlays") {
  const ReliabilityProfile early = load_reliability("gb200-nvl72-early");
  const ReliabilityProfile mature = load_reliability("gb200-nvl72-mature");
  for (const char* name : {"nvswitch", "backplane"}) {
    CHECK(mode(mature, name).per == FailureUnit::domain);
    CHECK(mode(mature, name).blast == BlastRadius::domain);
    CHECK(mode(early, name).rate.get() > mode(mature, name).rate.get());
  }
  CHECK(mode(early, "hbm").rate.get() > mode(mature, "hbm").rate.get());
  CHECK(load_reliability("gb300-nvl72").accelerator == "gb300");
  CHECK(load_reliability("rsc1-a100").failures.size() == 2);  // all causes together, and the site
  CHECK(default_reliability("gb300") == "gb300-nvl72");
  CHECK(default_reliability("tpu-v5p") == "tpu-v4");
  CHECK(default_reliability("gaudi3") == "llama3-h100");
}

TEST_CASE("reliability: nonsense is refused by name") {
  CHECK(refusal("{}") == "no error");
  CHECK_THAT(refusal(R"({"failures": {"hbm": {"rate": {"value": "-3 %/year",
      "evidence": "measured", "source": "x"}}}})"),
             Contains("failures.hbm.rate") && Contains("at least 0"));
  CHECK_THAT(refusal(R"({"failures": {"hbm": {"removed": {"value": 1.5, "evidence": "measured",
      "source": "x"}}}})"),
             Contains("failures.hbm.removed") && Contains("share"));
  CHECK_THAT(refusal(R"({"failures": {"hbmm": {}}})"), Contains("hbmm") && Contains("hbm"));
  CHECK_THAT(refusal(R"({"failures": {"software": {"removed": {"value": 0.5,
      "evidence": "measured", "source": "x"}}}})"),
             Contains("failures.software.removed"));
  CHECK_THAT(refusal(R"({"recovery": {"detection": {"value": "3 GB", "evidence": "measured",
      "source": "x"}}})"),
             Contains("recovery.detection"));
  CHECK_THAT(refusal(R"({"recovery": {"detect": null, "deteccion": 3}})"), Contains("deteccion"));
}

}  // namespace orrery
