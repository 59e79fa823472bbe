// SPDX-License-Identifier: Apache-2.0
// Reads a request's target and headers.
#include "sim/app/web/requests.h"

namespace orrery {
namespace {

namespace http = boost::beast::http;
using BeastRequest = http::request<http::string_body>;

std::string header(const BeastRequest& request, boost::beast::string_view name) {
  return std::string(request[name]);
}

// "charts,report" of "?parts=charts,report". Names hold no character that a target must encode but
// the comma, which may be.
std::vector<std::string> parts_in(std::string query) {
  const std::string key = "parts=", comma = "%2C";
  for (std::size_t at = 0; (at = query.find(comma)) != std::string::npos;)
    query.replace(at, comma.size(), ",");
  const std::size_t from = query.find(key);
  if (from == std::string::npos) return {};
  std::vector<std::string> parts;
  const std::size_t stop = std::min(query.find('&', from), query.size());
  for (std::size_t at = from + key.size(); at <= stop;) {
    const std::size_t end = std::min(query.find(',', at), stop);
    if (end > at) parts.push_back(query.substr(at, end - at));
    at = end + 1;
  }
  return parts;
}

}  // namespace

WebRequest request_of(BeastRequest request) {
  const std::string target(request.target());
  const std::size_t mark = std::min(target.find('?'), target.size());
  return {.method = std::string(request.method_string()),
          .path = target.substr(0, mark),
          .parts = parts_in(target.substr(mark)),
          .events = header(request, "Accept").find("text/event-stream") != std::string::npos,
          .client = header(request, "Orrery-Client"),
          .host = header(request, "Host"),
          .origin = header(request, "Origin"),
          .content_type = header(request, "Content-Type"),
          .body = std::move(request.body())};
}

}  // namespace orrery
