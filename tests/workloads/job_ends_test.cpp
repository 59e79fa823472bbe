// SPDX-License-Identifier: Apache-2.0
// Checks how traces of jobs say how jobs ended and when the first one came, and jobs as JSON lines.
#include <algorithm>
#include <string>
#include <vector>

#include <catch2/catch.hpp>

#include "tests/base/error_text.h"
#include "tests/workloads/job_texts.h"
#include "workloads/job_traces/job_trace.h"

namespace orrery {
namespace {

constexpr std::int64_t second = 1'000'000;

using Names = std::vector<std::string>;
using Fates = std::vector<JobFate>;

Fates fates_of(const ClusterJobs& list) {
  Fates fates;
  for (const ClusterJob& job : list.jobs) fates.push_back(job.fate);
  return fates;
}

const std::string swf_text = "1 100 5 60 4 -1 -1 8 120 -1 1 3 1 -1 2 -1 -1 -1\n";

std::string refused(const std::string& text, JobTraceFormat format) {
  return error_text([&] { parse_jobs(text, format, "t"); });
}

}  // namespace

TEST_CASE("job trace: a JSON object a line") {
  CHECK(job_format_of(json_text) == JobTraceFormat::jsonl);
  CHECK(job_format_of("\n {") == JobTraceFormat::jsonl);
  const ClusterJobs list = parse_jobs(json_text, JobTraceFormat::jsonl, "t");
  REQUIRE(list.jobs.size() == 3);
  CHECK(list.ids == Names{"x", "z", "7"});
  CHECK(list.queues == Names{"big|fast", "default"});
  CHECK(list.users == Names{"ann"});
  CHECK(list.notes == Names{"2 jobs have no limits: their lengths stand for them",
                            "1 row was not in order of submission, and was sorted"});
  CHECK(list.jobs[0].limit.us == 30 * second);
  CHECK(list.jobs[1].length.us == 1000 * second);
  CHECK(list.jobs[1].row == 3);
  CHECK(list.jobs[2].submit.us == 2'500'002);
  CHECK(list.jobs[2].user == -1);
  CHECK(fates_of(list) == Fates{JobFate::failed, JobFate::completed, JobFate::completed});
  const ClusterJobs bare =
      parse_jobs("{\"submit_s\": 5, \"length_s\": 1, \"gpus\": 2}\n", JobTraceFormat::jsonl, "t");
  CHECK(bare.ids.empty());
  CHECK(bare.id_of(0) == "1");
  const auto bad = [](const std::string& line) {
    return refused("\n{" + line + "}\n", JobTraceFormat::jsonl);
  };
  const std::string good = "\"submit_s\": 5, \"length_s\": 1, \"gpus\": ";
  CHECK(bad(good + "2, \"fait\": \"failed\"") ==
        "t: line 2: fait: found unknown key; expected submit_s, length_s, gpus, and perhaps id, "
        "limit_s, deadline_s, queue, user, fate, after; did you mean \"fate\"?");
  CHECK(bad("\"submit_s\": 5, \"gpus\": 1").find("t: line 2: length_s: found") == 0);
  CHECK(bad(good + "\"two\"") == "t: line 2: gpus: found \"two\"; expected a number");
  for (const char* gpus : {"1.5", "0"})
    CHECK(bad(good + gpus) == std::string("t: line 2, column gpus: found \"") + gpus +
                                  "\"; expected whole GPUs between 1 and 10^7, or a part of one "
                                  "such as 0.25");
  CHECK(bad(good + "null") ==
        "t: line 2, column gpus: found \"\"; expected whole GPUs between 1 and 10^7");
  CHECK(bad(good + "1, \"queue\": 7") == "t: line 2: queue: found 7; expected text");
  CHECK(bad(good + "1, \"limit_s\": 0.5") ==
        "t: line 2, column limit_s: found a limit of 0.5 s below the length of 1 s; expected a "
        "limit of at least the length");
  CHECK(bad(good + "1, \"id\": 1}\n{" + good + "1") ==
        "t: line 3, column id: found \"\"; expected the id of a job");
  CHECK(bad(good + "1, \"id\": 1}\n{" + good + "1, \"id\": \"1\"") ==
        "t: line 3, column id: found \"1\", as in line 2; expected every id once");
  CHECK(refused("{\"submit_s\": 5,\n", JobTraceFormat::jsonl).find("t: line 1: ") == 0);
  CHECK(refused("[]\n", JobTraceFormat::jsonl) ==
        "t: line 1: found an empty list; expected an object");
}

TEST_CASE("job trace: how jobs ended") {
  const std::string own_fates = "submit_s,length_s,gpus,fate\n";
  CHECK(fates_of(parse_jobs(own_fates + "0,1,1,completed\n1,1,1,\n2,1,1,failed\n3,1,1,cancelled\n",
                            JobTraceFormat::orrery, "t")) ==
        Fates{JobFate::completed, JobFate::completed, JobFate::failed, JobFate::cancelled});
  CHECK(refused(own_fates + "0,1,1,canceled\n", JobTraceFormat::orrery) ==
        "t: line 2, column fate: found \"canceled\"; expected completed, failed or cancelled; did "
        "you mean \"cancelled\"?");
  std::string text;
  for (int status = -1; status <= 5; ++status)
    text += std::to_string(status + 2) + " " + std::to_string(status + 1) +
            " 0 60 4 -1 -1 8 -1 -1 " + std::to_string(status) + " 3 1 -1 2 -1 -1 -1\n";
  CHECK(fates_of(parse_jobs(text, JobTraceFormat::swf, "t")) ==
        Fates{JobFate::completed, JobFate::failed, JobFate::completed, JobFate::completed,
              JobFate::completed, JobFate::failed, JobFate::cancelled});
  CHECK(refused("1 0 5 60 4 -1 -1 8 -1 -1 6 3 1 -1 2 -1 -1 -1\n", JobTraceFormat::swf) ==
        "t: line 1, column 11 (status): found \"6\"; expected a status from -1 to 5");
  const auto slurm_state = [](const std::string& states) {
    std::string rows = "JobID|Submit|ElapsedRaw|ReqTRES|State\n";
    int id = 0;
    for (std::size_t from = 0; from < states.size(); ++id) {
      const std::size_t to = std::min(states.find(',', from), states.size());
      rows += std::to_string(id) + "|2024-01-31T10:00:00|5|gres/gpu=1|" +
              states.substr(from, to - from) + "\n";
      from = to + 1;
    }
    return rows;
  };
  const ClusterJobs list = parse_jobs(
      slurm_state("COMPLETED,FAILED,TIMEOUT,OUT_OF_MEMORY,DEADLINE,CANCELLED,CANCELLED by 10,"
                  "NODE_FAIL,PREEMPTED,RUNNING"),
      JobTraceFormat::slurm, "t");
  Fates expected(10, JobFate::completed);
  std::fill(expected.begin() + 1, expected.begin() + 5, JobFate::failed);
  std::fill(expected.begin() + 5, expected.begin() + 7, JobFate::cancelled);
  CHECK(fates_of(list) == expected);
  CHECK(list.notes == Names{"1 job was still running: what had passed is its length",
                            "2 jobs were stopped by the cluster, and count as completed"});
  CHECK(refused(slurm_state("DONE"), JobTraceFormat::slurm) ==
        "t: line 2, column State: found \"DONE\"; expected a state of Slurm, such as COMPLETED, "
        "FAILED or CANCELLED by 1000");
  CHECK(fates_of(parse_jobs("timestamp,duration,num_gpus,cluster\n2017-10-09 07:01:55,1,1,a\n",
                            JobTraceFormat::philly, "t")) == Fates(1, JobFate::completed));
}

TEST_CASE("job trace: the clock of the first submission") {
  const auto began = [](const std::string& text) {
    const ClusterJobs list = parse_jobs(text, job_format_of(text), "t");
    return list.began.value_or(FleetTime{-7}).us;
  };
  CHECK(began("timestamp,duration,num_gpus,cluster\n2017-10-09 07:01:55,1,1,a\n") ==
        INT64_C(1'507'532'515) * second);  // 2017-10-09 07:01:55
  CHECK(began("JobID|Submit|ElapsedRaw|ReqTRES\n1|2024-01-31T09:59:00|5|gres/gpu=1\n") ==
        INT64_C(1'706'695'140) * second);  // 2024-01-31T09:59:00
  CHECK(began("submit_s,length_s,gpus\n12,1,1\n10,1,1\n") == 10 * second);
  CHECK(began(json_text) == 10 * second);
  CHECK(began(swf_text) == -7);
  CHECK(began("; Version: 2\n\n;  UnixStartTime: 1000000000 \n" + swf_text) ==
        INT64_C(1'000'000'100) * second);
  CHECK(began("; UnixStartTime: soon\n" + swf_text) == -7);
}

}  // namespace orrery
