"""How long a test waits before it calls something hung: bounds that no busy machine reaches."""

HANG_SECONDS = 900.0  # for another process or thread; where idle it takes some two seconds
HANG_CPU_SECONDS = 60.0  # of this process, for work that is linear and takes less than one
