#ifndef SIPHON_LAUNCH_OUTPUT_CACHE_DIRECTORY_H_
#define SIPHON_LAUNCH_OUTPUT_CACHE_DIRECTORY_H_

#include <string>

namespace siphon {

// Where a user's programs keep what they would have to find out anew: $XDG_CACHE_HOME/siphon, or
// ~/.cache/siphon. Empty: neither is known. It need not be there.
std::string CacheDirectory();

}  // namespace siphon

#endif  // SIPHON_LAUNCH_OUTPUT_CACHE_DIRECTORY_H_
