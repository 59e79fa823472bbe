// SPDX-License-Identifier: Apache-2.0
// Writes a manifest for Kubernetes.
#include <fmt/format.h>

#include "sim/base/json/tree.h"
#include "sim/launch/script/script_parts.h"

namespace orrery {
namespace {

std::string indented(const std::string& text, std::size_t by) {
  std::string out;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    if (end > at) out += std::string(by, ' ') + text.substr(at, end - at);
    out += '\n';
    at = end + 1;
  }
  return out;
}

// Every pod runs it.
std::string pod_script(const ScriptSubject& s) {
  const std::string all = s.program.train + s.program.file;
  std::string out = "set -euo pipefail\n\n" + checks(s.program);
  out += fmt::format(R"(
# Where the ranks meet: the first pod, by its name in the service.
export MASTER_ADDR={0}-0.{0} MASTER_PORT=29500
for ((i = 0; i < 300; ++i)); do
  if getent hosts "$MASTER_ADDR" >/dev/null; then break; fi
  sleep 2
done

)",
                     s.name);
  if (all.find("RUN_DIR") != std::string::npos)
    out += fmt::format("RUN_DIR=${{RUN_DIR:-/data/{}}}\nmkdir -p \"$RUN_DIR\"\n", s.name);
  if (all.find("RUN_NAME") != std::string::npos)
    out += fmt::format("RUN_NAME=${{RUN_NAME:-{}}}\n", s.name);
  if (!s.program.file_name.empty())
    out += fmt::format("LAYOUT_FILE=/orrery/{}\n", s.program.file_name);
  out += environment(s.flags) + s.program.train;
  out += "set -- \"${train[@]}\"\n";
  return out + start_ranks(s, "JOB_COMPLETION_INDEX", s.name);
}

std::string config_map(const ScriptSubject& s) {
  std::string out = fmt::format(R"(apiVersion: v1
kind: ConfigMap
metadata:
  name: {}
data:
  start.sh: |
)",
                                s.name) +
                    indented(pod_script(s), 4);
  if (s.program.file_name.empty()) return out;
  return out + fmt::format("  {}: |\n", s.program.file_name) + indented(s.program.file, 4);
}

std::string service(const ScriptSubject& s) {
  return fmt::format(R"(apiVersion: v1
kind: Service
metadata:
  name: {0}
spec:
  clusterIP: None
  publishNotReadyAddresses: true
  selector:
    app.kubernetes.io/name: {0}
)",
                     s.name);
}

// Empty values are set by hand; start.sh says which are missing.
std::string values(const ScriptSubject& s) {
  std::string out;
  const auto add = [&](const std::string& name, const std::string& value,
                       const std::string& meaning) {
    out += fmt::format("            # {}\n            - name: {}\n              value: \"{}\"\n",
                       meaning, name, value);
  };
  for (const ReaderValue& v : s.program.needs) add(v.name, "", v.meaning);
  if (s.program.mocks) add("MOCK_DATA", "0", "1: random tokens, for a first run without data");
  return out;
}

std::string job(const ScriptSubject& s) {
  const ScheduledAs& names = *s.scenario.cluster.device.software->scheduled_as;
  return fmt::format(R"(apiVersion: batch/v1
kind: Job
metadata:
  name: {0}
spec:
  completionMode: Indexed
  completions: {1}
  parallelism: {1}
  backoffLimit: 0
  template:
    metadata:
      labels:
        app.kubernetes.io/name: {0}
    spec:
      subdomain: {0}
      restartPolicy: Never
      containers:
        - name: ranks
          image: SET_THE_IMAGE  # it holds the program and its libraries
          command: ["bash", "/orrery/start.sh"]
          args: []  # further words go to the program
          env:
{2}          resources:
            limits:
              {3}: {4}
              # The cluster's name of its NICs, one for each accelerator, and below it the right to
              # pin memory:
              # rdma/NAME: {4}
          # securityContext:
          #   capabilities:
          #     add: ["IPC_LOCK"]
          volumeMounts:
            - name: start
              mountPath: /orrery
            - name: shared-memory
              mountPath: /dev/shm
            - name: data
              mountPath: /data
      volumes:
        - name: start
          configMap:
            name: {0}
        - name: shared-memory
          emptyDir:
            medium: Memory
        - name: data
          persistentVolumeClaim:
            claimName: SET-THE-CLAIM  # a volume that all hosts share
)",
                     s.name, s.plan.hosts, values(s), names.kubernetes, s.plan.accelerators);
}

// A sentence on what pods of one scale-up domain need beside their accelerators.
std::string domain_needs(const ScriptSubject& s) {
  if (s.plan.hosts_per_domain <= 1) return "";
  if (s.scenario.cluster.fabric.scale_up.kind == ScaleUpKind::torus)
    return "The pods need node selectors of their slice's type and shape (on GKE "
           "cloud.google.com/gke-tpu-accelerator and cloud.google.com/gke-tpu-topology).";
  return "Pods of a scale-up domain reach each other's memory only with a claim of the vendor's "
         "driver: add it to the pod's resourceClaims.";
}

}  // namespace

std::string no_kubernetes_reason(const Scenario& scenario) {
  const std::string program = no_script_reason(scenario.stack, scenario.job);
  if (!program.empty()) return program;
  const Device& device = scenario.cluster.device;
  if (device.software && device.software->scheduled_as) return "";
  return fmt::format("{}, which the catalogue knows no resource of Kubernetes for", device.title);
}

std::string kubernetes_manifest(const Scenario& scenario, const LaunchFlags& flags,
                                const ScriptNote& note) {
  const ScriptSubject s = script_subject(scenario, flags, note);
  std::vector<std::string> start = {
      "Start: set the image, the claim and the empty values of the Job, then kubectl apply -f "
      "FILE. "
      "Pods must start together: where others want the same hosts, let the cluster's queue of "
      "whole jobs admit it. Further words for the program are args of its container."};
  if (const std::string domain = domain_needs(s); !domain.empty()) start.push_back(domain);
  return script_head(s, start) + "---\n" + config_map(s) + "---\n" + service(s) + "---\n" + job(s);
}

}  // namespace orrery
