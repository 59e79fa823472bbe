// SPDX-License-Identifier: Apache-2.0
// Knows which Orrery this is, and which catalogue.
#pragma once

#include <string>

namespace orrery {

std::string program_version();  // "0.5.0"
std::string version_text();     // what --version prints
// A hash of every file that can change an answer, as hexadecimal digits.
std::string catalogue_version();

}  // namespace orrery
