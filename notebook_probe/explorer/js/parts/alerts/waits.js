/** Beginning of the kernel's text about a rule whose series are not recorded. */

export const WAITS = "waits for ";
