#!/usr/bin/env python3
"""Does what whoever watches a daemon does: takes its traces and reads its metrics every few seconds.

    .ci/watcher.py METRICS_PORT

Prints the port that takes traces, then waits. At the end of its standard input it prints how many messages
and how many readings there were. A process of its own, so that it takes no time from one that measures.
"""
import http.server
import json
import sys
import threading
import urllib.request

READING_SECONDS = 5


class Receiver(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    messages = 0

    def do_POST(self):
        self.rfile.read(int(self.headers["Content-Length"]))
        Receiver.messages += 1
        self.send_response(200)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_):
        pass


def read_metrics(port, is_over, readings):
    while not is_over.wait(READING_SECONDS):
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=10) as response:
                readings.append(len(response.read()))
        except OSError:
            # Not started yet, or ended already.
            continue


def main():
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Receiver)
    is_over, readings = threading.Event(), []
    threading.Thread(target=server.serve_forever, daemon=True).start()
    threading.Thread(target=read_metrics, args=(sys.argv[1], is_over, readings), daemon=True).start()
    print(server.server_port, flush=True)
    sys.stdin.read()
    is_over.set()
    print(json.dumps({"messages": Receiver.messages, "readings": len(readings)}), flush=True)


if __name__ == "__main__":
    main()
