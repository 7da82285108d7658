# A volume that outlives sandboxes. Nothing is changed: there is no import in it.
vol = Volume.get_or_create(name=f"user-{user_id}-workspace", size_gb=20)

with Sandbox(
    template="code-interpreter",
    volumes=[vol.mount("/workspace")],
) as sb:
    sb.run("cd /workspace && git status")
