// SPDX-License-Identifier: Apache-2.0
// Writes the manifest of the catalogues, as a build does: the program then hashes only what was
// edited since.
#include <iostream>

#include "hw_models/catalogue_hash.h"
#include "sim/base/errors/check.h"
#include "sim/base/output_file.h"

int main(int count, char** words) {
  if (count != 3) {
    std::cerr << "usage: orrery_manifest ROOT FILE\n";
    return 2;
  }
  try {
    orrery::write_file(words[2], orrery::manifest_text(orrery::catalogue_manifest(words[1])));
    return 0;
  } catch (const orrery::Error& error) {
    std::cerr << error.message() << "\n";
    return 2;
  }
}
