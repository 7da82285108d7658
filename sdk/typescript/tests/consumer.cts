// A program with `require`. It is only compiled: its types are those of the second build.
import dayfly = require("dayfly");

async function work(): Promise<string> {
  await using sandbox = await dayfly.Sandbox.create({ template: "base", ttlSeconds: 60 });
  const result: dayfly.ExecResult = await sandbox.exec("true", { check: true });
  return result.stdout;
}

export = work;
