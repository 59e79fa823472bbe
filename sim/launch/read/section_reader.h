// SPDX-License-Identifier: Apache-2.0
// Knows what readers of files of sections share.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "sim/launch/read/model_shape.h"
#include "sim/launch/read/ranks.h"
#include "sim/launch/read/reading.h"
#include "sim/launch/source/said.h"

namespace orrery {

// What a configuration says, apart by who is told.
struct GivenWords {
  std::vector<Said> said;      // to the program
  std::vector<Said> launcher;  // to what starts it on many accelerators
  ShellScript script;          // around both; empty: there is none
};

// Rules of a program, filled by its reader, with what is settled at the end.
class SectionReader {
 public:
  explicit SectionReader(GivenReading& of) : reading(of), ranks(of), model(of) {}
  GivenReading& reading;
  RankCounter ranks;
  ModelReader model;
  Rules rules;

  Take whole(const char* key, std::int64_t low = 1) {
    return [this, key, low](const Said& said) { reading.set(said, key, whole_of(said, low)); };
  }
  Take keep(const std::string& name) {
    return [this, name](const Said& said) { kept_[name] = said; };
  }
  // Keeps each under its own name.
  void keep_all(std::initializer_list<const char*> names) {
    for (const char* name : names) rules[name] = keep(name);
  }
  Take as_the_stack() {
    return [this](const Said& said) {
      reading.without_effect(said, "predicted as the stack's release does it");
    };
  }
  Take part(const char* key) {
    return [this, key](const Said& said) { reading.part_of(said, key); };
  }
  const Said* kept(const std::string& name) const {
    const auto at = kept_.find(name);
    return at == kept_.end() ? nullptr : &at->second;
  }
  // Counts of nodes and processes that the command around it names.
  void count(const GivenWords& given) { ranks.launcher(given.launcher, given.script); }
  // Data-parallel ranks, where all sizes are known.
  std::optional<std::int64_t> data_ranks() const;
  // A batch of so many sequences on each data-parallel rank and step.
  void batch_of_ranks(const Said* said, std::int64_t sequences);

 private:
  std::map<std::string, Said> kept_;
};

}  // namespace orrery
