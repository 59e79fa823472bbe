// SPDX-License-Identifier: Apache-2.0
// Knows which of two releases is the later one.
#pragma once

#include <string>
#include <vector>

namespace orrery {

// Releases are compared part by part as numbers ("26.02" < "26.02.01" < "26.04"; "2023-02").
std::vector<long> release_parts(const std::string& release);

}  // namespace orrery
