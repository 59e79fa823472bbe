// Says what validate was asked, for its answer.
#include <fstream>
#include <iterator>

#include "sim/app/validate.h"

namespace orrery {
namespace {

// Bytes that are no UTF-8 cannot stand in an answer: the reader of tables refuses them first.
std::string text_of(const std::string& file) {
  std::ifstream in(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

}  // namespace

AnswerHead validate_head(const ValidateOptions& options) {
  AnswerHead head{.command = "validate"};
  nlohmann::json& question = head.question;
  for (const std::string& file : options.files)
    question["files"].push_back({{"name", file}, {"text", text_of(file)}});
  if (!options.leave_out.empty()) question["leave_out"] = options.leave_out;
  const auto add = [&](const char* key, bool given) {
    if (given) question[key] = true;
  };
  add("fit", options.fit);
  add("kernels", options.kernels);
  return head;
}

}  // namespace orrery
