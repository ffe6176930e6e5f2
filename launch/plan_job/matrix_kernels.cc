#include "launch/plan_job/matrix_kernels.h"

#include <algorithm>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"

namespace siphon {

MatrixKernels MatrixKernelsOf(absl::string_view cpuinfo) {
  for (absl::string_view line : absl::StrSplit(cpuinfo, '\n')) {
    if (!absl::ConsumePrefix(&line, "flags")) continue;
    const std::vector<absl::string_view> flags =
        absl::StrSplit(line, absl::ByAnyChar(" \t:"), absl::SkipEmpty());
    const auto has = [&](absl::string_view flag) {
      return std::find(flags.begin(), flags.end(), flag) != flags.end();
    };
    return has("amx_bf16") && has("avx512_fp16") ? MatrixKernels::kTiles : MatrixKernels::kPairs;
  }
  return MatrixKernels::kPairs;
}

MatrixKernels MatrixKernelsHere() {
  static const MatrixKernels here = [] {
    std::ifstream cpus("/proc/cpuinfo");
    return MatrixKernelsOf(std::string(std::istreambuf_iterator<char>(cpus), {}));
  }();
  return here;
}

}  // namespace siphon
