#ifndef SIPHON_LAUNCH_PROFILE_PROFILE_FILE_H_
#define SIPHON_LAUNCH_PROFILE_PROFILE_FILE_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "planner/model_profile.h"
#include "planner/simulator/simulate.h"

namespace siphon {

// Where a layer begins in a file, or what a key says; both count from 1.
struct ProfilePlace {
  int line = 0;  // 0: nowhere
  int column = 0;
  bool has_optimizer = true;  // it says what its optimizer takes
  bool has_backward = true;   // it says what gradients of its parameters take
};

// A profile with what was measured beside the layers.
struct ProfileFile {
  ModelProfile model;
  TransportCosts transport;          // between two worker processes; all 0: not measured
  CoreSharing cores_together;        // of worker processes on this machine; empty: not measured
  std::vector<ProfilePlace> places;  // [layer], for messages; empty: it is no file's
  ProfilePlace layers_place;         // of 'layers'
  ProfilePlace model_place;          // of 'model'
  ProfilePlace microbatch_place;     // likewise
  // Whatever file they stand in.
  friend bool operator==(const ProfileFile& a, const ProfileFile& b) {
    return a.model == b.model && a.transport == b.transport && a.cores_together == b.cores_together;
  }
};

// The profile as YAML, every time and size to its last digit: ParseProfile gives an equal value.
std::string WriteProfile(const ProfileFile& profile);

// Reads a profile, strictly; there is a layer at least. Times and sizes that are left out are 0,
// but every layer says what its forward takes, one with parameters also what its optimizer and its
// weight_backward or whole_backward take. `name` stands for the file in messages. Errors:
// InvalidArgument "<name>:<line>:<column>: <key>: <what is wrong>; <what would be right>".
absl::StatusOr<ProfileFile> ParseProfile(absl::string_view text, absl::string_view name);

// The same from a file. Errors: also NotFound when it is missing.
absl::StatusOr<ProfileFile> LoadProfile(const std::string& path);

}  // namespace siphon

#endif  // SIPHON_LAUNCH_PROFILE_PROFILE_FILE_H_
