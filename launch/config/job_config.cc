#include "launch/config/job_config.h"
