// SPDX-License-Identifier: Apache-2.0
// Says what validate was asked, for its answer.
#include <algorithm>
#include <filesystem>

#include "sim/app/validate/validate.h"
#include "sim/base/input_file.h"

namespace orrery {
namespace {

// The file itself, or all files of a folder and of the folders in it, in the order of their names.
std::vector<std::filesystem::path> files_of(const std::filesystem::path& given) {
  if (!std::filesystem::is_directory(given)) return {given};
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(given))
    if (entry.is_regular_file()) files.push_back(entry.path());
  std::sort(files.begin(), files.end());
  return files;
}

}  // namespace

AnswerHead validate_head(const ValidateOptions& options) {
  AnswerHead head{.command = "validate"};
  SortedJson& question = head.question;
  for (const std::string& given : options.files)
    for (const std::filesystem::path& file : files_of(given))
      // Bytes that are no UTF-8 cannot stand in an answer: the reader of tables refuses them first.
      question["files"].push_back({{"name", file.filename().string()}, {"text", content_of(file)}});
  if (!options.leave_out.empty()) question["leave_out"] = options.leave_out;
  const auto add = [&](const char* key, bool given) {
    if (given) question[key] = true;
  };
  add("fit", options.fit);
  add("kernels", options.kernels);
  add("nested", options.nested);
  add("free", options.free);
  return head;
}

}  // namespace orrery
