// SPDX-License-Identifier: Apache-2.0
// Takes what matters here out of an HTTP request.
#pragma once

#include <boost/beast/http/message.hpp>
#include <boost/beast/http/string_body.hpp>

#include "sim/app/web/reply.h"

namespace orrery {

WebRequest request_of(boost::beast::http::request<boost::beast::http::string_body> request);

}  // namespace orrery
