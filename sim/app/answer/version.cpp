// SPDX-License-Identifier: Apache-2.0
// Says which Orrery this is; the build hands the version over.
#include "sim/app/answer/version.h"

#include "hw_models/catalogue_hash.h"

namespace orrery {

std::string program_version() { return ORRERY_VERSION; }

std::string version_text() {
  return "orrery " + program_version() + ", catalogue " + catalogue_hash() + "\n";
}

std::string catalogue_version() { return catalogue_hash(); }

}  // namespace orrery
