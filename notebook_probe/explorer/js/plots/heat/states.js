/** States of a cell of the heat map without a value. */

export const NOT_MEASURED = 1;
export const NOT_FINITE = 2;
