"""The walk of docs/walk.md with E2B: compiled against its package by .ci/lines.py, not run."""

import base64
import time
import urllib.error
import urllib.request

from e2b_code_interpreter import Sandbox

with Sandbox.create() as sandbox:
    # A chart
    chart = sandbox.run_code("import matplotlib.pyplot as plt; plt.plot([1, 4, 2]); plt.show()")
    with open("chart.png", "wb") as file:
        file.write(base64.b64decode(chart.results[0].png or ""))
    # A session that remembers
    sandbox.run_code("total = 40")
    print(sandbox.run_code("total + 2").text)
    # A fork: two ways on from here
    for child, code in zip(sandbox.fork(count=2), ["total * 2", "total - 1"]):
        if isinstance(child, Exception):
            raise child
        print(child.run_code(code).text)
        child.kill()
    # An undo
    before = sandbox.create_snapshot()
    sandbox.run_code("del total")
with Sandbox.create(before.snapshot_id) as sandbox:
    print(sandbox.run_code("total").text)
    # A preview
    sandbox.commands.run("python3 -m http.server 8000", background=True)
    while True:
        try:
            print(urllib.request.urlopen(f"https://{sandbox.get_host(8000)}").status)
            break
        except urllib.error.HTTPError:
            time.sleep(0.1)
