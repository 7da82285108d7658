"""Serves one script until its standard input closes or it is ended.

    serve.py SCRIPT [--port PORT]

Prints its address, without `/v1`. `GET /_log` has the requests and what was wrong with them. That it
ends with its standard input means that nothing stays behind when the tests that started it are killed.
"""
import argparse
import sys

from scripted_model.script import ScriptError, load_script
from scripted_model.server import ScriptedModel


def main() -> int:
    parser = argparse.ArgumentParser(description="Serves one script behind the wire formats of Anthropic and OpenAI.")
    parser.add_argument("script")
    parser.add_argument("--port", type=int, default=0)
    options = parser.parse_args()
    try:
        script = load_script(options.script)
    except (OSError, ScriptError) as error:
        print(error, file=sys.stderr)
        return 2
    with ScriptedModel(script, options.port) as model:
        print(model.address, flush=True)
        try:
            sys.stdin.buffer.read()
        except KeyboardInterrupt:
            return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
