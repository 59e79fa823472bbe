// Knows how to show the catalogues, with the source of every value.
#pragma once

#include <string>

#include "sim/app/command.h"

namespace orrery {

struct CatalogOptions {
  std::string action;  // "list" or "show"
  std::string kind;    // list without a kind names the kinds
  std::string name;
};
// What the command prints. Errors name what is unknown.
std::string catalog_text(const CatalogOptions& options, bool json);

Command catalog_command();

}  // namespace orrery
