// SPDX-License-Identifier: Apache-2.0
// Holds lists of jobs that several tests read.
#pragma once

#include <string>

namespace orrery {

inline const std::string json_text =
    "{\"id\": \"x\", \"submit_s\": 10, \"length_s\": 20, \"gpus\": 4, \"limit_s\": 30, "
    "\"queue\": \"big|fast\", \"user\": \"ann\", \"fate\": \"failed\"}\n"
    "\n"
    "{\"id\": 7, \"submit_s\": 12.5000015, \"length_s\": 0, \"gpus\": 1, \"user\": null}\n"
    "{\"id\": \"z\", \"submit_s\": 10, \"length_s\": 1e3, \"gpus\": 8, \"queue\": \"big|fast\"}\n";

inline const std::string squeue_text =
    "JOBID|STATE|TRES_ALLOC|TIME_LEFT|SUBMIT_TIME|PENDING_TIME|PRIORITY|REASON|PARTITION|USER|\n"
    "7|RUNNING|cpu=8,gres/gpu=8|1-00:00:00|2026-01-31T10:00:00|0|9|None|gpu|ann|\n"
    "8_[1-3%2]|PENDING|cpu=8,gres/gpu=2|5:00|2026-01-31T10:00:00|60|8|Priority|gpu|ann|\n"
    "9+0|PENDING|cpu=8,gres/gpu=2|UNLIMITED|2026-01-31T10:00:00|60|7|Resources|gpu|bob|\n";

inline const std::string helios_text =
    "job_id,user,vc,gpu_num,state,submit_time,start_time,end_time\n"
    "5778432,u5907,a,8,FAILED,2023-03-01 00:18:22+08:00,2023-03-01 00:18:54+08:00,"
    "2023-03-01 00:20:51+08:00\n"
    "5778469,u5907,b,16,COMPLETED,2023-03-01 00:23:58,2023-03-01 00:24:11,2023-03-01 01:09:04\n";

inline const std::string pai_text =
    "4f057009,tensorflow,1.0,Terminated,1739162.0,1739200.0,600.0,29.296875,50.0,MISC\n"
    "91ab,worker,4.0,Failed,1739100.0,1739300.0,400.0,8.0,25.0,T4\n"
    "91ab,ps,2.0,Failed,1739100.0,1739300.0,400.0,8.0,,\n"
    "77,worker,2.0,Terminated,1739400.0,1739500.0,400.0,8.0,400.0,V100\n"
    "78,worker,3.0,Running,1739400.0,1739500.0,400.0,8.0,150.0,V100\n"
    "79,worker,3.0,Waiting,,,400.0,8.0,100.0,V100\n"
    "80,worker,1.0,Failed,0.0,1739500.0,400.0,8.0,100.0,V100\n"
    "77,worker,1.0,Terminated,1739600.0,1739600.0,400.0,8.0,100.0,P100\n";

}  // namespace orrery
