// SPDX-License-Identifier: Apache-2.0
// Draws charts by a Python interpreter of its own.
#include "sim/app/page/draw.h"

#include <cstdlib>

#include "sim/app/page/assets.h"
#include "sim/base/child.h"
#include "sim/base/errors/machine_failed.h"
#include "sim/base/output_file.h"

namespace orrery {
namespace {

std::string interpreter() {
  const char* named = std::getenv("ORRERY_PYTHON");
  return named != nullptr && *named != '\0' ? named : "python3";
}

std::string script() { return (web_folder() / "draw.py").string(); }

}  // namespace

void check_drawing() {
  const ChildResult found = run_child({interpreter(), "-c",
                                       "import importlib.util as u, sys; "
                                       "sys.exit(u.find_spec('vl_convert') is None)"},
                                      "");
  if (found.code != 0)
    throw MachineFailed({.file = "--plots",
                         .found = interpreter() + " without vl-convert-python",
                         .expected = "an interpreter that has it (pip install vl-convert-python), "
                                     "named by the environment variable ORRERY_PYTHON"});
}

void draw_charts(const std::vector<Chart>& charts, const std::filesystem::path& folder) {
  make_folder(folder);
  const ChildResult drawn =
      run_child({interpreter(), script(), folder.string()}, charts_json(charts).dump());
  if (drawn.code != 0)
    throw MachineFailed({.file = folder.string(),
                         .found = "a chart that could not be drawn: " + drawn.errors,
                         .expected = "pictures by vl-convert-python"});
}

}  // namespace orrery
