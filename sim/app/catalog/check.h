// SPDX-License-Identifier: Apache-2.0
// Knows how the catalogue, or a file of a user's own, is judged.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace orrery {

struct CatalogFaults {
  std::size_t checked = 0;          // entries
  std::string what;                 // "the catalogue", or the kind of the file
  std::vector<std::string> faults;  // one line each
};

// Reads every entry as a command would, looks its sources up, and looks for names that are taken
// twice.
CatalogFaults check_catalog();
// A file of any kind, which is told by its keys. An Error where there is no file, or where no kind
// of entry has such keys.
CatalogFaults check_catalog_file(const std::string& file);

std::string faults_text(const CatalogFaults& faults);
std::string faults_json(const CatalogFaults& faults);

}  // namespace orrery
