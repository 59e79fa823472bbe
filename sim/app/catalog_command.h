// Knows how to show the catalogues, with the source of every value.
#pragma once

#include <string>

namespace orrery {

struct CatalogOptions {
  std::string action;  // "list" or "show"
  std::string kind;    // list without a kind names the kinds
  std::string name;
};
int run_catalog(const CatalogOptions& options, bool json);

}  // namespace orrery
