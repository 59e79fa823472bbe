// SPDX-License-Identifier: Apache-2.0
// Tests `fill` as a user types it.
#include <catch2/catch.hpp>

#include "sim/base/json/tree.h"
#include "tests/app/run_binary.h"

using namespace orrery::test;
using orrery::ScratchFolder;
using orrery::SortedJson;

TEST_CASE("small hosts are filled by each rule, and bad ones have one line", "[fill]") {
  const ScratchFolder scratch("fill");
  const std::string hosts =
      scratch.add("hosts.csv", "cpu_milli,memory_mib,gpu,model\n8000,10,2,A\n8000,10,1,B\n")
          .string();
  const auto tasks = [&](const std::string& name, const std::string& rows) {
    return scratch.add(name, "cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec\n" + rows).string();
  };
  const std::string halves = tasks("halves.csv", "1000,1,1,500,\n1000,1,1,500,A\n");
  const std::string line = "fill --hosts " + hosts + " --tasks ";
  for (const char* rule :
       {"random", "best-fit", "dot-product", "packing", "clustering", "fragmentation"}) {
    const Outcome o = run(line + halves + " --demand 100% --seeds 3 --json --rule " + rule);
    INFO(o.err);
    REQUIRE(o.code == 0);
    const SortedJson point = SortedJson::parse(o.out).at("points").front();
    CHECK(point.at("marks").back().at("allocated").get<double>() <= 1);
    CHECK(point.at("marks").back().at("allocated").get<double>() >= 0.5);
  }
  const auto refused = [&](const std::string& arguments, const std::string& words) {
    const Outcome o = run(arguments);
    INFO(arguments << "\n" << o.err);
    CHECK(o.code == 2);
    CHECK(o.out.empty());
    CHECK(lines(o.err) == 1);
    CHECK(o.err.find(words) != std::string::npos);
  };
  refused("fill --tasks openb-default", "--hosts: found nothing");
  refused("fill --hosts openb", "--tasks: found nothing");
  refused("fill --hosts opemb --tasks openb-default", "did you mean \"openb\"");
  refused(line + halves + " --rule bestfit", "best-fit");
  refused(line + halves + " --demand 0", "--demand");
  refused(line + halves + " --demand 1e9", "--demand");
  refused(line + halves + " --seeds 0", "--seeds");
  refused(line + tasks("a.csv", "1000,1,2,500,\n"), "several accelerators");
  refused(line + tasks("b.csv", "1000,1,1,500,C\n"), "models that the hosts have");
  refused(line + tasks("c.csv", "1000,1,0,0,\n"), "no task that asks for accelerators");
  refused(line + tasks("d.csv", "-1,1,1,500,\n"), "cpu_milli");
  refused(line + tasks("e.csv", "1,1,1,1001,\n"), "gpu_milli");
  refused("fill --tasks " + halves + " --hosts " +
              scratch.add("none.csv", "cpu_milli,memory_mib,gpu,model\n1,1,0,\n").string(),
          "no accelerators");
  refused("fill --tasks " + halves + " --hosts " +
              scratch.add("model.csv", "cpu_milli,memory_mib,gpu,model\n1,1,1,\n").string(),
          "model");
}
