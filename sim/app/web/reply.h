// SPDX-License-Identifier: Apache-2.0
// Knows a request as far as it matters here, and what is replied.
#pragma once

#include <functional>
#include <string>
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
// With the text that `answer` returns; an Error of it with the status that its kind has: 400, 422
// where what was asked for cannot exist, 500 where this machine failed.
WebReply reply_with(const std::function<std::string()>& answer);
// Of what the server itself refuses.
WebReply refusal_reply(unsigned status, const std::string& file, const std::string& found,
                       const std::string& expected);

}  // namespace orrery
