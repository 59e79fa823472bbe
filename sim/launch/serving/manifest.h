// SPDX-License-Identifier: Apache-2.0
// Knows the Kubernetes manifests that start a deployment's engines.
#pragma once

#include <string>
#include <string_view>

#include "sim/base/text/enum_names.h"
#include "sim/launch/serving/engine.h"

namespace orrery {

// deployment: Kubernetes' own kinds, for engines that do all and fit a host. dynamo:
// DynamoGraphDeployment of NVIDIA Dynamo. llm_d: model servers, InferencePool and HTTPRoute of
// llm-d, with a LeaderWorkerSet where an engine spans hosts.
enum class ManifestForm : std::uint8_t { deployment, dynamo, llm_d };
inline constexpr auto manifest_form_text =
    enum_names<ManifestForm>({"deployment", "dynamo", "llm-d"});
constexpr std::string_view to_text(ManifestForm form) { return manifest_form_text[form]; }

// The plainest form that can hold it.
ManifestForm plainest_form(const ServedDeployment& deployment);

// YAML. Error at `flag`: a form that cannot hold the deployment.
std::string manifest(const ServedDeployment& deployment, ManifestForm form,
                     const std::string& flag);

}  // namespace orrery
