// SPDX-License-Identifier: Apache-2.0
// Knows what the interface under /api/v1 and the page's files answer at once, without a search.
#pragma once

#include <map>
#include <string>

#include "sim/app/web/reply.h"
#include "sim/app/web/view.h"

namespace orrery {

// Files that are served, read once: by their paths. No name of a request ever reaches the disk.
using WebFiles = std::map<std::string, WebReply>;
WebFiles load_web_files();

inline constexpr const char* api_root = "/api/v1/";

// The command whose question a path is for ("/api/v1/advise": "advise"); "" for other paths.
std::string command_of(const std::string& path);

// Whether a question may take long: it is answered by a program of its own, which can be stopped.
bool is_search(const ViewAsked& asked);

// A reply to everything but questions; 404 for what there is not.
WebReply reply_at_once(const WebRequest& request, const WebFiles& files);

}  // namespace orrery
