// SPDX-License-Identifier: Apache-2.0
// Knows the page that an answer is taken to a meeting as: one file, nothing fetched.
#pragma once

#include <string>

#include "sim/app/answer/whole.h"

namespace orrery {

// A whole HTML document: verdict and key numbers, charts, the report, what it rests on, and how to
// ask again. Style, scripts and Vega are inside. MachineFailed where files of the program are
// missing.
std::string page_html(const WholeAnswer& answer);

}  // namespace orrery
