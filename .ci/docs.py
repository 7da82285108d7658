"""Runs the code blocks of the documents against a running daemon, each page in a shell of its own.

`sh`, `python` and `ts` blocks are run in their order, in an empty directory, as they stand there.
Those in TypeScript are compiled first, all at once, beside the package, which finds itself by its
name there; `npm ci` and `npm run build` in sdk/typescript come before. A line with a comment says
what is to be checked: `# prints X`, `# exits N`, or `# until Ctrl-C` for what does not end by itself,
which is interrupted after two seconds.

    <!-- before: COMMANDS -->     what a reader has and the runner must make first
    <!-- not run: REASON -->      the next block is left out, and counted

A skill (`SKILL.md`) is run in a copy of its directory, where its scripts are.

Data (`json`, `toml`, `yaml`, `text`) is not run; any other language is an error. A page without a
block is no error.
"""
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time

PAGE_SECONDS_MAX = 420
TYPESCRIPT = "sdk/typescript"
COMPILED = f"{TYPESCRIPT}/dist/docs"
PROLOGUE = """
set -eu -o pipefail
trap 'echo "line: $BASH_COMMAND" >&2' ERR
"""
PART = re.compile(
    r"<!-- (?P<kind>before|not run|quickstart)(?:: (?P<text>.*?))? -->|^```(?P<language>\w+)\n(?P<code>.*?)^```",
    re.S | re.M)
CHECK = re.compile(r"^(?P<command>.*?)\s+# (?P<what>prints|exits|until Ctrl-C)\s*(?P<value>.*)$")


def checked(line):
    """A line of a block, as the shell runs it."""
    match = CHECK.match(line)
    if not match:
        return line
    command, what, value = match.group("command", "what", "value")
    quoted = "'" + value.replace("'", "'\\''") + "'"
    if what == "prints":
        return (f"said=$({command}); [ \"$said\" = {quoted} ] || "
                f"{{ echo \"wanted {value}, got $said\" >&2; exit 1; }}")
    if what == "exits":
        return (f"status=0; {command} || status=$?; [ $status = {value} ] || "
                f"{{ echo \"wanted status {value}, got $status\" >&2; exit 1; }}")
    return f"status=0; timeout -s INT -k 5 2 {command} || status=$?; [ $status = 124 ] || exit 1"


class Page:
    def __init__(self, path):
        self.path, self.script, self.run, self.left_out = path, [PROLOGUE], 0, []
        self.typescript = {}
        reason = None
        for part in PART.finditer(open(path, encoding="utf-8").read()):
            if part["kind"] == "before":
                self.script.append(part["text"])
            elif part["kind"]:
                reason = part["text"] or "has a step of its own"
            elif part["language"] in ("sh", "python", "ts"):
                if reason is None:
                    self.add(part["language"], part["code"])
                else:
                    self.left_out.append(reason)
                reason = None
            elif part["language"] not in ("json", "toml", "yaml", "text"):
                sys.exit(f"{path}: nobody runs {part['language']}")

    def add(self, language, code):
        self.run += 1
        if language == "sh":
            self.script += [checked(line) for line in code.splitlines()]
        elif language == "python":
            self.script.append(f"python3 - <<'PYTHON_BLOCK'\n{code}PYTHON_BLOCK")
        else:
            name = f"{os.path.basename(self.path).removesuffix('.md')}-{self.run}"
            self.typescript[name] = code
            self.script.append(f"node '{os.getcwd()}/{COMPILED}/{name}.mjs'")

    def check(self, environment):
        began = time.monotonic()
        with tempfile.TemporaryDirectory() as place:
            if os.path.basename(self.path) == "SKILL.md":
                shutil.copytree(os.path.dirname(self.path), place, dirs_exist_ok=True)
            try:
                done = subprocess.run(
                    ["bash", "-c", "\n".join(self.script)], cwd=place,
                    env=dict(environment, HOME=place, XDG_CONFIG_HOME=place),
                    stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                    text=True, timeout=PAGE_SECONDS_MAX)
                status, said = done.returncode, done.stdout
            except subprocess.TimeoutExpired as error:
                status, said = 124, (error.stdout or b"").decode()
            subprocess.run("dayfly ls -q | xargs -r dayfly rm", shell=True, env=environment,
                           stdout=subprocess.DEVNULL, check=False)
        took = time.monotonic() - began
        print(f"{self.path}: {self.run} blocks, {took:.1f} s"
              + "".join(f"; not run: {reason}" for reason in self.left_out), flush=True)
        if status:
            print(f"FAILED with {status}\n{said}")
        return status == 0


def compile_typescript(pages):
    """Makes programs of the TypeScript blocks. What does not compile fails with its place."""
    blocks = {name: code for page in pages for name, code in page.typescript.items()}
    if not blocks:
        return
    compiler = f"{TYPESCRIPT}/node_modules/typescript/bin/tsc"
    if not os.path.exists(compiler) or not os.path.exists(f"{TYPESCRIPT}/dist/esm"):
        sys.exit(f"TypeScript blocks need `npm ci` and `npm run build` in {TYPESCRIPT}")
    shutil.rmtree(COMPILED, ignore_errors=True)
    os.makedirs(COMPILED)
    for name, code in blocks.items():
        with open(f"{COMPILED}/{name}.mts", "w", encoding="utf-8") as file:
            file.write(code)
    # As the examples of its README are compiled.
    language = ["--target", "es2022", "--lib", "es2022,esnext.disposable", "--types", "node", "--strict"]
    files = [f"dist/docs/{name}.mts" for name in blocks]
    done = subprocess.run(["node", "node_modules/typescript/bin/tsc", "--module", "nodenext", *language, *files],
                          cwd=TYPESCRIPT, check=False)
    if done.returncode:
        sys.exit("TypeScript blocks do not compile")


def main():
    root = os.getcwd()
    environment = dict(
        os.environ, PATH=f"{root}/target/dist:{os.environ['PATH']}",
        PYTHONPATH=f"{root}/sdk/python/src", PYTHONDONTWRITEBYTECODE="1")
    pages = [page for page in map(Page, sys.argv[1:]) if page.run or page.left_out]
    compile_typescript(pages)
    passed = [page.check(environment) for page in pages]
    print(f"{sum(page.run for page in pages)} blocks of {len(pages)} pages")
    sys.exit(0 if all(passed) else 1)


if __name__ == "__main__":
    main()
