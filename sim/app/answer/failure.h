// SPDX-License-Identifier: Apache-2.0
// Knows how a command that fails says so.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "sim/app/answer/exit_code.h"
#include "sim/base/errors/check.h"

namespace orrery {

// By the kind of the error.
ExitCode exit_code_of(const Error& error);
std::string_view kind_of(const Error& error);  // "bad_input", "cannot_exist", "machine_failed"

// What `run` does; bad input that it meets is thrown again as `named` words it. Other errors name
// no flag and pass as they are.
ExitCode naming_flags(const std::function<ExitCode()>& run,
                      const std::function<Error(const Error&)>& named);

// One line on stderr; for machines also {"error": ...} on stdout, in place of an answer.
ExitCode report_failure(const Error& error, bool json);
// A fault of ours, whatever was asked.
ExitCode report_fault(const std::string& what, bool json);

}  // namespace orrery
