// A program with `import`. It is only compiled: its types are those of the first build.
import { type ExecResult, Sandbox } from "dayfly";
import { Agent, type AgentResult } from "dayfly/agents";

export async function ask(): Promise<AgentResult> {
  await using agent = new Agent(() => ({ text: "done" }), { scope: "session", budget: { steps: 3 } });
  return await agent.run("What is six times seven?");
}

export async function work(): Promise<string> {
  await using sandbox = await Sandbox.create({ template: "base", ttlSeconds: 60 });
  const result: ExecResult = await sandbox.exec(["true"], { check: true });
  return result.stdout;
}
