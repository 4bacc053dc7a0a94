/** Reading a formula of series, as the kernel does: `= 1 - accuracy`, `= mean(grad_norm@"blocks.*")`. */

const OF_SERIES = ["abs", "sqrt", "exp", "log", "log10", "running_min", "running_max"];
export const OF_MODULES = ["mean", "sum", "min", "max"];

const KINDS = [
  String.raw`(?<number>\d+\.?\d*(?:[eE][+-]?\d+)?|\.\d+(?:[eE][+-]?\d+)?)`,
  String.raw`(?<name>[A-Za-z_]\w*(?:\.\w+)*)`,
  `(?<quoted>"[^"]*"|'[^']*')`,
  "(?<sign>[-+*/^()@])",
];
const TOKEN = new RegExp(`\\s*(?:${KINDS.join("|")})`, "y");
const MODULE = /\w+(?:\.\w+)*/y;
const DEEPEST = 40;

/** @typedef {{ kind: string, text: string, at: number }} Token */

/**
 * The parts of a formula.
 * @param {string} formula
 * @returns {FormulaNode}
 */
export function parsed(formula) {
  const tokens = tokensOf(formula);
  let [at, depth] = [0, 0];

  /** @param {string} expected */
  const error = (expected) => {
    const where = tokens[at] ? `before '${tokens[at].text}'` : "at its end";
    return new Error(`'${formula}': ${expected} is expected ${where}`);
  };
  /** @param {string} signs */
  const takes = (signs) => {
    const token = tokens[at];
    if (token?.kind !== "sign" || !signs.includes(token.text)) return "";
    at += 1;
    return token.text;
  };

  /**
   * Parts between signs of one precedence.
   * @param {string} signs
   * @param {() => FormulaNode} part
   */
  function operations(signs, part) {
    let node = part();
    for (let sign = takes(signs); sign; sign = takes(signs)) {
      node = { kind: "operation", sign, left: node, right: part() };
    }
    return node;
  }

  const sum = () => operations("+-", product);
  const product = () => operations("*/", signed);

  /** @returns {FormulaNode} */
  function signed() {
    depth += 1;
    if (depth > DEEPEST) throw new Error(`'${formula}': more than ${DEEPEST} parts within each other`);
    const node = takes("-") ? negative() : power();
    depth -= 1;
    return node;
  }

  /** @returns {FormulaNode} */
  const negative = () => ({ kind: "operation", sign: "-", left: { kind: "number", value: 0 }, right: signed() });

  /** @returns {FormulaNode} */
  function power() {
    const base = atom();
    return takes("^") ? { kind: "operation", sign: "^", left: base, right: signed() } : base;
  }

  /** @returns {FormulaNode} */
  function atom() {
    const token = tokens[at];
    if (!token || (token.kind === "sign" && token.text !== "(")) throw error("a number, a series or a bracket");
    at += 1;
    if (token.kind === "number") return { kind: "number", value: Number(token.text) };
    if (token.kind === "sign") return bracketed();
    if (token.kind === "name" && takes("(")) return call(token.text);
    return series(token);
  }

  function bracketed() {
    const node = sum();
    if (!takes(")")) throw error("a closing bracket");
    return node;
  }

  /**
   * @param {string} name
   * @returns {FormulaNode}
   */
  function call(name) {
    if (![...OF_SERIES, ...OF_MODULES].includes(name)) throw new Error(`'${formula}': no function '${name}'`);
    const of = bracketed();
    if (OF_MODULES.includes(name) && of.kind !== "series") {
      throw new Error(`'${formula}': ${name}() takes one quantity, over its modules`);
    }
    return { kind: "call", name, of };
  }

  /**
   * @param {Token} quantity
   * @returns {FormulaNode}
   */
  function series(quantity) {
    const name = unquoted(quantity.text);
    if (!takes("@")) return { kind: "series", quantity: name, module: null };
    const token = tokens[at];
    if (!token || token.kind === "sign") throw error("a module after @");
    MODULE.lastIndex = token.at; // a module such as `0.conv` begins as a number does
    const text = token.kind === "quoted" ? token.text : (MODULE.exec(formula)?.[0] ?? token.text);
    while (tokens[at] && tokens[at].at < token.at + text.length) at += 1;
    return { kind: "series", quantity: name, module: unquoted(text) };
  }

  const whole = sum();
  if (tokens[at]) throw error("an operator");
  return whole;
}

/**
 * @param {string} formula
 * @returns {Token[]}
 */
function tokensOf(formula) {
  const found = [];
  TOKEN.lastIndex = 1; // behind the "="
  while (formula.slice(TOKEN.lastIndex).trim()) {
    const before = TOKEN.lastIndex;
    const groups = TOKEN.exec(formula)?.groups;
    if (!groups) {
      throw new Error(`'${formula}': '${formula.slice(before).trim()[0]}' is not allowed; names with it need quotes`);
    }
    const [kind, text] = /** @type {[string, string]} */ (Object.entries(groups).find(([, one]) => one !== undefined));
    found.push({ kind, text, at: TOKEN.lastIndex - text.length });
  }
  return found;
}

/** @param {string} text */
function unquoted(text) {
  return text.replace(/^["']|["']$/g, "");
}
