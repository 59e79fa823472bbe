// SPDX-License-Identifier: Apache-2.0
// Knows a request as far as it matters here, and what is replied.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "sim/base/errors/check.h"

namespace orrery {

struct WebRequest {
  std::string method;                   // "GET"
  std::string path;                     // "/api/v1/simulate"
  std::vector<std::string> parts = {};  // of ?parts=charts,report
  bool events = false;                  // a stream of events is asked for
  std::string client = {};              // Orrery-Client
  std::string host = {}, origin = {}, content_type = {};
  std::string body = {};
};

struct WebReply {
  unsigned status = 200;
  std::string type = "application/json";
  std::string body = {};
};

WebReply error_reply(unsigned status, const Error& error);
// Of what the server itself refuses.
WebReply refusal_reply(unsigned status, const std::string& file, const std::string& found,
                       const std::string& expected);

}  // namespace orrery
