// Knows the command `plan`: a question file in, a document of the machines that answer it out.
#pragma once

#include <string>

namespace orrery {

struct PlanCommand {
  std::string question;  // name in workloads/catalog/questions, or a file
  bool json = false, markdown = false, quiet = false;
  int threads = 0;
};

// The result for stdout; progress goes to stderr. Errors name the file and the key. After Ctrl-C:
// what is known by then.
std::string plan_text(const PlanCommand& command);

}  // namespace orrery
