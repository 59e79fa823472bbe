// SPDX-License-Identifier: Apache-2.0
// Holds what-if settings to their shapes: what is right is read, what is wrong is one clear error.
#include "sim/question/settings/conditions.h"
#include "sim/base/json/tree.h"

#include <catch2/catch.hpp>

#include "tests/app/run_binary.h"

namespace orrery {
namespace {

using test::Outcome;

const std::string job = "simulate --model llama3-8b --gpus 64 --seq 4096 --global-batch 64 ";
const std::string base = job + "--cluster dgx-h100 --network flow ";

void expect_error(const std::string& arguments, const std::string& place, const std::string& part) {
  const Outcome o = test::run(arguments);
  INFO(arguments << "\n" << o.err);
  CHECK(o.code == 2);
  CHECK(o.out.empty());
  CHECK(test::lines(o.err) == 1);
  CHECK(o.err.starts_with("orrery: "));
  CHECK(o.err.find(place) != std::string::npos);
  CHECK(o.err.find(part) != std::string::npos);
}

void bad_fault(const std::string& json, const std::string& part) {
  expect_error(base + "--faults '" + json + "'", "faults", part);
}

Conditions read(const std::string& json, const std::string& cluster = "dgx-h100") {
  return read_conditions(JsonValue::parse(json, "test"), load_cluster(cluster, 64));
}

}  // namespace

TEST_CASE("conditions are read as they are written") {
  CHECK(read("{}").healthy_network());
  CHECK(read_network(JsonValue::parse("{}", "test")) == NetworkMode::ideal);
  const Conditions c = read(R"({"network": "flow",
    "faults": [{"kind": "nic", "gpu": 5, "remaining": 0.5},
               {"kind": "nic", "gpu": 6, "plane": 0},
               {"kind": "leaf-spine", "leaf": 3, "spine": 2, "plane": 0, "remaining": 0},
               {"kind": "spine-core", "pod": 1, "spine": 2, "core": 3},
               {"kind": "leaf", "leaf": 7},
               {"kind": "spine", "spine": 4},
               {"kind": "plane", "plane": 1},
               {"kind": "scale-up", "gpu": 9, "remaining": 0.75}],
    "slow_gpus": [{"gpu": 63, "speed": 0.8}],
    "background": [{"pattern": "ring", "first_gpu": 64, "gpus": 128, "load": 0.5},
                   {"pattern": "all-to-all", "first_gpu": 0, "gpus": 16, "load": 1}]})");
  REQUIRE(c.faults.size() == 7);
  CHECK(c.faults[0].kind == FaultKind::nic);
  CHECK(c.faults[0].accelerator == 5);
  CHECK(c.faults[0].remaining == 0.5);
  CHECK(c.faults[0].plane == -1);  // the whole NIC
  CHECK(c.faults[1].plane == 0);
  CHECK(c.faults[1].remaining == 0);
  CHECK(c.faults[2].leaf == 3);
  CHECK(c.faults[2].spine == 2);
  CHECK(c.faults[3].pod == 1);
  CHECK(c.faults[3].core == 3);
  CHECK(c.faults[4].kind == FaultKind::leaf);
  CHECK(c.faults[5].pod == 0);
  CHECK(c.faults[6].plane == 1);
  REQUIRE(c.scale_up_faults.size() == 1);
  CHECK(c.scale_up_faults[0].gpu == 9);
  CHECK(c.scale_up_faults[0].remaining == 0.75);
  REQUIRE(c.slow_gpus.size() == 1);
  CHECK(c.slow_gpus[0].speed == 0.8);
  REQUIRE(c.background.size() == 2);
  CHECK(c.background[0].first_gpu == 64);  // beside the job
  CHECK(c.background[1].pattern == BackgroundTraffic::Pattern::all_to_all);
}

TEST_CASE("faults with a bad kind, key or range name the flag and the entry") {
  bad_fault("[{\"kind\": \"nik\", \"gpu\": 1}]", "\"nic\"?");
  bad_fault("[{\"gpu\": 1}]", "kind");
  bad_fault("[{\"kind\": \"nic\"}]", "gpu");
  bad_fault("[{\"kind\": \"nic\", \"gpu\": 1, \"leaf\": 2}]", "leaf");
  bad_fault("[{\"kind\": \"nic\", \"gpu\": 64}]", "64 in use");
  bad_fault("[{\"kind\": \"nic\", \"gpu\": -1}]", "gpu");
  bad_fault("[{\"kind\": \"nic\", \"gpu\": 1.5}]", "gpu");
  bad_fault("[{\"kind\": \"nic\", \"gpu\": \"1\"}]", "gpu");
  bad_fault("[{\"kind\": \"nic\", \"gpu\": 1, \"remaining\": 1.01}]", "0 to 1");
  bad_fault("[{\"kind\": \"nic\", \"gpu\": 1, \"remaining\": -0.1}]", "0 to 1");
  bad_fault("[{\"kind\": \"leaf-spine\", \"leaf\": 0}]", "spine");
  bad_fault("[{\"kind\": \"spine-core\", \"spine\": 0}]", "core");
  bad_fault("[{\"kind\": \"leaf\", \"leaf\": 100000}]", "100000");
  bad_fault("[{\"kind\": \"plane\", \"plane\": 3}]", "3");
  bad_fault("[{\"kind\": \"scale-up\", \"gpu\": 0}]", "remaining");
  bad_fault("[{\"kind\": \"scale-up\", \"gpu\": 0, \"remaining\": 0}]", "above 0");
  bad_fault("[{\"kind\": \"scale-up\", \"gpu\": 0, \"remaining\": 1, \"plane\": 0}]", "plane");
  bad_fault("{\"kind\": \"nic\", \"gpu\": 1}", "list");
  bad_fault("[3]", "faults");
  bad_fault("[{\"kind\": \"nic\", \"gpu\": 1}", "--faults");  // does not parse
  bad_fault("nic", "--faults");
  bad_fault("", "--faults");
}

TEST_CASE("slow devices and other traffic out of range name the flag") {
  const auto slow = [](const std::string& json, const std::string& part) {
    expect_error(base + "--slow-gpus '" + json + "'", "slow", part);
  };
  slow("[{\"gpu\": 64, \"speed\": 0.8}]", "64 in use");
  slow("[{\"gpu\": 1, \"speed\": 0}]", "above 0");
  slow("[{\"gpu\": 1, \"speed\": 1.2}]", "at most 1");
  slow("[{\"gpu\": 1}]", "speed");
  slow("[{\"gpu\": 1, \"sped\": 0.8}]", "\"speed\"?");
  slow("[{]", "--slow-gpus");
  const auto other = [](const std::string& json, const std::string& part) {
    expect_error(base + "--background '" + json + "'", "background", part);
  };
  other("[{\"pattern\": \"rings\", \"first_gpu\": 0, \"gpus\": 16, \"load\": 1}]", "\"ring\"?");
  other("[{\"pattern\": \"ring\", \"first_gpu\": 4, \"gpus\": 16, \"load\": 1}]", "domains of 8");
  other("[{\"pattern\": \"ring\", \"first_gpu\": 0, \"gpus\": 8, \"load\": 1}]", "two or more");
  // More flows than a machine holds; each of two alone would do.
  other("[{\"pattern\": \"all-to-all\", \"first_gpu\": 0, \"gpus\": 9216, \"load\": 1}]",
        "at most 1,048,576 messages");
  const std::string half =
      "{\"pattern\": \"all-to-all\", \"first_gpu\": 0, \"gpus\": 8192, \"load\": 1}";
  other("[" + half + ", " + half + "]", "2,097,152 messages");
  other("[{\"pattern\": \"ring\", \"first_gpu\": 0, \"gpus\": 16, \"load\": 0}]", "above 0");
  other("[{\"pattern\": \"ring\", \"first_gpu\": 0, \"gpus\": 16}]", "load");
  other("[{\"pattern\": \"ring\", \"gpus\": 16, \"load\": 1}]", "first_gpu");
  other("[{\"pattern\": \"ring\", \"first_gpu\": 0, \"gpus\": 16, \"load\": 1, \"seed\": 1}]",
        "seed");
  // Sums that would overflow, or machines that no wiring reaches.
  other("[{\"pattern\": \"ring\", \"first_gpu\": 1099511627776, \"gpus\": 16, \"load\": 1}]",
        "wiring");
}

TEST_CASE("what the network cannot have is refused") {
  expect_error(base + "--faults '[{\"kind\": \"nic\", \"gpu\": 5}]'", "faults", "no path");
  expect_error(base + "--faults '[{\"kind\": \"plane\", \"plane\": 0}]'", "faults", "no path");
  expect_error(job +
                   "--cluster h100-rail-only --network flow "
                   "--faults '[{\"kind\": \"spine\", \"spine\": 0}]'",
               "faults", "no such tier");
  const std::string alone =
      "simulate --model llama3-8b --cluster h200-nvlink-host --gpus 8 --seq 2048 --global-batch 64 "
      "--network flow ";
  expect_error(alone +
                   "--background '[{\"pattern\": \"ring\", \"first_gpu\": 0, \"gpus\": 16, "
                   "\"load\": 1}]'",
               "background", "scale-out");
}

TEST_CASE("the ideal network has nothing to break; slow devices it knows") {
  const std::string ideal = job + "--cluster dgx-h100 ";
  expect_error(ideal + "--faults '[{\"kind\": \"nic\", \"gpu\": 1, \"remaining\": 0.5}]'", "faults",
               "network flow");
  expect_error(ideal + "--background '[]'", "background", "network flow");
  CHECK(test::run(ideal + "--slow-gpus '[{\"gpu\": 1, \"speed\": 0.8}]'").code == 0);
  expect_error(job + "--cluster dgx-h100 --network flw", "--network", "\"flow\"?");
  for (const char* flag : {"--faults", "--slow-gpus", "--background"})
    expect_error(
        "advise --model llama3-8b --cluster dgx-h100 --gpus 64 --seq 4096 "
        "--global-batch 64 " +
            std::string(flag) + " '[]'",
        flag, "simulate");
}

TEST_CASE("files hold conditions as flags do, and errors name the file and the place") {
  const ScratchFolder scratch("conditions");
  const std::string head = R"({"model": "llama3-8b", "cluster": "dgx-h100", "gpus": 64, "seq": 4096,
    "global_batch": 64, "network": "flow", )";
  const std::string good = test::add(
      scratch, "good.json", head + R"("faults": [{"kind": "nic", "gpu": 1, "remaining": 0.5}]})");
  const Outcome by_file = test::run("simulate " + good);
  CHECK(by_file.code == 0);
  const Outcome by_flag =
      test::run(base + "--faults '[{\"kind\": \"nic\", \"gpu\": 1, \"remaining\": 0.5}]'");
  CHECK(by_file.out == by_flag.out);
  expect_error(
      "simulate " + test::add(scratch, "bad.json", head + R"("faults": [{"kind": "nic", "gpu": 1},
                                                  {"kind": "nic", "gpu": 99}]})"),
      "bad.json: faults[1].gpu", "99");
}

TEST_CASE("a flow prediction says where bytes went and what was lost, on lines a terminal shows") {
  for (const std::string& what :
       {std::string(),
        std::string("--faults '[{\"kind\": \"nic\", \"gpu\": 1, \"remaining\": 0.5}]'"),
        std::string("--slow-gpus '[{\"gpu\": 1, \"speed\": 0.8}]'"),
        std::string("--background '[{\"pattern\": \"ring\", \"first_gpu\": 0, \"gpus\": 64, "
                    "\"load\": 0.5}]'")}) {
    const Outcome o = test::run(base + what);
    INFO(o.out << o.err);
    REQUIRE(o.code == 0);
    const std::size_t at = o.out.find("\nNetwork: ");
    REQUIRE(at != std::string::npos);
    const std::string part = o.out.substr(at);
    for (const char* said : {"GB over scale-up ports", "busiest link", "Not modelled"})
      CHECK(part.find(said) != std::string::npos);
    for (std::size_t from = 0; from < part.size();) {
      const std::size_t end = std::min(part.find('\n', from), part.size());
      CHECK(end - from <= 100);
      from = end + 1;
    }
  }
  const Outcome json = test::run(base + "--json");
  const SortedJson all = SortedJson::parse(json.out);
  CHECK(all["network"]["collectives"].size() > 0);
  CHECK(!SortedJson::parse(test::run(job + "--cluster dgx-h100 --json").out).contains("network"));
}

}  // namespace orrery
