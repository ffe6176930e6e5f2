#include "launch/process/job_directory.h"
