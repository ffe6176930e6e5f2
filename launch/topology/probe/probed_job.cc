#include "launch/topology/probe/probed_job.h"

#include <optional>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "launch/process/ask_child.h"
#include "planner/status.h"

namespace siphon {
namespace {

// Measuring a server of 16 devices takes about a minute: 240 pairs, some of them all at once.
constexpr Nanos kPatience{int64_t{600} * 1'000'000'000};
constexpr absl::string_view kKept = "kept ";
constexpr absl::string_view kByHand =
    "siphon topology --probe --output FILE writes a file for topology.source file";

absl::StatusOr<std::string> KeptFile(UnknownServer unknown,
                                     const std::function<absl::StatusOr<ProbeSources>()>& sources) {
  SIPHON_ASSIGN_OR_RETURN(ProbeSources here, sources());
  here.measures = unknown == UnknownServer::kMeasure;
  SIPHON_ASSIGN_OR_RETURN(const ProbedServer probed, ProbeServer(here));
  if (!probed.file.empty()) return probed.file;
  return absl::FailedPreconditionError(
      absl::StrCat("what was measured could not be kept: it needs NVML, which tells the driver's "
                   "version, and a place (XDG_CACHE_HOME or HOME) to write to; ",
                   kByHand));
}

}  // namespace

absl::StatusOr<JobConfig> WithProbedTopology(
    JobConfig job, UnknownServer unknown,
    const std::function<absl::StatusOr<ProbeSources>()>& sources) {
  if (job.topology.source != "probe") return job;
  const std::optional<std::string> answer = AskChild(kPatience, [&]() -> std::string {
    const absl::StatusOr<std::string> file = KeptFile(unknown, sources);
    return file.ok() ? absl::StrCat(kKept, *file) : std::string(file.status().message());
  });
  absl::string_view text = "measuring this machine gave no answer";
  if (answer.has_value()) text = *answer;
  if (!absl::ConsumePrefix(&text, kKept)) return ConfigError(job, "topology.source", text);
  job.topology.source = "file";
  job.topology.name = std::string(text);
  return job;
}

}  // namespace siphon
