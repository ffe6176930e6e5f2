#ifndef SIPHON_LAUNCH_COMMANDS_PLAN_PUBLISHED_H_
#define SIPHON_LAUNCH_COMMANDS_PLAN_PUBLISHED_H_

#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "launch/commands/command.h"

namespace siphon {

// What --published takes: "all", then the sections of MPress's evaluation.
std::vector<std::string> PublishedSections();

// Our figures beside those of MPress's evaluation, on the presets of its servers; `say` is told
// what is being planned. Errors: NotFound for an unknown section; as RunMpressReport.
absl::StatusOr<std::string> PublishedPlans(absl::string_view section, OutputFormat format,
                                           absl::FunctionRef<void(absl::string_view)> say);

}  // namespace siphon

#endif  // SIPHON_LAUNCH_COMMANDS_PLAN_PUBLISHED_H_
