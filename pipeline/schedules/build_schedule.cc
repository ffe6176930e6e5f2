#include "pipeline/schedules/build_schedule.h"
