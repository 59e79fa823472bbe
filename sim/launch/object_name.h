// SPDX-License-Identifier: Apache-2.0
// Knows which part of a text a name of a Kubernetes object may have.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace orrery {

// Letters, small, and digits; a dash for all else between them; at most so many bytes, perhaps none
// (RFC 1123's labels, of which names of Services also begin with a letter).
std::string object_label(std::string_view text, std::size_t most);

}  // namespace orrery
