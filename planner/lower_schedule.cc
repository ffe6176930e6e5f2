#include "planner/lower_schedule.h"
