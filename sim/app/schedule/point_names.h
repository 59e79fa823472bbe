// SPDX-License-Identifier: Apache-2.0
// Names points of a schedule in words, as rows and headings of its answer have them, and means over
// their runs.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "sim/paper/document.h"
#include "sim/question/schedule/schedule.h"

namespace orrery {

std::string point_name(const SchedulePoint& point);  // "easy, pack, gpus 64"

// Points that were run; of many the best ones, those in front.
std::vector<const SchedulePoint*> run_points(const Scheduled& scheduled);

// Means over the runs of a point; 0 without any.
double mean_of(const SchedulePoint& point, const std::function<double(const FleetMeasures&)>& of);
double mean_share(const SchedulePoint& point, double FleetShares::*member);

// Columns that say which point a row is of, and their cells.
void name_columns(const Scheduled& scheduled, std::vector<std::string>& head,
                  std::vector<Align>& align);
std::vector<std::string> name_cells(const SchedulePoint& point);

}  // namespace orrery
