// SPDX-License-Identifier: Apache-2.0
// Knows how settings of Megatron-LM, Megatron-Bridge, NeMo and Primus are read: by the names under
// which they are written (sim/launch/megatron_names.h).
#pragma once

#include <map>
#include <string>
#include <vector>

#include "sim/launch/megatron_flags.h"
#include "sim/launch/read/model_shape.h"
#include "sim/launch/read/ranks.h"
#include "sim/launch/read/reading.h"

namespace orrery {

class MegatronReader {
 public:
  MegatronReader(GivenReading& reading, MegatronDialect dialect)
      : reading_(reading), dialect_(dialect), ranks_(reading), model_(reading) {}
  RankCounter& ranks() { return ranks_; }
  ModelReader& model() { return model_; }
  // Settings of the program; what follows from several of them is settled at the end. `others`:
  // rules of programs around Megatron-LM, which win.
  void read(const std::vector<Said>& all, const Rules& others = {});

 private:
  // How the tables below name a setting: as Megatron-LM does, or as the one program does that has
  // it.
  std::string named(const std::string& name) const;
  bool recipes() const { return dialect_ != MegatronDialect::megatron; }

  Rules rules();
  void layout_rules(Rules& r);
  void state_rules(Rules& r);
  void release_rules(Rules& r);
  void shape_rules(Rules& r);
  void style_rules(Rules& r);
  void job_rules(Rules& r);
  Take whole(const char* key, std::int64_t low = 1);
  Take as_the_stack();  // understood; the prediction does what the stack's release does
  Take keep();          // for what is settled at the end
  const Said* kept(const megatron_names::Name& n) const;
  const Said* kept(const std::string& name) const;
  bool is_on(const Said* said) const { return said != nullptr && truth_of(*said); }

  void settle_gates();
  void settle_precision();
  void settle_sharding();
  void settle_optimizer();
  void settle_offload();
  void settle_recompute();
  void settle_chunks(const Model* model);
  void settle_stages(const Model* model);
  void settle_experts(const Model* model);
  void settle_batch();
  void settle_overlap();
  std::vector<std::int64_t> stages_of_layout(const Said& said);
  void set_stages(const Said& said, std::vector<std::int64_t> layers, const Model& model);
  std::optional<std::int64_t> replicas() const;  // of data parallelism, context ranks counted

  GivenReading& reading_;
  MegatronDialect dialect_;
  RankCounter ranks_;
  ModelReader model_;
  std::map<std::string, Said, std::less<>> kept_;
};

}  // namespace orrery
