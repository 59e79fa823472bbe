// SPDX-License-Identifier: Apache-2.0
// The catalogue is listed, searched and judged; entries are found by any name that people give
// them.
#include <catch2/catch.hpp>

#include <filesystem>
#include <map>

#include "hw_models/catalog.h"
#include "hw_models/catalog_names.h"
#include "sim/app/catalog/check.h"
#include "sim/app/catalog/list.h"
#include "sim/base/json/tree.h"
#include "tests/app/run_binary.h"

using namespace orrery::test;
using namespace orrery;

namespace {

constexpr const char* clusters = "sim/engine/catalog/clusters";

std::string named(const std::string& name) { return known_as(clusters, name).value_or(""); }

Outcome simulate_on(const std::string& cluster) {
  return run("simulate --model llama3.2-1b --gpus 8 --seq 4096 --global-batch 32 --cluster '" +
             cluster + "'");
}

}  // namespace

TEST_CASE("a cluster is found in any case and by the names that clouds give it") {
  const std::map<std::string, std::string> names = {
      {"H100", "dgx-h100"},       {"h100", "dgx-h100"},       {"DGX-H100", "dgx-h100"},
      {"ND H100 v5", "dgx-h100"}, {"nd-h100-v5", "dgx-h100"}, {"p5.48xlarge", "h100-efa"},
      {"a3-mega", "h100-tcpxo"},  {"A3 Mega", "h100-tcpxo"},  {"a3-megagpu-8g", "h100-tcpxo"},
      {"gb200", "gb200-nvl72"},   {"MI300X", "mi300x-8"},     {"TPU_v5p", "tpu-v5p"},
      {"Ironwood", "tpu-v7"},     {"dgx-h100", "dgx-h100"}};
  for (const auto& [given, entry] : names) {
    INFO(given);
    CHECK(named(given) == entry);
  }
  CHECK(named("h1000").empty());
  CHECK(named("").empty());
  const std::string plain = simulate_on("dgx-h100").out;
  CHECK(simulate_on("H100").out == plain);
  CHECK(simulate_on("ND H100 v5").out == plain);
  CHECK(run("topology p5.48xlarge --gpus 64").out == run("topology h100-efa --gpus 64").out);
  CHECK(run("catalog show cluster A3-Mega").out == run("catalog show cluster h100-tcpxo").out);
  CHECK(run("catalog show accelerator H100-SXM").out ==
        run("catalog show accelerator h100-sxm").out);
}

TEST_CASE("a name that is none gets the one that is meant") {
  const std::map<std::string, std::string> names = {
      {"h100-nvl", "dgx-h100"},       {"dgx-h10", "dgx-h100"},
      {"h100-sxm5-80gb", "dgx-h100"}, {"gb20", "gb200-nvl72"},
      {"mi300", "mi300x-8"},          {"p5.48xlrge", "h100-efa"},
      {"aws-p5", "h100-efa"},         {"infiniband-b200-dgx", "dgx-b200"}};
  for (const auto& [given, entry] : names) {
    INFO(given);
    CHECK(meant_name(clusters, given) == entry);
    CHECK(simulate_on(given).err.find("did you mean \"" + entry + "\"?") != std::string::npos);
  }
  CHECK(meant_name(clusters, "zzz-qqq").empty());
}

TEST_CASE("other names are data with sources, and none is taken twice") {
  const auto sources = load_sources();
  std::map<std::string, std::string> owners;
  for (const std::string& name : catalog_names(clusters)) owners[plain_name(name)] = name;
  for (const std::string& name : catalog_names(clusters)) {
    const JsonValue entry = JsonValue::load(data_root() / clusters / (name + ".json"));
    if (!entry.has("aliases")) continue;
    for (const JsonValue& alias : entry.at("aliases").items()) {
      INFO(name << " " << alias.at("name").text());
      CHECK(sources.contains(alias.at("source").text()));
      CHECK(owners.emplace(plain_name(alias.at("name").text()), name).second);
    }
  }
  // What an entry is called does not pass to what is based on it.
  const ScratchFolder scratch("aliases");
  const std::string mine = add(scratch, "mine.json", R"({"based_on": "dgx-h100", "name": "mine"})");
  CHECK(!load_catalog_entry(clusters, "cluster", mine).has("aliases"));
}

TEST_CASE("a list shows title, device, network and size, and is searched by words") {
  const std::string all = run("catalog list cluster").out;
  for (const char* part : {"device", "domain", "largest", "network", "title", "h100-sxm",
                           "nvlink4-ndr", "p5.48xlarge"}) {
    INFO(part);
    CHECK(all.find(part) != std::string::npos);
  }
  const auto found = [](const std::string& flags) {
    return run("catalog list cluster --names " + flags).out;
  };
  CHECK(lines(found("")) == static_cast<long>(catalog_names(clusters).size()));
  CHECK(found("--search 'H100 mega'") == "h100-tcpxo\n");
  CHECK(found("--search frontier") == "mi250x-frontier\n");
  CHECK(found("--device h20-sxm") == "dgx-h20\n");
  CHECK(found("--device H20-SXM") == "dgx-h20\n");
  CHECK(run("catalog list cluster --search nothing-has-this").out.find("No cluster") == 0);
  for (const std::string& wrong : {std::string("catalog list model --device h100-sxm"),
                                   std::string("catalog list cluster --device h100-sx"),
                                   std::string("catalog show cluster dgx-h100 --names")}) {
    const Outcome o = run(wrong);
    INFO(wrong << o.err);
    CHECK(o.code == 2);
    CHECK(lines(o.err) == 1);
  }
  const auto json =
      SortedJson::parse(run("catalog list cluster --search h20 --json").out)["entries"];
  CHECK(json.at(0).at("name") == "dgx-h20");
  CHECK(json.at(0).at("device") == "h20-sxm");
  for (const char* kind : {"model", "accelerator", "fabric", "stack", "question", "cloud"}) {
    INFO(kind);
    CHECK(run(std::string("catalog list ") + kind).out.find("title") != std::string::npos);
  }
}

TEST_CASE("the catalogue is in order by its own judgement, and a user's file is judged alike") {
  const CatalogFaults all = check_catalog();
  for (const std::string& fault : all.faults) FAIL_CHECK(fault);
  CHECK(all.checked > 400);
  const ScratchFolder scratch("check");
  const auto judged = [&](const std::string& text, int code, const std::string& part) {
    const Outcome o = run("catalog check " + add(scratch, "mine.json", text));
    INFO(text << "\n" << o.out << o.err);
    CHECK(o.code == code);
    CHECK((o.out + o.err).find(part) != std::string::npos);
  };
  judged(R"({"name": "mine", "based_on": "dgx-h100"})", 0, "(cluster): in order");
  judged(R"({"name": "mine", "based_on": "dgx-h100", "host": "dgx-h10"})", 1, "dgx-h100");
  judged(R"({"name": "mine", "based_on": "dgx-h100", "site": {"clock_factor": {"value": 1,
            "evidence": "specified", "source": "no-such-source"}}})",
         1, "no-such-source");
  judged(R"({"name": "mine", "based_on": "h100-sxm"})", 0, "(accelerator): in order");
  judged(R"({"colour": "red"})", 2, "keys of");
  judged(R"([1])", 2, "an object");
  CHECK(run("catalog check no/such/file.json").code == 2);
}

TEST_CASE("advise compares one job on several clusters, or on all") {
  const std::string job =
      "advise --model llama3.2-1b --gpus 8 --seq 4096 --global-batch 32 --cluster ";
  const auto json = SortedJson::parse(run(job + "dgx-h100,dgx-a100 --json").out);
  REQUIRE(json["clusters"].size() == 2);
  CHECK(json["verdict"]["fits"] == true);
  CHECK(json["verdict"]["probability"].get<double>() > 0.5);
  CHECK(json["clusters"][0]["cluster"] == "dgx-h100");
  const auto alone = SortedJson::parse(run(job + "dgx-a100 --json --top 1").out);
  CHECK(json["clusters"][1]["step_time_s"].get<double>() ==
        Approx(alone["best"][0]["step_time_s"].get<double>()).epsilon(0.005));
  const Outcome text = run(job + "dgx-h100,dgx-v100");
  CHECK(text.code == 0);
  CHECK(text.out.find("dgx-v100: ") != std::string::npos);  // has no BF16
  CHECK(run(job + "dgx-h100,dgx-a10").code == 2);
  CHECK(run(job + "dgx-h100,dgx-h100").code == 2);
  CHECK(run(job + "dgx-h100,dgx-a100 --pareto time,memory").code == 2);
  const Outcome all = run(job + "all --json --threads 2");
  CHECK(all.code == 0);
  CHECK(SortedJson::parse(all.out)["clusters"].size() == catalog_names(clusters).size());
  const Outcome plan =
      run("plan --model llama3.2-1b --gpus 16 --seq 4096 --global-batch 64 --tokens 100B --cluster "
          "all");
  CHECK(plan.code == 0);
  CHECK(plan.out.find("left out: h200-nvlink-host") != std::string::npos);
}
