// Says which Orrery this is; the build hands the version over.
#include "sim/app/version.h"

namespace orrery {

std::string program_version() { return ORRERY_VERSION; }

std::string version_text() { return "orrery " + program_version() + "\n"; }

}  // namespace orrery
