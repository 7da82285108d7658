// The calls of a builder as shared cases have them.

import { type ContextOptions, Template } from "dayfly";

/** The name of a method, and what it is given. */
export type BuilderCall = [name: string, ...given: unknown[]];

/** A builder after those calls. `options` are of the first. */
export async function built(calls: readonly BuilderCall[], options: ContextOptions = {}): Promise<Template> {
  let builder: unknown = Template;
  for (const [name, ...all] of calls) {
    const given = name === "start" && all.length === 2 ? [all[0], { ready: all[1] }] : all;
    if (name.startsWith("from_")) given.push(options);
    const method = name.replace(/_([a-z])/g, (_, letter: string) => letter.toUpperCase());
    const owner = builder as Record<string, (...given: unknown[]) => unknown>;
    builder = await owner[method]?.(...given);
  }
  return builder as Template;
}
