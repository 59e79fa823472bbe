// SPDX-License-Identifier: Apache-2.0
// Knows how an entry of the catalogue is shown, with the source of every value.
#pragma once

#include "sim/app/catalog/kinds.h"
#include "sim/base/json/json.h"
#include "sim/paper/tables.h"

namespace orrery {

// An entry by its name, an alias or a file, with what it is based on laid under it.
JsonValue load_kind_entry(const CatalogKind& kind, const std::string& name);

std::string show_catalog_entry(const CatalogKind& kind, const std::string& name,
                               std::size_t width = page_width);

}  // namespace orrery
