// SPDX-License-Identifier: Apache-2.0
// Names the programs by which jobs are started.
#include "workloads/stack/launcher.h"

#include "sim/base/text/enum_names.h"

namespace orrery {
namespace {

constexpr auto launcher_text =
    enum_names<Launcher>({"megatron-lm", "megatron-bridge", "nemo2", "nemo1", "megatron-deepspeed",
                          "torchtitan", "automodel", "nanotron", "deepspeed", "primus", "maxtext",
                          "neuronx", "gaudi-megatron", "scripts", "unpublished"});

}  // namespace

std::string_view to_text(Launcher launcher) { return launcher_text[launcher]; }

Launcher launcher_from(const JsonValue& at) { return launcher_text.from(at); }

}  // namespace orrery
