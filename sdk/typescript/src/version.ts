/** The version of this package, for the `User-Agent`. A test compares it with `package.json`. */
export const VERSION = "0.1.0";
