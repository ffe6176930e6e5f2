#ifndef SIPHON_TESTS_LAUNCH_RUN_CHECKPOINT_BITS_H_
#define SIPHON_TESTS_LAUNCH_RUN_CHECKPOINT_BITS_H_

#include <map>
#include <string>

namespace siphon {

// Every tensor in the safetensors files of a checkpoint, by name, as raw bytes: parameters and
// moments.
std::map<std::string, std::string> CheckpointBits(const std::string& checkpoint);

}  // namespace siphon

#endif  // SIPHON_TESTS_LAUNCH_RUN_CHECKPOINT_BITS_H_
