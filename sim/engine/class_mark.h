// SPDX-License-Identifier: Apache-2.0
// Marks the class of a placement with 128 bits, without sorting its parts.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "topologies/slots.h"

namespace orrery {

// Equal for placements of one class (placement_class.h). Of different classes' marks two would be
// equal by chance once in 2^64 classes.
struct ClassMark {
  std::uint64_t a = 0, b = 0;
  bool operator==(const ClassMark&) const = default;
};
struct ClassMarkHash {
  std::size_t operator()(const ClassMark& mark) const { return mark.a; }
};

// A part's mark is mixed, marks of a group's parts are added up: their order leaves no trace. Work
// goes with the runs of equal hosts, as placement_class() does, and needs no memory.
class ClassMarker {
 public:
  explicit ClassMarker(const SlotShape& shape);
  // As placement_class(): grants in any order, each host in one of them.
  ClassMark mark(const Grants& grants) const;

 private:
  // A group's units divided without a division (Lemire, Kaser, Kurz 2019).
  struct Level {
    std::uint32_t units = 1;  // of the level below, in a group
    std::uint64_t inverse = 0;
    std::uint32_t group(std::uint32_t unit) const {
      if (units == 1) return unit;
      __extension__ using Wide = unsigned __int128;
      return static_cast<std::uint32_t>((Wide{inverse} * unit) >> 64);
    }
  };
  class Sum;
  std::vector<Level> levels_;
};

}  // namespace orrery
