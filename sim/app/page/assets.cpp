// SPDX-License-Identifier: Apache-2.0
// Reads the files that pages are put together from.
#include "sim/app/page/assets.h"

#include "hw_models/catalog.h"
#include "sim/base/errors/machine_failed.h"
#include "sim/base/input_file.h"

namespace orrery {
namespace {

namespace fs = std::filesystem;

constexpr const char* vega_name = "vega.js";

bool read(const fs::path& file, std::string& text) {
  text = content_of(file);
  return !text.empty();
}

}  // namespace

fs::path web_folder() { return data_root() / "sim/web"; }

std::string file_text(const fs::path& file) {
  std::string text;
  if (!read(file, text))
    throw MachineFailed({.file = file.string(),
                         .found = "no file that can be read",
                         .expected = "the files that Orrery was installed with"});
  return text;
}

std::string web_file(const std::string& name) { return file_text(web_folder() / name); }

std::string vega_script() {
  std::string text;
  std::error_code ignored;
  const fs::path beside = fs::read_symlink("/proc/self/exe", ignored).parent_path();
  for (const fs::path& file : {web_folder() / vega_name, beside / "web" / vega_name})
    if (read(file, text)) return text;
  throw MachineFailed(
      {.file = vega_name,
       .found = "no script that draws charts: this build had no vl-convert-python to take it from",
       .expected = "one made by ./orrery itself, or by pip install ."});
}

}  // namespace orrery
