// SPDX-License-Identifier: Apache-2.0
// Reads Megatron-LM's arguments in the forms of the programs around it.
#include <algorithm>

#include "sim/base/errors/check.h"
#include "sim/launch/programs/deepspeed_settings.h"
#include "sim/launch/programs/megatron_reader.h"
#include "sim/launch/programs/program_readers.h"

namespace orrery {
namespace {

void read_as(MegatronDialect dialect, GivenReading& reading, const GivenWords& given,
             const Rules& others = {}) {
  MegatronReader reader(reading, dialect);
  reader.ranks().launcher(given.launcher, given.script);
  reader.read(given.said, others);
}

}  // namespace

void read_megatron(GivenReading& reading, const GivenWords& given) {
  read_as(MegatronDialect::megatron, reading, given);
}
void read_bridge(GivenReading& reading, const GivenWords& given) {
  read_as(MegatronDialect::bridge, reading, given);
}
void read_nemo2(GivenReading& reading, const GivenWords& given) {
  read_as(MegatronDialect::nemo2, reading, given);
}
void read_nemo1(GivenReading& reading, const GivenWords& given) {
  read_as(MegatronDialect::nemo1, reading, given);
}

// Arguments in a file: `fp8` is what --fp8-format keeps, x: false what --no-x does.
void read_primus(GivenReading& reading, const GivenWords& given) {
  GivenWords flags = given;
  constexpr std::string_view section = "modules.pre_trainer.overrides.";
  for (Said& said : flags.said) {
    if (!said.name.starts_with(section)) continue;
    std::string name = "--" + said.name.substr(section.size());
    std::replace(name.begin(), name.end(), '_', '-');
    if (name == "--fp8") name = "--fp8-format";
    if (name == "--fp4") name = "--fp4-format";
    said.name = name;
  }
  MegatronReader reader(reading, MegatronDialect::megatron);
  const Rules others = {
      {"modules.pre-trainer.framework",
       [&](const Said& said) { reading.without_effect(said, "it names the program"); }},
      {"modules.pre_trainer.framework",
       [&](const Said& said) { reading.without_effect(said, "it names the program"); }},
      {"modules.pre_trainer.model", [&](const Said& said) {
         std::string name = text_of(said);
         if (name.ends_with(".yaml")) name.resize(name.size() - 5);
         reader.model().name(said, name);
       }}};
  reader.ranks().launcher(given.launcher, given.script);
  reader.read(flags.said, others);
}

// Its own flags beside Megatron-LM's, and DeepSpeed's file, whose settings carry its section.
void read_megatron_deepspeed(GivenReading& reading, const GivenWords& given) {
  DeepspeedSettings file(reading, {.beside_megatron = true});
  Rules others = file.rules();
  others["--zero-stage"] = [&](const Said& said) {
    reading.set(said, "zero", whole_of(said, 0, 3));
  };
  others["--cpu-optimizer"] = [&](const Said& said) {
    if (truth_of(said)) reading.set(said, "offload", SortedJson::array({"optimizer"}));
  };
  for (const char* name : {"--deepspeed", "--deepspeed-config"})
    others[name] = [&](const Said& said) { reading.without_effect(said, "it names the program"); };
  others["--deepspeed-activation-checkpointing"] = [&](const Said& said) {
    reading.part_of(said, "recompute");
  };
  others["--num-experts"] = [&](const Said& said) {
    reading.not_understood(said, "experts of DeepSpeed's own layers");
  };
  read_as(MegatronDialect::megatron, reading, given, others);
  file.settle();
  // Its BF16 optimizer deals states out where the file says 0 too.
  if (reading.text("precision") == "bf16" && reading.size("zero").value_or(0) == 0)
    reading.assume("the BF16 optimizer", "zero", 1,
                   "states are dealt out over data-parallel ranks, in every release that has it");
  // Experts of its own layers are whole on tensor ranks unless the model's code says otherwise.
  if (reading.has("etp")) reading.follow("etp", 1);
}

}  // namespace orrery
