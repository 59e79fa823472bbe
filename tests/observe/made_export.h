// SPDX-License-Identifier: Apache-2.0
// Makes SQLite files with the tables that Nsight Systems' documentation tells of its exports.
#pragma once

#include <sqlite3.h>

#include <filesystem>
#include <stdexcept>
#include <string>

namespace orrery::observe {

inline void run_sql(const std::filesystem::path& file, const std::string& sql) {
  sqlite3* open = nullptr;
  const bool fine = sqlite3_open(file.c_str(), &open) == SQLITE_OK &&
                    sqlite3_exec(open, sql.c_str(), nullptr, nullptr, nullptr) == SQLITE_OK;
  const std::string problem = sqlite3_errmsg(open);
  sqlite3_close(open);
  if (!fine) throw std::runtime_error(problem);
}

// Two ranges "iteration 1" and "iteration 2" of 100 us with a product, an all-reduce, a copy and a
// set each, of process 77; another process has one short kernel.
inline void make_export(const std::filesystem::path& file) {
  std::string sql = R"(
    BEGIN;
    CREATE TABLE StringIds (id INTEGER PRIMARY KEY, value TEXT NOT NULL);
    INSERT INTO StringIds VALUES (1, 'nvjet_hsh_128x256_64x4'), (2, 'cudaLaunchKernel_v7000'),
      (3, 'ncclDevKernel_AllReduce_Sum_f16_RING_LL'), (4, 'cudaMemcpyAsync_v3020'),
      (5, 'iteration 2'), (6, 'cudaStreamSynchronize_v3020');
    CREATE TABLE TARGET_INFO_GPU (id INTEGER NOT NULL, name TEXT, totalMemory INTEGER,
      smCount INTEGER, computeMajor INTEGER, computeMinor INTEGER);
    INSERT INTO TARGET_INFO_GPU VALUES (0, 'NVIDIA H100 80GB HBM3', 85899345920, 132, 9, 0);
    CREATE TABLE TARGET_INFO_SYSTEM_ENV (globalVid INTEGER, name TEXT, value TEXT);
    INSERT INTO TARGET_INFO_SYSTEM_ENV VALUES (0, 'Hostname', 'node-a');
    CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start INTEGER NOT NULL, end INTEGER NOT NULL,
      deviceId INTEGER NOT NULL, contextId INTEGER NOT NULL, streamId INTEGER NOT NULL,
      correlationId INTEGER, globalPid INTEGER, demangledName INTEGER NOT NULL,
      shortName INTEGER NOT NULL, gridX INTEGER, gridY INTEGER, gridZ INTEGER, blockX INTEGER,
      blockY INTEGER, blockZ INTEGER, staticSharedMemory INTEGER, dynamicSharedMemory INTEGER,
      registersPerThread INTEGER);
    CREATE TABLE CUPTI_ACTIVITY_KIND_MEMCPY (start INTEGER, end INTEGER, deviceId INTEGER,
      streamId INTEGER, correlationId INTEGER, globalPid INTEGER, bytes INTEGER, copyKind INTEGER);
    CREATE TABLE CUPTI_ACTIVITY_KIND_MEMSET (start INTEGER, end INTEGER, deviceId INTEGER,
      streamId INTEGER, correlationId INTEGER, globalPid INTEGER, bytes INTEGER);
    CREATE TABLE CUPTI_ACTIVITY_KIND_RUNTIME (start INTEGER, end INTEGER, globalTid INTEGER,
      correlationId INTEGER, nameId INTEGER);
    CREATE TABLE NVTX_EVENTS (start INTEGER, end INTEGER, eventType INTEGER, text TEXT,
      textId INTEGER, globalTid INTEGER);
    INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES
      (0, 1000, 0, 1, 7, 1, (88 << 24), 1, 1, 1, 1, 1, 1, 1, 1, 0, 0, 32);)";
  for (int step = 0; step < 2; ++step) {
    const auto at = [&](int microseconds) {
      return std::to_string((100 * step + microseconds) * 1000);
    };
    const auto id = [&](int number) { return std::to_string(10 * step + number); };
    const std::string process = "(77 << 24)", thread = "(77 << 24) + 5";
    sql += "INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (" + at(10) + "," + at(40) + ",0,1,7," +
           id(1) + "," + process + ",1,1,128,2,1,384,1,1,1024,200000,168);";
    sql += "INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (" + at(30) + "," + at(60) + ",0,1,9," +
           id(2) + "," + process + ",3,3,24,1,1,544,1,1,0,0,96);";
    sql += "INSERT INTO CUPTI_ACTIVITY_KIND_MEMCPY VALUES (" + at(62) + "," + at(64) + ",0,7," +
           id(3) + "," + process + ",4096,1);";
    sql += "INSERT INTO CUPTI_ACTIVITY_KIND_MEMSET VALUES (" + at(64) + "," + at(65) + ",0,7," +
           id(4) + "," + process + ",4096);";
    for (int call = 1; call <= 2; ++call)
      sql += "INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES (" + at(call) + "," + at(call + 1) +
             "," + thread + "," + id(call) + ",2);";
    sql += "INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES (" + at(50) + "," + at(70) + "," +
           thread + "," + id(5) + ",6);";
    sql += "INSERT INTO NVTX_EVENTS VALUES (" + at(0) + "," + at(100) + ",59," +
           (step == 0 ? "'iteration 1',NULL," : "NULL,5,") + thread + ");";
  }
  run_sql(file, sql + "COMMIT;");
}

}  // namespace orrery::observe
