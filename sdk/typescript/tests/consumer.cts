// A program with `require`. It is only compiled: its types are those of the second build.
import dayfly = require("dayfly");
import agents = require("dayfly/agents");

async function work(): Promise<string> {
  await using sandbox = await dayfly.Sandbox.create({ template: "base", ttlSeconds: 60 });
  const result: dayfly.ExecResult = await sandbox.exec("true", { check: true });
  return result.stdout;
}

const ask = (): Promise<agents.AgentResult> => new agents.Agent(() => ({ text: "done" })).run("x");

export = { work, ask };
