// SPDX-License-Identifier: Apache-2.0
// Knows transceivers and cables: what joins two ports, by medium and rate.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "sim/base/json/json.h"
#include "sim/base/units/sourced.h"
#include "sim/base/units/units.h"

namespace orrery {

enum class OpticKind : std::uint8_t {
  transceiver,  // pluggable, within a hall
  coherent,     // pluggable, between sites
  copper,       // cable with both plugs
  fibre,
  long_haul_fibre,
  backplane,  // links of a base board or a rack
};
std::string_view to_text(OpticKind);

// One module, or one cable. Modules come in pairs: one at each end that is not co-packaged.
struct Optic {
  std::string name, title;
  OpticKind kind = OpticKind::transceiver;
  Sourced<BytesPerSecond> rate;  // per direction; absent: whatever is sent
  Sourced<double> reach_metres;
  Sourced<Watts> power;
  Sourced<Dollars> price;
};

Optic read_optic(const JsonValue& file);
Optic load_optic(const std::string& name);

// All of hw_models/catalog/optics, by kind and then rate.
std::vector<Optic> load_optics();

// What one link needs: `count` of `optic` side by side.
struct OpticChoice {
  const Optic* optic = nullptr;  // null: the catalogue has none of the kind
  std::int64_t count = 1;
};
// The slowest entry of the kind that carries `rate`, or as many of the fastest as it takes.
// `optics` is sorted as load_optics() does, and outlives the choice.
OpticChoice choose_optic(const std::vector<Optic>& optics, OpticKind kind, BytesPerSecond rate);

}  // namespace orrery
