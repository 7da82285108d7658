"""Every limit of the bridge."""

CONTEXTS_MAX = 16
# Runs of one context that wait for their turn.
WAITING_RUNS_MAX = 32
# Ended runs of one context whose events can still be read.
KEPT_RUNS_MAX = 32
CONNECTIONS_MAX = 256

NAME_CHARACTERS_MAX = 128
REQUEST_BYTES_MAX = 8 << 20
# One line of an answer, its end included.
EVENT_BYTES_MAX = 4 << 20
# Events of one run; the oldest go when there are more.
RUN_BYTES_MAX = 16 << 20
# Even if every character takes six bytes of JSON, such a piece fits in a line.
TEXT_CHARACTERS_MAX = 512 << 10
ERROR_CHARACTERS_MAX = 64 << 10
TRACEBACK_LINES_MAX = 200
# What an interpreter printed while nothing ran, for the next run.
LATE_CHARACTERS_MAX = 64 << 10

# From the start of an interpreter to its first answer. Emulated guests set the figure.
START_SECONDS_MAX = 300
# How long an interrupted run may go on before its interpreter is ended.
INTERRUPT_SECONDS_MAX = 2
INTERRUPT_AGAIN_SECONDS = 0.2
# How often a shell is asked again how a run ended, by interrupts of that run.
REPORTS_AGAIN_MAX = 256
KILL_SECONDS_MAX = 5
