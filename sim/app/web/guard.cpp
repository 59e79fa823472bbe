// SPDX-License-Identifier: Apache-2.0
// Holds requests against what this machine's own pages send.
#include "sim/app/web/guard.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>

namespace orrery {
namespace {

std::vector<std::string> own_hosts(int port) {
  std::vector<std::string> hosts;
  for (const char* name : {"127.0.0.1", "localhost"}) {
    hosts.push_back(fmt::format("{}:{}", name, port));
    if (port == 80) hosts.emplace_back(name);
  }
  return hosts;
}

bool is_among(const std::vector<std::string>& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

}  // namespace

std::optional<WebReply> refused(const WebRequest& request, int port) {
  const std::vector<std::string> hosts = own_hosts(port);
  if (!is_among(hosts, request.host))
    return refusal_reply(403, "Host", in_quotes(request.host), hosts.front());
  std::vector<std::string> origins;
  for (const std::string& host : hosts) origins.push_back("http://" + host);
  if (!request.origin.empty() && !is_among(origins, request.origin))
    return refusal_reply(403, "Origin", in_quotes(request.origin), origins.front());
  const std::string json = "application/json";
  const std::string type = request.content_type.substr(0, request.content_type.find(';'));
  if (request.method == "POST" && type != json)
    return refusal_reply(415, "Content-Type", in_quotes(request.content_type), json);
  if (request.method != "POST" && request.method != "GET" && request.method != "HEAD")
    return refusal_reply(405, "method", in_quotes(request.method), "GET, HEAD or POST");
  return std::nullopt;
}

const std::vector<std::pair<const char*, const char*>>& guarding_headers() {
  static const std::vector<std::pair<const char*, const char*>> headers = {
      {"Content-Security-Policy",
       "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; "
       "img-src 'self' data: blob:; connect-src 'self'; base-uri 'none'; form-action 'none'; "
       "frame-ancestors 'none'"},
      {"X-Content-Type-Options", "nosniff"},
      {"Referrer-Policy", "no-referrer"},
      {"Cross-Origin-Opener-Policy", "same-origin"},
      {"Cross-Origin-Resource-Policy", "same-origin"},
      {"Cache-Control", "no-store"}};
  return headers;
}

}  // namespace orrery
