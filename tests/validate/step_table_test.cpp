// SPDX-License-Identifier: Apache-2.0
// Tests that a table of timed training steps reads as the training runs that it describes.
#include "sim/validate/rows/step_table.h"

#include <catch2/catch.hpp>

#include "hw_models/catalog.h"

using namespace orrery;

TEST_CASE("Timed training steps become training runs") {
  const CsvTable steps = parse_csv(
      "id,gpus,model,h,L,nh,nkv,hd,f,V,E,k,seq,mbs,nm,tp,pp,dp,ep,vpp,sched,wrap,ac,step_s,peak_"
      "gb\n"
      "a,4,l8,4096,32,32,8,128,14336,128256,,,8192,2,3,,,4,,,,fsdp,True,0.8,85.89934592\n"
      "b,4,moe,4096,8,32,8,128,3584,32000,32,4,4096,1,8,1,4,1,,,gpipe,,,0.1,\n",
      "steps.csv");
  REQUIRE(is_step_table(steps));
  const Aliases aliases = load_aliases(data_root() / "validation/aliases.json");
  const CsvTable runs = training_runs_of(steps, aliases);
  CHECK(!is_step_table(runs));
  const CsvRow first(runs, 0), second(runs, 1);
  CHECK(first.integer("global_batch") == 24);
  CHECK(first.integer("micro_batch") == 2);
  CHECK(first.integer("zero_stage") == 3);
  CHECK(first.text("recompute") == "full");
  CHECK(first.number("peak_memory_gib").value() == Approx(80));
  CHECK(first.number("step_time_s") == 0.8);
  CHECK(first.text("gpu") == aliases.training_steps.gpu);
  CHECK(second.integer("pp") == 4);
  CHECK(second.integer("experts") == 32);
  CHECK(second.text("schedule") == "gpipe");
  CHECK(second.integer("zero_stage") == 0);
  CHECK(second.text("recompute") == "none");
  CHECK(second.blank("peak_memory_gib"));
  // What the case before still held is none of this one's.
  const CsvTable held = training_runs_of(
      parse_csv("id,gpus,model,h,L,nh,nkv,hd,f,V,seq,mbs,nm,wrap,step_s,peak_gb,reserved_gb,held_gb"
                "\na,2,l8,8,1,1,1,8,8,8,8,1,1,fsdp,,12.884901888,,2.147483648\n"
                "b,2,l8,8,1,1,1,8,8,8,8,1,1,fsdp,,,12.884901888,\n",
                "held.csv"),
      aliases);
  CHECK(CsvRow(held, 0).number("peak_memory_gib").value() == Approx(10));
  CHECK(CsvRow(held, 0).blank("reserved_memory_gib"));
  CHECK(CsvRow(held, 1).number("reserved_memory_gib").value() == Approx(12));
  const CsvTable broken = parse_csv(
      "id,gpus,model,h,L,nh,nkv,hd,f,V,seq,mbs,nm,wrap,step_s\na,1,l8,1,1,1,1,1,1,1,1,x,1,,1\n",
      "steps.csv");
  CHECK_THROWS_AS(training_runs_of(broken, aliases), Error);
}
