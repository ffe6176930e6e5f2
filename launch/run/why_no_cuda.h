#ifndef SIPHON_LAUNCH_RUN_WHY_NO_CUDA_H_
#define SIPHON_LAUNCH_RUN_WHY_NO_CUDA_H_

#include <string>

namespace siphon {

// Why no job runs on CUDA devices here, in one line that names what is left. Loads the CUDA module
// and asks the driver: only where a job wants to.
std::string WhyNoCuda();

}  // namespace siphon

#endif  // SIPHON_LAUNCH_RUN_WHY_NO_CUDA_H_
