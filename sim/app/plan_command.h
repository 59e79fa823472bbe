// Knows the command `plan`: a question file in, a document of the machines that answer it out.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "sim/app/command.h"
#include "sim/app/exit_code.h"

namespace orrery {

struct PlanCommand {
  std::string question;  // name in workloads/catalog/questions, or a file; empty: flags alone
  nlohmann::json flags = nlohmann::json::object();  // keys of plan_keys(); they win over the file
  bool json = false, markdown = false, quiet = false;
  int threads = 0;
  std::optional<std::uint64_t> seed;  // of the draws behind the range of what counts
};

// The result for stdout; progress goes to stderr. Errors name the file and the key. After Ctrl-C:
// what is known by then.
struct PlanAnswer {
  std::string text;
  ExitCode code = ExitCode::answer;  // cannot_exist: no point meets all limits
};
PlanAnswer plan_answer(const PlanCommand& command);

Command plan_command();

}  // namespace orrery
