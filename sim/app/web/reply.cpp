// SPDX-License-Identifier: Apache-2.0
// Writes errors as replies.
#include "sim/app/web/reply.h"

#include "sim/app/answer/answer.h"
#include "sim/app/answer/failure.h"

namespace orrery {

WebReply error_reply(unsigned status, const Error& error) {
  return {.status = status, .body = indented_text(error_json(error.info(), kind_of(error)))};
}

WebReply refusal_reply(unsigned status, const std::string& file, const std::string& found,
                       const std::string& expected) {
  return error_reply(status, Error({.file = file, .found = found, .expected = expected}));
}

}  // namespace orrery
