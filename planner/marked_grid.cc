// See planner/validate_schedule.h.
