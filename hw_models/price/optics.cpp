// SPDX-License-Identifier: Apache-2.0
// Reads the catalogue of transceivers and cables, and finds the entry that suits a link.
#include "hw_models/price/optics.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "hw_models/catalog.h"
#include "sim/base/sorting.h"
#include "sim/base/text/enum_names.h"

namespace orrery {
namespace {

constexpr const char* optics_folder = "hw_models/catalog/optics";
constexpr auto kind_text = enum_names<OpticKind>(
    {"transceiver", "coherent", "copper", "fibre", "long-haul-fibre", "backplane"});

double rate_or_zero(const Optic& optic) { return optic.rate.known() ? optic.rate.get().si() : 0; }

}  // namespace

std::string_view to_text(OpticKind kind) { return kind_text[kind]; }

Optic read_optic(const JsonValue& file) {
  file.expect_only({"name", "title", "kind", "rate", "reach_metres", "power", "price"});
  Optic optic{.name = file.at("name").text(),
              .title = file.at("title").text(),
              .kind = kind_text.from(file.at("kind")),
              .rate = read_sourced<BytesPerSecond>(file.at("rate")),
              .reach_metres = read_sourced<double>(file.at("reach_metres")),
              .power = read_sourced<Watts>(file.at("power")),
              .price = read_sourced<Dollars>(file.at("price"))};
  if (optic.rate.known() && !(optic.rate.get().si() > 0)) file.at("rate").fail("a rate above 0");
  return optic;
}

Optic load_optic(const std::string& name) {
  return read_optic(load_catalog_entry(optics_folder, "optic", name));
}

std::vector<Optic> load_optics() {
  std::vector<Optic> optics;
  for (const std::string& name : catalog_names(optics_folder)) optics.push_back(load_optic(name));
  sort_stably(optics, [](const Optic& a, const Optic& b) {
    return a.kind != b.kind ? a.kind < b.kind : rate_or_zero(a) < rate_or_zero(b);
  });
  return optics;
}

OpticChoice choose_optic(const std::vector<Optic>& optics, OpticKind kind, BytesPerSecond rate) {
  // Rates of catalogues are rounded: 400 Gbit/s must not need a module of 800 for the last bit.
  constexpr double rounding = 1 + 1e-9;
  OpticChoice choice;
  for (const Optic& optic : optics) {
    if (optic.kind != kind) continue;
    choice.optic = &optic;
    if (!optic.rate.known() || optic.rate.get().si() * rounding >= rate.si()) return choice;
  }
  if (choice.optic != nullptr)
    choice.count = static_cast<std::int64_t>(
        std::ceil(rate.si() / (choice.optic->rate.get().si() * rounding)));
  return choice;
}

}  // namespace orrery
