// SPDX-License-Identifier: Apache-2.0
// Reads command lines of serving engines: one class, with the rules of each program in its file.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "sim/launch/programs/program_readers.h"

namespace orrery {

// "--tp-size" as "tp_size".
std::string flag_key(const std::string& name);

class ServedReader {
 public:
  explicit ServedReader(GivenReading& reading) : s_(reading), reading_(reading) {}

  void vllm(const GivenWords& given);
  void sglang(const GivenWords& given);
  void trtllm(const GivenWords& given);

 private:
  void common_rules();
  // Rules that programs have under other names.
  Take memory_share();
  Take cut_prompts();
  Take eager();
  Take predicted_without();
  void vllm_rules();
  void sglang_rules();
  void trtllm_rules();
  void read_model(const Said& said);
  void read_quantization(const Said& said);
  void read_cache(const Said& said);
  void read_guessing(const Said& said);
  void read_balancer(const Said& said);
  SortedJson object_of(const Said& said) const;
  void copies_of_sglang(std::int64_t ranks);
  void finish(const GivenWords& given);
  void engines(std::int64_t tp, std::int64_t pp, std::int64_t dp, std::int64_t ep,
               std::int64_t replicas);
  std::int64_t count(const char* name) const {
    const Said* said = s_.kept(name);
    return said == nullptr ? 1 : whole_of(*said);
  }
  bool is_on(const char* name) const {
    const Said* said = s_.kept(name);
    return said != nullptr && truth_of(*said);
  }
  bool has_experts() const { return experts_.value_or(1) > 0; }

  SectionReader s_;
  GivenReading& reading_;
  std::optional<std::int64_t> experts_;  // of a layer of the model, where it is known
  std::optional<std::int64_t> copies_;   // of experts, where ranks are evened out
};

}  // namespace orrery
