# The smallest use: a computer, a file, a command. Changed: the import. The indentation, which the
# source has lost, is put back.
from dayfly import Sandbox
# The model wrote this. We do not trust it. That's the point.
model_code = """
import sys, platform
print('hello from', platform.node())
print('python', sys.version.split()[0])
# A model might also try `import os; os.system('rm -rf /')` here.
# In a microVM, that deletes a guest we're about to throw away. Shrug.
"""
# create() restores a baked Firecracker snapshot (~179ms p50), not a cold boot.
with Sandbox.create(template="code-interpreter", ttl_seconds=120) as sbx:
    sbx.filesystem.write("/workspace/cell.py", model_code)
    result = sbx.exec("python3 /workspace/cell.py", timeout_seconds=30)
    print("exit:", result.exit_code)
    print(result.stdout)
# Context manager exits -> the whole VM (kernel and all) is destroyed.
