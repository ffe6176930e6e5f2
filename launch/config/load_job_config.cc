#include "launch/config/load_job_config.h"
