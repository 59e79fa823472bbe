// Knows which Orrery this is.
#pragma once

#include <string>

namespace orrery {

std::string program_version();  // "0.5.0"
std::string version_text();     // what --version prints

}  // namespace orrery
