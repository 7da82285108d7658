// A program with `import`. It is only compiled: its types are those of the first build.
import { type ExecResult, Sandbox } from "dayfly";

export async function work(): Promise<string> {
  await using sandbox = await Sandbox.create({ template: "base", ttlSeconds: 60 });
  const result: ExecResult = await sandbox.exec(["true"], { check: true });
  return result.stdout;
}
