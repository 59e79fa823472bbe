// SPDX-License-Identifier: Apache-2.0
// Writes the Chrome trace format that Perfetto opens: tracks, slices and counters.
#pragma once

#include <cstdint>
#include <string>

#include "sim/base/json/tree.h"
#include "sim/base/units/fleet_time.h"
#include "sim/base/units/ticks.h"

namespace orrery {

class TraceEvents {
 public:
  void name_process(std::int64_t process, const std::string& name);
  void name_track(std::int64_t process, std::int64_t track, const std::string& name);
  // `details` (an object, or null) is shown when a slice is selected.
  void slice(const std::string& name, const std::string& category, std::int64_t process,
             std::int64_t track, Ticks start, Ticks length, const Json& details = nullptr);
  // A curve for each member of `values`, stacked, that holds from here on.
  void counter(const std::string& name, std::int64_t process, Ticks at, const Json& values);
  // The same of a cluster's months.
  void slice(const std::string& name, const std::string& category, std::int64_t process,
             std::int64_t track, FleetTime start, FleetTime length, const Json& details = nullptr);
  void counter(const std::string& name, std::int64_t process, FleetTime at, const Json& values);
  // An arrow between slices that hold these places. `arrow`: its number, of its own.
  void arrow_from(std::int64_t arrow, std::int64_t process, std::int64_t track, FleetTime at);
  void arrow_to(std::int64_t arrow, std::int64_t process, std::int64_t track, FleetTime at);
  std::string text() const;  // the file

 private:
  void add(const Json& event);
  void add_arrow(const char* end, std::int64_t arrow, std::int64_t process, std::int64_t track,
                 FleetTime at);
  void add_slice(const std::string& name, const std::string& category, std::int64_t process,
                 std::int64_t track, const Json& start, const Json& length, const Json& details);
  std::string events_;
};

}  // namespace orrery
