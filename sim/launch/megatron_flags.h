// SPDX-License-Identifier: Apache-2.0
// Knows the settings that Megatron-LM, Megatron-Bridge and NeMo share, said in the words of each.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "sim/base/json/tree.h"
#include "sim/launch/flag_writer.h"
#include "sim/launch/megatron_names.h"

namespace orrery {

// NeMo's first releases read Hydra overrides of their own, those after them Python recipes, later
// ones are Megatron-Bridge: a stack's release says which (Launcher).
enum class MegatronDialect : std::uint8_t { megatron, bridge, nemo2, nemo1 };

// Writes the flags of one layout. What it is made of must outlive it.
class MegatronFlags {
 public:
  MegatronFlags(const Layout& l, const Model& model, const Job& job, const Stack& stack,
                const LaunchDevice& device)
      : l_(l),
        model_(model),
        job_(job),
        stack_(stack),
        device_(device),
        dialect_(dialect_of(stack)),
        out_(program_of(dialect_, stack, job, model.has_scans()),
             dialect_ == MegatronDialect::megatron ? FlagStyle::command_line
             : dialect_ == MegatronDialect::nemo2  ? FlagStyle::python
                                                   : FlagStyle::overrides) {}

  LaunchFlags all() {
    sizes();
    experts_of_ranks();
    pipeline_schedule();
    if (model_.has_scans())
      hybrid_stages();
    else
      stages();
    batch();
    adapters();
    precision();
    sharded_data();
    optimizer_states();
    recompute();
    overlap();
    graphs();
    placement();
    sources();
    return std::move(out_).finish(
        l_,
        "Add the model's shape, its data and its learning rates; settings of a recipe that are "
        "not listed stay as they are.");
  }

 private:
  static MegatronDialect dialect_of(const Stack& stack) {
    switch (stack.launcher) {
      case Launcher::megatron_bridge:
        return MegatronDialect::bridge;
      case Launcher::nemo2:
        return MegatronDialect::nemo2;
      case Launcher::nemo1:
        return MegatronDialect::nemo1;
      default:
        return MegatronDialect::megatron;
    }
  }
  static std::string program_of(MegatronDialect d, const Stack& stack, const Job& job,
                                bool hybrid) {
    switch (d) {
      case MegatronDialect::megatron:
        return fmt::format("Megatron-LM with Megatron-Core {} (pretrain_{}.py)",
                           stack.flags_release, hybrid ? "mamba" : "gpt");
      case MegatronDialect::bridge:
        return fmt::format("Megatron-Bridge of NeMo {} (overrides of a recipe)",
                           stack.flags_release);
      case MegatronDialect::nemo2:
        return fmt::format("NeMo 2.0 of release {} (a recipe in Python)", stack.flags_release);
      case MegatronDialect::nemo1:
        return fmt::format("NeMo {} (overrides of megatron_gpt_{}.py)", stack.flags_release,
                           job.task == Task::pretrain ? "pretraining" : "finetuning");
    }
    return {};
  }

  const char* name_of(const megatron_names::Name& n) const {
    switch (dialect_) {
      case MegatronDialect::megatron:
        return release_number(stack_.flags_release) >= std::pair(0, n.since) ? n.megatron : nullptr;
      case MegatronDialect::bridge:
        return n.bridge;
      case MegatronDialect::nemo2:
        return n.nemo2;
      case MegatronDialect::nemo1:
        return n.nemo1;
    }
    return nullptr;
  }
  bool has(const megatron_names::Name& n) const { return name_of(n) != nullptr; }
  bool recipes() const { return dialect_ != MegatronDialect::megatron; }

  void say(const char* key, const megatron_names::Name& n, const SortedJson& value,
           const std::string& what) {
    if (const char* name = name_of(n))
      out_.set(key, name, value);
    else
      lacks(key, what);
  }
  // Where a program has no such setting and none is needed.
  void say_if_known(const megatron_names::Name& n, const SortedJson& value) {
    if (const char* name = name_of(n)) out_.set("", name, value);
  }
  void lacks(const char* key, const std::string& what) {
    out_.missing(key, fmt::format("{} has no flag for {}.", out_.program(), what));
  }

  // Muon keeps whole matrices on a rank and deals them out itself.
  bool deals_itself() const {
    return l_.optimizer == Optimizer::muon && l_.zero_stage == 1 && muon_known();
  }
  bool muon_known() const {
    if (dialect_ == MegatronDialect::megatron)
      return release_number(stack_.flags_release) >= std::pair(0, 15);
    return dialect_ == MegatronDialect::bridge;
  }

  void sizes();
  void experts_of_ranks();
  void dispatch();
  void adapters();
  void pipeline_schedule();
  void chunk_count();
  void stages();
  void explicit_stages(const std::vector<Position>& positions);
  std::string layer_pattern() const;
  void hybrid_stages();
  void batch();
  void precision();
  void gradients_format();
  void fp8(const char* format, std::string_view recipe, const char* preset, const char* function);
  void sharded_data();
  void whole_moments();
  void optimizer_states();
  void offloads();
  void recompute();
  void overlap();
  std::string refuses_graphs() const;
  void graphs();
  void placement();
  void sources();

  const Layout& l_;
  const Model& model_;
  const Job& job_;
  const Stack& stack_;
  const LaunchDevice& device_;
  MegatronDialect dialect_;
  FlagWriter out_;
};

}  // namespace orrery
