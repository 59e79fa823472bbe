// SPDX-License-Identifier: Apache-2.0
// Writes errors as replies.
#include "sim/app/web/reply.h"

#include <new>

#include "sim/app/answer/answer.h"
#include "sim/app/answer/failure.h"

namespace orrery {
namespace {

unsigned status_of(const Error& error) {
  switch (exit_code_of(error)) {
    case ExitCode::cannot_exist:
      return 422;
    case ExitCode::machine_failed:
      return 500;
    default:
      return 400;
  }
}

}  // namespace

WebReply error_reply(unsigned status, const Error& error) {
  return {.status = status, .body = indented_text(error_json(error.info(), kind_of(error)))};
}

WebReply refusal_reply(unsigned status, const std::string& file, const std::string& found,
                       const std::string& expected) {
  return error_reply(status, Error({.file = file, .found = found, .expected = expected}));
}

WebReply reply_with(const std::function<std::string()>& answer) {
  try {
    return {.body = answer()};
  } catch (const Error& error) {
    return error_reply(status_of(error), error);
  } catch (const std::bad_alloc&) {
    return refusal_reply(500, "question", "not enough memory for it", "a smaller one");
  }
}

}  // namespace orrery
