// SPDX-License-Identifier: Apache-2.0
// Knows which requests are answered at all: those of this machine's own pages and programs.
#pragma once

#include <optional>
#include <utility>
#include <vector>

#include "sim/app/web/reply.h"

namespace orrery {

// Why a request is refused: a Host that is not this server (another site's name that leads here),
// an Origin that is another site, a body that is no JSON (which a form of another site could send).
std::optional<WebReply> refused(const WebRequest& request, int port);

// Headers of every reply: what a page of ours may load and run, and who may embed it.
const std::vector<std::pair<const char*, const char*>>& guarding_headers();

}  // namespace orrery
