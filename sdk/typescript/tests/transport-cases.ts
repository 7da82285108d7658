// Asks at addresses where something is wrong. Also a program of its own, for Bun and Deno.

import type { Client, me } from "dayfly";

export interface Told {
  name: string;
  code: string;
  message: string;
  hint: string;
}

interface Package {
  Client: typeof Client;
  me: typeof me;
}

/** What is said about each address. */
export async function tell(dayfly: Package, urls: Record<string, string>): Promise<Record<string, Told>> {
  const told: Record<string, Told> = {};
  for (const [name, apiUrl] of Object.entries(urls)) {
    const client = new dayfly.Client({ apiUrl, apiKey: "df_test", maxRetries: name === "untrusted" ? 3 : 0 });
    const error: unknown = await dayfly.me({ client }).catch((caught: unknown) => caught);
    const { code = "", message = "", hint = "" } = error as Partial<Told>;
    told[name] = { name: (error as Error).name, code, message, hint };
  }
  return told;
}

const [, program = "", urls] = process.argv;
if (urls !== undefined && program.includes("transport-cases")) {
  const dayfly = (await import("dayfly")) as unknown as Package;
  console.log(JSON.stringify(await tell(dayfly, JSON.parse(urls) as Record<string, string>)));
}
