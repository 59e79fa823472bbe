// SPDX-License-Identifier: Apache-2.0
// Finds the price of a place: by the place itself where it was asked for lately, else by its class.
#pragma once

#include <array>
#include <cstdint>
#include <unordered_map>

#include "sim/engine/class_mark.h"
#include "sim/engine/fleet/fleet_question.h"

namespace orrery {

// Of one kind of work. One thread at a time; prices stay where they are.
class PriceTable {
 public:
  // Null: no place of the class has a price. `mark` has the class then, and is unspecified else.
  const PlacePrice* find(const Grants& place, const ClassMarker& marker, ClassMark& mark);
  const PlacePrice& add(const Grants& place, const ClassMark& mark, PlacePrice price);
  std::size_t classes() const { return by_class_.size(); }

 private:
  struct Last {
    Grants place;
    const PlacePrice* price = nullptr;
  };
  static constexpr std::size_t remembered = 256;  // places: more than a kind of work holds at once
  Last& last_of(const Grants& place);

  std::unordered_map<ClassMark, PlacePrice, ClassMarkHash> by_class_;
  std::array<Last, remembered> last_;
};

}  // namespace orrery
