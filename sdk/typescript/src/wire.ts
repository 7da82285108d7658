/** Short names for the generated types, as the server writes them and as callers see them. */

import type { components } from "./generated/api.js";
import type { Camel } from "./names.js";

export type Wire = components["schemas"];

/** How long a sandbox lives. */
export type Lifecycle = Camel<Wire["Lifecycle"]>;
/** A sandbox as the server described it last. */
export type SandboxInfo = Camel<Wire["Sandbox"]>;
/** A snapshot as the server described it. */
export type SnapshotInfo = Camel<Wire["Snapshot"]>;
/** A volume as the server described it. */
export type VolumeInfo = Camel<Wire["Volume"]>;
/** What a volume is for a new sandbox. Made by `volume.mount`. */
export type VolumeMount = Camel<Wire["VolumeMount"]>;
/** A template, and how far its bake is. */
export type TemplateInfo = Camel<Wire["Template"]>;
/** Whose key this is. */
export type Me = Camel<Wire["Me"]>;
/** One command of a sandbox. */
export type ProcessInfo = Camel<Wire["Process"]>;
/** One context of a sandbox. */
export type ContextInfo = Camel<Wire["Context"]>;
/** One entry of a directory. */
export type FileEntry = Camel<Wire["FileEntry"]>;
/** What a write wrote. */
export type FileWritten = Camel<Wire["FileWritten"]>;
/** What differs on a sandbox's disk. */
export type ChangeList = Camel<Wire["ChangeList"]>;
export type NetworkMode = Wire["NetworkMode"];
/** A rule as a caller writes it: `"example.com:443"`, or in parts. */
export type NetworkRuleWish = Camel<Wire["RuleWish"]>;
/** A policy as a caller wishes it. */
export type NetworkWish = Camel<Wire["NetworkWish"]>;
/** A rule as the server keeps it. */
export type NetworkRule = Camel<Wire["NetworkRule"]>;
/** What a sandbox tried to reach. */
export type NetworkLog = Camel<Wire["NetworkLog"]>;
/** A port that something listens on. */
export type Port = Camel<Wire["Port"]>;
/** A way to a port for visitors. */
export type PortLink = Camel<Wire["PortLink"]>;

/** A way to one file for those who have no key. `id` is the prefix of its own key, by which it is revoked. */
export type FileLink = Omit<Camel<Wire["FileLink"]>, "address"> & {
  /** For whoever has it. */
  url: string;
};
/** What a promote did. */
export type Promoted = Camel<Wire["Promoted"]>;
/** What a capture cost. */
export type Capture = Camel<Wire["Capture"]>;
export type OnTimeout = Wire["OnTimeout"];
