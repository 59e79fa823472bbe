// SPDX-License-Identifier: Apache-2.0
// Checks tasks of Alibaba's PAI as jobs: gangs, instances on parts of GPUs, and what is refused.
#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "tests/base/error_text.h"
#include "tests/workloads/job_texts.h"
#include "workloads/job_traces/job_trace.h"

namespace orrery {
namespace {

constexpr std::int64_t second = 1'000'000;

using Names = std::vector<std::string>;

std::string refused(const std::string& text) {
  return error_text([&] { parse_jobs(text, job_format_of(text), "t"); });
}

}  // namespace

TEST_CASE("job trace: tasks of PAI are gangs, or instances on parts of GPUs") {
  CHECK(job_format_of(pai_text) == JobTraceFormat::pai);
  const ClusterJobs list = parse_jobs(pai_text, JobTraceFormat::pai, "t");
  CHECK(list.ids == Names{"91ab/worker.1", "91ab/worker.2", "91ab/worker.3", "91ab/worker.4",
                          "4f057009/tensorflow", "77/worker", "78/worker", "77/worker#2"});
  std::vector<int> milli, gpus;
  for (const ClusterJob& job : list.jobs) {
    milli.push_back(job.milli);
    gpus.push_back(job.gpus);
  }
  CHECK(milli == std::vector<int>{250, 250, 250, 250, 500, 0, 0, 0});
  CHECK(gpus == std::vector<int>{1, 1, 1, 1, 1, 8, 6, 1});
  CHECK(list.queues == Names{"MISC", "T4", "V100", "P100"});
  CHECK(list.jobs[0].fate == JobFate::failed);
  CHECK(list.jobs[6].fate == JobFate::completed);
  CHECK(list.jobs[4].submit.us == 62 * second);
  CHECK(list.jobs[4].length.us == 38 * second);
  // 1739100 s are 1970-01-21 11:05 in UTC+8, a Wednesday as it was.
  CHECK(list.began->us == (1'739'100 + 8 * 3600) * second);
  CHECK(list.notes ==
        Names{"1 task without GPUs was left out", "2 tasks without a start or an end were left out",
              "1 task plans parts of several GPUs, and got whole ones",
              "1 task on parts of GPUs is as many jobs as it has instances",
              "1 row was not in order of submission, and was sorted",
              "Submissions are not in the table: a task is submitted when it was launched, so that "
              "waits are those that this cluster adds"});
  const std::string head =
      "gpu_type,plan_gpu,job_name,task_name,inst_num,status,start_time,end_time\n";
  CHECK(job_format_of(head) == JobTraceFormat::pai);
  const ClusterJobs named =
      parse_jobs(head + "T4,100,a,b,1,Terminated,5,9\n", JobTraceFormat::pai, "t");
  CHECK(named.ids == Names{"a/b"});
  CHECK(refused("\na,b,1,Failed,9,5,1,1,50,T4\n") ==
        "t: line 2, column end_time: found \"5\"; expected a time that is not before start_time");
  CHECK(
      refused("a,b,1,Failed,1,5,1,1,50,T4\na,b,1,Lost,1,5,1,1,50,T4\n") ==
      "t: line 2, column status: found \"Lost\"; expected Terminated, Failed, Running or Waiting");
  CHECK(refused("a,b,1000000,Failed,1,5,1,1,50,T4\n") ==
        "t: line 1, column inst_num: found \"1000000\"; expected instances between 1 and 10^5");
  CHECK(refused("a,b,1,Failed,1,5,1,1,-50,T4\n") ==
        "t: line 1, column plan_gpu: found \"-50\"; expected GPUs in percent between 0 and 10^9");
  CHECK(refused("a,b,1,Failed,1,5,1,1,50,T4\na,b\n") ==
        "t: line 2: found 2 fields; expected 10, as pai_task_table.csv has");
  CHECK(refused("plan_gpu,status\n") ==
        "t: line 1: found no column \"job_name\"; expected the columns that "
        "workloads/catalog/job_traces/README.md lists");
}

}  // namespace orrery
