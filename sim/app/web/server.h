// SPDX-License-Identifier: Apache-2.0
// Knows how the page and its interface are served: on this machine alone, until Ctrl-C.
#pragma once

#include <functional>

namespace orrery {

// Serves on 127.0.0.1 at the port (0: any that is free), which `ready` is told. Returns after
// SIGINT or SIGTERM. MachineFailed where the port is taken or files of the page are missing.
void serve_web(int port, const std::function<void(int port)>& ready);

}  // namespace orrery
