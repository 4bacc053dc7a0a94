/** What a cell of the heat map holds, but for a value. */

export const NOT_MEASURED = 1;
export const NOT_FINITE = 2;
