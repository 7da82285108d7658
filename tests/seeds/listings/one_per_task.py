# One microVM for one task. Changed: the import. The indentation, which the source has lost, is put
# back.
from dayfly import Sandbox
# Whatever the agent decided to run this turn.
agent_command = "python3 -c 'import statistics; print(statistics.mean([2,4,6,8]))'"
# One hardware-isolated microVM per task (~179ms to create), auto-killed on exit.
with Sandbox.create(
    template="code-interpreter", # python + node scientific stack
    ttl_seconds=300, # reaped automatically if abandoned
    metadata={"task": "agent-tool-call"},
) as sb:
    result = sb.exec(agent_command, timeout_seconds=30)
    print(result.stdout, result.exit_code)
# Context manager destroys the VM here — no state survives to the next task.
