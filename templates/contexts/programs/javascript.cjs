// Runs JavaScript for a context: commands come on standard input, reports go to the descriptor that
// the first argument names, one JSON text on a line. Standard output and error are the user's.
'use strict';

const fs = require('node:fs');
const path = require('node:path');
const repl = require('node:repl');
const readline = require('node:readline');
const util = require('node:util');
const vm = require('node:vm');
const { createRequire } = require('node:module');
const { PassThrough } = require('node:stream');

const reports = Number(process.argv[2]);
const JSON_CHARACTERS_MAX = 256 * 1024;

// Node's own REPL knows top-level await and dynamic imports. It gets no terminal and only evaluates.
const server = repl.start({
  input: new PassThrough(),
  output: new PassThrough(),
  prompt: '',
  terminal: false,
  useGlobal: true,
});
globalThis.require = createRequire(path.join(process.cwd(), 'context.js'));
process.argv.splice(1);

// An interrupt can end a run in the middle of a write. Node's own streams would wait for the end of
// that write for ever; here there is nothing to wait for.
const patience = new Int32Array(new SharedArrayBuffer(4));
const FULL_PIPE_PAUSE_MS = 2;

function writeWhole(descriptor, bytes) {
  while (bytes.length) {
    try {
      bytes = bytes.subarray(fs.writeSync(descriptor, bytes));
    } catch (error) {
      if (error.code !== 'EAGAIN') throw error;
      Atomics.wait(patience, 0, 0, FULL_PIPE_PAUSE_MS);
    }
  }
}

for (const [stream, descriptor] of [[process.stdout, 1], [process.stderr, 2]]) {
  stream.write = (chunk, encoding, done) => {
    const called = typeof encoding === 'function' ? encoding : done;
    const named = typeof encoding === 'string' ? encoding : 'utf8';
    writeWhole(descriptor, typeof chunk === 'string' ? Buffer.from(chunk, named) : chunk);
    if (called) process.nextTick(called);
    return true;
  };
}

// The run that is under way, as the function that ends it.
let finish = null;

function fail(error) {
  if (finish) {
    finish({ error: describeError(error) });
  } else {
    // Of something that an earlier run left behind.
    process.stderr.write(`${describe(error)}\n`);
  }
}

// The REPL would print an error and go on; its caller would never hear of it.
if (server._domain) {
  server._domain.removeAllListeners('error');
  server._domain.on('error', fail);
}
process.on('uncaughtException', fail);
process.on('unhandledRejection', fail);
process.on('SIGINT', () => {
  if (finish) fail(interruption());
});

function interruption() {
  const error = new Error('the run was interrupted');
  error.name = 'Interrupted';
  error.stack = '';
  return error;
}

// A script that only calls back: Node watches for SIGINT while a script runs, not in functions.
const step = Symbol.for('dayfly.step');
const watched = new vm.Script('globalThis[Symbol.for("dayfly.step")]()');

function run(code, number) {
  return new Promise((resolve) => {
    finish = (report) => {
      finish = null;
      resolve(report);
    };
    const evaluated = (error, value) => {
      if (!finish) return;
      if (error) {
        fail(error instanceof repl.Recoverable ? error.err : error);
      } else {
        finish(describeValue(value));
      }
    };
    globalThis[step] = () => {
      delete globalThis[step];
      server.eval(prepared(code), server.context, `cell-${number}`, evaluated);
    };
    try {
      watched.runInThisContext({ breakOnSigint: true });
    } catch (error) {
      fail(error.code === 'ERR_SCRIPT_EXECUTION_INTERRUPTED' ? interruption() : error);
    }
  });
}

// What notebooks allow and a script does not: to declare a name again, and to import anywhere.
function prepared(code) {
  return code
    .replace(/^(?:const|let)(?=[\s{[])/gm, 'var')
    .replace(/^class\s+([\p{L}_$][\p{L}\p{N}_$]*)/gmu, 'var $1 = class $1')
    .replace(/^import\s+(['"][^'"\n]+['"])/gm, 'await import($1)')
    .replace(/^import\s+([^'"();]+?)\s+from\s+(['"][^'"\n]+['"])/gm, (_, names, from) => {
      const [, single, rest] = /^([\p{L}_$][\p{L}\p{N}_$]*)?\s*,?\s*([^]*)$/u.exec(names);
      const parts = [];
      if (single) parts.push(`{ default: ${single} }`);
      if (rest.startsWith('*')) parts.push(rest.replace(/^\*\s*as\s+/, ''));
      if (rest.startsWith('{')) parts.push(rest.replace(/\s+as\s+/g, ': '));
      return parts.map((part) => `var ${part} = await import(${from})`).join('; ');
    });
}

function describe(value) {
  try {
    return util.inspect(value);
  } catch {
    return Object.prototype.toString.call(value);
  }
}

function describeValue(value) {
  if (value === undefined) return {};
  const data = { 'text/plain': describe(value) };
  const isPlain =
    Array.isArray(value) ||
    (value !== null && typeof value === 'object' &&
      [Object.prototype, null].includes(Object.getPrototypeOf(value)));
  if (isPlain) {
    try {
      const text = JSON.stringify(value);
      if (text && text.length <= JSON_CHARACTERS_MAX) data['application/json'] = text;
    } catch {
      // It holds itself, or a BigInt.
    }
  }
  return { data };
}

function describeError(error) {
  if (!util.types.isNativeError(error) && !(error instanceof Error)) {
    return { name: 'Uncaught', value: describe(error), traceback: [] };
  }
  const lines = String(error.stack ?? '').split('\n');
  // Below the user's own frames there is only this program.
  const own = lines.findIndex((line) => /\((?:node:|.*javascript\.cjs)|at node:/.test(line));
  return {
    name: String(error.name),
    value: String(error.message),
    traceback: (own < 0 ? lines : lines.slice(0, own)).filter(Boolean),
  };
}

function report(value) {
  writeWhole(reports, Buffer.from(`${JSON.stringify(value)}\n`));
}

readline.createInterface({ input: process.stdin }).on('line', async (line) => {
  const { code, number } = JSON.parse(line);
  report(await run(code, number));
});
process.stdin.on('end', () => process.exit(0));
