#include "launch/process/end_output.h"

#include <cerrno>
#include <cstring>

#include "launch/process/exit_codes.h"

namespace siphon {

int EndOutput(int code, std::FILE* output) {
  const bool lost_some = std::ferror(output) != 0;  // why is not known any more
  errno = 0;
  const bool flushed = std::fflush(output) == 0;
  const int error = errno;
  if (flushed && !lost_some) return code;
  std::fprintf(stderr, "siphon: standard output could not be written%s%s\n", error == 0 ? "" : ": ",
               error == 0 ? "" : std::strerror(error));
  return code == kExitDone || code == kExitStopped ? kExitFailure : code;
}

}  // namespace siphon
