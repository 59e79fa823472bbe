// SPDX-License-Identifier: Apache-2.0
// Knows the part of a large job on which collectives run beside each other.
#pragma once

#include "sim/engine/collectives/collectives.h"
#include "sim/engine/flows/ground.h"

namespace orrery {

// What collectives share are NICs, ports and the links near them, which a longer job only repeats.
inline constexpr std::int64_t most_shared_domains = 64;

bool is_large(const JobGround& job);  // on more domains than that

// The job, or of a large one a part of that many domains; of a scattered one about that many, of
// pods and leaves that are evenly chosen among all that it is on, as full as these are as far as
// they fit: links above a pod that has more of the job are less busy than in the job.
JobGround shared_part(JobGround job, const Fabric& fabric);

// The same neighbours as far as they are in the part, else halfway across it.
Collective shared_part(Collective collective);

}  // namespace orrery
