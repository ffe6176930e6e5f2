#ifndef SIPHON_LAUNCH_PROFILE_PIPEDREAM_GRAPH_H_
#define SIPHON_LAUNCH_PROFILE_PIPEDREAM_GRAPH_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "partitioner/profile_graph.h"

namespace siphon {

// Reads the graph text of PipeDream's profiler: a line for each node and each edge,
//   node7 -- LSTM(2048, 1024) -- forward_compute_time=3.190, backward_compute_time=5.348,
//       activation_size=[6291456.0; 131072.0], parameter_size=50364416.000 -- stage_id=1
//   <TAB>node7 -- node8
// (the node on one line; times in milliseconds, sizes in bytes, of one minibatch; the sizes in a
// list add up; stage_id or vlayer_id may follow and is not used). Also read: figures without
// decimals, blanks around a line, blank lines, edges before nodes, an edge that stands twice.
// A source whose description starts with "Input" is an input: its figures are dropped, for they are
// the wait for data. Gradients and an optimizer's momentum are taken to be as large as the
// parameters, each; views and in-place results stash nothing of their own.
// `name` stands for the file in messages. Errors: InvalidArgument "<name>:<line>:<column>: <what is
// wrong>; <what would be right>".
absl::StatusOr<ProfileGraph> ParsePipeDreamGraph(absl::string_view text, absl::string_view name);

// Whether `text` has a line that only such a file has.
bool LooksLikePipeDreamGraph(absl::string_view text);

// A profile in either format: PipeDream's graph text, or our own YAML (profile_file.h), whose
// layers become a chain. Errors: also NotFound when the file is missing.
absl::StatusOr<ProfileGraph> LoadProfileGraph(const std::string& path);

}  // namespace siphon

#endif  // SIPHON_LAUNCH_PROFILE_PIPEDREAM_GRAPH_H_
