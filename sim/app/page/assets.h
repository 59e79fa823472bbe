// SPDX-License-Identifier: Apache-2.0
// Finds the files that pages are put together from: style, scripts, and Vega.
#pragma once

#include <filesystem>
#include <string>

namespace orrery {

// MachineFailed where it is missing or empty.
std::string file_text(const std::filesystem::path& file);
// The folder sim/web of a checkout, or of what was installed.
std::filesystem::path web_folder();
// Text of one of its files ("page.css"). MachineFailed where it cannot be read.
std::string web_file(const std::string& name);

// Vega, Vega-Lite and vega-embed as one script, which the build takes from vl-convert-python.
// MachineFailed, with what to install, where the build had none.
std::string vega_script();

}  // namespace orrery
