# One sandbox for a whole conversation, from the same article. Nothing is changed: its import is in
# the part before it. The comment before `finally` stands for the loop, and the test puts a call there.
# Per-session: one VM for the whole conversation.
sb = Sandbox.create(template="code-interpreter", ttl_seconds=1800)
try:
    def run_code(code: str) -> str:
        r = sb.run_code(code, language="python")
        return (r.stdout + (r.stderr if r.exit_code else "")).strip()
    # ... run the agent loop here, all calls share `sb` ...
finally:
    sb.kill()  # always tear down; ttl_seconds is the backstop
