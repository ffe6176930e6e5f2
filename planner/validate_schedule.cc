#include "planner/validate_schedule.h"
