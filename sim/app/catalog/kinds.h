// SPDX-License-Identifier: Apache-2.0
// Knows the kinds of entries that the catalogue has, and where each lies.
#pragma once

#include <string>
#include <vector>

namespace orrery {

struct CatalogKind {
  std::string name;    // "cluster"
  std::string folder;  // below data_root()
};
const std::vector<CatalogKind>& catalog_kinds();

std::string plural_of(const std::string& kind);
// By name, also in the plural. An unknown name is an Error with the nearest.
const CatalogKind& find_catalog_kind(const std::string& name);

}  // namespace orrery
