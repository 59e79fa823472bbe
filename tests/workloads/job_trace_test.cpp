// SPDX-License-Identifier: Apache-2.0
// Checks traces of cluster jobs: what each format says, and what is refused with which words.
#include <algorithm>
#include <string>
#include <vector>

#include <catch2/catch.hpp>

#include "sim/base/random.h"
#include "tests/base/error_text.h"
#include "tests/base/fresh_seed.h"
#include "tests/base/scratch_folder.h"
#include "tests/workloads/job_texts.h"
#include "workloads/cluster_job/job_times.h"
#include "workloads/job_traces/job_trace.h"

namespace orrery {
namespace {

const std::filesystem::path catalog = ORRERY_SOURCE_DIR "/workloads/catalog";
constexpr std::int64_t second = 1'000'000;

using Names = std::vector<std::string>;

const std::string philly_text =
    "timestamp,duration,num_gpus,gpu_time,cluster\n"
    "2017-10-09 07:01:55,66.0,1,66.0,a\n"
    "2017-10-09 07:01:57,10.5,8,84.0,b\n"
    "2017-10-10 07:01:55,0.0,2,0.0,a\n";

const std::string own_text =
    "id,submit_s,length_s,gpus,limit_s,queue,user\n"
    "x,10,20,4,30,big,ann\n"
    "y,12.5000015,0,1,,,\n"
    "z,10,1e3,8,1000,big,bob\n";

const std::string swf_text =
    "; Version: 2.2\n"
    ";\n"
    "  1  100  5  60  4  -1 -1  8 120 -1 1 3 1 -1 2 -1 -1 -1\n"
    "2 100 -1 -1 4 -1 -1 8 120 -1 5 3 1 -1 2 -1 -1 -1\n"
    "\n"
    "3 130 0 30.5 16 -1 -1 -1 10 -1 1 -1 1 -1 -1 7 -1 -1\n"
    "4 130 0 30 -1 -1 -1 -1 -1 -1 1 4 1 -1 -1 7 -1 -1\n"
    "5 140 0 0 2 -1 -1 0 -1 -1 1 3 1 -1 -1 -1 -1 -1\n";

const std::string slurm_text =
    "JobID|JobName|User|Partition|Submit|Start|End|Elapsed|ReqTRES|AllocTRES|Timelimit|State\n"
    "7|a|ann|gpu|2024-01-31T10:00:00|2024-01-31T10:01:00|x|1-00:00:01|"
    "billing=8,cpu=64,gres/gpu=8,gres/gpu:h100=8,mem=1T|gres/gpu=16|2-00:00:00|COMPLETED\n"
    "7.batch|batch|||2024-01-31T10:01:00|2024-01-31T10:01:00|x|1-00:00:01||gres/gpu=8||COMPLETED\n"
    "8|cpu|ann|cpu|2024-01-31T10:00:00|2024-01-31T10:01:00|x|00:00:01|cpu=4|cpu=4|01:00:00|FAILED\n"
    "9|b|bob|gpu|2024-01-31T10:00:05|None|None|00:00:00|gres/gpu=8||01:00:00|CANCELLED by 1\n"
    "10_2|c|bob|gpu|2024-01-31T09:59:00|2024-01-31T10:01:00|x|03:02|cpu=4|"
    "gres/gpu:a100=2,gres/gpu:h100=1,gres/gpumem=4|UNLIMITED|RUNNING\n";

std::string refused(const std::string& text, JobTraceFormat format) {
  return error_text([&] { parse_jobs(text, format, "t"); });
}
std::string own(const std::string& rows) {
  return refused("submit_s,length_s,gpus,limit_s\n" + rows, JobTraceFormat::orrery);
}
std::string philly(const std::string& row) {
  return refused("timestamp,duration,num_gpus,gpu_time,cluster\n" + row + "\n",
                 JobTraceFormat::philly);
}
std::string swf(const std::string& front) {  // fields 1 to 9
  return refused(front + " -1 1 3 1 -1 2 -1 -1 -1\n", JobTraceFormat::swf);
}
std::string slurm(const std::string& row) {
  return refused("JobID|Submit|ElapsedRaw|ReqTRES|TimelimitRaw\n" + row + "\n",
                 JobTraceFormat::slurm);
}

}  // namespace

TEST_CASE("job trace: Philly's columns") {
  CHECK(job_format_of(philly_text) == JobTraceFormat::philly);
  const ClusterJobs list = parse_jobs(philly_text, JobTraceFormat::philly, "t");
  REQUIRE(list.jobs.size() == 3);
  CHECK(list.name == "t");
  CHECK(list.queues == Names{"a", "b"});
  CHECK(list.notes.empty());
  CHECK(list.jobs[0].submit.us == 0);
  CHECK(list.jobs[1].submit.us == 2 * second);
  CHECK(list.jobs[2].submit.us == 86'400 * second);
  CHECK(list.jobs[1].length.us == 10'500'000);
  CHECK(list.jobs[1].limit == list.jobs[1].length);
  CHECK(list.jobs[1].gpus == 8);
  CHECK(list.jobs[1].queue == 1);
  CHECK(list.jobs[1].user == -1);
  CHECK(list.id_of(1) == "2");
}

TEST_CASE("job trace: our own columns") {
  CHECK(job_format_of(own_text) == JobTraceFormat::orrery);
  const ClusterJobs list = parse_jobs(own_text, JobTraceFormat::orrery, "t");
  REQUIRE(list.jobs.size() == 3);
  CHECK(list.ids == Names{"x", "z", "y"});
  CHECK(list.queues == Names{"big", "default"});
  CHECK(list.users == Names{"ann", "bob"});
  CHECK(list.notes == Names{"1 job has no limit: its length stands for it",
                            "1 row was not in order of submission, and was sorted"});
  CHECK(list.jobs[0].limit.us == 30 * second);
  CHECK(list.jobs[1].length.us == 1000 * second);
  CHECK(list.jobs[1].submit.us == 0);
  CHECK(list.jobs[1].row == 3);
  CHECK(list.jobs[2].submit.us == 2'500'002);  // rounded before the first one is taken off
  CHECK(list.jobs[2].limit.us == 0);
  CHECK(list.jobs[2].user == -1);
  const ClusterJobs bare =
      parse_jobs("gpus,length_s,submit_s\n1,2,3\n", JobTraceFormat::orrery, "t");
  CHECK(bare.queues == Names{"default"});
  CHECK(bare.id_of(0) == "1");
}

TEST_CASE("job trace: the Standard Workload Format") {
  CHECK(job_format_of(swf_text) == JobTraceFormat::swf);
  CHECK(job_format_of("1 100 5") == JobTraceFormat::swf);
  const ClusterJobs list = parse_jobs(swf_text, JobTraceFormat::swf, "t");
  REQUIRE(list.jobs.size() == 3);
  CHECK(list.ids == Names{"1", "3", "5"});
  CHECK(list.queues == Names{"2", "partition 7", "default"});
  CHECK(list.users == Names{"3"});
  CHECK(list.notes == Names{"2 rows without run time or processors were left out",
                            "1 job ran past its limit, which was raised to its length",
                            "1 job has no limit: its length stands for it",
                            "Processors of the trace count as GPUs"});
  CHECK(list.jobs[0].gpus == 8);
  CHECK(list.jobs[0].limit.us == 120 * second);
  CHECK(list.jobs[1].gpus == 16);
  CHECK(list.jobs[1].submit.us == 30 * second);
  CHECK(list.jobs[1].limit.us == 30'500'000);
  CHECK(list.jobs[1].user == -1);
  CHECK(list.jobs[1].row == 3);
  CHECK(list.jobs[2].length.us == 0);
}

TEST_CASE("job trace: what sacct prints") {
  CHECK(job_format_of(slurm_text) == JobTraceFormat::slurm);
  const ClusterJobs list = parse_jobs(slurm_text, JobTraceFormat::slurm, "t");
  REQUIRE(list.jobs.size() == 2);
  CHECK(list.ids == Names{"10_2", "7"});
  CHECK(list.queues == Names{"gpu"});
  CHECK(list.users == Names{"ann", "bob"});
  CHECK(list.notes == Names{"1 step of a job was left out", "1 job without GPUs was left out",
                            "1 job that never started was left out",
                            "1 job was still running: what had passed is its length",
                            "1 job has no limit: its length stands for it",
                            "1 row was not in order of submission, and was sorted"});
  CHECK(list.jobs[0].gpus == 3);
  CHECK(list.jobs[0].length.us == 182 * second);
  CHECK(list.jobs[1].gpus == 8);
  CHECK(list.jobs[1].submit.us == 60 * second);
  CHECK(list.jobs[1].length.us == 86'401 * second);
  CHECK(list.jobs[1].limit.us == 2 * 86'400 * second);
  const ClusterJobs raw = parse_jobs(
      "JobID|Submit|ElapsedRaw|ReqTRES|TimelimitRaw|\r\n"
      "1|2024-01-31T10:00:00|90|gres/gpu=1|1|\r\n"
      "2|2024-01-31T10:00:00|90|gres/gpu=1|Partition_Limit|\r\n"
      "3|2024-01-31T10:00:00|90|gres/gpu=1|10|\r\n",
      JobTraceFormat::slurm, "t");
  REQUIRE(raw.jobs.size() == 3);
  CHECK(raw.jobs[0].limit.us == 90 * second);
  CHECK(raw.jobs[1].limit.us == 90 * second);
  CHECK(raw.jobs[2].limit.us == 600 * second);
}

TEST_CASE("job trace: rows are sorted, those of one instant stay in order") {
  std::string text = "submit_s,length_s,gpus\n";
  RandomStream random(fresh(1), 0);
  for (int i = 0; i < 500; ++i) text += std::to_string(random.below(20)) + ",1,1\n";
  const ClusterJobs list = parse_jobs(text, JobTraceFormat::orrery, "t");
  REQUIRE(list.jobs.size() == 500);
  CHECK(list.jobs[0].submit.us == 0);
  CHECK(std::is_sorted(list.jobs.begin(), list.jobs.end(),
                       [](const ClusterJob& a, const ClusterJob& b) {
                         return a.submit < b.submit || (a.submit == b.submit && a.row < b.row);
                       }));
  REQUIRE(list.notes.size() == 1);
  CHECK(list.notes[0].find(" rows were not in order of submission, and were sorted") !=
        std::string::npos);
}

TEST_CASE("job trace: times in texts") {
  const auto us = [](const std::optional<FleetTime>& time) {
    return time.value_or(FleetTime{-7}).us;
  };
  CHECK(us(fleet_seconds("0.0000005")) == 1);
  CHECK(us(fleet_seconds("0.00000049")) == 0);
  CHECK(us(fleet_seconds("31535999999.999999")) == most_fleet_time.us - 1);
  CHECK(us(fleet_seconds("31536000000")) == most_fleet_time.us);
  CHECK(us(fleet_seconds("31536000000.1")) == most_fleet_time.us + 1);
  CHECK(us(fleet_seconds("1e300")) == most_fleet_time.us + 1);
  CHECK(us(fleet_seconds("+1.5e1")) == 15 * second);
  CHECK(us(fleet_seconds("-1e-9")) == -1);
  for (const char* bad : {"", ".", "nan", "inf", "1e999", "0x10", " 1", "1 ", "1,5", "--1"}) {
    INFO(bad);
    CHECK_FALSE(fleet_seconds(bad).has_value());
  }
  CHECK(us(fleet_clock("1-02:03:04")) == 93'784 * second);
  CHECK(us(fleet_clock("100:00:00")) == 360'000 * second);
  CHECK(us(fleet_clock("59:59")) == 3599 * second);
  CHECK(us(fleet_clock("5:07")) == 307 * second);
  for (const char* bad : {"", ":", "1", "60:00", "00:60", "1-02:03", "-1:00:00", "a:00:00", "0:0:0",
                          "00:00:00.5", "99999999-00:00:00", "1:::"}) {
    INFO(bad);
    CHECK_FALSE(fleet_clock(bad).has_value());
  }
  CHECK(us(fleet_stamp("1970-01-02 00:00:01", ' ')) == 86'401 * second);
  for (const char* bad : {"1970-01-02T00:00:01", "1970-02-30 00:00:01", "1970-01-02 24:00:00",
                          "1970-01-02 007:1:55", "1970-01-02", ""}) {
    INFO(bad);
    CHECK_FALSE(fleet_stamp(bad, ' ').has_value());
  }
}

TEST_CASE("job trace: bad times and counts get one sentence with file, line and column") {
  const std::string thousand = "; expected a time between 0 and 1,000 years (31,536,000,000 s)";
  CHECK(own("0,-3,2,\n") == "t: line 2, column length_s: found \"-3\"" + thousand);
  CHECK(own("0,4e10,2,\n") == "t: line 2, column length_s: found \"4e10\"" + thousand);
  CHECK(own("0,3,2,\n31536000000.1,3,2,\n") ==
        "t: line 3, column submit_s: found \"31536000000.1\"" + thousand);
  CHECK(own("0,3,2,4e10\n") == "t: line 2, column limit_s: found \"4e10\"" + thousand);
  CHECK(own("0,long,2,\n") ==
        "t: line 2, column length_s: found \"long\"; expected a number of seconds");
  CHECK(own("0,20,2,10\n") ==
        "t: line 2, column limit_s: found a limit of 10 s below the length of 20 s; expected a "
        "limit of at least the length");
  for (const char* gpus : {"0", "0.0004", "-0.5", "1.5", "2.0001"})
    CHECK(own(std::string("0,3,") + gpus + ",\n") ==
          std::string("t: line 2, column gpus: found \"") + gpus +
              "\"; expected whole GPUs between 1 and 10^7, or a part of one such as 0.25");
  CHECK(own("0,3,10000001,\n") ==
        "t: line 2, column gpus: found \"10000001\"; expected whole GPUs between 1 and 10^7");
  CHECK(own("0,3,,\n") ==
        "t: line 2, column gpus: found \"\"; expected whole GPUs between 1 and 10^7");
  CHECK(own("0,3,many,\n") == "t: line 2, column gpus: found \"many\"; expected a number");
  CHECK(philly("2017-10-09T07:01:55,1,1,1,a") ==
        "t: line 2, column timestamp: found \"2017-10-09T07:01:55\"; expected a date and a time "
        "such as 2024-01-31 10:00:00");
  CHECK(philly("1000-10-09 07:01:55,1,1,1,a\n2000-10-10 07:01:55,1,1,1,a") ==
        "t: line 3, column timestamp: found \"2000-10-10 07:01:55\"; expected a submission at most "
        "1,000 years after the first");
  CHECK(philly("2017-10-09 07:01:55,-1,1,1,a") ==
        "t: line 2, column duration: found \"-1\"" + thousand);
  CHECK(swf("1 -1 5 60 4 -1 -1 8 120") ==
        "t: line 1, column 2 (submit time): found \"-1\"" + thousand);
  CHECK(swf("1 0 5 4e10 4 -1 -1 8 120") ==
        "t: line 1, column 4 (run time): found \"4e10\"" + thousand);
  CHECK(swf("1 0 5 60 4 -1 -1 8 4e10") ==
        "t: line 1, column 9 (requested time): found \"4e10\"" + thousand);
  CHECK(swf("1 0 5 60 10000001 -1 -1 -1 -1") ==
        "t: line 1, column 5 (allocated processors): found \"10000001\"; expected whole GPUs "
        "between 1 and 10^7");
  CHECK(swf("1 0 5 60 4 -1 -1 few -1") ==
        "t: line 1, column 8 (requested processors): found \"few\"; expected a number");
  CHECK(slurm("1|yesterday|5|gres/gpu=1|") ==
        "t: line 2, column Submit: found \"yesterday\"; expected a date and a time such as "
        "2024-01-31T10:00:00");
  CHECK(slurm("1|2024-01-31T10:00:00|-5|gres/gpu=1|") ==
        "t: line 2, column ElapsedRaw: found \"-5\"" + thousand);
  CHECK(slurm("1|2024-01-31T10:00:00|5|gres/gpu=some|") ==
        "t: line 2, column ReqTRES: found \"gres/gpu=some\"; expected whole GPUs up to 10^7, such "
        "as gres/gpu=8");
  CHECK(slurm("1|2024-01-31T10:00:00|5|gres/gpu:a=10000000,gres/gpu:b=1|") ==
        "t: line 2, column ReqTRES: found \"gres/gpu:a=10000000,gres/gpu:b=1\"; expected whole "
        "GPUs between 1 and 10^7");
  CHECK(slurm("1|2024-01-31T10:00:00|5|gres/gpu=1|soon") ==
        "t: line 2, column TimelimitRaw: found \"soon\"; expected a number of minutes");
  CHECK(slurm("1|2024-01-31T10:00:00|5|gres/gpu=1|1e9") ==
        "t: line 2, column TimelimitRaw: found \"1e9\"" + thousand);
  CHECK(refused("JobID|Submit|Elapsed|AllocTRES\n1|2024-01-31T10:00:00|5 s|gres/gpu=1\n",
                JobTraceFormat::slurm) ==
        "t: line 2, column Elapsed: found \"5 s\"; expected a time such as 1-02:03:04");
}

TEST_CASE("job trace: bad tables get one sentence too") {
  CHECK(own("") == "t: found no jobs; expected at least one");
  CHECK(refused("submit_s,length_s,gpus,id\n0,1,1,a\n0,1,1,b\n0,1,1,a\n", JobTraceFormat::orrery) ==
        "t: line 4, column id: found \"a\", as in line 2; expected every id once");
  CHECK(refused("submit_s,length_s,gpus,id\n0,1,1,\n", JobTraceFormat::orrery) ==
        "t: line 2, column id: found \"\"; expected the id of a job");
  CHECK(refused("submit_s,length_s,gpu\n0,1,1\n", JobTraceFormat::orrery) ==
        "t: line 1: found column \"gpu\"; expected submit_s, length_s, gpus, and perhaps id, "
        "limit_s, deadline_s, queue, user, fate, after; did you mean \"gpus\"?");
  CHECK(refused("submit_s,gpus\n0,1\n", JobTraceFormat::orrery) ==
        "t: line 1: found no column \"length_s\"; expected the columns that "
        "workloads/catalog/job_traces/README.md lists");
  CHECK(refused("", JobTraceFormat::orrery) == "t: found an empty file; expected a trace of jobs");
  CHECK(refused(std::string("; a\0b\n", 6), JobTraceFormat::swf) ==
        "t: found a zero byte; expected a trace of jobs");
  CHECK(refused("timestamp,length\n", JobTraceFormat::philly) ==
        "t: line 1: found no column \"duration\"; expected the columns that "
        "workloads/catalog/job_traces/README.md lists");
  CHECK(refused("; nothing\n", JobTraceFormat::swf) == "t: found no jobs; expected at least one");
  CHECK(refused(";\n1 2 3\n", JobTraceFormat::swf) ==
        "t: line 2: found 3 fields; expected 18, as the Standard Workload Format has");
  CHECK(swf("1 0 5 60 4 -1 -1 8 -1 -1 1 3 1 -1 2 -1 -1 -1\n1 0 5 60 4 -1 -1 8 -1") ==
        "t: line 2, column 1 (job): found \"1\", as in line 1; expected every id once");
  CHECK(swf("1 0 5 -1 4 -1 -1 8 -1") ==
        "t: found no jobs: 1 row without run time or processors was left out; expected at least "
        "one");
  CHECK(refused("JobID|Submit|State\n", JobTraceFormat::slurm) ==
        "t: line 1: found no column \"ElapsedRaw\" or \"Elapsed\"; expected the columns that "
        "workloads/catalog/job_traces/README.md lists");
  CHECK(refused("JobID|Submit|Elapsed\n", JobTraceFormat::slurm) ==
        "t: line 1: found no column \"ReqTRES\" or \"AllocTRES\"; expected the columns that "
        "workloads/catalog/job_traces/README.md lists");
  CHECK(refused("JobId|Submit|Elapsed\n", JobTraceFormat::slurm).find("no column \"JobID\"") !=
        std::string::npos);
  CHECK(slurm("1|2") == "t: line 2: found 2 fields; expected 5, as in the header");
  const std::string row = "1|2024-01-31T10:00:00|5|gres/gpu=1|";
  CHECK(slurm(row + "\n" + row) ==
        "t: line 3, column JobID: found \"1\", as in line 2; expected every id once");
}

TEST_CASE("job trace: Philly of the catalogue is read as it was published") {
  const std::vector<JobTraceEntry> entries = job_trace_entries(catalog);
  REQUIRE(entries.size() == 2);
  CHECK(entries[0].source == "philly-trace");
  const ClusterJobs list = load_jobs("philly", catalog);
  CHECK(list.name == "philly");
  REQUIRE(list.jobs.size() == 82'247);
  CHECK(list.queues.size() == 15);
  CHECK(list.notes == Names{"44,878 rows were not in order of submission, and were sorted"});
  GpuMicros held = 0;
  std::int32_t largest = 0;
  bool whole = true;
  for (const ClusterJob& job : list.jobs) {
    held += GpuMicros{job.length.us} * job.gpus;
    largest = std::max(largest, job.gpus);
    whole = whole && job.length.us % second == 0 && job.submit.us % second == 0;
  }
  CHECK(static_cast<std::int64_t>(held / second) == 3'521'082'502);  // the sum of gpu_time
  CHECK(largest == 128);
  CHECK(whole);
  CHECK(list.jobs.front().submit.us == 0);
  CHECK(list.jobs.back().submit.us == (108 * 86'400 + 21 * 3600 + 31 * 60 + 30) * second);
}

TEST_CASE("job trace: parts of a GPU are read to a thousandth") {
  const ClusterJobs list = parse_jobs(
      "submit_s,length_s,gpus\n0,1,0.25\n0,1,1\n0,1,0.3333\n0,1,0.9996\n0,1,0.001\n0,1,8\n",
      JobTraceFormat::orrery, "t");
  std::vector<int> milli, gpus;
  for (const ClusterJob& job : list.jobs) {
    milli.push_back(job.milli);
    gpus.push_back(job.gpus);
  }
  CHECK(milli == std::vector<int>{250, 0, 333, 0, 1, 0});
  CHECK(gpus == std::vector<int>{1, 1, 1, 1, 1, 8});
}

TEST_CASE("job trace: openb's tasks are jobs, parts of GPUs among them") {
  const ClusterJobs list = load_jobs("openb", catalog);
  REQUIRE(list.jobs.size() == 6'203);
  CHECK(list.notes == Names{"1,088 tasks without GPUs were left out",
                            "861 tasks that never started were left out"});
  std::int64_t parts = 0, milli = 0, failed = 0;
  for (const ClusterJob& job : list.jobs) {
    parts += job.is_part() ? 1 : 0;
    milli += milli_gpus(job);
    failed += job.fate == JobFate::failed ? 1 : 0;
    REQUIRE((!job.is_part() || job.gpus == 1));
  }
  CHECK(parts == 2'573);
  CHECK(failed == 1'869);
  CHECK(milli == 5'484'930);
  const std::string head = "num_gpu,gpu_milli,creation_time,deletion_time,scheduled_time\n";
  const auto refused = [&](const char* row) {
    return error_text([&] { parse_jobs(head + row, JobTraceFormat::openb, "t"); });
  };
  CHECK(job_format_of(head) == JobTraceFormat::openb);
  CHECK(refused("2,500,0,9,3") ==
        "t: line 2, column gpu_milli: found \"500\"; expected 1000 where a task asks for several "
        "GPUs");
  CHECK(refused("1,1001,0,9,3") ==
        "t: line 2, column gpu_milli: found \"1001\"; expected thousandths of a GPU between 1 and "
        "1000");
  CHECK(refused("1,500,0,2,3") ==
        "t: line 2, column deletion_time: found \"2\"; expected a time that is not before "
        "scheduled_time");
}

// Rows as the tables' own pages show them.
TEST_CASE("job trace: tables of Helios and Acme are read from starts to ends") {
  const std::string helios =
      "job_id,user,vc,gpu_num,cpu_num,node_num,state,submit_time,start_time,end_time,duration,"
      "queue\n"
      "1425511,uXBbc,vcJkd,1,1,1,COMPLETED,2020-06-09 18:41:01,2020-06-09 18:41:01,"
      "2020-06-10 04:55:09,36848,0\n"
      "1425512,uVMrF,vchbv,4,16,1,FAILED,2020-06-09 18:41:27,2020-06-09 18:41:27,"
      "2020-06-09 18:45:36,249,0\n"
      "1425513,uzqls,vcpDC,0,1,1,CANCELLED,2020-06-09 18:41:28,2020-06-09 18:41:28,"
      "2020-06-17 14:15:21,675233,0\n";
  CHECK(job_format_of(helios) == JobTraceFormat::helios);
  const ClusterJobs first = parse_jobs(helios, job_format_of(helios), "t");
  REQUIRE(first.jobs.size() == 2);
  CHECK(first.notes == Names{"1 job without GPUs was left out"});
  CHECK(first.queues[static_cast<std::size_t>(first.jobs[1].queue)] == "vchbv");
  CHECK(first.jobs[0].length == FleetTime{INT64_C(36'848'000'000)});
  CHECK(first.jobs[1].submit == FleetTime{26'000'000});
  CHECK(first.jobs[1].gpus == 4);
  CHECK(first.jobs[1].fate == JobFate::failed);
  CHECK(first.ids == Names{"1425511", "1425512"});

  const std::string head =
      "job_id,user,node_num,gpu_num,cpu_num,type,state,submit_time,start_time,end_time,fail_time,"
      "stop_time,duration,queue,gpu_time\n";
  const std::string kalos =
      head +
      "dlctk696s0jbvitv,uf794,8,64,960,Other,FAILED,2023-05-17 11:00:58+00:00,"
      "2023-05-17 11:01:08+00:00,2023-05-17 11:01:16+00:00,2023-05-17 11:01:16+00:00,,18,10.0,"
      "1152.0\n"
      "dlc2,uf794,8,64,960,Pretrain,CANCELLED,2023-05-17 11:28:42+00:00,,,,,,,\n";
  const ClusterJobs second = parse_jobs(kalos, job_format_of(kalos), "t");
  REQUIRE(second.jobs.size() == 1);
  CHECK(second.notes == Names{"1 job without a start or an end was left out"});
  CHECK(second.jobs[0].length == FleetTime{8'000'000});
  CHECK(second.queues == Names{"Other"});

  const auto refused = [&](const std::string& state, const std::string& end) {
    const std::string row = head + "a,u,1,8,8,Other," + state +
                            ",2023-05-17 11:00:58+00:00,2023-05-17 11:01:08+00:00," + end +
                            ",,,,,\n";
    return error_text([&] { parse_jobs(row, JobTraceFormat::helios, "t"); });
  };
  CHECK(refused("DONE", "2023-05-17 11:01:16+00:00") ==
        "t: line 2, column state: found \"DONE\"; expected COMPLETED, CANCELLED, FAILED, TIMEOUT, "
        "NODE_FAIL or SUSPENDED");
  CHECK(refused("FAILED", "2023-05-17 11:01:07+00:00") ==
        "t: line 2, column end_time: found \"2023-05-17 11:01:07+00:00\"; expected a time that is "
        "not before start_time");
  CHECK(refused("FAILED", "2023-05-17 11:01:07+8") ==
        "t: line 2, column end_time: found \"2023-05-17 11:01:07+8\"; expected a date and a time "
        "such as 2020-06-09 18:41:01 or 2023-03-01 00:18:22+08:00");
}

TEST_CASE("job trace: a name or a path, else the nearest name") {
  CHECK(error_text([] { load_jobs("phily", catalog); }) ==
        "trace: found \"phily\"; expected a file or a trace of jobs of the catalogue; did you mean "
        "\"philly\"?");
  const ScratchFolder folder("job-trace");
  const std::filesystem::path path = folder.add("jobs.csv", own_text);
  CHECK(load_jobs(path.string(), catalog).jobs.size() == 3);
  CHECK(read_jobs(path).name == path.string());
  CHECK(error_text([&] { read_jobs(path.parent_path()); }) ==
        path.parent_path().string() + ": found a folder; expected a trace of jobs");
  CHECK(error_text([&] { read_jobs(path.string() + "x"); }) ==
        path.string() + "x: found no readable file; expected a trace of jobs");
}

TEST_CASE("job trace: damaged texts are read or refused, nothing else") {
  RandomStream random(fresh(2), 0);
  const std::string texts[] = {philly_text, swf_text,    slurm_text,  own_text,
                               json_text,   squeue_text, helios_text, pai_text};
  for (const std::string& text : texts) {
    const JobTraceFormat format = job_format_of(text);
    for (int i = 0; i < 200; ++i) {
      std::string damaged = text;
      for (std::uint64_t n = random.below(4) + 1; n > 0 && !damaged.empty(); --n) {
        const std::size_t at = random.below(damaged.size());
        const auto byte = static_cast<char>(random.below(256));
        switch (random.below(4)) {
          case 0:
            damaged[at] = byte;
            break;
          case 1:
            damaged.erase(at, random.below(20));
            break;
          case 2:
            damaged.insert(at, random.below(30) + 1, byte);
            break;
          default:
            damaged.insert(at, text.substr(random.below(text.size()), 30));
        }
      }
      INFO(damaged);
      try {
        const ClusterJobs list = parse_jobs(damaged, format, "t");
        CHECK_FALSE(list.jobs.empty());
        CHECK((list.ids.empty() || list.ids.size() == list.jobs.size()));
        for (const ClusterJob& job : list.jobs)
          CHECK((job.submit.us >= 0 && job.length.us >= 0 && job.limit >= job.length &&
                 job.gpus >= 1 && job.queue >= 0 &&
                 static_cast<std::size_t>(job.queue) < list.queues.size()));
        CHECK(error_text([&] { parse_jobs(damaged, job_format_of(damaged), "t"); }) != "");
      } catch (const Error& error) {
        CHECK_FALSE(error.message().empty());
      }
    }
  }
}

}  // namespace orrery
