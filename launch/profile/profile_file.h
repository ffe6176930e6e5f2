#ifndef SIPHON_LAUNCH_PROFILE_PROFILE_FILE_H_
#define SIPHON_LAUNCH_PROFILE_PROFILE_FILE_H_

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "planner/model_profile.h"
#include "planner/simulator/simulate.h"

namespace siphon {

// A profile with what was measured beside the layers.
struct ProfileFile {
  ModelProfile model;
  TransportCosts transport;    // between two worker processes; all 0: not measured
  CoreSharing cores_together;  // of worker processes on this machine; empty: not measured
  friend bool operator==(const ProfileFile&, const ProfileFile&) = default;
};

// The profile as YAML, every time and size to its last digit: ParseProfile gives an equal value.
std::string WriteProfile(const ProfileFile& profile);

// Reads a profile, strictly; times and sizes that are left out are 0. `name` stands for the file in
// messages. Errors: InvalidArgument "<name>:<line>:<column>: <key>: <what is wrong>; <what would be
// right>".
absl::StatusOr<ProfileFile> ParseProfile(absl::string_view text, absl::string_view name);

// The same from a file. Errors: also NotFound when it is missing.
absl::StatusOr<ProfileFile> LoadProfile(const std::string& path);

}  // namespace siphon

#endif  // SIPHON_LAUNCH_PROFILE_PROFILE_FILE_H_
