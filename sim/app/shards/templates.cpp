// SPDX-License-Identifier: Apache-2.0
// Is the text of scripts and manifests that run shards elsewhere.
#include "sim/app/shards/templates.h"

namespace orrery {

const std::string_view array_template = R"##(#!/usr/bin/env bash
# Written by orrery @VERSION@: one question as an array of @SHARDS@ tasks, a shard each.
#
#   bash FILE [FLAGS OF SBATCH]    submits the array, and a job that merges when all tasks are done
#   sbatch FILE                    submits the array alone, by the lines below; merge later with
#   bash FILE merge                which merges here and now, without Slurm
#
# To go on after a task failed, was cancelled or ran out of time, submit again: a result that is
# there is not computed again. A task that is preempted or loses its node is queued again by Slurm.
#
# For another number of tasks change SHARDS and the line of --array: results that are there stay.
# A task's number must be below the site's MaxArraySize (scontrol show config; 1001 by default).
#
#SBATCH --job-name=@JOB_NAME@
#SBATCH --array=0-@LAST_SHARD@
#SBATCH --cpus-per-task=1
#SBATCH --requeue
#SBATCH --signal=B:TERM@60
#SBATCH --open-mode=append
#SBATCH --output=@OUTPUT@
##SBATCH --time=04:00:00   (with one # it counts; else the site decides)
set -euo pipefail

# shellcheck disable=SC2016 # a name with a dollar sign means one
ORRERY=@ORRERY@
# shellcheck disable=SC2016
RESULTS=@RESULTS@
MERGED=$RESULTS/@MERGED_NAME@
SHARDS=@SHARDS@
merge_words=(merge "$RESULTS"@MERGE_FLAGS@)

# Merges into a file that is whole or not there. An answer may have an exit code of its own: 1 where
# lines were refused, 3 where nothing fits.
merge() {
  local code=0
  "$ORRERY" "${merge_words[@]}" >"$MERGED.part" || code=$?
  case $code in
    0) mv -- "$MERGED.part" "$MERGED" ;;
    1 | 3) if [ -s "$MERGED.part" ]; then mv -- "$MERGED.part" "$MERGED"; fi ;;
  esac
  rm -f -- "$MERGED.part"
  exit "$code"
}

submit() {
  mkdir -p -- "$RESULTS/logs"
  local array common=(--parsable --output="${RESULTS//%/%%}/logs/%A_%a.log" "$@")
  array=$(sbatch --array="0-$((SHARDS - 1))" "${common[@]}" "${BASH_SOURCE[0]}")
  array=${array%%;*} # a cluster's name may follow
  sbatch "${common[@]}" --array=0 --dependency="afterok:$array" --kill-on-invalid-dep=yes \
    "${BASH_SOURCE[0]}" merge >/dev/null
  echo "array $array; when all its tasks are done, the answer is in $MERGED"
}

if [ "${1-}" = merge ]; then
  merge
elif [ -n "${SLURM_ARRAY_TASK_ID-}" ]; then
  # Takes this process's place: Slurm's signals reach it, and it ends with whole lines.
  exec "$ORRERY" shard "$RESULTS" "$SLURM_ARRAY_TASK_ID/$SHARDS" --threads 1
else
  submit "$@"
fi
)##";

const std::string_view job_template =
    R"##(# Written by orrery @VERSION@: an Indexed Job of @SHARDS@ shards, and a job that merges.
# Needs Kubernetes 1.29 or later (backoffLimitPerIndex). Build the image from the Dockerfile beside
# this file, and name it at both `image:`:
#
#   docker build --tag @IMAGE@ --file Dockerfile FOLDER_OF_ORRERY
#   kubectl apply -f @JOB_FILE@
#   kubectl wait --for=condition=complete --timeout=-1s job/@NAME@
#   kubectl patch job/@NAME@-merge --type=merge --patch '{"spec": {"suspend": false}}'
#   kubectl wait --for=condition=complete --timeout=-1s job/@NAME@-merge
#   kubectl logs job/@NAME@-merge        the answer, which also lies on the volume as @MERGED_NAME@
#
# To go on after shards failed, delete the two jobs and apply the file again: results that are on
# the volume are not computed again. An index is tried again after a failure of its own; evictions,
# preemptions and drained nodes do not count.
apiVersion: v1
kind: PersistentVolumeClaim
metadata:
  name: @NAME@-results
spec:
  accessModes: [ReadWriteMany]   # all shards write there; of the default class
  resources:
    requests:
      storage: @STORAGE@
---
apiVersion: v1
kind: ConfigMap
metadata:
  name: @NAME@-question
data:
@QUESTION@---
apiVersion: batch/v1
kind: Job
metadata:
  name: @NAME@
spec:
  completionMode: Indexed
  completions: @SHARDS@
  parallelism: @SHARDS@
  backoffLimitPerIndex: 3
  podFailurePolicy:
    rules:
      - action: Ignore           # the machine's doing, not the shard's
        onPodConditions:
          - type: DisruptionTarget
            status: "True"
      - action: FailJob          # a question that is refused is refused by every shard
        onExitCodes:
          containerName: shard
          operator: In
          values: [2]
  template:
    metadata:
      labels:
        app.kubernetes.io/name: orrery
    spec:
      restartPolicy: Never       # as podFailurePolicy and backoffLimitPerIndex demand
      terminationGracePeriodSeconds: 60
      automountServiceAccountToken: false
      enableServiceLinks: false
      securityContext:
        runAsNonRoot: true
        runAsUser: 10001
        runAsGroup: 10001
        fsGroup: 10001
        fsGroupChangePolicy: OnRootMismatch
        seccompProfile:
          type: RuntimeDefault
      containers:
        - name: shard
          image: @IMAGE@
          args: @SHARD_ARGS@
          resources:
            requests:
              cpu: "1"
              memory: @MEMORY@
            limits:
              memory: @MEMORY@
          securityContext:
            allowPrivilegeEscalation: false
            readOnlyRootFilesystem: true
            capabilities:
              drop: [ALL]
          volumeMounts:
            - name: results
              mountPath: /results
            - name: question
              mountPath: /question
              readOnly: true
            - name: scratch
              mountPath: /tmp
      volumes:
        - name: results
          persistentVolumeClaim:
            claimName: @NAME@-results
        - name: question
          configMap:
            name: @NAME@-question
        - name: scratch
          emptyDir: {}
---
apiVersion: batch/v1
kind: Job
metadata:
  name: @NAME@-merge
spec:
  suspend: true                  # until the shards are done: see above
  backoffLimit: 2
  template:
    metadata:
      labels:
        app.kubernetes.io/name: orrery
    spec:
      restartPolicy: Never
      terminationGracePeriodSeconds: 60
      automountServiceAccountToken: false
      enableServiceLinks: false
      securityContext:
        runAsNonRoot: true
        runAsUser: 10001
        runAsGroup: 10001
        fsGroup: 10001
        fsGroupChangePolicy: OnRootMismatch
        seccompProfile:
          type: RuntimeDefault
      containers:
        - name: merge
          image: @IMAGE@
          command: [/bin/sh, -c]
          args:
            - |
              code=0
              orrery merge /results@MERGE_FLAGS@ >/results/@MERGED_NAME@.part || code=$?
              # An answer may have an exit code: 1 where lines were refused, 3 where nothing fits.
              case $code in
                0) ;;
                1 | 3) [ -s /results/@MERGED_NAME@.part ] || exit "$code" ;;
                *) exit "$code" ;;
              esac
              mv /results/@MERGED_NAME@.part /results/@MERGED_NAME@ && cat /results/@MERGED_NAME@
          resources:
            requests:
              cpu: "1"
              memory: @MEMORY@
            limits:
              memory: @MEMORY@
          securityContext:
            allowPrivilegeEscalation: false
            readOnlyRootFilesystem: true
            capabilities:
              drop: [ALL]
          volumeMounts:
            - name: results
              mountPath: /results
            - name: scratch
              mountPath: /tmp
      volumes:
        - name: results
          persistentVolumeClaim:
            claimName: @NAME@-results
        - name: scratch
          emptyDir: {}
)##";

const std::string_view dockerfile_template =
    R"##(# Written by orrery @VERSION@: an image with orrery, from a checkout of its sources.
#   docker build --tag @IMAGE@ --file Dockerfile FOLDER_OF_ORRERY
FROM debian:bookworm-slim AS build
RUN apt-get update \
 && apt-get install -y --no-install-recommends g++ cmake ninja-build libeigen3-dev \
      libboost-graph-dev libtbb-dev nlohmann-json3-dev libcli11-dev libfmt-dev \
      libtomlplusplus-dev libyaml-cpp-dev libsqlite3-dev zlib1g-dev libsimdjson-dev \
      libprotobuf-dev protobuf-compiler \
 && rm -rf /var/lib/apt/lists/*
WORKDIR /src
COPY CMakeLists.txt LICENSE NOTICE THIRD_PARTY.md ./
COPY README.md ARCHITECTURE.md CONTRIBUTING.md CHANGELOG.md ./
COPY sim sim
COPY hw_models hw_models
COPY topologies topologies
COPY workloads workloads
COPY validation validation
COPY docs docs
RUN cmake -S . -B build -G Ninja -DCMAKE_BUILD_TYPE=Release -DORRERY_TESTS=OFF -DORRERY_PYTHON=OFF \
 && cmake --build build --target orrery_binary \
 && DESTDIR=/install cmake --install build --prefix /usr/local --strip

FROM debian:bookworm-slim
RUN apt-get update \
 && apt-get install -y --no-install-recommends libfmt9 libtbb12 \
      libtomlplusplus3 libyaml-cpp0.7 libsqlite3-0 zlib1g libsimdjson14 libprotobuf32 \
 && rm -rf /var/lib/apt/lists/* \
 && useradd --uid 10001 --user-group --no-create-home --shell /usr/sbin/nologin orrery
COPY --from=build /install/usr/local /usr/local
USER 10001:10001
WORKDIR /tmp
ENTRYPOINT ["orrery"]
)##";

}  // namespace orrery
