/** How the kernel begins what it says of a rule whose series are not recorded. */

export const WAITS = "waits for ";
