#ifndef SIPHON_LAUNCH_RUN_HOLD_PLACES_H_
#define SIPHON_LAUNCH_RUN_HOLD_PLACES_H_

#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "launch/config/job_config.h"

namespace siphon {

// What one run holds of the folders that it writes into, until it ends in whatever way.
using HeldPlaces = std::vector<std::shared_ptr<const void>>;

// Takes output.directory and that of the checkpoints for this run alone; makes those that are not
// there. Two runs in one folder would take each other's checkpoints for remains. Where the file
// system knows no locks, nothing is held. Errors: InvalidArgument, with the place of the key, where
// another run is in one of them; those of making it.
absl::StatusOr<HeldPlaces> HoldPlaces(const JobConfig& job);

}  // namespace siphon

#endif  // SIPHON_LAUNCH_RUN_HOLD_PLACES_H_
