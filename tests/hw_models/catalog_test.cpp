// SPDX-License-Identifier: Apache-2.0
// Knows what the catalogue of machines promises: it loads, names its sources, and refuses by name.
#include <algorithm>
#include <catch2/catch.hpp>
#include <cstdlib>
#include <iterator>
#include <map>
#include <set>

#include "hw_models/catalog.h"
#include "sim/base/json/tree.h"
#include "tests/base/error_text.h"
#include "tests/base/scratch_folder.h"

namespace orrery {
namespace {

using Catch::Matchers::Contains;

namespace fs = std::filesystem;

// The 31 accelerators of the reference table, then the ones that measured runs used besides.
const std::vector<std::string>& expected_accelerators() {
  static const std::vector<std::string> names = {"v100-sxm2-32gb", "a100-sxm4-40gb",
                                                 "a100-sxm4-80gb", "h100-sxm",
                                                 "h100-pcie",      "h200-sxm",
                                                 "h800-sxm",       "h20-sxm",
                                                 "gh200",          "b200-sxm",
                                                 "gb200",          "b300-sxm",
                                                 "gb300",          "rubin",
                                                 "rubin-die",      "rubin-ultra",
                                                 "rubin-cpx",      "feynman",
                                                 "mi300x",         "mi325x",
                                                 "mi355x",         "mi455x",
                                                 "tpu-v5e",        "tpu-v5p",
                                                 "tpu-v6e",        "tpu-v7",
                                                 "tpu-8t",         "tpu-8i",
                                                 "trainium2",      "trainium3",
                                                 "gaudi3",         "tpu-v4",
                                                 "gaudi2",         "mi250x",
                                                 "mi250x-gcd",     "l40s",
                                                 "trainium1",      "trainium1-neuroncore",
                                                 "ascend-910b"};
  return names;
}

double plain(double value) { return value; }
template <Dimension D>
double plain(Quantity<D> value) {
  return value.si();
}

double terabytes_per_second(BytesPerSecond rate) { return rate.si() / 1e12; }
double teraflops(const ResolvedDevice& device, Format format) {
  return device.tensor_rate[static_cast<std::size_t>(format)].si() / 1e12;
}

// Calls visit(file, source id) for every sourced value below `value`.
template <class Visit>
void visit_sources(const SortedJson& value, const std::string& file, const Visit& visit) {
  if (!value.is_object() && !value.is_array()) return;
  if (value.is_object() && value.contains("evidence") && value.contains("source")) {
    if (value["source"].is_string()) visit(file, value["source"].get<std::string>());
    return;
  }
  for (const SortedJson& inner : value) visit_sources(inner, file, visit);
}

template <class Visit>
void visit_sources_below(const fs::path& folder, const Visit& visit) {
  std::error_code ignored;
  for (const auto& item : fs::recursive_directory_iterator(folder, ignored))
    if (item.path().extension() == ".json" && item.path().parent_path().filename() != "sources")
      visit_sources(JsonValue::load(item.path()).raw(), item.path().string(), visit);
}

}  // namespace

TEST_CASE("the reference's accelerators are all in the catalogue and load") {
  const std::vector<std::string> names = catalog_names("hw_models/catalog/accelerators");
  for (const std::string& name : expected_accelerators()) {
    INFO(name);
    REQUIRE(std::binary_search(names.begin(), names.end(), name));
  }
  for (const std::string& name : names) {
    INFO(name);
    const Device device = load_device(name);
    CHECK(device.name == name);
    CHECK_FALSE(device.title.empty());
    CHECK_FALSE(device.scale_up_link.empty());
  }
}

TEST_CASE("accelerators say from when they can be had") {
  std::map<std::string, Device> devices;
  for (const std::string& name : catalog_names("hw_models/catalog/accelerators")) {
    INFO(name);
    const Device device = load_device(name);
    devices.emplace(name, device);
    // What was cancelled has no date, everything else one; the future is only ever announced.
    REQUIRE(device.available.has_value() == (device.status != "cancelled"));
    if (!device.available) continue;
    CHECK(device.available->known());
    CHECK(device.available->get() > *date_from_text("2017-01-01"));
    CHECK((device.available->evidence == Evidence::announced) == (device.status == "announced"));
  }
  const auto from = [&](const char* name) { return devices.at(name).available->get(); };
  CHECK(to_text(from("tpu-v5p")) == "2024-04-09");
  const char* generations[] = {"v100-sxm2-32gb", "a100-sxm4-40gb", "h100-sxm",
                               "h200-sxm",       "gb200",          "gb300",
                               "rubin",          "rubin-ultra",    "feynman"};
  for (std::size_t i = 1; i < std::size(generations); ++i) {
    INFO(generations[i]);
    CHECK(from(generations[i - 1]) < from(generations[i]));
  }
  // Overlays of the same part share its date, another memory has its own.
  CHECK(from("mi250x-gcd") == from("mi250x"));
  CHECK(from("gh200-144gb") > from("gh200"));
}

TEST_CASE("a part without a date reads, and one that is no date is refused by name") {
  SortedJson entry =
      load_catalog_entry("hw_models/catalog/accelerators", "accelerator", "h100-sxm").raw();
  entry.erase("available");
  CHECK_FALSE(read_device(JsonValue::from(entry, "part.json")).available.has_value());
  entry["available"] = {{"value", "2023"}, {"evidence", "specified"}, {"source", "street-prices"}};
  CHECK_THAT(error_text([&] { read_device(JsonValue::from(entry, "part.json")); }),
             Contains("available.value") && Contains("a date such as"));
}

TEST_CASE("NICs, switches and hosts load under their own names") {
  for (const std::string& name : catalog_names("hw_models/catalog/nics")) {
    INFO(name);
    const Nic nic = load_nic(name);
    CHECK(nic.name == name);
    REQUIRE(nic.bandwidth.known());
    REQUIRE(nic.efficiency.known());
    CHECK(nic.efficiency.get() > 0);
    CHECK(nic.efficiency.get() <= 1);
    CHECK(nic.latency.known());
  }
  for (const std::string& name : catalog_names("hw_models/catalog/switches")) {
    INFO(name);
    const Switch part = load_switch(name);
    CHECK(part.name == name);
    CHECK(part.ports.known());
    CHECK(part.port_bandwidth.known());
  }
  for (const std::string& name : catalog_names("hw_models/catalog/hosts")) {
    INFO(name);
    const Host host = load_host(name);
    CHECK(host.name == name);
    CHECK(host.memory.known());
    CHECK(host.failure_rate.known());
  }
  CHECK(load_nic("connectx-7").bandwidth.get().si() == Approx(50e9));
  CHECK(load_switch("qm9700").ports.get() == 64);
  CHECK(load_switch("qm9700").in_network_reduction);
  CHECK(load_host("gb200-tray").memory.get().si() == Approx(960 * 1073741824.0));
}

TEST_CASE("names of drivers are a list of texts") {
  const auto read = [](const char* names) {
    SortedJson entry =
        load_catalog_entry("hw_models/catalog/accelerators", "accelerator", "h100-sxm").raw();
    entry["driver_names"] = SortedJson::parse(names);
    return read_device(JsonValue::from(entry, "x.json"));
  };
  CHECK(read("[\"X 100\"]").name == "h100-sxm");
  for (const char* wrong : {"5", "\"X 100\"", "[5]", "{}"}) {
    INFO(wrong);
    CHECK_THROWS_AS(read(wrong), Error);
  }
}

TEST_CASE("every source that a catalogue names is listed, and every listed one has a title") {
  const std::map<std::string, Source> sources = load_sources();
  std::set<std::string> unknown;
  const auto visit = [&](const std::string& file, const std::string& id) {
    if (!sources.contains(id)) unknown.insert(id + " in " + file);
  };
  for (const char* folder :
       {"hw_models", "topologies/catalog", "workloads/catalog", "sim/engine/catalog"})
    visit_sources_below(data_root() / folder, visit);
  CAPTURE(unknown);
  CHECK(unknown.empty());
  for (const auto& [id, source] : sources) {
    INFO(id);
    CHECK(source.id == id);
    CHECK_FALSE(source.title.empty());
    CHECK((source.date_read.empty() || source.date_read.size() == 10));
  }
}

TEST_CASE("what is not a fact has a range around it, and what is absent a reason") {
  for (const std::string& name : catalog_names("hw_models/catalog/accelerators")) {
    const Device device = load_device(name);
    visit_device_values(device, [&](const std::string& path, const auto& sourced) {
      INFO(name << " " << path);
      CHECK_FALSE(sourced.source.empty());
      if (!sourced.known()) {
        CHECK_FALSE(sourced.reason.empty());
        return;
      }
      if (is_uncertain(sourced.evidence)) REQUIRE(sourced.low.has_value());
      if (!sourced.low) return;
      CHECK(plain(*sourced.low) <= plain(sourced.get()));
      CHECK(plain(sourced.get()) <= plain(*sourced.high));
    });
    // A part that nobody can buy has no specified speed.
    if (device.status != "shipped")
      for (const auto& rate : device.tensor_rate)
        if (rate.known()) CHECK(is_uncertain(rate.evidence));
  }
}

TEST_CASE("known figures come out in SI units") {
  const ResolvedDevice h100 = load_device("h100-sxm").resolved();
  CHECK(teraflops(h100, Format::bf16) == Approx(989.4));
  CHECK(teraflops(h100, Format::fp8) == Approx(1979));
  CHECK(teraflops(h100, Format::fp4) == 0);
  CHECK(terabytes_per_second(h100.memory_bandwidth) == Approx(3.35));
  CHECK(in_gibibytes(h100.memory_capacity) == Approx(79.65).epsilon(0.001));
  CHECK(h100.sm_count == 132);
  CHECK(h100.scale_up_bandwidth.si() == Approx(450e9));
  CHECK(h100.host_bandwidth.si() == Approx(63e9));
  CHECK(h100.power_limit.si() == 700);
  CHECK(h100.special_function_per_second == Approx(16 * 132 * 1.83e9).epsilon(0.001));
  // 268 faults of 16,384 GPUs in 54 days.
  CHECK(h100.failure_rate.si() == Approx(268.0 / (16384 * 54 * 86400.0)).epsilon(0.01));
  CHECK(h100.tile_model);

  const ResolvedDevice gb200 = load_device("gb200").resolved();
  CHECK(teraflops(gb200, Format::fp4) == Approx(10000));
  CHECK(gb200.host_bandwidth.si() == Approx(225e9));
  CHECK(in_gibibytes(load_device("b200-sxm").resolved().memory_capacity) == Approx(179.06));
  CHECK(in_gibibytes(load_device("a100-sxm4-80gb").resolved().memory_capacity) ==
        Approx(79.35).epsilon(0.001));
  CHECK(terabytes_per_second(load_device("h200-sxm").resolved().memory_bandwidth) == Approx(4.8));

  const ResolvedDevice mi300x = load_device("mi300x").resolved();
  CHECK(teraflops(mi300x, Format::bf16) == Approx(1307.4));
  CHECK_FALSE(mi300x.tile_model);
  CHECK(teraflops(load_device("tpu-v5p").resolved(), Format::bf16) == Approx(459));
  CHECK(load_device("tpu-v5p").resolved().rental.si() == Approx(4.2 / 3600));
}

TEST_CASE("peaks agree with units and clock where the chip's arithmetic is known") {
  // FLOP per clock and SM of dense BF16 products.
  const std::vector<std::pair<std::string, double>> chips = {
      {"a100-sxm4-80gb", 2048}, {"h100-sxm", 4096}, {"h100-pcie", 4096},
      {"h200-sxm", 4096},       {"b200-sxm", 8192}, {"gb200", 8192},
      {"gb300", 8192},          {"mi300x", 2048},   {"mi355x", 4096}};
  for (const auto& [name, per_clock] : chips) {
    INFO(name);
    const ResolvedDevice device = load_device(name).resolved();
    const double peak = per_clock * device.sm_count * device.clock.si();
    CHECK(teraflops(device, Format::bf16) == Approx(peak / 1e12).epsilon(0.002));
  }
}

TEST_CASE("a device that predictions can use has all that the kernel model reads") {
  for (const std::string& name : catalog_names("hw_models/catalog/accelerators")) {
    if (name == "feynman" || name == "rubin-cpx") continue;
    INFO(name);
    const ResolvedDevice device = load_device(name).resolved();
    // V100 has FP16 only, TPUs BF16 only.
    CHECK(std::max(teraflops(device, Format::bf16), teraflops(device, Format::fp16)) > 0);
    CHECK(device.vector_rate.si() > 0);
    CHECK(device.special_function_per_second > 0);
    CHECK(device.l2_capacity.si() > 0);
    CHECK(device.l2_bandwidth > device.memory_bandwidth);
    CHECK(device.scale_up_bandwidth.si() > 0);
    CHECK(device.host_bandwidth.si() > 0);
    CHECK(device.power_limit > device.idle_power);
    CHECK(device.failure_rate.si() > 0);
    CHECK(device.tile_model == has_tile_model(device.architecture));
    if (device.tile_model) CHECK(device.clock.si() > 1e9);
  }
}

TEST_CASE("announced parts without FLOP/s or memory bandwidth are refused by name") {
  const std::string feynman = error_text([] { (void)load_device("feynman").resolved(); });
  CHECK_THAT(feynman, Contains("feynman"));
  CHECK_THAT(feynman, Contains("compute.tensor"));
  CHECK_THAT(feynman, Contains("not published"));
  const std::string cpx = error_text([] { (void)load_device("rubin-cpx").resolved(); });
  CHECK_THAT(cpx, Contains("rubin-cpx"));
  CHECK_THAT(cpx, Contains("memory.bandwidth"));
}

TEST_CASE("an overlay changes what it says and keeps the rest") {
  const ScratchFolder folder("overlay");
  const fs::path hbm4 = folder.add("gb300-hbm4.json", R"({
    "based_on": "gb300", "title": "GB300 with HBM4",
    "memory": {"type": "HBM4", "bandwidth": {"value": "13 TB/s", "low": "11 TB/s",
      "high": "16 TB/s", "evidence": "assumed", "reason": "what if"}}})");
  const Device device = load_device(hbm4.string());
  CHECK(device.name == "gb300-hbm4");
  CHECK(device.memory_type == "HBM4");
  CHECK(device.memory_bandwidth.get().si() == Approx(13e12));
  CHECK(device.memory_bandwidth.evidence == Evidence::assumed);
  CHECK(device.resolved().sm_count == 152);

  // A chain, a path beside the file, and a value that becomes a fact: the old range goes away.
  const fs::path chained = folder.add("chained.json", R"({
    "based_on": "./gb300-hbm4.json", "name": "second",
    "memory": {"bandwidth": {"value": "14 TB/s", "evidence": "specified", "source": "x"},
               "usable": {"value": null, "reason": "not measured"}}})");
  const Device second = load_device(chained.string());
  CHECK(second.name == "second");
  CHECK(second.memory_bandwidth.get().si() == Approx(14e12));
  CHECK_FALSE(second.memory_bandwidth.low.has_value());
  CHECK(second.memory_type == "HBM4");

  const Device half = load_device("mi250x-gcd");
  const Device card = load_device("mi250x");
  CHECK(half.memory_capacity.get().si() * 2 == Approx(card.memory_capacity.get().si()));
  CHECK(half.architecture == card.architecture);
}

TEST_CASE("mistaken entries are errors that name the file and the way out") {
  const ScratchFolder folder("catalog_errors");
  CHECK_THAT(error_text([] { (void)load_device("h100-sxn"); }), Contains("\"h100-sxm\""));
  CHECK_THAT(error_text([] { (void)load_device("h100"); }), Contains("did you mean \"h100-"));
  CHECK_THAT(error_text([] { (void)load_device(""); }), Contains("accelerator"));
  CHECK_THAT(error_text([] { (void)load_device("no/such/file.json"); }),
             Contains("no/such/file.json"));
  CHECK_THAT(error_text([&] { (void)load_device((folder / "").string()); }), !Contains("no error"));

  const auto message = [&](const std::string& name, const std::string& text) {
    const fs::path file = folder.add(name, text);
    return error_text([&] { (void)load_device(file.string()); });
  };
  const std::string self = message("self.json", R"({"based_on": "./self.json"})");
  CHECK_THAT(self, Contains("self.json: based_on"));
  CHECK_THAT(self, Contains("circle"));
  folder.add("one.json", R"({"based_on": "./two.json"})");
  CHECK_THAT(message("two.json", R"({"based_on": "./one.json"})"), Contains("circle"));
  const std::string base = message("base.json", R"({"based_on": "gb3000"})");
  CHECK_THAT(base, Contains("base.json: based_on"));
  CHECK_THAT(base, Contains("\"gb300\""));
  CHECK_THAT(message("list.json", "[]"), Contains("an object"));
  CHECK_THAT(message("key.json", R"({"based_on": "gb300", "memroy": {}})"),
             Contains("did you mean \"memory\""));
  CHECK_THAT(message("unit.json", R"({"based_on": "gb300", "memory": {"bandwidth":
             {"value": 13, "evidence": "specified", "source": "x"}}})"),
             Contains("memory.bandwidth.value"));
  CHECK_THAT(message("big.json", R"({"based_on": "gb300", "memory": {"usable":
             {"value": "900 GiB", "evidence": "specified", "source": "x"}}})"),
             Contains("at most the capacity"));
  CHECK_THAT(message("zero.json", R"({"based_on": "gb300", "memory": {"bandwidth":
             {"value": "0 B/s", "evidence": "specified", "source": "x"}}})"),
             Contains("positive"));
  CHECK_THAT(message("idle.json", R"({"based_on": "gb300", "power": {"idle":
             {"value": "9 kW", "evidence": "specified", "source": "x"}}})"),
             Contains("less than the limit"));
}

TEST_CASE("ORRERY_DATA moves the catalogues, and says so when it is wrong") {
  const ScratchFolder folder("data_root");
  const char* before = std::getenv("ORRERY_DATA");
  const std::string kept = before == nullptr ? "" : before;
  ::setenv("ORRERY_DATA", (folder / "nowhere").c_str(), 1);
  CHECK_THAT(error_text([] { (void)data_root(); }), Contains("ORRERY_DATA"));
  fs::create_directories(folder / "hw_models/catalog/nics");
  ::setenv("ORRERY_DATA", (folder / "").c_str(), 1);
  CHECK(catalog_names("hw_models/catalog/nics").empty());
  CHECK(load_sources().empty());
  if (before == nullptr)
    ::unsetenv("ORRERY_DATA");
  else
    ::setenv("ORRERY_DATA", kept.c_str(), 1);
  CHECK(fs::is_directory(data_root() / "hw_models" / "catalog"));
}

}  // namespace orrery
