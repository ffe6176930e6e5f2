#ifndef SIPHON_LAUNCH_RUN_GENERATE_H_
#define SIPHON_LAUNCH_RUN_GENERATE_H_

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace siphon {

struct GenerateOptions {
  std::string checkpoint;  // one checkpoint, or a directory of them: then the newest
  std::string prompt;
  int64_t length = 400;      // new tokens
  double temperature = 0.8;  // 0: always the likeliest
  int64_t top_k = 40;        // draw among so many likeliest; 0: among all
  uint64_t seed = 1;
};

// Continues a text with a gpt trained on bytes, handing over each piece of it (whole UTF-8
// characters) as it is made. The same options give the same text. Errors: NotFound, InvalidArgument
// as of Checkpoint; InvalidArgument when the checkpoint's model is no gpt or its tokens are no
// bytes.
absl::Status Generate(const GenerateOptions& options,
                      const std::function<void(absl::string_view)>& emit);

// Index drawn from softmax(logits / temperature) among the `top_k` largest, with `uniform` in [0,
// 1). Ties go to the smaller index. Pure; exposed for tests.
int64_t DrawToken(const std::vector<float>& logits, double temperature, int64_t top_k,
                  double uniform);

}  // namespace siphon

#endif  // SIPHON_LAUNCH_RUN_GENERATE_H_
