// SPDX-License-Identifier: Apache-2.0
// Knows what the topology command must print, write and refuse.
#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>

#include "sim/base/json/tree.h"
#include "sim/engine/cluster.h"
#include "tests/app/run_binary.h"

using namespace orrery::test;
using orrery::ScratchFolder;
using orrery::SortedJson;

namespace {

SortedJson topology_json(const std::string& arguments) {
  const Outcome o = run("topology " + arguments + " --json");
  INFO(arguments << ": " << o.err);
  REQUIRE(o.code == 0);
  return SortedJson::parse(o.out);
}

std::int64_t count_of(const SortedJson& result, const std::string& role) {
  for (const auto& s : result["switches"])
    if (s["role"] == role) return s["count"].get<std::int64_t>();
  return 0;
}

void expect_finite(const SortedJson& value) {
  if (value.is_number()) CHECK(std::isfinite(value.get<double>()));
  if (value.is_object() || value.is_array())
    for (const auto& part : value) expect_finite(part);
}

// Tags close in the order in which they were opened, and attributes are quoted.
bool well_formed(const std::string& xml) {
  std::vector<std::string> open;
  for (std::size_t at = xml.find('<'); at != std::string::npos; at = xml.find('<', at + 1)) {
    const std::size_t end = xml.find('>', at);
    if (end == std::string::npos) return false;
    const std::string tag = xml.substr(at + 1, end - at - 1);
    if (std::count(tag.begin(), tag.end(), '"') % 2 != 0) return false;
    if (tag.find('<') != std::string::npos || tag.find("nan") != std::string::npos) return false;
    const std::string name = tag.substr(0, tag.find(' '));
    if (tag.starts_with("?") || tag.ends_with("/")) continue;
    if (!tag.starts_with("/")) {
      open.push_back(name);
    } else if (open.empty() || "/" + open.back() != name) {
      return false;
    } else {
      open.pop_back();
    }
  }
  return open.empty() && xml.find("<svg") != std::string::npos;
}

long occurrences(const std::string& text, const std::string& part) {
  long n = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++n;
  return n;
}

}  // namespace

TEST_CASE("topology prints the published counts of a DGX H100 SuperPOD") {
  const auto result = topology_json("dgx-h100 --gpus 1016");
  CHECK(result["domains"] == 127);
  CHECK(result["rails"] == 8);
  CHECK(count_of(result, "leaf") == 32);
  CHECK(count_of(result, "spine") == 16);
  CHECK(count_of(result, "nvswitch") == 4 * 127);
  CHECK(result["reach"]["scale_out_diameter"] == 3);
  CHECK(result["reach"]["latency_under_leaf_s"]["value"].get<double>() == Approx(2.8e-6));
  CHECK(result["reach"]["latency_longest_s"]["value"].get<double>() == Approx(3.7e-6));
  const Outcome text = run("topology dgx-h100 --gpus 1016");
  REQUIRE(text.code == 0);
  for (const char* part :
       {"1,016 accelerators in 127 domains of 8", "leaf      qm9700            32",
        "spine     qm9700            16", "unknown, not in the sums"})
    CHECK(text.out.find(part) != std::string::npos);
}

TEST_CASE("topology: a name of a cluster and a fabric is the cluster") {
  CHECK(topology_json("gh200-slingshot").contains("cluster"));
  CHECK(topology_json("nvlink4-ndr").contains("fabric"));
}

TEST_CASE("topology: what the bill cannot know is null and named") {
  const auto bill = topology_json("dgx-h100 --gpus 64")["bill"];
  double dollars = 0;
  bool unknown = false;
  for (const auto& line : bill["lines"]) {
    const auto& price = line["price_usd"];
    if (price["value"].is_null()) {
      unknown = true;
      CHECK(!price["reason"].get<std::string>().empty());
    } else {
      dollars += price["value"].get<double>() * line["count"].get<double>();
    }
  }
  CHECK(unknown);
  CHECK(bill["price_usd"]["value"].get<double>() == Approx(dollars));
  CHECK(bill["price_usd"]["per_accelerator"].get<double>() == Approx(dollars / 64));
  CHECK(!bill["price_usd"]["unknown"].empty());
}

TEST_CASE("topology: every cluster and every fabric, at several sizes, in finite numbers") {
  std::vector<std::string> names = orrery::cluster_names();
  for (const std::string& name : orrery::fabric_names()) names.push_back(name);
  const ScratchFolder scratch("topology");
  const std::string svg = (scratch / "a.svg").string(), dot = (scratch / "a.dot").string();
  for (const std::string& name : names) {
    const auto whole = topology_json(name + " --svg " + svg + " --dot " + dot);
    INFO(name);
    expect_finite(whole);
    CHECK(whole["accelerators"].get<std::int64_t>() >= 1);
    CHECK(well_formed(read_file(svg)));
    const std::string graph = read_file(dot);
    CHECK(graph.starts_with("graph "));
    CHECK(occurrences(graph, "{") == occurrences(graph, "}"));
    for (const char* gpus : {"1", "4"}) {
      const auto part = topology_json(name + " --gpus " + gpus + " --svg " + svg);
      expect_finite(part);
      CHECK(part["accelerators"] == std::stoll(gpus));
      CHECK(well_formed(read_file(svg)));
    }
  }
}

TEST_CASE("topology draws three tiers, planes and sites") {
  const ScratchFolder scratch("topology");
  const std::string svg = (scratch / "a.svg").string(), dot = (scratch / "a.dot").string();
  topology_json("dgx-h100 --gpus 16384 --svg " + svg);
  std::string drawn = read_file(svg);
  for (const char* part : {"256 cores", "512 spines", "512 leaves", "pod 1", "2,048 domains"})
    CHECK(drawn.find(part) != std::string::npos);
  topology_json("nvlink5-800g-dual-plane --gpus 2048 --svg " + svg);
  CHECK(read_file(svg).find("2 planes, drawn as shadows") != std::string::npos);
  const std::string two = add(scratch, "two-site.json", R"({"based_on": "nvlink4-ndr",
    "title": "A <title> & \"quotes\"", "sites": {"accelerators": 512,
    "bandwidth": {"value": "3.2 Tbit/s", "evidence": "specified", "source": "orrery-estimate"},
    "kilometres": {"value": 100, "evidence": "specified", "source": "orrery-estimate"},
    "latency_per_kilometre": {"value": "5 us", "evidence": "derived", "source": "orrery-estimate"},
    "efficiency": {"value": 0.9, "evidence": "derived", "source": "orrery-estimate"}}})");
  const auto sites = topology_json(two + " --gpus 1024 --svg " + svg + " --dot " + dot);
  CHECK(sites["fabric"] == "two-site");
  CHECK(sites["reach"]["latency_longest_s"]["value"].get<double>() > 500e-6);
  drawn = read_file(svg);
  CHECK(well_formed(drawn));
  CHECK(drawn.find("2 sites") != std::string::npos);
  CHECK(drawn.find("100 km apart") != std::string::npos);
  CHECK(drawn.find("&lt;title&gt; &amp; &quot;quotes&quot;") != std::string::npos);
  CHECK(read_file(dot).find("long-haul") != std::string::npos);
}

TEST_CASE("topology: a torus has its cube and circuit switches, a mesh all pairs") {
  const ScratchFolder scratch("topology");
  const std::string svg = (scratch / "a.svg").string();
  CHECK(count_of(topology_json("tpu-v4 --svg " + svg), "ocs") == 48);
  std::string drawn = read_file(svg);
  CHECK(drawn.find("48 optical circuit switches") != std::string::npos);
  CHECK(occurrences(drawn, "<circle") == 64);
  topology_json("mi300x-8 --gpus 8 --svg " + svg);
  drawn = read_file(svg);
  CHECK(occurrences(drawn, "<line") >= 28);
}

TEST_CASE("topology refuses what it cannot answer in one line") {
  const auto expect_error = [](const std::string& arguments, const std::string& part) {
    const Outcome o = run("topology " + arguments);
    INFO(arguments << ": " << o.err);
    CHECK(o.code == 2);
    CHECK(o.out.empty());
    CHECK(lines(o.err) == 1);
    CHECK(o.err.find(part) != std::string::npos);
  };
  expect_error("", "no name");
  expect_error("dgx-h10", "did you mean \"dgx-h100\"");
  expect_error("nvl72-xd", "did you mean \"");
  expect_error("/nowhere/x.json", "/nowhere/x.json");
  expect_error("dgx-h100 --gpus 0", "--gpus");
  expect_error("dgx-h100 --gpus many", "--gpus");
  expect_error("dgx-h100 --gpus 100000000", "100000000");
  expect_error("nvlink4-host --gpus 9", "at most 8");
  expect_error("dgx-h100 --svg /nowhere/a.svg", "/nowhere/a.svg");
  expect_error("dgx-h100 --dot /nowhere/a.dot", "/nowhere/a.dot");
  expect_error("dgx-h100 dgx-h200", "dgx-h200");
}
