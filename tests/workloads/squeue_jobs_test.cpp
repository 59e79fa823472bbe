// SPDX-License-Identifier: Apache-2.0
// Checks a cluster as it is now: what squeue prints, which of it counts, in which order.
#include <algorithm>
#include <string>
#include <vector>

#include <catch2/catch.hpp>

#include "sim/base/random.h"
#include "tests/base/error_text.h"
#include "tests/base/fresh_seed.h"
#include "workloads/cluster_job/job_times.h"
#include "workloads/job_traces/job_trace.h"
#include "workloads/job_traces/squeue_jobs.h"
#include "workloads/job_traces/squeue_stage.h"

namespace orrery {
namespace {

using Names = std::vector<std::string>;
constexpr std::int64_t second = 1'000'000, day = 86'400 * second;

// Columns in an order of their own, one that does not count, and fields of some width.
const std::string header =
    "PRIORITY|JOBID   |STATE|TRES_ALLOC|TRES_PER_NODE|NODES|NAME|TIME_LEFT|PENDING_TIME|REASON|"
    "SUBMIT_TIME|PARTITION|USER|\n";

// With a submission an hour after midnight, which is as long ago as it waited.
std::string row(const std::string& id, const std::string& state, const std::string& gpus,
                const std::string& left, const std::string& rest = "10|60|Priority") {
  const std::size_t first = rest.find('|'), second_bar = rest.find('|', first + 1);
  return rest.substr(0, first) + "|" + id + "  |" + state + "|cpu=1" +
         (gpus.empty() ? "" : ",gres/gpu=" + gpus) + "|N/A|1|x|" + left + "|" +
         rest.substr(first + 1, second_bar - first - 1) + "|" + rest.substr(second_bar + 1) +
         "|2026-01-31T01:00:00|gpu|ann|\n";
}

ClusterJobs read(const std::string& rows) {
  return parse_jobs(header + rows, JobTraceFormat::squeue, "t");
}
std::string refused(const std::string& text) {
  return error_text([&] { parse_jobs(text, JobTraceFormat::squeue, "t"); });
}
const std::string command = squeue_command;

}  // namespace

TEST_CASE("squeue: running jobs stand in front, the others by priority and age") {
  const ClusterJobs list = read(row("1", "PENDING", "8", "2:00:00", "10|60|Priority") +
                                row("2", "RUNNING", "4", "5:00") +                        //
                                row("3", "PENDING", "1", "1:00", "20|10|Resources") +     //
                                row("4", "PENDING", "2", "1-00:00:00", "10|7200|None") +  //
                                row("5", "RUNNING", "16", "0:30") +                       //
                                row("6", "CONFIGURING", "4", "10:00"));
  CHECK(job_format_of(header) == JobTraceFormat::squeue);
  CHECK(list.ids == Names{"5", "2", "6", "3", "4", "1"});
  std::vector<std::int64_t> submits, gpus, lengths;
  for (const ClusterJob& job : list.jobs) {
    submits.push_back(job.submit.us);
    gpus.push_back(job.gpus);
    lengths.push_back(job.length.us / second);
    CHECK(job.limit == job.length);
    CHECK(job.fate == JobFate::completed);
  }
  CHECK(submits == std::vector<std::int64_t>{0, 0, 0, 1, 1, 1});
  CHECK(gpus == std::vector<std::int64_t>{16, 4, 4, 1, 2, 8});
  CHECK(lengths == std::vector<std::int64_t>{30, 300, 600, 60, 86'400, 7200});
  CHECK(list.queues == Names{"gpu"});
  CHECK(list.users == Names{"ann"});
  CHECK(list.notes ==
        Names{"3 jobs run now. Nobody knows when they end: they take the whole time to their "
              "limits. They are placed anew, not where they run",
              "3 jobs wait now, the oldest for 2.00 h. Waits count from now, and lengths are "
              "limits"});
  // As long after its submission as the job has waited that stands first.
  CHECK(list.began == FleetTime{fleet_stamp("2026-01-31T01:00:10", 'T').value()});
  CHECK_FALSE(read(row("2", "RUNNING", "4", "5:00")).began.has_value());
}

TEST_CASE("squeue: what does not wait for room is left out, and counted") {
  const ClusterJobs list =
      read(row("1", "RUNNING", "", "5:00") +                              //
           row("2", "RUNNING", "1", "5:00") +                             //
           row("3", "PENDING", "1", "5:00", "0|60|JobHeldUser") +         //
           row("4", "PENDING", "1", "5:00", "0|60|Priority") +            //
           row("5", "PENDING", "1", "5:00", "5|60|Dependency") +          //
           row("6", "PENDING", "1", "5:00", "5|60|BeginTime") +           //
           row("7", "PENDING", "1", "5:00", "5|60|PartitionTimeLimit") +  //
           row("8", "COMPLETING", "1", "5:00") +                          //
           row("9", "PENDING", "1", "5:00", "5|60|QOSMaxGRESPerUser") +   //
           row("10", "PENDING", "1", "5:00", "5|60|ReqNodeNotAvail,_UnavailableNodes:n1") +
           row("11", "SUSPENDED", "1", "5:00", "0|0|None") + row("12", "RUNNING", "1", "INVALID") +
           row("13", "PENDING", "1", "5:00", "5|60|QOSMaxWallDurationPerJobLimit"));
  CHECK(list.ids == Names{"2", "11", "12", "9", "10"});
  CHECK(list.jobs[2].length.us == 0);
  const Names counted(list.notes.begin() + 2, list.notes.end());
  CHECK(counted ==
        Names{"1 job without GPUs was left out", "2 jobs on hold were left out",
              "1 job depending on another one was left out",
              "1 job to begin later, or in a reservation was left out",
              "2 jobs asking for what Slurm does not give were left out",
              "1 job ending or ended was left out",
              "1 job waits for a limit of its account, QOS or array, which is not kept here",
              "1 job is suspended: it holds its GPUs and is taken to go on at once",
              "1 job has run past its limit, and is taken to end now"});
  CHECK(refused(header + row("3", "PENDING", "1", "5:00", "0|60|JobHeldUser")) ==
        "t: found no jobs: 1 job on hold was left out; expected at least one");
}

TEST_CASE("squeue: no limit is a year, arrays are their tasks, parts are one gang") {
  const ClusterJobs list = read(row("1", "PENDING", "1", "UNLIMITED", "9|5|Priority") +
                                row("2", "PENDING", "1", "NOT_SET", "8|5|Priority") +
                                row("3_[1-2,7,10-20:5%8]", "PENDING", "2", "5:00", "7|5|Priority") +
                                row("3_9", "RUNNING", "2", "4:00") +
                                row("12+1", "PENDING", "4", "5:00", "6|5|Priority") +
                                row("12+0", "PENDING", "2", "6:00", "6|5|Priority"));
  CHECK(list.ids == Names{"3_9", "1", "2", "3_1", "3_2", "3_7", "3_10", "3_15", "3_20", "12"});
  CHECK(list.jobs[1].length.us == 365 * day);
  CHECK(list.jobs[2].limit.us == 365 * day);
  CHECK(list.jobs.back().gpus == 6);
  CHECK(list.jobs.back().length.us == 360 * second);
  const Names counted(list.notes.begin() + 2, list.notes.end());
  CHECK(counted == Names{"1 array runs only so many tasks at once, which is not kept here",
                         "1 heterogeneous job counts as one gang",
                         "2 rows have no limits: Slurm's year stands for them"});
}

TEST_CASE("squeue: GPUs that no sum names come from the options of sbatch") {
  const auto gpus = [](const std::string& all, const std::string& job, const std::string& node,
                       const std::string& nodes, const std::string& task,
                       const std::string& tasks) {
    return parse_jobs(
               "JOBID|STATE|TRES_ALLOC|TRES_PER_JOB|TRES_PER_NODE|NODES|TRES_PER_TASK|TASKS|"
               "TIME_LEFT|PENDING_TIME|PRIORITY|REASON\n1|RUNNING|" +
                   all + "|" + job + "|" + node + "|" + nodes + "|" + task + "|" + tasks +
                   "|5:00|0|1|None\n",
               JobTraceFormat::squeue, "t")
        .jobs.front()
        .gpus;
  };
  CHECK(gpus("cpu=1,gres/gpu=3,gres/gpu:a=3", "gres:gpu:9", "N/A", "1", "N/A", "1") == 3);
  CHECK(gpus("cpu=1", "gres:gpu:5", "gres:gpu:2", "2", "N/A", "1") == 5);
  CHECK(gpus("cpu=1", "N/A", "gres:gpu:h100:2,gres:gpu:a100", "4", "N/A", "1") == 12);
  CHECK(gpus("cpu=1", "N/A", "gres/gpu:h100=2,gres/gpumem=80", "4", "N/A", "1") == 8);
  CHECK(gpus("N/A", "N/A", "N/A", "4", "gres:gpu:1", "6") == 6);
}

TEST_CASE("squeue: bad rows get one sentence, with the command where columns are wrong") {
  const std::string wants = "expected what this prints: " + command;
  CHECK(refused("  JOBID PARTITION NAME USER ST TIME NODES NODELIST(REASON)\n") ==
        "t: line 1: found columns of squeue with no | between them; " + wants);
  CHECK(refused("JOBID|STATE|TIME_LEFT|\n1|RUNNING|5:00|\n") ==
        "t: line 1: found no column \"TRES_ALLOC\"; " + wants);
  CHECK(refused(header + row("1", "RUNNING", "1", "5:00") + "10|2|RUNN") ==
        "t: line 3: found 3 fields; expected 14, as in the header; what this prints: " + command);
  const std::string tasks =
      "; expected a job, or all tasks of an array, which -r prints one by one: " + command;
  for (const std::string id : {"8_[1,3,5,12,", "8_[1,3,5", "8_[5-1]", "8_[1-9:0]", "8_[]", "8_[1]x",
                               "8_[0-99999999]", "8_[-1]", "8_[1,3,..."})
    CHECK(refused(header + row(id, "PENDING", "1", "5:00")) ==
          "t: line 2, column JOBID: found \"" + id + "\"" + tasks);
  CHECK(refused(header + row("1", "DREAMING", "1", "5:00")) ==
        "t: line 2, column STATE: found \"DREAMING\"; expected a state of Slurm, such as RUNNING "
        "or PENDING");
  CHECK(refused(header + row("1", "PENDING", "1", "soon")) ==
        "t: line 2, column TIME_LEFT: found \"soon\"; expected a time such as 1-02:03:04");
  CHECK(refused(header + row("1", "PENDING", "1", "")) ==
        "t: line 2, column TIME_LEFT: found \"\"; expected a time such as 1-02:03:04, or "
        "UNLIMITED");
  CHECK(refused(header + row("1", "PENDING", "1", "5:00", "high|60|None")) ==
        "t: line 2, column PRIORITY: found \"high\"; expected a number");
  CHECK(refused(header + row("1", "PENDING", "1", "5:00", "1|long|None")) ==
        "t: line 2, column PENDING_TIME: found \"long\"; expected a number of seconds");
  CHECK(refused(header + row("1", "PENDING", "many", "5:00")) ==
        "t: line 2, column TRES_ALLOC: found \"cpu=1,gres/gpu=many\"; expected whole GPUs up to "
        "10^7, such as gres/gpu=8");
  CHECK(refused(header + row("7", "PENDING", "1", "5:00") + row("7", "RUNNING", "1", "5:00")) ==
        "t: line 2, column JOBID: found \"7\", as in line 3; expected every id once");
}

TEST_CASE("squeue: what Slurm 22.05 printed is read whole") {
  const ClusterJobs list = read_jobs(ORRERY_SOURCE_DIR "/tests/workloads/jobs/squeue.txt");
  CHECK(list.jobs.size() == 23);
  CHECK(Names(list.ids.begin(), list.ids.begin() + 5) == Names{"5_1", "2", "1", "3", "5_2"});
  CHECK(list.ids.back() == "11_89");
  CHECK(list.jobs[3].gpus == 16);                      // two nodes of eight
  CHECK(list.jobs[0].gpus == 6);                       // one for each of six tasks
  CHECK(list.jobs[2].length.us > 23 * 3600 * second);  // suspended, of a day
  CHECK(Names(list.notes.begin() + 2, list.notes.end()) ==
        Names{"1 job without GPUs was left out",
              "1 job with GPUs by socket, whose number is not known, was left out",
              "1 job on hold was left out", "1 job depending on another one was left out",
              "1 job to begin later, or in a reservation was left out",
              "1 job is suspended: it holds its GPUs and is taken to go on at once",
              "1 heterogeneous job counts as one gang",
              "17 rows have no limits: Slurm's year stands for them"});
}

TEST_CASE("squeue: rows in any order are one list") {
  std::vector<std::string> rows;
  for (int i = 0; i < 40; ++i)
    rows.push_back(row(std::to_string(i), i % 3 == 0 ? "RUNNING" : "PENDING",
                       std::to_string(i % 8 + 1), std::to_string(i + 1) + ":00",
                       std::to_string(100 - i) + "|" + std::to_string(i) + "|Priority"));
  const auto ids = [&] {
    std::string text;
    for (const std::string& one : rows) text += one;
    Names waiting = read(text).ids;
    waiting.erase(waiting.begin(), waiting.begin() + 14);  // equals of running ones keep their rows
    return waiting;
  };
  const Names first = ids();
  CHECK(first.front() == "1");
  RandomStream random(fresh(3), 0);
  for (int times = 0; times < 20; ++times) {
    for (std::size_t i = rows.size(); i > 1; --i) std::swap(rows[i - 1], rows[random.below(i)]);
    CHECK(ids() == first);
  }
}

}  // namespace orrery
