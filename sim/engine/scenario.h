// Knows what is simulated: a job with its stack and layout on a cluster.
#pragma once

#include "sim/engine/cluster.h"
#include "workloads/job.h"
#include "workloads/layout.h"
#include "workloads/model.h"
#include "workloads/stack.h"

namespace orrery {

struct Scenario {
  Cluster cluster;
  Model model;
  Job job;
  Layout layout;
  Stack stack;
};

}  // namespace orrery
