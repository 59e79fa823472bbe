// SPDX-License-Identifier: Apache-2.0
// Lists the kinds of the catalogue.
#include "sim/app/catalog/kinds.h"

#include <fmt/format.h>

#include "sim/base/errors/check.h"
#include "sim/base/text/words.h"

namespace orrery {

const std::vector<CatalogKind>& catalog_kinds() {
  static const std::vector<CatalogKind> kinds = {
      {"accelerator", "hw_models/catalog/accelerators"},
      {"cloud", "hw_models/catalog/cloud"},
      {"cluster", "sim/engine/catalog/clusters"},
      {"economics", "hw_models/catalog/economics"},
      {"fabric", "topologies/catalog"},
      {"host", "hw_models/catalog/hosts"},
      {"model", "workloads/catalog/models"},
      {"nic", "hw_models/catalog/nics"},
      {"optic", "hw_models/catalog/optics"},
      {"policy", "sim/engine/catalog/policies"},
      {"question", "workloads/catalog/questions"},
      {"reliability", "hw_models/catalog/reliability"},
      {"site", "hw_models/catalog/sites"},
      {"stack", "workloads/catalog/stacks"},
      {"storage", "hw_models/catalog/storage"},
      {"switch", "hw_models/catalog/switches"},
      {"thresholds", "sim/engine/catalog/power_policies"}};
  return kinds;
}

std::string plural_of(const std::string& kind) {
  return kind.ends_with('y') ? kind.substr(0, kind.size() - 1) + "ies" : kind + "s";
}

const CatalogKind& find_catalog_kind(const std::string& name) {
  std::vector<std::string> names;
  for (const CatalogKind& kind : catalog_kinds()) {
    if (name == kind.name || name == plural_of(kind.name)) return kind;
    names.push_back(kind.name);
  }
  throw Error({.file = "catalog",
               .found = name.empty() ? "no kind" : in_quotes(name),
               .expected = fmt::format("one of {}", joined(names, ", ")),
               .nearest = nearest_name(name, names)});
}

}  // namespace orrery
