// SPDX-License-Identifier: Apache-2.0
// Knows the settings of DeepSpeed's file, for itself and beside Megatron-LM's arguments.
#pragma once

#include <map>
#include <string>

#include "sim/launch/read/reading.h"

namespace orrery {

class DeepspeedSettings {
 public:
  struct Where {
    bool beside_megatron = false;  // sizes and recompute are said there
  };
  DeepspeedSettings(GivenReading& reading, Where where) : reading_(reading), where_(where) {}
  Rules rules();
  void settle();
  // What the file leaves to the trainer's arguments ("auto").
  bool leaves(const std::string& name) const { return left_.count(name) > 0; }
  const Said* kept(const std::string& name) const;

 private:
  Take keep(const std::string& name);
  // Runs unless the value is "auto".
  Take unless_auto(const std::string& name, Take take);

  GivenReading& reading_;
  Where where_;
  std::map<std::string, Said> kept_;
  std::map<std::string, Said> left_;
};

}  // namespace orrery
