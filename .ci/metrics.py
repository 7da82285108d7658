"""What Prometheus makes of a running daemon: its own checks of the text and of the rules, and an
answer to every expression of the dashboards, while the daemon is used.

    python3 .ci/metrics.py http://127.0.0.1:9790/metrics

DAYFLY_API_URL and DAYFLY_API_KEY are those of the daemon.
"""

import json
import os
import re
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.parse
import urllib.request
from pathlib import Path

ROOT = Path(__file__).parent.parent
RULES = ROOT / "deploy/prometheus/dayfly.rules.yml"
DASHBOARDS = sorted((ROOT / "deploy/grafana").glob("*.json"))
PATIENCE_SECONDS = 90


def get(url: str) -> str:
    with urllib.request.urlopen(url, timeout=10) as response:
        return response.read().decode()


def promtool(words: list[str], text: str = "") -> None:
    ran = subprocess.run(["promtool", *words], input=text, capture_output=True, text=True, timeout=60)
    if ran.returncode != 0 or (text and (ran.stdout or ran.stderr)):
        sys.exit(f"promtool {' '.join(words)}: {ran.returncode}\n{ran.stdout}{ran.stderr}")


def ask(method: str, path: str, body: dict | None = None) -> dict:
    request = urllib.request.Request(
        os.environ["DAYFLY_API_URL"] + path,
        method=method,
        data=None if body is None else json.dumps(body).encode(),
        headers={
            "authorization": f"Bearer {os.environ['DAYFLY_API_KEY']}",
            "content-type": "application/json",
        },
    )
    try:
        with urllib.request.urlopen(request, timeout=60) as response:
            return json.loads(response.read() or b"{}")
    except urllib.error.HTTPError as error:
        return {"status": error.code}


def use_it() -> None:
    sandbox = ask("POST", "/v1/sandboxes", {"template": "base", "ttl_seconds": 120})["id"]
    ask("POST", f"/v1/sandboxes/{sandbox}/exec", {"cmd": "true"})
    ask("GET", "/v1/sandboxes/nobody")
    ask("DELETE", f"/v1/sandboxes/{sandbox}")


class Prometheus:
    """A server that scrapes the daemon every second."""

    def __init__(self, directory: Path, target: str) -> None:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.address = f"127.0.0.1:{free.getsockname()[1]}"
        config = directory / "prometheus.yml"
        parts = urllib.parse.urlsplit(target)
        config.write_text(
            json.dumps(
                {
                    "global": {"scrape_interval": "1s", "evaluation_interval": "1s"},
                    "rule_files": [str(RULES)],
                    "scrape_configs": [
                        {
                            "job_name": "dayfly",
                            "metrics_path": parts.path,
                            "static_configs": [{"targets": [parts.netloc]}],
                        }
                    ],
                }
            )
        )
        self.process = subprocess.Popen(
            [
                "prometheus",
                f"--config.file={config}",
                f"--storage.tsdb.path={directory / 'data'}",
                f"--web.listen-address={self.address}",
                "--log.level=error",
            ]
        )

    def query(self, expression: str) -> list:
        query = urllib.parse.urlencode({"query": expression})
        try:
            answer = json.loads(get(f"http://{self.address}/api/v1/query?{query}"))
        except urllib.error.HTTPError as error:
            sys.exit(f"{expression}: {error.read().decode()}")
        except (urllib.error.URLError, ConnectionError):
            return []
        return answer["data"]["result"]

    def end(self) -> None:
        self.process.terminate()
        self.process.wait(timeout=30)


def dashboard_expressions() -> list[str]:
    found = []
    for path in DASHBOARDS:
        for panel in json.loads(path.read_text())["panels"]:
            found += [target["expr"].replace("$instance", ".*") for target in panel["targets"]]
    return found


def rule_expressions() -> list[str]:
    return re.findall(r"^ *expr: (.*)$", RULES.read_text(), re.MULTILINE)


def check(prometheus: Prometheus) -> None:
    deadline = time.monotonic() + PATIENCE_SECONDS
    waiting = dashboard_expressions()
    assert waiting, "no dashboards"
    rounds = 0
    while waiting:
        use_it()
        rounds += 1
        waiting = [expression for expression in waiting if not prometheus.query(expression)]
        if waiting and time.monotonic() > deadline:
            sys.exit("no answer to:\n" + "\n".join(waiting))
    for expression in rule_expressions():
        prometheus.query(expression)
    alerts = prometheus.query('ALERTS{alertstate="firing"}')
    assert not alerts, alerts
    counted = (len(dashboard_expressions()), len(rule_expressions()))
    print(f"{counted[0]} expressions of dashboards and {counted[1]} of rules answer, after {rounds} rounds of use")


def main() -> None:
    target = sys.argv[1]
    use_it()
    text = get(target)
    promtool(["check", "metrics"], text)
    promtool(["check", "rules", str(RULES)])
    with tempfile.TemporaryDirectory(prefix="dayfly-prometheus-") as directory:
        prometheus = Prometheus(Path(directory), target)
        try:
            check(prometheus)
        finally:
            prometheus.end()
    print(f"promtool has nothing against {len(text.splitlines())} lines of metrics")


main()
